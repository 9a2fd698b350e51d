"""Fit a mixture of product distributions to the released mean embedding (torch, lazily).

Expectations of products factorise inside a component, so a mixture's mean embedding is a matrix
product of its components' expected column features: nothing is sampled during training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import LossProgress, one_thread
from understudy.features import FeatureMap, Hermite, OneHot, Sign
from understudy.fits.mmd_loss import descend, loss_terms, rows_per_label
from understudy.generators.grids import ColumnGrid, Runs
from understudy.generators.mixture import Mixture
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


def train_mixture(release: Release, training: MixtureTraining, *, progress: LossProgress | None = None) -> Mixture:
    """Fit a mixture to a release; the same release and settings give the same mixture."""
    with one_thread() as torch:
        return _train(torch, release, training, progress)


def _train(torch: Any, release: Release, training: MixtureTraining, progress: LossProgress | None) -> Mixture:
    rng = np.random.default_rng(training.seed)
    shares = release.label_counts / release.label_counts.sum()
    sizes = rows_per_label(shares, max(training.num_components, 8 * len(shares)))
    cells = _ComponentCells(torch, release.plan.layout, release.label, sizes)
    start = training.start_spread * rng.standard_normal((sizes.sum(), cells.runs.width))
    scores = torch.from_numpy(start.astype(np.float32)).requires_grad_()
    terms = loss_terms(torch, release, sizes, convert=cells.expected, features_per_step=0, rng=rng, is_exact=True)
    descend(
        torch,
        [scores],
        terms,
        lambda: cells(scores),
        steps=training.steps,
        learning_rate=training.learning_rate,
        progress=progress,
    )
    return Mixture(
        schema=release.plan.schema,
        probabilities=cells.probabilities(scores).detach().double().numpy(),
        sizes=tuple(sizes.tolist()),
        default_num_rows=release.plan.num_rows or round(release.total_rows),
        label_shares=tuple(float(share) for share in shares),
    )


class _ComponentCells:
    """Components as rows of cells: probabilities of grid cells, and null flags that follow."""

    def __init__(self, torch: Any, layout: Layout, label: tuple[int, int] | None, sizes: npt.NDArray[np.int64]) -> None:
        self._torch, self.runs = torch, Runs(layout.schema)
        columns = layout.schema.used
        span_of = dict(zip((c.name for c in columns), self.runs.spans, strict=True))
        grid_of = dict(zip((c.name for c in columns), self.runs.grids, strict=True))
        by_name = {column.name: column for column in columns}
        self._numbers = [(span_of[n], by_name[n], grid_of[n]) for n in layout.numbers]
        self._choices: dict[tuple[int, int], tuple[int, int]] = {}
        self._flags: list[int] = []  # the null cell of every number that has one
        self._label: tuple[int, int] | None = None
        for choice in layout.choices:
            span = span_of[choice.column]
            if choice.flags_null:
                start = self.runs.width + 2 * len(self._flags)
                self._flags.append(span[1] - 1)
                span = (start, start + 2)
            self._choices[choice.start, choice.stop] = span
            if label == (choice.start, choice.stop):
                self._label = span
        one_hot = np.repeat(np.eye(len(sizes)), sizes, axis=0)
        self._one_hot = torch.from_numpy(one_hot.astype(np.float32))

    def probabilities(self, scores: Any) -> Any:
        """Probabilities of every column's cells.  # (components, runs.width)"""
        runs = []
        for width, count, start in _alike([stop - start for start, stop in self.runs.spans]):
            stop = start + width * count
            shaped = scores[:, start:stop].reshape(len(scores), count, width)
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

    @singledispatchmethod
    def _expected(self, map_: FeatureMap) -> FeatureMap:
        raise TypeError("a mixture has expected features of single columns only")

    @_expected.register
    def _(self, map_: OneHot) -> FeatureMap:
        return OneHot(tuple(self._choices[span] for span in map_.spans))

    @_expected.register
    def _(self, map_: Hermite) -> FeatureMap:
        return _Expected(self._torch, map_, self._tables(map_))

    def _tables(self, map_: Hermite) -> list[tuple[tuple[int, int], npt.NDArray[np.float64]]]:
        """Mean features of every grid cell, for each number of the map."""
        found = []
        for number, scale in zip(map_.numbers, map_.length_scales, strict=True):
            span, column, grid = self._numbers[number]
            single = replace(map_, numbers=(0,), length_scales=(scale,))
            table = cell_means(single, column, grid) / math.sqrt(len(map_.numbers))
            found.append((span, table))
        return found


def cell_means(map_: FeatureMap, column: Column, grid: ColumnGrid) -> npt.NDArray[np.float64]:
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


def _alike(widths: list[int]) -> Iterator[tuple[int, int, int]]:
    """Neighbours of equal width, to be treated as one: width, how many, where they start."""
    start = 0
    for width, group in groupby(widths):
        count = len(list(group))
        yield width, count, start
        start += width * count


class _Expected(FeatureMap):
    """Expected features of numbers: probabilities times the mean features of their cells.

    Neighbouring numbers with the same table share one matrix product.
    """

    sign = Sign.SIGNED

    def __init__(
        self, torch: Any, map_: Hermite, tables: list[tuple[tuple[int, int], npt.NDArray[np.float64]]]
    ) -> None:
        self._cat, self._map = torch.cat, map_
        self._groups: list[tuple[int, int, Any]] = []
        previous: npt.NDArray[np.float64] | None = None
        for (start, stop), table in tables:
            same = previous is not None and np.array_equal(previous, table)
            if same and self._groups[-1][1] == start:
                self._groups[-1] = (self._groups[-1][0], stop, self._groups[-1][2])
            else:
                self._groups.append((start, stop, torch.from_numpy(table.astype(np.float32))))
            previous = table

    @property
    def dim(self) -> int:
        """As many features as the map whose expectations these are."""
        return self._map.dim

    def __call__(self, cells: Any) -> Any:
        """Expected features of each component.  # (components, dim)"""
        found = []
        for start, stop, table in self._groups:
            shaped = cells[:, start:stop].reshape(-1, len(table))
            found.append((shaped @ table).reshape(len(cells), -1))
        return self._cat(found, dim=1)
