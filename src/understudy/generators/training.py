"""Train a network so that its rows have the embedding that was released (torch, lazily).

The loss is the squared distance between released and generated mean features, block by block
and label value by label value (DP-MERF, eqs. 7, 16 and 18). Choices enter through their
probabilities, so their features are expected ones and nothing is rounded on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import MissingExtraError
from understudy.features import Block, FeatureMap, Fourier, Grid, Sign, Tensors
from understudy.generators.interpolation import trainable
from understudy.generators.network import STRETCH, Network, draw_inputs
from understudy.published import Release
from understudy.schema import Layout

Progress = Callable[[int, int, float], None]
"""Called with the steps done, the steps in all, and the loss."""

WARM_UP = 0.05
ROWS_PER_LABEL, FEWEST_PER_LABEL = 50, 8
SUBSETS_PER_STEP = 16


@dataclass(frozen=True, slots=True)
class Training:
    """Public settings of the network and its training."""

    hidden: tuple[int, ...] = (256, 256)
    noise_dim: int = 8
    num_components: int = 64
    steps: int = 3000
    batch: int = 500
    learning_rate: float = 5e-3
    features_per_step: int = 1000
    seed: int = 0


def train_network(
    release: Release, training: Training, *, progress: Progress | None = None
) -> Network:
    """Fit a network to a release; the same release and settings give the same network."""
    torch = load_torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in another order would give another network
    try:
        return _train(torch, release, training, progress)
    finally:
        torch.set_num_threads(threads)


def _train(torch: Any, release: Release, training: Training, progress: Progress | None) -> Network:
    rng = np.random.default_rng(training.seed)
    layout, label = release.plan.layout, release.label
    shares = release.label_counts / release.label_counts.sum()
    sizes = _rows_per_label(shares, max(training.batch, ROWS_PER_LABEL * len(shares)))
    one_hot = np.repeat(np.eye(len(shares)), sizes, axis=0)
    labels = torch.from_numpy(one_hot.astype(np.float32))
    modules = _Modules(torch, training, len(shares), layout.width, rng)
    optimiser = torch.optim.Adam(modules.parameters, lr=training.learning_rate, betas=(0.9, 0.99))
    terms = _terms(torch, release, sizes, training, rng)
    for step in range(training.steps if terms else 0):
        for group in optimiser.param_groups:
            group["lr"] = training.learning_rate * _pace(step / training.steps)
        inputs = draw_inputs(one_hot, training.noise_dim, training.num_components, rng)
        scores = modules.scores(torch.from_numpy(inputs.astype(np.float32)), labels)
        cells = _cells(torch, scores, layout, label, labels, rng)
        loss = sum(term.loss(cells) for term in terms if term.has_turn(step / training.steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if progress is not None and (step % 20 == 19 or step + 1 == training.steps):
            progress(step + 1, training.steps, float(loss.detach()))
    return Network(
        schema=release.plan.schema,
        weights=tuple(weight.detach().double().numpy() for weight in modules.weights),
        biases=tuple(bias.detach().double().numpy() for bias in modules.biases),
        skip=modules.skip.detach().double().numpy(),
        noise_dim=training.noise_dim,
        num_components=training.num_components,
        default_num_rows=release.plan.num_rows or round(float(release.label_counts.sum())),
        label=label,
        label_shares=tuple(float(share) for share in shares),
    )


class _Modules:
    """The layers as leaf tensors; first values come from our own generator, not a global seed."""

    def __init__(
        self, torch: Any, training: Training, num_labels: int, width: int, rng: np.random.Generator
    ) -> None:
        inputs = training.noise_dim + training.num_components + num_labels
        layers = list(pairwise((inputs, *training.hidden, width)))

        def leaf(rows: int, *shape: int) -> Any:
            bound = 1 / math.sqrt(rows)
            values = rng.uniform(-bound, bound, shape).astype(np.float32)
            return torch.from_numpy(values).requires_grad_()

        self.weights = [leaf(rows, rows, columns) for rows, columns in layers]
        self.biases = [leaf(rows, columns) for rows, columns in layers]
        self.skip = leaf(num_labels, num_labels, width)
        self.parameters = [*self.weights, *self.biases, self.skip]
        self._relu = torch.relu

    def scores(self, inputs: Any, labels: Any) -> Any:
        """Outputs before the heads.  # (num_rows, width)"""
        hidden = inputs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = self._relu(hidden @ weight + bias)
        return hidden @ self.weights[-1] + self.biases[-1] + labels @ self.skip


class _Term:
    """One block of the loss: its targets, and the pieces of its map that steps take in turn."""

    def __init__(
        self,
        torch: Any,
        release: Release,
        block: Block,
        sizes: npt.NDArray[np.int64],
        training: Training,
        rng: np.random.Generator,
    ) -> None:
        counts = release.label_counts
        totals = counts[:, None] if block.per_label else counts.sum()
        targets = (release.sums(block.name) / totals).astype(np.float32)
        shares = counts / counts.sum() if block.per_label else np.ones(1)
        groups = sizes if block.per_label else sizes.sum(keepdims=True)
        losses = dict(release.plan.setting("loss_weights", {}))
        weight = losses.get(block.name, block.weight**2)
        averaging = np.repeat(np.eye(len(groups)), groups, axis=1) / groups[:, None]
        self.sizes = groups.tolist()
        self.averaging = torch.from_numpy(averaging.astype(np.float32))  # (copies, num_rows)
        self.spare = torch.from_numpy((groups - 1).astype(np.float32))
        self.weights = torch.from_numpy((weight * shares).astype(np.float32))
        self.pieces = [
            (trainable(torch, piece), torch.from_numpy(np.ascontiguousarray(targets[:, columns] * scale)))
            for piece, columns, scale in _pieces(block.map, training.features_per_step)
        ]
        self.turn = _turn(block.name, release.plan.setting("turns", ()))
        self._rng = rng

    def has_turn(self, done: float) -> bool:
        """Whether the block counts at this point of the training."""
        return self.turn[0] <= done < self.turn[1]

    def loss(self, cells: Any) -> Any:
        """Squared distance of mean features, weighted like the released kernel.

        A mean over g rows has a squared norm that is too large by the rows' own spread, the mean
        squared norm less that of the mean, over g - 1. Left in, it would pull rows together.
        """
        map_, targets = self.pieces[self._rng.integers(len(self.pieces))]
        means, norms = self._means(map_, cells)  # (copies, features), (copies,)
        spread = (norms - (means**2).sum(1)) / self.spare
        return (self.weights * (((means - targets) ** 2).sum(1) - spread)).sum()

    def _means(self, map_: FeatureMap, cells: Any) -> tuple[Any, Any]:
        if isinstance(map_, Tensors):
            return map_.means(cells, self.sizes)
        features = map_(cells)
        return self.averaging @ features, self.averaging @ (features**2).sum(1)


def _terms(
    torch: Any,
    release: Release,
    sizes: npt.NDArray[np.int64],
    training: Training,
    rng: np.random.Generator,
) -> list[_Term]:
    """The blocks that a network can be trained through: histograms and counts have no slope."""
    return [
        _Term(torch, release, block, sizes, training, rng)
        for block in release.blocks
        if block.map.sign is not Sign.CONSTANT and not isinstance(block.map, Grid)
    ]


def _turn(name: str, turns: Sequence[str]) -> tuple[float, float]:
    """The stretch of training in which a block counts: all of it, unless blocks take turns."""
    if name not in turns:
        return 0.0, math.inf
    place = list(turns).index(name)
    return place / len(turns), (place + 1) / len(turns)


def _pieces(map_: FeatureMap, size: int) -> list[tuple[FeatureMap, Any, float]]:
    """A long map in pieces of about ``size``, where its features lie, and their scale there.

    Random features and drawn subsets need no company: a step sees one piece of them.
    """
    if isinstance(map_, Fourier) and map_.dim > size:
        step = size // 2
        starts = range(0, map_.dim // 2 - step + 1, step)
        cut = [map_.slice(start, start + step) for start in starts]
        return [(piece, columns, math.sqrt(map_.dim / piece.dim)) for piece, columns in cut]
    if isinstance(map_, Tensors) and not map_.is_dense:
        starts = range(0, len(map_.subsets), SUBSETS_PER_STEP)
        return [map_.part(slice(start, start + SUBSETS_PER_STEP)) for start in starts]
    return [(map_, slice(None), 1.0)]


def _cells(
    torch: Any,
    scores: Any,
    layout: Layout,
    label: tuple[int, int] | None,
    labels: Any,
    rng: np.random.Generator,
) -> Any:
    """Positions and probabilities, differentiable.  # (num_rows, width)"""
    stretched = (1 + 2 * STRETCH) * torch.sigmoid(scores[:, : len(layout.numbers)]) - STRETCH
    numbers = stretched + (stretched.clamp(0.0, 1.0) - stretched).detach()
    runs = []
    for choice in layout.choices:
        if label == (choice.start, choice.stop):
            runs.append(labels)
            continue
        shares = torch.softmax(scores[:, choice.start : choice.stop], dim=1)
        if choice.flags_null:
            column = layout.numbers.index(choice.column)
            numbers = _with_nulls(torch, numbers, column, shares[:, 1], rng)
        runs.append(shares)
    return torch.cat([numbers, *runs], dim=1)


def _with_nulls(torch: Any, numbers: Any, column: int, share: Any, rng: np.random.Generator) -> Any:
    """Put the number in the middle where its null flag falls, as the encoder does.

    The share of nulls is learnt from its own features; a gradient through the drawn flags would
    be a biased one.
    """
    drawn = torch.from_numpy(rng.random(len(share), dtype=np.float32)) < share.detach()
    mixed = torch.where(drawn, 0.5, numbers[:, column])
    return torch.cat([numbers[:, :column], mixed[:, None], numbers[:, column + 1 :]], dim=1)


def _rows_per_label(shares: npt.NDArray[np.float64], batch: int) -> npt.NDArray[np.int64]:
    """Rows of each label value in a batch, by the root of its share so that rare ones are seen."""
    roots = np.sqrt(shares)
    sizes = np.maximum(np.rint(batch * roots / roots.sum()), FEWEST_PER_LABEL)
    return np.asarray(sizes, dtype=np.int64)


def _pace(done: float) -> float:
    """Learning rate over the course of training: a short warm-up, then a cosine to zero."""
    return min(1.0, (done + 1e-3) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * done))


def load_torch() -> Any:
    """Import torch, or say how to get it; call it before a budget is spent on what needs it."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "network") from None
    return torch
