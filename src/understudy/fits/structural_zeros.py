"""Structural zeros of a pair of columns: cells that no row is in, and tables of functions, told from noisy counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.rules.denoise import universal_threshold

FUNCTION_DEVIATIONS = 2.0
"""A table is that of a function if what is left beside it is within so many deviations of what noise leaves."""

INDEPENDENCE_DEVIATIONS = 6.0
"""And if what independence leaves lies further beyond noise than this."""

STRAY_DEVIATIONS = 0.5
"""No cell beside a function may stand out: by so many deviations more than the largest noise of all seldom has."""


def surely_empty(table: Floats, expected: Floats, noise: float) -> Truths:
    """Structural zeros: cells that are more likely empty than anything up to what independence expects.

    Posterior odds under a prior that is half a spike at zero and half even between zero and the expectation.
    """
    density = np.exp(-0.5 * (table / noise) ** 2) / math.sqrt(2 * math.pi)
    return np.asarray(expected / noise * density > 1)


def find_function(table: Floats, expected: Floats, noise: float, is_ordered: Sequence[bool]) -> Truths | None:
    """The cells in use if one column is a function of the other, as far as noise lets one tell; else None."""
    if beyond_noise((table - expected) / noise) < INDEPENDENCE_DEVIATIONS:
        return None
    size, most, best = table.size, FUNCTION_DEVIATIONS, None
    for axis in (0, 1):
        counts, masses = (table, expected.sum(axis=1)) if axis == 0 else (table.T, expected.sum(axis=0))
        values = _function_values(counts / noise, masses / noise, is_ordered[axis])
        used = np.eye(counts.shape[1], dtype=bool)[values]
        distance = beyond_noise((counts - np.where(used, masses[:, None], 0.0)) / noise)
        stray = float(np.where(used, 0.0, counts).max()) / noise
        if distance < most and stray < universal_threshold(size) + STRAY_DEVIATIONS:
            best, most = used if axis == 0 else used.T, distance
    return best


def beyond_noise(counts: Floats) -> float:
    """How far the squares of counts, in units of their noise, are beyond what noise gives: in deviations of a
    chi-square variable.
    """
    return float(((counts**2).sum() - counts.size) / math.sqrt(2 * counts.size))


def follower_of(function: Truths) -> int:
    """Which of two columns, 0 or 1, is the function of the other; of two that determine each other, the coarser one."""
    is_second = bool((function.sum(axis=1) == 1).all())
    is_first = bool((function.sum(axis=0) == 1).all())
    return int(function.shape[1] <= function.shape[0]) if is_first and is_second else int(is_second)


def _function_values(counts: Floats, masses: Floats, is_ordered: bool) -> Integers:
    """The most likely value of every cell of a column that determines another, in units of the noise.

    A number's function has few steps: Viterbi's algorithm with a price for every change of the value.
    """
    scores = masses[:, None] * counts - masses[:, None] ** 2 / 2  # log-likelihoods, up to a constant of the row
    if not is_ordered:
        return np.asarray(scores.argmax(axis=1))
    price = 2 * math.log(counts.size)
    total, origins = scores[0], []
    for own in scores[1:]:
        stays = total >= total.max() - price
        origins.append(np.where(stays, np.arange(len(total)), total.argmax()))
        total = own + np.maximum(total, total.max() - price)
    values = [int(total.argmax())]
    for origin in reversed(origins):
        values.append(int(origin[values[-1]]))
    return np.array(values[::-1])
