"""Quantiles: where the noisy cumulative count crosses a level, with intervals by test inversion.

The quantile at level p is the least value q with at least p of the rows at or below it. A value c
cannot be q if surely fewer than p of the rows are at or below c, or surely more than p are below c.
Nor can it be if that is sure of a value beyond it, for counts only rise. Of the chance to be wrong,
nine tenths go to the test of the value itself and a tenth to those of all values beyond it, by the
union bound. The true q then passes all tests at the stated level at least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.accounting import critical
from understudy.arrays import Floats, Integers
from understudy.queries.answers import Estimate
from understudy.queries.atoms import Ranged, Sources, values
from understudy.queries.bind import BoundQuery, bind
from understudy.queries.least_squares import DENSE
from understudy.queries.question import Question
from understudy.released.tables import cell_edges

BEYOND = 0.1
"""The part of the chance to be wrong that goes to tests of values beyond a value."""


def quantiles_of(
    sources: Sources, question: Question, sure: float, *, is_population: bool
) -> tuple[BoundQuery, list[Estimate]]:
    """The quantile of the question's column in each group, and the question as it was bound.

    ``sure`` is the level of the intervals.
    """
    bound = bind(sources, question)
    found = [_Steps(bound, i).solve(sure, is_population) for i in range(len(bound.names))]
    edges = _finer_edges(sources, bound, [solution.span for solution in found])
    if len(edges):
        bound = bind(sources, question, also=edges)
        found = [_Steps(bound, i).solve(sure, is_population) for i in range(len(bound.names))]
    return bound, [solution.estimate for solution in found]


def _finer_edges(sources: Sources, bound: BoundQuery, spans: list[tuple[int, int]]) -> Integers:
    """Edges of the longest tables in the cells where quantiles may lie, if there are not too many."""
    if len(bound.axes) != 1 or not bound.axes[0].is_ordered:
        return np.empty(0, dtype=np.int64)
    own = bound.axes[0]
    long = [
        cell_edges(cells)
        for table in sources.measured.tables
        for cells in table.cells
        if cells.column == own.column and cells.num_pieces > DENSE // 2
    ]
    if not long:
        return np.empty(0, dtype=np.int64)
    every = np.unique(np.concatenate(long))
    inside = np.zeros(len(every), dtype=bool)
    for low, high in spans:
        for cell in {low, high}:
            inside |= (every >= own.first_codes[cell]) & (every <= own.last_codes[cell] + 1)
    found = every[inside]
    return found if len(found) <= DENSE // 2 else np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class _Solution:
    estimate: Estimate
    span: tuple[int, int]
    """The cells that the interval begins and ends in, in the order of codes."""


@dataclass(frozen=True, eq=False)
class _Steps:
    """The cumulative count of one group at the end of each cell of the question's column."""

    bound: BoundQuery
    group: int

    def solve(self, sure: float, is_population: bool) -> _Solution:
        level = self.bound.question.number or 0.5
        axis = next(i for i, c in enumerate(self.bound.axes) if c.column == self.bound.question.column)
        cells = self.bound.axes[axis]
        column = self.bound.sources.measured.columns[cells.column]
        own = values(column, cells)
        known = cells.num_known
        order = np.argsort(own.middle[:known], kind="stable")
        rank = np.full(cells.dim, known)  # nulls are never counted
        rank[order] = np.arange(known)
        shape = [each.dim for each in self.bound.axes]
        along = rank.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        ranks = np.broadcast_to(along, shape).ravel()
        weights = self._weights(ranks, known, level)
        fit = self.bound.fit
        extra = np.zeros(known)
        if is_population:
            extra = np.maximum(weights.middle**2 @ fit.atoms, 0.0)
        mechanism = self.bound.sources.measured.mechanism
        alone, beyond = (1 - BEYOND) * (1 - sure), BEYOND * (1 - sure) / known
        factors = critical(mechanism, 1 - alone), critical(mechanism, 1 - beyond)
        passed = [
            _allowed(fit.estimates(part), np.hypot(fit.deviations(part), np.sqrt(extra)), side, factors)
            for side, part in ((1, weights.high), (-1, weights.low))
        ]
        # Not surely too low; and not surely too high, judged by what lies below the cell.
        enough = np.append(passed[0][:-1], True)
        few = np.append(True, passed[1][:-1])
        first, last = int(np.argmax(enough)), known - 1 - int(np.argmax(few[::-1]))
        first, last = min(first, last), max(first, last)
        middle, cell = _crossing(fit.estimates(weights.middle), own, order)
        low, high = own.low[order[first]], own.high[order[last]]
        exact = bool(own.low[order[cell]] == own.high[order[cell]]) and self._is_exact
        error = float(high - low) / (2 * critical(mechanism, sure))
        estimate = Estimate(
            self.bound.names[self.group], float(np.clip(middle, low, high)), error, float(low), float(high), exact
        )
        return _Solution(estimate, (int(order[first]), int(order[last])))

    @property
    def _is_exact(self) -> bool:
        members = self.bound.members
        return bool((members.low[self.group] == members.high[self.group]).all())

    def _weights(self, ranks: Integers, known: int, level: float) -> Ranged:
        """Rows at or below each cell less a part of all rows, as functions of atoms."""
        members = self.bound.members
        below = ranks[None, :] <= np.arange(known)[:, None]
        low, middle, high = (part[self.group][None, :] for part in (members.low, members.middle, members.high))
        return Ranged(
            np.where(below, (1 - level) * low, -level * high),
            np.where(below, 1 - level, -level) * middle,
            np.where(below, (1 - level) * high, -level * low),
        )


def _allowed(heights: Floats, errors: Floats, side: int, factors: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """Cells that neither their own test rules out nor that of any cell beyond them.

    ``side`` is 1 for tests that find a cell too low, which hold for all cells below it, and -1 for
    tests that find it too high.
    """
    alone, beyond = (side * heights + factor * errors < 0 for factor in factors)
    # Seen from the far end: what is too low rules out all before it, what is too high all after.
    beyond = np.logical_or.accumulate(beyond[::-side])[::-side]
    return np.asarray(~(alone | beyond))


def rising(heights: Floats) -> Floats:
    """The nearest sequence that never falls (isotonic regression, pooling adjacent violators)."""
    values: list[float] = []
    sizes: list[int] = []
    for height in heights.tolist():
        value, size = height, 1
        while values and values[-1] > value:
            value = (value * size + values[-1] * sizes[-1]) / (size + sizes[-1])
            size += sizes[-1]
            values.pop()
            sizes.pop()
        values.append(value)
        sizes.append(size)
    return np.repeat(values, sizes)


def _crossing(heights: Floats, own: Ranged, order: Integers) -> tuple[float, int]:
    """Where estimates, made monotone, first reach zero: the value, and the cell in order."""
    steady = rising(heights)
    cell = int(np.argmax(steady >= 0)) if (steady >= 0).any() else len(heights) - 1
    low, high = own.low[order[cell]], own.high[order[cell]]
    before = steady[cell - 1] if cell > 0 else min(0.0, 2 * steady[cell])
    rise = steady[cell] - before
    part = float(np.clip(-before / rise, 0.0, 1.0)) if rise > 0 else 0.5
    return float(low + part * (high - low)), cell
