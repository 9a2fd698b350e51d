"""Nonnegative estimates from noisy counts. Only sums, products and roots: exact the same anywhere."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def project(counts: Floats, total: float) -> Floats:
    """The nonnegative numbers of that sum which are nearest to the counts."""
    if total <= 0:
        return np.full(len(counts), 0.0)
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    last = np.flatnonzero(descending > excess)[-1]
    return np.asarray(np.maximum(counts - excess[last], 0.0))


def smooth(counts: Floats, noise: float, *, deviations: float | None = None) -> Floats:
    """Counts along an ordered column without what is noise: thresholded Haar wavelets.

    A difference between neighbours (of any width) stays if it, or one inside it, is larger than
    ``deviations`` of its noise; by default sqrt(2 log n), beyond which n noises seldom reach. So
    a value that repeats keeps its count to itself, and where nothing stands out counts are level.
    """
    limit = noise * (
        math.sqrt(2 * math.log(max(2, len(counts)))) if deviations is None else deviations
    )
    size = 1 << max(1, (len(counts) - 1).bit_length())
    level = np.zeros(size)
    level[: len(counts)] = counts
    details: list[Floats] = []
    kept = np.zeros(size, dtype=bool)
    while len(level) > 1:
        left, right = level[0::2], level[1::2]
        detail = (left - right) / math.sqrt(2)
        kept = (np.abs(detail) > limit) | ((kept[0::2] | kept[1::2]) if details else False)
        details.append(np.where(kept, detail, 0.0))
        level = (left + right) / math.sqrt(2)
    for detail in reversed(details):
        finer = np.empty(2 * len(level))
        finer[0::2], finer[1::2] = (level + detail) / math.sqrt(2), (level - detail) / math.sqrt(2)
        level = finer
    return level[: len(counts)]


def centred(table: Floats) -> Floats:
    """A table without what its margins explain: the part that is interaction."""
    rows, columns = table.mean(axis=-1, keepdims=True), table.mean(axis=-2, keepdims=True)
    return np.asarray(table - rows - columns + table.mean(axis=(-2, -1), keepdims=True))
