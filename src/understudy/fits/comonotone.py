"""Step functions of a number: where their steps are, and cells split there so that rows do not contradict them.

Given its margins a staircase has one joint law, in the order of the rows' ranks: the upper Frechet-Hoeffding bound, or
the lower one if one column falls. So the border between two values is known as well as the pair's counts, and of all
codes that these allow round numbers are likelier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.features import Cells
from understudy.features.tables import round_steps
from understudy.fits.staircases import SLIVER, Staircase
from understudy.rules.adaptive_bins import MOST_CELLS, masses_in, spread_inside
from understudy.rules.marginals import Marginals, split_cells, unions
from understudy.rules.measurement import Measurement
from understudy.schema import Column

MOST_OFF = 0.05
MEAN_DEVIATION = math.sqrt(2 / math.pi) / 2
"""With steps at codes, so large a share of the rows may be in other cells of the pair than were counted, beside what
noise has on average: a normal variable is sqrt(2 / pi) deviations from zero, a total variation counts a row twice."""

LEAST_HELD = 1e-6
"""Cells with a smaller share of the rows have no steps of their own."""

DOUBT = 2.5
DOUBT_INSIDE = 0.25
"""How well the place of a step is known: to so many deviations of the noise on a pair's cell, and to so large a part of
the rows of the cell that it lies in. Measured where steps are known."""

ROUNDS = 20
"""Of expectation and maximisation: shares of a few classes have settled by then."""


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
