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
"""Share of the rows that noise could hide in a tail at one deviation: beyond it no tail is taken to be empty."""

LEAST_VARIANCE = 1e-12
"""Of noise in rows: counts without noise are not divided by nothing."""

FITTED_BODY = 2
"""Bars of the body that a law is fitted to together with the tail: they tell best how fast it falls."""

SQUARINGS = (2, 4)
"""Laws (1 + d / (p scale)) ** -p with p = 4 and 16, by repeated squaring: heavy, and nearly exponential. Heavier ones
(p = 2) are taken for lighter ones under noise, and put far quantiles too far."""


@dataclass(frozen=True)
class Tails:
    """Which cells of an ordered column are tails, and how many rows the fitted laws give them (none elsewhere)."""

    is_tail: Truths
    counts: Floats
    sides: tuple[Truths, ...] = ()
    is_doubtful: bool = False
    """Whether noise could hide many rows in one of them."""

    def put(self, counts: Floats, total: float) -> Floats:
        """Counts with the tails put in, scaled to the total: the body alone, unless the tails are as doubtful."""
        cells = slice(len(self.is_tail))
        found = counts.copy()
        found[cells][self.is_tail] = 0.0
        rest, tails = float(found.sum()), float(self.counts.sum())
        if self.is_doubtful and rest + tails > 0:
            found[cells] += self.counts
            return np.asarray(found * (total / (rest + tails)))
        if rest <= 0 or tails >= total:
            return counts
        found *= (total - tails) / rest
        found[cells] += self.counts
        return found

    def of_label(self, share: float, runs: Floats) -> Tails:
        """The tails of a label: its share of all, but for sides in which runs of its own counts stand out."""
        is_tail = self.is_tail.copy()
        for side in self.sides:
            if runs[side].any():
                is_tail &= ~side
        return Tails(is_tail, np.where(is_tail, share * self.counts, 0.0), is_doubtful=self.is_doubtful)


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
    has_body = bool((counts > BAR_DEVIATIONS * noise).any())
    below = np.cumsum(np.maximum(counts, 0.0))
    middle = int(np.searchsorted(below, 0.5 * below[-1])) if below[-1] > 0 else 0
    middle = min(middle, size - 1)
    is_tail, fitted, sides, any_doubt = np.zeros(size, dtype=bool), np.zeros(size), [], False
    distances = (edges - edges[0]).astype(np.float64)
    upper, lower = slice(middle + 1, None), slice(0, middle)
    for side, flip in ((upper, 1), (lower, -1)):
        own, free = np.zeros(size, dtype=bool), ~is_peak[side][::flip]
        bars, spread = counts[side][::flip], variances[side][::flip]
        starts = _tail_start(np.where(free, bars, 0.0), spread)
        outward = distances[middle + 1 :] if flip == 1 else distances[middle] - distances[middle::-1]
        is_doubtful = math.sqrt(float(spread[starts:].sum())) > MOST_DOUBT * below[-1]
        if is_doubtful and not has_body:
            continue
        any_doubt |= is_doubtful
        least = 0.0 if is_doubtful else TAIL_DEVIATIONS
        back = max(0, starts - FITTED_BODY)
        law = _fit_law(outward[back:] - outward[back], bars[back:], spread[back:], free[back:], least)
        rows = np.append(np.zeros(back), law)
        fitted[side] = rows[::flip]
        own[side] = (free & (np.arange(len(bars)) >= starts))[::flip]
        is_tail |= own
        sides.append(own)
    return Tails(is_tail, np.where(is_tail, fitted, 0.0), tuple(sides), any_doubt)


def _tail_start(bars: Floats, variances: Floats) -> int:
    """The first bar, from the middle outwards, after which nothing surely stands out."""
    beyond = np.cumsum(bars[::-1])[::-1]
    spread = np.cumsum(variances[::-1])[::-1]
    is_body = (bars > BAR_DEVIATIONS * np.sqrt(variances)) | (beyond > BODY_DEVIATIONS * np.sqrt(spread))
    found = np.flatnonzero(is_body)
    return int(found[-1]) + 1 if len(found) else 0


def _fit_law(distances: Floats, bars: Floats, variances: Floats, free: Truths, least: float) -> Floats:
    """Rows in each bar by generalised Pareto laws, averaged by how well each explains the noisy ones; none if all of
    them explain less than ``least`` deviations.

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
    if best <= least**2:
        return found
    # The likelihood exp(-x / 2), as a product that is the same everywhere.
    likely = 1 / (1 + (best - explained) / 32)
    for _ in range(4):
        likely = likely * likely
    likely *= explained > 0
    return np.asarray(((likely * match / power)[:, None] * laws).sum(axis=0) / likely.sum())


def _laws(distances: Floats) -> Floats:
    """Shares of bars, cut at the last distance: even ones and heavier ones, of many scales.  # (laws, bars)"""
    finest = float(np.diff(distances).min()) / 4
    count = 2 * int(distances[-1] / finest).bit_length() + 1
    scales = finest * np.cumprod(np.append(1.0, np.full(count, math.sqrt(2))))
    relative = distances / scales[scales <= distances[-1], None]
    found = [np.diff(np.minimum(relative, 1.0))]
    for squarings in SQUARINGS:
        left = 1 / (1 + relative / 2**squarings)
        for _ in range(squarings):
            left = left * left
        found.append((left[:, :-1] - left[:, 1:]) / (1 - left[:, -1:]))
    return np.concatenate(found)


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
