"""Fit a mixture of product distributions to the released mean embedding (torch, lazily).

Expectations of products factorise inside a component, so a mixture's mean embedding is a matrix
product of its components' expected column features: nothing is sampled during training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from understudy.arrays import Floats, Integers, LossProgress, load_torch, one_thread
from understudy.features import FeatureMap, Hermite, OneHot, Sign
from understudy.fits.mmd_loss import descend, loss_terms, rows_per_label
from understudy.generators.mixture import ColumnGrid, Mixture, grids_of, spans_of
from understudy.released import Release
from understudy.schema import Column, Layout
from understudy.schema.columns import to_position

POINTS_PER_CELL = 8
"""Nodes of the midpoint rule by which mean features of a cell are integrated."""


@dataclass(frozen=True, slots=True)
class MixtureTraining:
    """Public settings of the mixture and its training."""

    num_components: int = 500
    steps: int = 600
    learning_rate: float = 0.15
    start_spread: float = 0.5
    seed: int = 0


@one_thread()
def train_mixture(release: Release, training: MixtureTraining, *, progress: LossProgress | None = None) -> Mixture:
    """Fit a mixture to a release; the same release and settings give the same mixture."""
    torch, rng = load_torch(), np.random.default_rng(training.seed)
    shares = release.label_counts / release.label_counts.sum()
    sizes = rows_per_label(shares, max(training.num_components, 8 * len(shares)))
    cells = _ComponentCells(torch, release.plan.layout, release.label, sizes)
    start = training.start_spread * rng.standard_normal((sizes.sum(), cells.width))
    scores = torch.from_numpy(start.astype(np.float32)).requires_grad_()
    terms = loss_terms(release, sizes, rng, expected=cells.expected)
    descend([scores], terms, lambda: cells(scores), training=training, progress=progress)
    return Mixture(
        schema=release.plan.schema,
        probabilities=cells.probabilities(scores).detach().double().numpy(),
        sizes=tuple(sizes.tolist()),
        default_num_rows=release.plan.num_rows or round(release.total_rows),
        label_shares=tuple(shares.tolist()),
    )


class _ComponentCells:
    """Components as rows of cells: probabilities of grid cells, and null flags that follow."""

    def __init__(self, torch: Any, layout: Layout, label: tuple[int, int] | None, sizes: Integers) -> None:
        self._torch, grids = torch, grids_of(layout.schema)
        self._spans = spans_of(grids)
        self.width = self._spans[-1][1]
        of_column = {
            column.name: (span, column, grid)
            for span, column, grid in zip(self._spans, layout.schema.used, grids, strict=True)
        }
        self._numbers = [of_column[name] for name in layout.numbers]
        self._choices: dict[tuple[int, int], tuple[int, int]] = {}
        self._flags: list[int] = []  # the null cell of every number that has one
        for choice in layout.choices:
            span = of_column[choice.column][0]
            if choice.flags_null:
                start = self.width + 2 * len(self._flags)
                self._flags.append(span[1] - 1)
                span = (start, start + 2)
            self._choices[choice.start, choice.stop] = span
        self._label = None if label is None else self._choices[label]
        one_hot = np.repeat(np.eye(len(sizes)), sizes, axis=0)
        self._one_hot = torch.from_numpy(one_hot.astype(np.float32))

    def probabilities(self, scores: Any) -> Any:
        """Probabilities of every column's cells.  # (components, width)"""
        runs = []
        for width, group in groupby(self._spans, key=lambda span: span[1] - span[0]):
            alike = list(group)  # neighbours of equal width are treated as one
            start, stop = alike[0][0], alike[-1][1]
            shaped = scores[:, start:stop].reshape(len(scores), len(alike), width)
            runs.append(self._torch.softmax(shaped, dim=2).reshape(len(scores), stop - start))
        filled = self._torch.cat(runs, dim=1)
        if self._label is None:
            return filled
        start, stop = self._label
        return self._torch.cat([filled[:, :start], self._one_hot, filled[:, stop:]], dim=1)

    def __call__(self, scores: Any) -> Any:
        """Probabilities, then (present, null) of every nullable number."""
        filled = self.probabilities(scores)
        if not self._flags:
            return filled
        null = filled[:, self._flags]
        flags = self._torch.stack([1 - null, null], dim=2).reshape(len(filled), -1)
        return self._torch.cat([filled, flags], dim=1)

    def expected(self, map_: FeatureMap) -> FeatureMap:
        """The map of expected features, as a function of a component's probabilities.

        Raises:
            TypeError: expectations of the features do not follow from those of single columns.
        """
        return map_.rebuilt(self._expected)

    def _expected(self, map_: FeatureMap) -> FeatureMap:
        if isinstance(map_, OneHot):
            return OneHot(tuple(self._choices[span] for span in map_.spans))
        if not isinstance(map_, Hermite):
            raise TypeError("a mixture has expected features of single columns only")
        groups: list[tuple[int, int, Floats]] = []
        for number, scale in zip(map_.numbers, map_.length_scales, strict=True):
            (start, stop), column, grid = self._numbers[number]
            single = replace(map_, numbers=(0,), length_scales=(scale,))
            table = cell_means(single, column, grid) / math.sqrt(len(map_.numbers))
            if groups and groups[-1][1] == start and np.array_equal(groups[-1][2], table):
                start = groups.pop()[0]
            groups.append((start, stop, table))
        return _Expected(self._torch, map_.dim, groups)


def cell_means(map_: FeatureMap, column: Column, grid: ColumnGrid) -> Floats:
    """Mean features of a number over each of its cells.  # (grid.width, map_.dim)"""
    spans = (grid.highs - grid.lows + 1)[:, None]
    counts = np.minimum(spans, POINTS_PER_CELL)  # all codes of a small cell, some of a large one
    points = np.arange(POINTS_PER_CELL)
    steps = np.floor((np.minimum(points, counts - 1) + 0.5) * spans / counts).astype(np.int64)
    features = map_(to_position(column, (grid.lows[:, None] + steps).ravel())[:, None])
    shaped = features.reshape(len(grid.lows), POINTS_PER_CELL, -1)
    means = np.einsum("cp,cpf->cf", (points < counts) / counts, shaped)
    if grid.has_null:
        means = np.concatenate([means, map_(np.full((1, 1), 0.5))])
    return np.asarray(means)


class _Expected(FeatureMap):
    """Expected features of numbers: probabilities times the mean features of their cells.

    Neighbouring numbers with the same table share one matrix product.
    """

    sign = Sign.SIGNED
    dim = 0

    def __init__(self, torch: Any, dim: int, groups: list[tuple[int, int, Floats]]) -> None:
        self._cat, self.dim = torch.cat, dim
        self._groups = [(start, stop, torch.from_numpy(table.astype(np.float32))) for start, stop, table in groups]

    def __call__(self, cells: Any) -> Any:
        """Expected features of each component.  # (components, dim)"""
        found = []
        for start, stop, table in self._groups:
            shaped = cells[:, start:stop].reshape(-1, len(table))
            found.append((shaped @ table).reshape(len(cells), -1))
        return self._cat(found, dim=1)
