"""Counts and sums, shares and means, variances and quantiles: estimates from tables, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, isotonic_regression

from understudy.accounting.mechanisms import critical
from understudy.arrays import Floats, Integers
from understudy.queries.answers import Estimate
from understudy.queries.atoms import Ranged, Sources, values
from understudy.queries.bind import BoundQuery, bind
from understudy.queries.least_squares import DENSE, LeastSquares
from understudy.queries.question import Question
from understudy.released.tables import cell_edges
from understudy.schema import Column
from understudy.schema.scales import own_scale

Interval = tuple[float, float]


def estimates_of(
    sources: Sources, question: Question, level: float, *, is_population: bool
) -> tuple[BoundQuery, list[Estimate]]:
    """What a question asks for, in each group, with intervals of a level; and the question as it was bound."""
    bound, aggregate = bind(sources, question), question.aggregate
    factor = critical(sources.measured.mechanism, level)
    if aggregate in ("median", "quantile"):
        return _quantiles(bound, level, is_population)
    if aggregate in ("count", "histogram"):
        return bound, _sums(bound, bound.members, factor)
    if aggregate == "sum":
        return bound, _sums(bound, bound.valued(), factor)
    if aggregate == "share":
        return bound, _shares(bound, factor, is_population)
    if aggregate == "mean":
        return bound, _means(bound, factor, is_population)
    variances = _variances(bound, factor, is_population)
    return bound, variances if aggregate == "var" else [root_of(each) for each in variances]


def _sums(bound: BoundQuery, weights: Ranged, factor: float) -> list[Estimate]:
    """Sums of weights over rows, for each group.

    The truth lies between the sums of the least and of the largest weights, and each of the two is
    measured with noise of its own: so the ends hold together at the level of ``factor``.
    """
    fit = bound.fit
    middle, error = fit.estimates(weights.middle), fit.deviations(weights.middle)
    low, high = middle - factor * error, middle + factor * error
    exact = (weights.low == weights.high).all(axis=1)
    if not exact.all():
        low = fit.estimates(weights.low) - factor * fit.deviations(weights.low)
        high = fit.estimates(weights.high) + factor * fit.deviations(weights.high)
        # Noise may have turned the ends, which are measured apart.
        low, high = np.minimum(low, middle), np.maximum(high, middle)
    columns = (each.tolist() for each in (middle, error, low, high, exact))
    return [Estimate(*row) for row in zip(bound.names, *columns, strict=True)]


def _shares(bound: BoundQuery, factor: float, is_population: bool) -> list[Estimate]:
    """The part of each group that meets the condition; without one, of all rows in each group."""
    tops = bound.members
    bottoms = bound.everyone if bound.question.where else tops.each(np.ones_like)
    return [
        _ratio(bound, name, tops.row(i), bottoms.row(i), (0.0, 1.0), factor, is_population)
        for i, name in enumerate(bound.names)
    ]


def _means(bound: BoundQuery, factor: float, is_population: bool) -> list[Estimate]:
    """The mean of the question's column in each group."""
    bounds, tops, bottoms = range_of(bound.column), bound.valued(), bound.members
    found = []
    for i, name in enumerate(bound.names):

        def residual(centre: float, i: int = i) -> Ranged:
            return bound.valued(centre=centre).row(i)

        found.append(_ratio(bound, name, tops.row(i), bottoms.row(i), bounds, factor, is_population, residual))
    return found


def _variances(bound: BoundQuery, factor: float, is_population: bool) -> list[Estimate]:
    """The mean squared distance from the mean in each group (divided by n, not n - 1)."""
    low, high = range_of(bound.column)
    bounds = 0.0, (high - low) ** 2 / 4
    found = []
    for i, mean in enumerate(_means(bound, factor, is_population=False)):
        if not math.isfinite(mean.std_error):
            found.append(Estimate(mean.group, math.nan, math.inf, *bounds, False))
            continue
        squares = bound.valued(centre=mean.estimate, is_squared=True).row(i)
        own = _ratio(bound, mean.group, squares, bound.members.row(i), bounds, factor, is_population)
        # Around an estimated mean squares are too small by its variance; and where cells leave the
        # mean open, the least variance is around the farthest mean.
        bias = mean.std_error**2
        shift = 0.0 if own.is_exact else max(abs(end - mean.estimate) for end in (mean.low, mean.high)) ** 2
        least = max(0.0, own.low + bias - shift)
        found.append(replace(own, estimate=own.estimate + bias, low=least, high=own.high + bias))
    return found


def root_of(variance: Estimate) -> Estimate:
    """A standard deviation."""
    middle = math.sqrt(max(0.0, variance.estimate)) if math.isfinite(variance.estimate) else math.nan
    error = variance.std_error / (2 * middle) if middle > 0 else math.inf
    low, high = (math.sqrt(max(0.0, end)) for end in (variance.low, variance.high))
    return replace(variance, estimate=middle, std_error=error, low=low, high=high)


def range_of(column: Column) -> Interval:
    """The least and the largest value that a column may hold."""
    codes = np.arange(len(column.categories)) if column.is_choice else np.array([0, column.num_steps])
    reached = own_scale(column).values(codes)
    return float(reached.min()), float(reached.max())


def _ratio(
    bound: BoundQuery,
    name: tuple[tuple[str, str], ...],
    top: Ranged,
    bottom: Ranged,
    bounds: Interval,
    factor: float,
    is_population: bool,
    residual: Callable[[float], Ranged] | None = None,
) -> Estimate:
    """A ratio of two sums, whose public bounds hold where noise leaves it open.

    ``residual`` gives the range of the top less a ratio times the bottom, if that is narrower than the difference of
    their ranges.
    """
    fit = bound.fit
    weights = np.concatenate([*top, bottom.middle])
    low, middle, high, count = fit.estimates(weights).tolist()
    spread = fit.covariance(weights)
    if count <= 0:
        return Estimate(name, math.nan, math.inf, *bounds, False)
    ratio = middle / count
    weight = weights[1] - ratio * weights[3]
    extra = max(0.0, float(weight**2 @ fit.atoms)) if is_population else 0.0
    error = math.sqrt(max(0.0, spread[1, 1] - 2 * ratio * spread[1, 3] + ratio**2 * spread[3, 3] + extra))
    exact = top.is_exact and bottom.is_exact
    if bottom.is_exact:
        ends = [
            ratio_interval(value, count, (spread[k, k], spread[k, 3], spread[3, 3]), factor, extra=extra)
            for k, value in ((0, low), (2, high))
        ]
        if ends[0] is None or ends[1] is None:  # the denominator may be zero
            inside = min(max(ratio, bounds[0]), bounds[1])
            return Estimate(name, inside, math.inf, *bounds, False)
        found = ends[0][0], ends[1][1]
    else:
        ratio = min(max(ratio, bounds[0]), bounds[1])
        found = _inverted(fit, residual or partial(top.minus, other=bottom), bounds, factor=factor, extra=extra)
    if not exact:  # noise may have turned the ends, which are measured apart
        found = min(found[0], ratio), max(found[1], ratio)
    return Estimate(name, ratio, error / count, float(found[0]), float(found[1]), exact)


def _inverted(
    fit: LeastSquares, residual: Callable[[float], Ranged], bounds: Interval, *, factor: float, extra: float
) -> Interval:
    """All values that neither the least nor the largest residual rules out."""

    def reach(value: float, side: int) -> float:
        """How far the largest (or least) residual may lie on the other side of zero."""
        weights: Floats = residual(value).high if side > 0 else residual(value).low
        error = math.hypot(float(fit.deviations(weights)[0]), math.sqrt(extra))
        return float(fit.estimates(weights)[0]) + side * factor * error

    return crossing(lambda value: reach(value, -1), *bounds), crossing(lambda value: reach(value, +1), *bounds)


def ratio_interval(
    numerator: float, denominator: float, covariance: tuple[float, float, float], factor: float, *, extra: float = 0.0
) -> tuple[float, float] | None:
    """Fieller's interval: all ratios r for which numerator - r denominator may be noise alone.

    Args:
        numerator: its estimate.
        denominator: its estimate.
        covariance: variance of the numerator, covariance, variance of the denominator.
        factor: from ``critical``.
        extra: variance of the difference beside that of the noise.

    Returns:
        The ends, or None if the denominator may be zero: then any ratio might do.
    """
    top, both, bottom = covariance
    square = denominator**2 - factor**2 * bottom
    if denominator <= 0 or square <= 0:
        return None
    middle = numerator * denominator - factor**2 * both
    rest = numerator**2 - factor**2 * (top + extra)
    root = math.sqrt(max(0.0, middle**2 - square * rest))
    return (middle - root) / square, (middle + root) / square


def crossing(height: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses zero between two points; the nearer end if it does not."""
    if height(low) <= 0:
        return low
    if height(high) >= 0:
        return high
    return float(brentq(height, low, high, xtol=1e-9 * max(1.0, abs(low), abs(high))))


# Quantiles: where the noisy cumulative count crosses a level, with intervals by test inversion.
#
# The quantile at level p is the least value q with at least p of the rows at or below it. A value c
# cannot be q if surely fewer than p of the rows are at or below c, or surely more than p are below c.
# Nor can it be if that is sure of a value beyond it, for counts only rise. Of the chance to be wrong,
# nine tenths go to the test of the value itself and a tenth to those of all values beyond it, by the
# union bound. The true q then passes all tests at the stated level at least.

BEYOND = 0.1
"""The part of the chance to be wrong that goes to tests of values beyond a value."""

Span = tuple[int, int]
"""The cells that an interval begins and ends in, in the order of codes."""


def _quantiles(bound: BoundQuery, sure: float, is_population: bool) -> tuple[BoundQuery, list[Estimate]]:
    """The quantile of the question's column in each group; ``sure`` is the level of the intervals."""
    found = _solve(bound, sure, is_population)
    edges = _finer_edges(bound, [span for _, span in found])
    if len(edges):
        bound = bind(bound.sources, bound.question, also=edges)
        found = _solve(bound, sure, is_population)
    return bound, [estimate for estimate, _ in found]


def _finer_edges(bound: BoundQuery, spans: list[Span]) -> Integers:
    """Edges of the longest tables in the cells where quantiles may lie, if there are not too many."""
    own, none = bound.axes[0], np.empty(0, dtype=np.int64)
    if len(bound.axes) != 1 or not own.is_ordered:
        return none
    every = [
        cell_edges(cells)
        for table in bound.sources.measured.tables
        for cells in table.cells
        if cells.column == own.column and cells.num_pieces > DENSE // 2
    ]
    edges = np.unique(np.concatenate([none, *every]))
    inside = np.zeros(len(edges), dtype=bool)
    for cell in {end for span in spans for end in span}:
        inside |= (edges >= own.first_codes[cell]) & (edges <= own.last_codes[cell] + 1)
    found = edges[inside]
    return found if len(found) <= DENSE // 2 else none


def _solve(bound: BoundQuery, sure: float, is_population: bool) -> list[tuple[Estimate, Span]]:
    """The quantile in each group, from the cumulative count at the end of each cell of the question's column."""
    axis = next(i for i, cells in enumerate(bound.axes) if cells.column == bound.question.column)
    cells, fit, mechanism = bound.axes[axis], bound.fit, bound.sources.measured.mechanism
    known, own = cells.num_known, values(bound.column, cells)
    order = np.argsort(own.middle[:known], kind="stable")
    rank = np.full(cells.dim, known)  # nulls are never counted
    rank[order] = np.arange(known)
    along = rank.reshape([-1 if i == axis else 1 for i in range(len(bound.axes))])
    ranks = np.broadcast_to(along, [each.dim for each in bound.axes]).ravel()
    below = ranks[None, :] <= np.arange(known)[:, None]
    alone, beyond = (1 - BEYOND) * (1 - sure), BEYOND * (1 - sure) / known
    factors = critical(mechanism, 1 - alone), critical(mechanism, 1 - beyond)
    lows, highs = own.low[order], own.high[order]
    found = []
    for group, name in enumerate(bound.names):
        members = bound.members.row(group)
        weights = _weights(below, members, bound.question.number or 0.5)
        extra = np.maximum(weights.middle**2 @ fit.atoms, 0.0) if is_population else np.zeros(known)
        passed = [
            _allowed(fit.estimates(part), np.hypot(fit.deviations(part), np.sqrt(extra)), side, factors)
            for side, part in ((1, weights.high), (-1, weights.low))
        ]
        # Not surely too low; and not surely too high, judged by what lies below the cell.
        enough, few = np.append(passed[0][:-1], True), np.append(True, passed[1][:-1])
        first, last = sorted((int(np.argmax(enough)), known - 1 - int(np.argmax(few[::-1]))))
        middle, cell = _crossing(fit.estimates(weights.middle), lows, highs)
        low, high = float(lows[first]), float(highs[last])
        exact = bool(lows[cell] == highs[cell]) and members.is_exact
        error = (high - low) / (2 * critical(mechanism, sure))
        estimate = Estimate(name, float(np.clip(middle, low, high)), error, low, high, exact)
        found.append((estimate, (int(order[first]), int(order[last]))))
    return found


def _weights(below: npt.NDArray[np.bool_], members: Ranged, level: float) -> Ranged:
    """Rows at or below each cell less a part of all rows, as functions of atoms.  # (cells, atoms) each"""
    low, middle, high = members
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


def _crossing(heights: Floats, lows: Floats, highs: Floats) -> tuple[float, int]:
    """Where estimates, made monotone, first reach zero: the value, and the cell in order."""
    steady = isotonic_regression(heights).x
    cell = int(np.argmax(steady >= 0)) if (steady >= 0).any() else len(heights) - 1
    before = steady[cell - 1] if cell > 0 else min(0.0, 2 * steady[cell])
    rise = steady[cell] - before
    part = float(np.clip(-before / rise, 0.0, 1.0)) if rise > 0 else 0.5
    return float(lows[cell] + part * (highs[cell] - lows[cell])), cell
