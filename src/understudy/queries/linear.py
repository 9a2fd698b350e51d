"""Counts and sums, shares and means, variances: estimates that tables give directly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from understudy.arrays import Floats
from understudy.queries.answers import Estimate
from understudy.queries.atoms import Ranged
from understudy.queries.bind import BoundQuery
from understudy.schema import Column
from understudy.schema.scales import own_scale

Interval = tuple[float, float]


def sums_of(bound: BoundQuery, weights: Ranged, factor: float) -> list[Estimate]:
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
    return [
        Estimate(name, float(middle[i]), float(error[i]), float(low[i]), float(high[i]), bool(exact[i]))
        for i, name in enumerate(bound.names)
    ]


def shares_of(bound: BoundQuery, factor: float, *, is_population: bool) -> list[Estimate]:
    """The part of each group that meets the condition; without one, of all rows in each group."""
    members, everyone = bound.members, bound.everyone
    if not bound.question.where:
        one = np.ones_like(members.low)
        everyone = Ranged(one, one, one)
    found = []
    for i, name in enumerate(bound.names):
        top, bottom = _row(members, i), _row(everyone, i)

        def residual(share: float, top: Ranged = top, bottom: Ranged = bottom) -> Ranged:
            return top.minus(share, bottom)

        found.append(_ratio(bound, name, top, bottom, residual, (0.0, 1.0), factor, is_population))
    return found


def means_of(bound: BoundQuery, factor: float, *, is_population: bool) -> list[Estimate]:
    """The mean of the question's column in each group."""
    bounds = limits(bound)
    tops, members = bound.valued(), bound.members
    found = []
    for i, name in enumerate(bound.names):

        def residual(centre: float, i: int = i) -> Ranged:
            return _row(bound.valued(centre=centre), i)

        parts = _row(tops, i), _row(members, i)
        found.append(_ratio(bound, name, *parts, residual, bounds, factor, is_population))
    return found


def variances_of(bound: BoundQuery, factor: float, *, is_population: bool) -> list[Estimate]:
    """The mean squared distance from the mean in each group (divided by n, not n - 1)."""
    bounds = limits(bound)
    widest = (bounds[1] - bounds[0]) ** 2 / 4
    found = []
    for i, mean in enumerate(means_of(bound, factor, is_population=False)):
        if not math.isfinite(mean.std_error):
            found.append(Estimate(mean.group, math.nan, math.inf, 0.0, widest, False))
            continue
        squares = _row(bound.valued(centre=mean.estimate, is_squared=True), i)
        bottom = _row(bound.members, i)

        def residual(value: float, top: Ranged = squares, bottom: Ranged = bottom) -> Ranged:
            return top.minus(value, bottom)

        own = _ratio(bound, mean.group, squares, bottom, residual, (0.0, widest), factor, is_population)
        # Around an estimated mean squares are too small by its variance; and where cells leave the
        # mean open, the least variance is around the farthest mean.
        shift = 0.0
        if not own.is_exact:
            ends = [abs(end - mean.estimate) for end in (mean.low, mean.high)]
            shift = max(ends) ** 2
        bias = mean.std_error**2
        found.append(
            Estimate(
                mean.group,
                own.estimate + bias,
                own.std_error,
                max(0.0, own.low + bias - shift),
                own.high + bias,
                own.is_exact,
            )
        )
    return found


def roots_of(variances: list[Estimate]) -> list[Estimate]:
    """Standard deviations."""
    found = []
    for each in variances:
        middle = math.sqrt(max(0.0, each.estimate)) if math.isfinite(each.estimate) else math.nan
        error = each.std_error / (2 * middle) if middle > 0 else math.inf
        low, high = (math.sqrt(max(0.0, end)) for end in (each.low, each.high))
        found.append(Estimate(each.group, middle, error, low, high, each.is_exact))
    return found


def limits(bound: BoundQuery) -> Interval:
    """The public bounds of the question's column."""
    place = bound.question.column
    if place is None:
        raise ValueError("the question has no column")
    return range_of(bound.sources.measured.columns[place])


def range_of(column: Column) -> Interval:
    """The least and the largest value that a column may hold."""
    codes = np.arange(len(column.categories)) if column.is_choice else np.array([0, column.num_steps])
    reached = own_scale(column).values(codes)
    return float(reached.min()), float(reached.max())


def _row(ranged: Ranged, i: int) -> Ranged:
    return Ranged(ranged.low[i : i + 1], ranged.middle[i : i + 1], ranged.high[i : i + 1])


def _ratio(
    bound: BoundQuery,
    name: tuple[tuple[str, str], ...],
    top: Ranged,
    bottom: Ranged,
    residual: Callable[[float], Ranged],
    bounds: Interval,
    factor: float,
    is_population: bool,
) -> Estimate:
    """A ratio of two sums, whose public bounds hold where noise leaves it open."""
    fit = bound.fit
    weights = np.concatenate([top.low, top.middle, top.high, bottom.middle])
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
        found = _inverted(fit_residual(bound, residual, factor, extra), bounds)
    if not exact:  # noise may have turned the ends, which are measured apart
        found = min(found[0], ratio), max(found[1], ratio)
    return Estimate(name, ratio, error / count, float(found[0]), float(found[1]), exact)


def fit_residual(
    bound: BoundQuery, residual: Callable[[float], Ranged], factor: float, extra: float
) -> Callable[[float, int], float]:
    """How far the largest (or least) residual may lie on the other side of zero."""

    def reach(value: float, side: int) -> float:
        weights: Floats = residual(value).high if side > 0 else residual(value).low
        error = math.hypot(float(bound.fit.deviations(weights)[0]), math.sqrt(extra))
        return float(bound.fit.estimates(weights)[0]) + side * factor * error

    return reach


def _inverted(reach: Callable[[float, int], float], bounds: Interval) -> Interval:
    """All values that neither the least nor the largest residual rules out."""
    return (crossing(lambda value: reach(value, -1), *bounds), crossing(lambda value: reach(value, +1), *bounds))


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
