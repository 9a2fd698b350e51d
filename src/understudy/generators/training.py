"""Train a network so that its rows have the embedding that was released (torch, lazily).

The loss is the squared distance between released and generated mean features, block by block
(DP-MERF, eqs. 7, 16 and 18). Choices enter through their probabilities, so their features are
expected ones and nothing is rounded on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import MissingExtraError
from understudy.features import Block, FeatureMap, Fourier
from understudy.generators.network import Network
from understudy.published import Release
from understudy.schema import Layout

Progress = Callable[[int, int, float], None]
"""Called with the steps done, the steps in all, and the loss."""

SETTLING_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class Training:
    """Public settings of the network and its training."""

    hidden: tuple[int, ...] = (256, 256, 256)
    noise_dim: int = 16
    steps: int = 2000
    batch: int = 1024
    learning_rate: float = 3e-3
    features_per_step: int = 2048
    seed: int = 0


def train_network(
    release: Release, training: Training, *, progress: Progress | None = None
) -> Network:
    """Fit a network to a release; the same release and settings give the same network."""
    torch = _torch()
    rng = np.random.default_rng(training.seed)
    layout, label = release.plan.layout, release.embedding.label
    num_labels = release.embedding.num_labels
    per_label = max(2, training.batch // num_labels)
    modules = _modules(
        torch, training.noise_dim + (num_labels if label else 0), training.hidden, layout.width, rng
    )
    labels = torch.eye(num_labels).repeat_interleave(per_label, dim=0) if label else None
    optimiser = torch.optim.Adam(modules.parameters(), lr=training.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training.steps)
    terms = [
        _Term(torch, release, block, training, rng)
        for block in release.embedding.blocks
        if block.map.dim > 1
    ]
    for step in range(training.steps):
        cells = _generate(
            torch, modules, layout, label, labels, rng, per_label * num_labels, training.noise_dim
        )
        loss = sum(term.loss(cells, per_label, num_labels) for term in terms)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if progress is not None and (step % 20 == 19 or step + 1 == training.steps):
            progress(step + 1, training.steps, float(loss.detach()))
    return _frozen(torch, modules, release, labels, rng, training)


class _Term:
    """One block of the loss: its targets, and the pieces of its map that steps take in turn."""

    def __init__(
        self,
        torch: Any,
        release: Release,
        block: Block,
        training: Training,
        rng: np.random.Generator,
    ) -> None:
        counts = release.label_counts
        self.per_label = block.per_label
        totals = counts[:, None] if block.per_label else counts.sum()
        self.targets = torch.from_numpy((release.sums(block.name) / totals).astype(np.float32))
        self.pieces = list(_pieces(block.map, training.features_per_step))
        self.rng = rng

    def loss(self, cells: Any, per_label: int, num_labels: int) -> Any:
        """Squared distance of mean features, averaged over label values."""
        map_, columns, scale = self.pieces[self.rng.integers(len(self.pieces))]
        features = map_(cells)
        targets = self.targets if columns is None else self.targets[:, columns] * scale
        if self.per_label:
            means = features.reshape(num_labels, per_label, -1).mean(1)
        else:
            means = features.mean(0, keepdim=True)
        return ((means - targets) ** 2).sum(1).mean()


def _pieces(
    map_: FeatureMap, size: int
) -> Iterator[tuple[FeatureMap, npt.NDArray[np.int64] | None, float]]:
    """A long Fourier map in pieces of about ``size``: random features need no particular company."""
    if not isinstance(map_, Fourier) or map_.dim <= size:
        yield map_, None, 1.0
        return
    half = map_.dim // 2
    step = size // 2
    for start in range(0, half - half % step, step):
        piece, columns = map_.slice(start, start + step)
        yield piece, columns, float(np.sqrt(map_.dim / piece.dim))


def _generate(
    torch: Any, modules: Any, layout: Layout, label: tuple[int, int] | None, labels: Any,
    rng: np.random.Generator, num_rows: int, noise_dim: int,
) -> Any:  # fmt: skip
    """Cells of fresh rows, differentiable.  # (num_rows, width)"""
    noise = torch.from_numpy(rng.standard_normal((num_rows, noise_dim), dtype=np.float32))
    scores = modules(noise if labels is None else torch.cat([noise, labels], dim=1))
    numbers = torch.sigmoid(scores[:, : len(layout.numbers)])
    runs = []
    for choice in layout.choices:
        if label == (choice.start, choice.stop):
            runs.append(labels)
            continue
        shares = torch.softmax(scores[:, choice.start : choice.stop], dim=1)
        if choice.flags_null:
            numbers = _with_nulls(
                torch, numbers, layout.numbers.index(choice.column), shares[:, 1], rng
            )
        runs.append(shares)
    return torch.cat([numbers, *runs], dim=1)


def _with_nulls(torch: Any, numbers: Any, column: int, share: Any, rng: np.random.Generator) -> Any:
    """Put the number in the middle where its null flag falls (straight-through gradient)."""
    drawn = torch.from_numpy(rng.random(len(share), dtype=np.float32)) < share.detach()
    null = drawn.float() + share - share.detach()
    mixed = numbers[:, column] * (1 - null) + 0.5 * null
    return torch.cat([numbers[:, :column], mixed[:, None], numbers[:, column + 1 :]], dim=1)


def _modules(
    torch: Any, inputs: int, hidden: tuple[int, ...], outputs: int, rng: np.random.Generator
) -> Any:
    """Linear, batch norm and ReLU layers; first weights come from our generator, not a global seed."""
    layers: list[Any] = []
    sizes = (inputs, *hidden)
    for size_in, size_out in pairwise(sizes):
        layers += [
            torch.nn.Linear(size_in, size_out),
            torch.nn.BatchNorm1d(size_out),
            torch.nn.ReLU(),
        ]
    layers.append(torch.nn.Linear(sizes[-1], outputs))
    modules = torch.nn.Sequential(*layers)
    with torch.no_grad():
        for layer in modules:
            if isinstance(layer, torch.nn.Linear):
                bound = 1 / np.sqrt(layer.in_features)
                for values in (layer.weight, layer.bias):
                    values.copy_(
                        torch.from_numpy(
                            rng.uniform(-bound, bound, tuple(values.shape)).astype(np.float32)
                        )
                    )
    return modules


def _frozen(
    torch: Any,
    modules: Any,
    release: Release,
    labels: Any,
    rng: np.random.Generator,
    training: Training,
) -> Network:
    """The trained layers as plain matrices, batch norms folded in with settled statistics."""
    with torch.no_grad():
        for layer in modules:
            if isinstance(layer, torch.nn.BatchNorm1d):
                layer.reset_running_stats()
                layer.momentum = None  # a plain average over what follows
        num_rows = len(labels) if labels is not None else training.batch
        for _ in range(max(1, SETTLING_ROWS // num_rows)):
            noise = torch.from_numpy(
                rng.standard_normal((num_rows, training.noise_dim), dtype=np.float32)
            )
            modules(noise if labels is None else torch.cat([noise, labels], dim=1))
        weights, biases = [], []
        for layer in modules:
            if isinstance(layer, torch.nn.Linear):
                weights.append(layer.weight.double().numpy().T)
                biases.append(layer.bias.double().numpy())
            elif isinstance(layer, torch.nn.BatchNorm1d):
                gain = (layer.weight / torch.sqrt(layer.running_var + layer.eps)).double().numpy()
                shift = layer.bias.double().numpy() - layer.running_mean.double().numpy() * gain
                weights[-1] = weights[-1] * gain
                biases[-1] = biases[-1] * gain + shift
    counts = release.label_counts
    label = release.embedding.label
    return Network(
        schema=release.plan.schema, weights=tuple(weights), biases=tuple(biases),
        noise_dim=training.noise_dim, label=label,
        default_num_rows=release.plan.num_rows or max(1, round(float(counts.sum()))),
        label_shares=tuple(float(share) for share in counts / counts.sum()) if label else (),
    )  # fmt: skip


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "network") from None
    return torch
