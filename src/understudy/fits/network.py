"""Train a generator network of table rows by the MMD to the released mean embedding (DP-MERF; torch, lazily).

The loss is the squared distance between released and generated mean features, block by block
and label value by label value (DP-MERF, eqs. 7, 16 and 18). Choices enter through their
probabilities, so their features are expected ones and nothing is rounded on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from understudy.arrays import LossProgress, load_torch, one_thread
from understudy.fits.mmd_loss import descend, loss_terms, rows_per_label
from understudy.generators.network import STRETCH, Layers, Network, draw_inputs, scores_of
from understudy.released import Release
from understudy.schema import Layout

ROWS_PER_LABEL = 50
"""A batch has at least so many rows for each label value."""


@dataclass(frozen=True, slots=True)
class Training:
    """Public settings of the network and its training."""

    hidden: Sequence[int] = (256, 256)
    noise_dim: int = 8
    num_components: int = 64
    steps: int = 3000
    batch: int = 500
    learning_rate: float = 5e-3
    features_per_step: int = 1000
    seed: int = 0


@one_thread()
def train_network(release: Release, training: Training, *, progress: LossProgress | None = None) -> Network:
    """Fit a network to a release; the same release and settings give the same network."""
    torch, rng = load_torch(), np.random.default_rng(training.seed)
    layout, label = release.plan.layout, release.label
    shares = release.label_counts / release.label_counts.sum()
    sizes = rows_per_label(shares, max(training.batch, ROWS_PER_LABEL * len(shares)))
    one_hot = np.repeat(np.eye(len(shares)), sizes, axis=0)
    labels = torch.from_numpy(one_hot.astype(np.float32))
    weights, biases, skip = layers = _first_layers(torch, training, len(shares), layout.width, rng)
    terms = loss_terms(release, sizes, rng, features_per_step=training.features_per_step)

    def new_cells() -> Any:
        inputs = draw_inputs(one_hot, training.noise_dim, training.num_components, rng)
        scores = scores_of(torch.from_numpy(inputs.astype(np.float32)), labels, layers, relu=torch.relu)
        return _cells(torch, scores, layout, label, labels, rng)

    descend([*weights, *biases, skip], terms, new_cells, training=training, progress=progress)
    return Network(
        schema=release.plan.schema,
        weights=tuple(weight.detach().double().numpy() for weight in weights),
        biases=tuple(bias.detach().double().numpy() for bias in biases),
        skip=skip.detach().double().numpy(),
        noise_dim=training.noise_dim,
        num_components=training.num_components,
        default_num_rows=release.plan.num_rows or round(release.total_rows),
        label=label,
        label_shares=tuple(shares.tolist()),
    )


def _first_layers(torch: Any, training: Training, num_labels: int, width: int, rng: np.random.Generator) -> Layers:
    """Layers as leaf tensors; first values come from our own generator, not a global seed."""
    inputs = training.noise_dim + training.num_components + num_labels
    sizes = list(pairwise((inputs, *training.hidden, width)))

    def leaf(rows: int, *shape: int) -> Any:
        bound = 1 / math.sqrt(rows)
        values = rng.uniform(-bound, bound, shape).astype(np.float32)
        return torch.from_numpy(values).requires_grad_()

    weights = [leaf(rows, rows, columns) for rows, columns in sizes]
    biases = [leaf(rows, columns) for rows, columns in sizes]
    return weights, biases, leaf(num_labels, num_labels, width)


def _cells(
    torch: Any, scores: Any, layout: Layout, label: tuple[int, int] | None, labels: Any, rng: np.random.Generator
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
        if choice.flags_null:  # the number lies in the middle where its null flag falls, as the encoder has it
            # The share of nulls is learnt from its own features; a gradient through drawn flags would be biased.
            column = layout.numbers.index(choice.column)
            drawn = torch.from_numpy(rng.random(len(shares), dtype=np.float32)) < shares[:, 1].detach()
            mixed = torch.where(drawn, 0.5, numbers[:, column])
            numbers = torch.cat([numbers[:, :column], mixed[:, None], numbers[:, column + 1 :]], dim=1)
        runs.append(shares)
    return torch.cat([numbers, *runs], dim=1)
