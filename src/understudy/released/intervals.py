"""From noise to intervals: the one place that knows how noise is distributed."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum

from scipy.optimize import brentq
from scipy.special import ndtri

from understudy.plan.plan import Plan

LEVEL = 0.95


class Law(StrEnum):
    """How the noise in a single count is distributed."""

    NORMAL = "normal"
    LAPLACE = "Laplace"


def law_of(plan: Plan) -> Law:
    """Without a delta, noise is Laplace's."""
    return Law.LAPLACE if plan.budget.delta == 0 else Law.NORMAL


def critical(level: float = LEVEL, law: Law = Law.NORMAL) -> float:
    """Deviations that the noise of an estimate stays within, on either side, at this level.

    Estimates are weighted sums of independent noises. Of normal ones they are normal. Of Laplace
    ones they lie between a single one, which is beyond t deviations with chance exp(-sqrt(2) t), and
    a normal one; the wider of these two is taken.
    """
    of_normal = float(ndtri((1 + level) / 2))
    return of_normal if law is Law.NORMAL else max(of_normal, -math.log(1 - level) / math.sqrt(2))


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
