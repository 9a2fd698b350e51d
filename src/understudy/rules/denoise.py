"""Denoising of counts: projection to the simplex, Haar wavelet thresholds, James-Stein shrinkage.

Rules run these again when a release is verified, so there are only sums, products and roots, which give the same bits
on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from understudy.arrays import Floats

NEIGHBOURS = 4
"""Counts on either side that a single one is held against."""

MOST_RUNS = 16
"""Runs that are looked for: where there are more, there is little noise."""

OUTLIER_DEVIATIONS = 3.5
"""Deviations of noise beyond which a difference stands out by itself."""


def project_to_simplex(counts: Floats, total: float) -> Floats:
    """The nonnegative numbers of that sum which are nearest to the counts (Held, Wolfe & Crowder 1974).

    All counts are lowered by one amount and cut at zero; sorted, the amount is found in one pass.
    """
    if total <= 0:
        return np.full(len(counts), 0.0)
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    above = np.flatnonzero(descending > excess)
    if len(above) == 0:  # the sum is lost in rounding beside the largest count
        return np.full(len(counts), 0.0)
    return np.asarray(np.maximum(counts - excess[above[-1]], 0.0))


def scale_to_total(counts: Floats, total: float) -> Floats:
    """Nonnegative counts of that sum: scaled where there are rows if too few, the nearest ones if too many.

    The nearest ones alone would add one amount to all counts if there are too few, also to empty ones.
    """
    positive = np.maximum(counts, 0.0)
    held = float(positive.sum())
    if 0 < held <= total:
        return np.asarray(positive * (total / held))
    return project_to_simplex(counts, total)


def universal_threshold(count: int) -> float:
    """sqrt(2 log n): deviations that the largest of n normal noises seldom passes (Donoho & Johnstone 1994)."""
    return math.sqrt(2 * math.log(max(2, count)))


def haar_threshold(counts: Floats, noise: float, *, deviations: float | None = None) -> Floats:
    """Counts along an ordered column without what is noise: hard thresholds on Haar wavelets, tree by tree.

    A difference between neighbours (of any width) stays if it, or one inside it, is larger than
    ``deviations`` of its noise; by default beyond what normal noise seldom reaches. So a value
    that repeats keeps its count to itself, and where nothing stands out counts are level. A single
    count is held against eight around it, of which a peak differs by more than of one.
    """
    if deviations is None:
        deviations = universal_threshold(len(counts))
    around = median_around(counts)
    is_peak = counts - around > deviations * noise * math.sqrt(1 + 1 / (2 * NEIGHBOURS))
    level, details = _differences(np.where(is_peak, around, counts))
    kept: list[Floats] = []
    inside = np.zeros(2 * len(details[0]), dtype=bool) if details else np.zeros(0, dtype=bool)
    for detail in details:
        inside = (np.abs(detail) > deviations * noise) | inside[0::2] | inside[1::2]
        kept.append(np.where(inside, detail, 0.0))
    return np.where(is_peak, counts, _joined(level, kept)[: len(counts)])


def median_around(counts: Floats) -> Floats:
    """The middle one of the counts around each: other peaks among them do not matter."""
    padded = np.pad(counts, NEIGHBOURS, mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    return np.asarray(np.median(windows, axis=1))


def shrink_levels(counts: Floats, noise: float) -> Floats:
    """Differences from what is expected, along an ordered column, as far as they are no noise.

    Differences between neighbours are shrunk together, width by width (James & Stein), except
    the ones that stand out by themselves.
    """
    level, details = _differences(counts)
    return _joined(level, [james_stein(detail, noise) for detail in details])[: len(counts)]


def runs_that_stand_out(counts: Floats, noise: float, tail: Callable[[float], float]) -> Floats:
    """Means of runs of neighbours whose sums noise alone would seldom reach, the clearest run first; zero elsewhere.

    A scan over all runs, as in circular binary segmentation (Olshen et al. 2004), with the universal threshold for
    their number; for the few that begin or end with the column it is lower, and so they are preferred: mostly a label
    has more of the high or of the low values. Haar wavelets see a run only if it begins at a multiple of its width.
    ``tail`` converts deviations of normal noise to those of the noise at hand.
    """
    size, found = len(counts), np.zeros(len(counts))
    places = np.arange(size + 1)
    lengths = np.maximum(places[None, :] - places[:, None], 0)
    least = np.full((size + 1, size + 1), tail(universal_threshold(size * (size + 1) // 2)))
    least[0] = least[:, -1] = tail(universal_threshold(2 * size))
    least *= np.sqrt(np.maximum(lengths, 1)) * noise
    for _ in range(MOST_RUNS if noise > 0 else 0):
        below = np.append(0.0, np.cumsum(counts - found))
        sums = np.where(lengths > 0, below[None, :] - below[:, None], 0.0)
        start, stop = np.unravel_index(int(np.abs(sums / least).argmax()), sums.shape)
        if abs(sums[start, stop]) <= least[start, stop]:
            break
        found[start:stop] += sums[start, stop] / (stop - start)
    return found


def james_stein(values: Floats, noise: float) -> Floats:
    """Positive-part James-Stein shrinkage towards zero; values that stand out by themselves stay.

    The factor is 1 - (n - 2) noise^2 / sum of squares (James & Stein 1961): one or two values are not shrunk, and what
    a label has to do with a column of two cells is kept, noise and all.
    """
    stands_out = np.abs(values) > OUTLIER_DEVIATIONS * noise
    rest = np.where(stands_out, 0.0, values)
    energy = float((rest**2).sum())
    expected = max(0.0, float((~stands_out).sum()) - 2) * noise**2
    factor = max(0.0, 1 - expected / energy) if energy > 0 else 0.0
    return np.where(stands_out, values, factor * values)


def _differences(counts: Floats) -> tuple[Floats, list[Floats]]:
    """Haar wavelets: the overall level, and differences of neighbours from narrow to wide."""
    missing = (1 << max(1, (len(counts) - 1).bit_length())) - len(counts)
    # Mirrored at the end: zeros there would be a step, and draw rows out of the last counts.
    level = np.pad(counts, (0, missing), mode="symmetric")
    details = []
    while len(level) > 1:
        details.append((level[0::2] - level[1::2]) / math.sqrt(2))
        level = (level[0::2] + level[1::2]) / math.sqrt(2)
    return level, details


def _joined(level: Floats, details: list[Floats]) -> Floats:
    """The counts that these differences belong to."""
    for detail in reversed(details):
        finer = np.empty(2 * len(level))
        finer[0::2], finer[1::2] = (level + detail) / math.sqrt(2), (level - detail) / math.sqrt(2)
        level = finer
    return level


def centred(table: Floats) -> Floats:
    """A table without what its margins explain: the part that is interaction."""
    rows, columns = table.mean(axis=-1, keepdims=True), table.mean(axis=-2, keepdims=True)
    return np.asarray(table - rows - columns + table.mean(axis=(-2, -1), keepdims=True))
