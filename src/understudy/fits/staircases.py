"""Staircases: tables of two columns of which neither falls (or one never rises) while the other rises, found in noise.

Most step functions of a number show so, although the steps lie inside its cells: the hour of a departure and its time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.features import Cells
from understudy.fits.structural_zeros import (
    FUNCTION_DEVIATIONS,
    INDEPENDENCE_DEVIATIONS,
    STRAY_DEVIATIONS,
    beyond_noise,
)
from understudy.rules.adaptive_bins import MOST_CELLS
from understudy.rules.denoise import universal_threshold

FEWEST_CELLS = 5
"""Cells that a number must have in the pair's table: few show no line along which the columns go."""

MOST_BESIDE = 0.06
"""Beside a function, and right beside a staircase, lie no more rows than this share, with a deviation of noise to
spare: of columns that are only alike, rows are there."""

MOST_UNITED = 0.02
"""Share of rows whose categories share a cell: they need not lie side by side along the number."""

SQUARES_DEVIATIONS = 3.0
"""Squares of the cells beside it are no further beyond noise: chi-square variables have heavy tails."""

NEGLIGIBLE = 1e-3
"""Whatever these tests say, so small a share of the rows beside it does not matter."""

CLEARLY = 1.0
"""In deviations of a chi-square variable."""

PLACE_DEVIATIONS = 2.0
"""Where a category lies is told from the cells in which it stands out of the noise by so many deviations."""

NULL_DEVIATIONS = 3.0
"""That the other column is null is a step if so many deviations of noise in rows are."""

SLIVER = 1e-12
"""Share of rows of a cell that a staircase passes through and noise has emptied."""


@dataclass(frozen=True)
class Staircase:
    """Cells of a pair that a comonotone law may use, and how they go on from one corner of the table to the other."""

    masses: Floats  # (known cells of one, cells of the other): shares of rows, zero beside the staircase
    order: Integers  # the other column's cells, in the order in which they follow the first one's
    is_turned: bool  # whether "one" is the pair's second column

    @property
    def is_beside(self) -> Truths:
        """Where no row is, in the pair's own order."""
        beside: Truths = self.masses == 0
        return beside.T if self.is_turned else beside


def find_staircase(table: Floats, expected: Floats, noise: float, cells: Sequence[Cells]) -> Staircase | None:
    """The staircase of a pair, if as far as noise lets one tell no row is beside it; else None.

    One column is a number with more than a value in a cell; if both are, the wider one. The other one has few values. A
    choice is sorted by where its rows lie; that the other column is null may be a step too. Of all staircases the one
    with the largest squared counts is taken: what it leaves out has the least.
    """
    widths = [each.num_codes / each.num_known if each.is_ordered else 1.0 for each in cells]
    is_turned = widths[1] > widths[0]
    one, other = cells[::-1] if is_turned else cells
    if not one.is_ordered or one.num_known == one.num_codes or other.num_codes > MOST_CELLS:
        return None
    if beyond_noise((table - expected) / noise) < INDEPENDENCE_DEVIATIONS:
        return None
    if one.num_known < FEWEST_CELLS or (other.is_ordered and other.num_known < FEWEST_CELLS):
        return None
    rows = expected.sum(axis=1 if is_turned else 0)[: other.num_known]
    if not other.is_ordered and rows[np.bincount(other.cell_of_piece) > 1].sum() > MOST_UNITED:
        return None
    known = (table.T if is_turned else table)[: one.num_known, : other.dim]
    nulls = known[:, other.num_known :]
    if nulls.sum() < NULL_DEVIATIONS * noise * math.sqrt(one.num_known):
        known = known[:, : other.num_known]  # the other column is null where the number is, if ever
    squares, orders = np.maximum(known, 0.0) ** 2, _orders(known / noise, other)
    paths = [_best_path(squares[:, order]) for order in orders]
    best = int(np.argmax([squares[:, own][path].sum() for own, path in zip(orders, paths, strict=True)]))
    order, path = orders[best], paths[best]
    if known.shape[1] == 1 or not _is_alone(known[:, order] / noise, path):
        return None
    used = path[:, np.argsort(order)]
    return Staircase(np.where(used, np.maximum(known, SLIVER), 0.0), order, is_turned)


def _is_alone(counts: Floats, path: Truths) -> bool:
    """Whether no row need be beside a path, given counts in units of their noise: most would be right beside it."""
    near = np.pad(path, 1)
    near = (near[2:, 1:-1] | near[:-2, 1:-1] | near[1:-1, 2:] | near[1:-1, :-2]) & ~path
    beside, hidden = counts[~path], math.sqrt(near.sum())
    size = len(beside)
    if size == 0 or hides_rows(counts[near] / counts.sum(), 1 / counts.sum()):
        return False
    held = max(counts[near].sum() / hidden, beside.sum() / math.sqrt(size))
    stray = beside.max() - universal_threshold(size)
    is_usual = held < FUNCTION_DEVIATIONS and stray < STRAY_DEVIATIONS and beyond_noise(beside) < SQUARES_DEVIATIONS
    return bool(is_usual or beside.sum() + math.sqrt(size) < NEGLIGIBLE * counts.sum())


def hides_rows(shares: Floats, noise: float) -> bool:
    """Whether cells that should be empty may hold rows that matter."""
    return float(shares.sum()) + noise * math.sqrt(shares.size) > MOST_BESIDE


def better_function(counts: Floats, function: Truths, staircase: Staircase) -> bool:
    """Whether a function of cells leaves clearly less beside it than a staircase, given counts in units of their noise:
    a category may be a union of others that do not lie side by side.
    """
    beside = staircase.is_beside
    left = beyond_noise(counts[: beside.shape[0], : beside.shape[1]][beside])
    return beyond_noise(counts[~function]) + CLEARLY < left


def _orders(known: Floats, other: Cells) -> list[Integers]:
    """Orders in which the other column may follow the first, given counts in units of their noise.

    Nulls of a number come before or after its values. Categories are sorted by where they stand out of the noise, those
    that do nowhere by their largest cell.
    """
    if other.is_ordered:
        natural, null = np.arange(other.num_known), np.arange(other.num_known, known.shape[1])
        ways = [natural, natural[::-1]]
        return [np.append(way, null) for way in ways] + [np.append(null, way) for way in ways if len(null)]
    least = np.minimum(PLACE_DEVIATIONS, np.nextafter(known.max(axis=0), -np.inf))
    held = np.maximum(known - least, 0.0)
    return [np.argsort(np.arange(len(held)) @ held / held.sum(axis=0), kind="stable")]


def _best_path(gains: Floats) -> Truths:
    """The path from the first cell of all to the last, a step down or to the right at a time, with the largest sum.

    Dynamic programming, row by row: a path enters a row at some cell and leaves it at a later one.
    """
    best, entries = np.full(gains.shape[1], -math.inf), []
    best[0] = 0.0
    for row in gains:
        before = np.cumsum(row) - row  # a row's gains before each cell
        along = np.maximum.accumulate(best - before)
        entries.append(np.searchsorted(along, along, side="left"))  # the first cell that this maximum is from
        best = along + before + row
    used, column = np.zeros(gains.shape, dtype=bool), gains.shape[1] - 1
    for place in range(len(gains) - 1, -1, -1):
        entry = int(entries[place][column])
        used[place, entry : column + 1] = True
        column = entry
    return used
