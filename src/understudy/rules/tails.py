"""Tails of noisy histograms: a generalised Pareto law instead of noise, beyond the last bars that stand out.

Far bars of a histogram are mostly empty, and their noise, added up over hundreds of bars and multiplied by their
distance, ruins means and variances. Beyond a threshold the counts are replaced by the law that explains them best
(peaks over threshold, Pickands 1975). Like ``denoise``, these are sums, products, roots and comparisons only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.rules.denoise import median_around

BAR_DEVIATIONS = 4.0
"""A bar so many deviations of noise above zero belongs to the body; above those around it, it is a value that
repeats."""

BODY_DEVIATIONS = 5.0
"""All bars from here to the end hold more rows than so many deviations: the body goes on."""

TAIL_DEVIATIONS = 2.5
"""A tail whose rows, weighed by the law that fits best, are fewer is empty."""

MOST_DOUBT = 0.08
"""Share of the rows that noise could hide in a tail at one deviation: beyond it nobody can say that a tail is thin."""

LEAST_VARIANCE = 1e-12
"""Of noise in rows: counts without noise are not divided by nothing."""

FITTED_BODY = 2
"""Bars of the body that a law is fitted to together with the tail: they tell best how fast it falls."""

SQUARINGS = (2, 4)
"""Laws (1 + d / (p scale)) ** -p with p = 4 and 16, by repeated squaring: heavy, and nearly exponential. Heavier ones
(p = 2) are taken for lighter ones under noise, and put far quantiles too far."""

LABEL_DEVIATIONS = 3.0
"""The tail of one label is its own if rows in a part of it differ by so much from its share of all."""


@dataclass(frozen=True)
class Tails:
    """Which cells of an ordered column are tails, and how many rows the fitted laws give them (none elsewhere)."""

    is_tail: Truths
    counts: Floats
    sides: tuple[Truths, ...] = ()

    def put(self, counts: Floats, total: float) -> Floats:
        """Counts with the tails put in, and everything else scaled so that the total stays."""
        cells = slice(len(self.is_tail))
        found = counts.copy()
        found[cells][self.is_tail] = 0.0
        rest, room = float(found.sum()), total - float(self.counts.sum())
        if rest <= 0 or room <= 0:
            return counts
        found *= room / rest
        found[cells] += self.counts
        return found

    def of_label(self, share: float, counts: Floats, noise: float) -> Tails:
        """The tails of a label: its share of all, unless its own noisy counts stand out from that, which then stay.

        Counts are added up from both ends of a tail, so that rows spread over many cells are seen.
        """
        is_tail = self.is_tail.copy()
        for side in self.sides:
            apart = (counts[: len(side)] - share * self.counts)[side]
            deviations = noise * np.sqrt(np.arange(1, len(apart) + 1))
            sums = np.concatenate([np.cumsum(apart) / deviations, np.cumsum(apart[::-1]) / deviations])
            if (np.abs(sums) > LABEL_DEVIATIONS).any():
                is_tail &= ~side
        return Tails(is_tail, np.where(is_tail, share * self.counts, 0.0))


def fit_tails(edges: Integers, counts: Floats, variances: Floats) -> Tails:
    """Find both tails of a noisy histogram and fit a law to each.

    Args:
        edges: the first code of each bar, and the code after the last.
        counts: noisy rows in each bar.
        variances: variance of the noise in each.
    """
    size = len(counts)
    noise = np.sqrt(variances)
    is_peak = counts - median_around(counts) > BAR_DEVIATIONS * noise
    below = np.cumsum(np.maximum(counts, 0.0))
    middle = int(np.searchsorted(below, 0.5 * below[-1])) if below[-1] > 0 else 0
    middle = min(middle, size - 1)
    is_tail, fitted, sides = np.zeros(size, dtype=bool), np.zeros(size), []
    distances = (edges - edges[0]).astype(np.float64)
    upper, lower = slice(middle + 1, None), slice(0, middle)
    for side, flip in ((upper, 1), (lower, -1)):
        own, free = np.zeros(size, dtype=bool), ~is_peak[side][::flip]
        bars, spread = counts[side][::flip], variances[side][::flip]
        starts = _tail_start(np.where(free, bars, 0.0), spread)
        outward = distances[middle + 1 :] if flip == 1 else distances[middle] - distances[middle::-1]
        if math.sqrt(float(spread[starts:].sum())) > MOST_DOUBT * below[-1]:
            continue
        back = max(0, starts - FITTED_BODY)
        law = _fit_law(outward[back:] - outward[back], bars[back:], spread[back:], free[back:])
        rows = np.append(np.zeros(back), law)
        fitted[side] = rows[::flip]
        own[side] = (free & (np.arange(len(bars)) >= starts))[::flip]
        is_tail |= own
        sides.append(own)
    return Tails(is_tail, np.where(is_tail, fitted, 0.0), tuple(sides))


def _tail_start(bars: Floats, variances: Floats) -> int:
    """The first bar, from the middle outwards, after which nothing surely stands out."""
    beyond = np.cumsum(bars[::-1])[::-1]
    spread = np.cumsum(variances[::-1])[::-1]
    is_body = (bars > BAR_DEVIATIONS * np.sqrt(variances)) | (beyond > BODY_DEVIATIONS * np.sqrt(spread))
    found = np.flatnonzero(is_body)
    return int(found[-1]) + 1 if len(found) else 0


def _fit_law(distances: Floats, bars: Floats, variances: Floats, free: Truths) -> Floats:
    """Rows in each bar by generalised Pareto laws, averaged by how well each explains the noisy ones; or none.

    With rows M p_i expected in bar i, the best M is sum(c p / v) / sum(p^2 / v), and what it explains of the squares
    is z^2 with z = sum(c p / v) / sqrt(sum(p^2 / v)): a matched filter, in deviations of noise.
    """
    found = np.zeros(len(bars))
    if not free.any():
        return found
    weight = np.where(free, 1.0, 0.0) / np.maximum(variances, LEAST_VARIANCE)
    laws = _laws(distances)  # (laws, bars)
    power = np.maximum((laws * laws * weight).sum(axis=1), 1e-300)
    match = (laws * (bars * weight)).sum(axis=1)
    explained = np.where(match > 0, match * match / power, 0.0)
    best = float(explained.max())
    if best < TAIL_DEVIATIONS**2:
        return found
    # The likelihood exp(-x / 2), as a product that is the same everywhere.
    likely = 1 / (1 + (best - explained) / 32)
    for _ in range(4):
        likely = likely * likely
    likely *= explained > 0
    return np.asarray(((likely * match / power)[:, None] * laws).sum(axis=0) / likely.sum())


def _laws(distances: Floats) -> Floats:
    """Shares of bars, cut at the last distance: even ones and heavier ones, of many scales.  # (laws, bars)"""
    scale, found = float(np.diff(distances).min()) / 4, []
    while scale <= distances[-1]:
        found.append(np.diff(np.minimum(distances / scale, 1.0)))
        for squarings in SQUARINGS:
            left = 1 / (1 + distances / (2**squarings * scale))
            for _ in range(squarings):
                left = left * left
            found.append((left[:-1] - left[1:]) / (1 - left[-1]))
        scale *= math.sqrt(2)
    return np.stack(found)


def doubling_breaks(starts: Integers, masses: Floats, num_codes: int) -> Truths:
    """Whether a cell should begin with a piece: the first one at or after each doubling distance beyond the 1 % and
    99 % points. Near and far codes of a tail differ too much to be counted together.
    """
    found = np.zeros(len(starts), dtype=bool)
    below = np.cumsum(masses)
    if below[-1] <= 0:
        return found
    low, middle, high = (int(starts[np.searchsorted(below, part * below[-1])]) for part in (0.01, 0.5, 0.99))
    for point, sign in ((high, 1), (low, -1)):
        step = max(1, abs(point - middle))
        while 0 < middle + sign * step < num_codes:
            place = np.searchsorted(starts, middle + sign * step)
            found[place : place + 1] = True
            step *= 2
    return found
