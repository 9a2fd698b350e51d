"""Comonotone pairs: of two columns neither falls (or one never rises) while the other rises, so that one of them is a
step function of the other, as the hour of a departure is of its time.

Given its margins there is one such joint law (the upper Frechet-Hoeffding bound; the lower one if one column falls): in
the order of the rows' ranks. Cells that straddle a step are split there, so that rows do not contradict it; the border
is known as well as the pair's counts, and of all borders that these allow round numbers are likelier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.features import Cells
from understudy.features.tables import round_steps
from understudy.fits.structural_zeros import FUNCTION_DEVIATIONS, INDEPENDENCE_DEVIATIONS, STRAY_DEVIATIONS
from understudy.rules.adaptive_bins import MOST_CELLS, masses_in, spread_inside
from understudy.rules.denoise import universal_threshold
from understudy.rules.marginals import Marginals, split_cells, unions
from understudy.rules.measurement import Measurement
from understudy.schema import Column

FEWEST_CELLS = 5
"""Cells that a number must have in the pair's table: few show no line along which the columns go."""

MOST_BESIDE = 0.06
"""Beside a function, and right beside a staircase, lie no more rows than this share, with a deviation of noise to
spare: of columns that are only alike, rows are there."""

SQUARES_DEVIATIONS = 3.0
"""Squares of the cells beside it are no further beyond noise: chi-square variables have heavy tails."""

MOST_OFF = 0.05
MEAN_DEVIATION = math.sqrt(2 / math.pi) / 2
"""With steps at codes, so large a share of the rows may be in other cells of the pair than were counted, beside what
noise has on average: a normal variable is sqrt(2 / pi) deviations from zero, a total variation counts a row twice."""

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

LEAST_HELD = 1e-6
"""Cells with a smaller share of the rows have no steps of their own."""

DOUBT = 2.5
DOUBT_INSIDE = 0.25
"""How well the place of a step is known: to so many deviations of the noise on a pair's cell, and to so large a part of
the rows of the cell that it lies in. Measured where steps are known."""

ROUNDS = 20
"""Of expectation and maximisation: shares of a few classes have settled by then."""


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
    deviations = (float(((table - expected) ** 2).sum()) / noise**2 - table.size) / math.sqrt(2 * table.size)
    if deviations < INDEPENDENCE_DEVIATIONS:
        return None
    if one.num_known < FEWEST_CELLS or (other.is_ordered and other.num_known < FEWEST_CELLS):
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


def beyond_noise(counts: Floats) -> float:
    """How far the squares of counts, in units of their noise, are beyond what noise gives: in deviations of a
    chi-square variable.
    """
    return float(((counts**2).sum() - counts.size) / math.sqrt(2 * counts.size))


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


class Side(NamedTuple):
    """One column of a pair: its finest cells, what is known of them, and its cells in the pair's table."""

    finest: Cells
    shares: Floats  # (finest cells,)
    inside: Floats  # share of its cell's rows that each piece of the finest cells has
    pair: Cells
    steps: tuple[float, ...]  # codes from one round number to the next, the roundest first
    origin: float  # the code that they are counted from

    def shared_out(self, masses: Floats) -> Floats:
        """Masses of the pair's cells as those of the finest ones, with that of nulls only if masses have it."""
        union = unions(self.finest, self.pair)[: self.finest.num_known + (len(masses) > self.pair.num_known)]
        weights = self.shares[: len(union)] + SLIVER
        return np.asarray(masses[union] * weights / np.bincount(union, weights=weights)[union])


@dataclass(frozen=True)
class Inside:
    """What is known of rows inside cells: the histograms of the first stage, and what numbers are round."""

    first: Measurement
    columns: Sequence[Column]

    def side(self, marginals: Marginals, pair: Cells) -> Side:
        """A column as one side of a pair."""
        place, column = marginals.place(pair), self.columns[pair.column]
        finest, shares = marginals.cells[place], marginals.of_all(place)
        if not finest.is_ordered:
            return Side(finest, shares, np.ones(finest.num_pieces), pair, (), 0.0)
        round_numbers = round_steps(pair.column, column)
        steps, origin = ((1.0,), 0.0) if round_numbers is None else (round_numbers.steps[1:], round_numbers.origin)
        return Side(finest, shares, spread_inside(finest, masses_in(finest, self.first)), pair, steps, origin)


def at_steps(
    marginals: Marginals, one: Cells, other: Cells, staircase: Staircase, inside: Inside, *, noise: float
) -> tuple[Marginals, Floats] | None:
    """Columns of a pair with their cells split where the other one has a step, and their comonotone joint law.

    None if values that steps cannot part contradict the pair's table: the columns are alike, and no function.

    Args:
        marginals: what is known of columns.
        one: the pair's cells of the number that the other column follows.
        other: those of the other column.
        staircase: over these cells.
        inside: what is known of rows inside cells.
        noise: deviation of the noise on a cell of the pair, in shares of rows.

    # -> ..., (known cells of one, cells of the other that are on the staircase)
    """
    masses = staircase.masses / staircase.masses.sum()
    marginals = _value_by_value(marginals, inside.side(marginals, other))
    side, followed = inside.side(marginals, other), inside.side(marginals, one)
    shares, union = side.shared_out(masses.sum(axis=0)), unions(side.finest, other)
    known = staircase.order[staircase.order < other.num_known]
    # The other column's finest cells in the staircase's order, and within one of the pair's cells in their own.
    own = np.arange(len(shares))[:: -1 if other.is_ordered and known[0] > known[-1] else 1]
    own = own[np.argsort(np.argsort(staircase.order)[union[own]], kind="stable")]
    own = own[shares[own] > LEAST_HELD]
    allowed = MOST_OFF + MEAN_DEVIATION * noise * float((masses > 0).sum())
    for steps in (followed.steps, followed.steps[-1:]):  # at round numbers, or else wherever they seem to be
        number = followed._replace(steps=steps)
        finer, at, ends = _split_at(number, masses.sum(axis=1), _cumulative(shares[own])[1:], noise)
        joint = np.zeros((finer.num_known, len(shares)))
        edges = np.unique(np.append(at, ends))
        middles = (edges[:-1] + edges[1:]) / 2
        places = np.minimum(np.searchsorted(ends, middles), len(own) - 1)
        np.add.at(joint, (np.searchsorted(at, middles) - 1, own[places]), np.diff(edges))
        seen = np.zeros(masses.shape)
        np.add.at(seen, (unions(finer, one)[: len(joint), None], union[: len(shares)]), joint)
        if np.abs(seen - masses).sum() / 2 <= allowed:
            held, parent = np.diff(at), unions(finer, followed.finest)[: finer.num_known]
            return marginals.split(finer, held / np.bincount(parent, weights=held)[parent]), joint
    return None


def _value_by_value(marginals: Marginals, side: Side) -> Marginals:
    """A number of few values with a cell for each."""
    cells = side.finest
    if not cells.is_ordered or not cells.num_known < cells.num_codes <= MOST_CELLS:
        return marginals
    finer = replace(cells, lows=(), groups=())
    codes = np.repeat(np.arange(cells.num_pieces), cells.last_codes - cells.first_codes + 1)
    return marginals.split(finer, side.inside[codes] / np.bincount(codes)[codes])


def _cumulative(shares: Floats) -> Floats:
    sums = np.append(0.0, np.cumsum(shares))
    return np.asarray(sums / sums[-1])


def _split_at(side: Side, masses: Floats, borders: Floats, noise: float) -> tuple[Cells, Floats, Floats]:
    """A number's cells split where the other column has its borders, and where all of these lie on the staircase.

    # (cells of the pair,), (borders,) -> finer cells, where each of these begins and the last one ends, (borders,)
    """
    cells, groups = side.finest, side.finest.cell_of_piece
    at = _cumulative(np.maximum(side.shared_out(masses), LEAST_HELD))
    edges = np.append(cells.first_codes, cells.num_codes)
    below = np.append(0.0, np.cumsum(np.diff(at)[groups] * side.inside))
    firsts = np.append(cells.first_codes[np.flatnonzero(np.diff(groups, prepend=-1))], cells.num_codes)
    own = np.searchsorted(at[1:-1], borders)
    gaps = np.diff(borders, prepend=0.0)
    doubt = np.hypot(DOUBT * noise, DOUBT_INSIDE * np.diff(at)[own])
    codes = _round_codes(side, borders[:-1], (edges, below), doubt=doubt[:-1], weights=gaps / (noise + SLIVER))
    # A step inside the cell that it was seen in parts this cell's rows as the pair does, whatever histograms say.
    is_inside = (codes > firsts[own[:-1]]) & (codes < firsts[own[:-1] + 1])
    found = dict(zip(firsts.tolist(), at.tolist(), strict=True))
    for code, place in zip(codes, np.where(is_inside, borders[:-1], np.interp(codes, edges, below)), strict=True):
        found.setdefault(int(code), float(place))
    starts = np.array(sorted(found))
    places = np.maximum.accumulate([found[code] for code in starts.tolist()])
    moved = places[np.searchsorted(starts, codes)]
    return split_cells(cells, starts[:-1].tolist()), places, np.append(moved, 1.0)


def _round_codes(
    side: Side, borders: Floats, known: tuple[Floats, Floats], *, doubt: Floats, weights: Floats
) -> Integers:
    """The codes that steps are most likely at, given about which share of the rows is below each.

    Each step is at a multiple of one of the round numbers, all multiples of which are as likely; how often it is at
    which of these numbers is estimated from all steps (empirical Bayes, by EM). Of all rising codes the likeliest are
    taken (Viterbi's algorithm).

    Args:
        side: the column.
        borders: these shares, in order.
        known: codes, and the shares of rows below them.
        doubt: deviations of the borders.
        weights: by how many deviations of noise the rows before each border stand out, and those after the last.
    """
    (edges, below), steps = known, np.asarray(side.steps)
    middles = np.interp(borders, below, edges)[:, None] - side.origin
    codes = np.clip(np.rint(np.rint(middles / steps) * steps + side.origin), 0, edges[-1])  # (borders, steps)
    apart = (np.interp(codes, edges, below) - borders[:, None]) / doubt[:, None]
    scores = np.log(steps) - apart**2 / 2
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares, seen = np.full(len(steps), 1 / len(steps)), np.minimum(weights[:-1], weights[1:]) + SLIVER
    for _ in range(ROUNDS):
        each = likely * shares
        shares = seen @ (each / each.sum(axis=1, keepdims=True)) / seen.sum()
    scores += np.log(shares + SLIVER)
    codes = np.vstack([np.zeros(len(steps)), codes, np.full(len(steps), edges[-1])])
    total, origins = np.zeros(len(steps)), []
    for place, own in enumerate(np.vstack([scores, np.zeros(len(steps))])):
        step = codes[place + 1] - codes[place][:, None]  # (steps before, steps here)
        # Rows between two steps that are at one code would have none.
        ways = total[:, None] + np.where(step > 0, 0.0, np.where(step < 0, -np.inf, -(weights[place] ** 2) / 2))
        origins.append(ways.argmax(axis=0))
        total = ways.max(axis=0) + own
    chosen, found = int(total.argmax()), []
    for place in range(len(borders), -1, -1):
        chosen = int(origins[place][chosen])
        found.append(codes[place, chosen])
    return np.asarray(found[-2::-1], dtype=np.int64)
