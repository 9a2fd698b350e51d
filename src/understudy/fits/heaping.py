"""Heaping on round numbers: which part of a column's values are multiples of 10,000, of 25, of 0.01, or zero.

Between values that repeat often enough to be seen one by one, a histogram knows no single values. How many rows are
multiples of a round step is known for the column as a whole, from a table of its own; here these rows are put on the
multiples that lie in each run of codes, by iterative proportional fitting of (run, step) to the rows of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.features.tables import Cells
from understudy.generators.mixture import ColumnGrid
from understudy.rules.spikes import Run

HEAP_DEVIATIONS = 4.0
"""Multiples of a step are heaps if there are so many deviations of noise more of them than evenly spread codes have."""

REST_DEVIATIONS = 2.0
"""If fewer rows than so many deviations are on no heap, none is: a column with two decimals has them everywhere."""

LEAST_SHARE = 0.002
"""Heaps of fewer of the rows are not worth their pieces."""

LEAST_ROWS = 0.5
"""A run of codes with fewer rows is left as it is."""

MOST_HEAPS = 20_000
"""Multiples of a column that are pieces of their own."""

ROUNDS = 30
"""Rounds of proportional fitting."""


def with_heaps(
    grid: ColumnGrid, rows: Floats, bars: Cells, spikes: Truths, steps: Cells, counts: Floats, noise: float
) -> ColumnGrid:
    """A grid whose runs of codes have part of their rows on round numbers.

    Args:
        grid: the cells of a column and their pieces, which are in order and leave no code out.
        rows: estimated rows of each cell.
        bars: the column's histogram; where in a bar rows lie is guessed, so they may move inside it,
        spikes: but for pieces that hold a value that repeats, which are known better.
        steps: the column by how round its codes are.
        counts: noisy rows of each of these classes.
        noise: its deviation.
    """
    masses = rows[grid.cell_of_piece] * grid.share_of_piece
    least = max(HEAP_DEVIATIONS * noise, LEAST_SHARE * float(masses.sum()))
    is_run, widths = grid.highs > grid.lows, grid.highs - grid.lows + 1.0
    codes, runs, classes = _multiples(grid, is_run & (masses >= LEAST_ROWS), steps, counts[:-1] > least)
    per_run = np.zeros((len(masses), len(steps.steps)))
    np.add.at(per_run, (runs, classes), 1.0)
    single = np.bincount(steps(grid.lows[~is_run]), weights=masses[~is_run], minlength=steps.num_known)
    excess = counts[:-1] - single[:-1] - (masses / widths) @ per_run
    wanted = np.where((excess > least) & per_run.any(axis=0), excess, 0.0)
    if not wanted.any():
        return grid
    others = np.append(counts[:-1][wanted == 0], counts[-1])
    if others.sum() <= REST_DEVIATIONS * noise * math.sqrt(len(others)):  # as far as is known all values are heaps
        wanted *= masses[is_run].sum() / wanted.sum()
    density = per_run / widths[:, None]
    is_missing = (per_run == 0) & (wanted > 0) & ~spikes[:, None]
    *near, bar_widths = _nearest(grid, is_run & (masses >= LEAST_ROWS), bars, steps, is_missing)
    codes, runs, classes = (np.append(one, other) for one, other in zip((codes, runs, classes), near, strict=True))
    np.add.at(per_run, tuple(near[1:]), 1.0)
    np.add.at(density, tuple(near[1:]), 1 / bar_widths)
    taken = _fitted(np.where(is_run, masses, 0.0), wanted, density)
    used = taken[runs, classes] > 0
    codes, runs, classes = codes[used], runs[used], classes[used]
    share = np.divide(grid.share_of_piece, masses, out=np.zeros(len(masses)), where=masses > 0)
    rest = grid.share_of_piece - taken.sum(axis=1) * share
    heaped = taken[runs, classes] / per_run[runs, classes] * share[runs]
    cells, shares = np.append(grid.cell_of_piece, grid.cell_of_piece[runs]), np.append(np.maximum(rest, 0.0), heaped)
    return ColumnGrid(np.append(grid.lows, codes), np.append(grid.highs, codes), grid.has_null, cells, shares)


def with_spikes(grid: ColumnGrid, rows: Floats, runs: Sequence[Run]) -> ColumnGrid:
    """A grid in which runs of codes that hold a value that repeats have pieces of their own.

    Args:
        grid: the cells of a column and their pieces, which are in order and leave no code out.
        rows: estimated rows of each cell.
        runs: these, with their rows.
    """
    ends = np.append(grid.highs, -1)  # of a run that is a piece already, nothing is cut
    known = [run for run in runs if run.last <= ends[np.searchsorted(grid.lows, run.first, side="right") - 1]]
    if not known:
        return grid
    firsts, lasts = (np.array([getattr(run, name) for run in known]) for name in ("first", "last"))
    lows = np.unique(np.concatenate([grid.lows, firsts, lasts[lasts < grid.highs[-1]] + 1]))
    highs = np.append(lows[1:] - 1, grid.highs[-1])
    parent = np.searchsorted(grid.lows, lows, side="right") - 1
    masses, found = rows[grid.cell_of_piece] * grid.share_of_piece, np.zeros(len(lows))
    found[np.searchsorted(lows, firsts)] = [run.rows for run in known]
    taken, count = np.bincount(parent, weights=found), len(grid.lows)
    # Beside a value that repeats a bar has no more rows than its neighbours have.
    widths = grid.highs - grid.lows + 1.0
    beside = np.minimum(np.append((masses / widths)[1:], math.inf), np.append(math.inf, (masses / widths)[:-1]))
    left = np.where(taken > 0, np.minimum(np.maximum(masses - taken, 0.0) / widths, beside), 1.0)
    found += np.where(found > 0, 0.0, left[parent] * (highs - lows + 1.0))
    shares = grid.share_of_piece[parent] * found / np.bincount(parent, weights=found, minlength=count)[parent]
    return ColumnGrid(lows, highs, grid.has_null, grid.cell_of_piece[parent], shares)


def _multiples(
    grid: ColumnGrid, in_use: Truths, steps: Cells, is_likely: Truths
) -> tuple[Integers, Integers, Integers]:
    """Round codes with their runs and classes: of likely steps, the largest first, as far as they are not too many."""
    found, count = [np.zeros(0)], 0
    for step in np.asarray(steps.steps)[is_likely]:
        first = np.ceil((grid.lows[in_use] - 0.5 - steps.origin) / step)
        last = np.floor((grid.highs[in_use] + 0.5 - steps.origin) / step)
        sizes = np.maximum(last - first + 1, 0).astype(np.int64)
        count += int(sizes.sum())
        if count > MOST_HEAPS:
            break
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found.append((np.repeat(first, sizes) + places) * step + steps.origin)
    codes = np.unique(np.clip(np.rint(np.concatenate(found)), 0, steps.num_codes - 1).astype(np.int64))
    runs, classes = np.searchsorted(grid.lows, codes, side="right") - 1, steps(codes)
    inside = in_use[runs] & (classes < len(is_likely))
    return codes[inside], runs[inside], classes[inside]


def _nearest(
    grid: ColumnGrid, in_use: Truths, bars: Cells, steps: Cells, is_missing: Truths
) -> tuple[Integers, Integers, Integers, Floats]:
    """The nearest multiples of steps that a run has none of: in its bar, or if no run between two multiples has any.

    Also the width of the bar of each.
    """
    middles = (grid.lows + grid.highs) / 2 - steps.origin
    missing = np.flatnonzero(is_missing.any(axis=0))
    finest = missing[-1] if len(missing) else 0
    is_bare = is_missing[:, finest] & (grid.highs - grid.lows < steps.steps[finest])
    bar = np.searchsorted(bars.first_codes, grid.lows, side="right") - 1
    widths: Floats = (bars.last_codes - bars.first_codes + 1)[bar].astype(np.float64)
    none = np.zeros(0, dtype=np.int64)
    found: list[tuple[Integers, Integers, Integers, Floats]] = [(none, none, none, np.zeros(0))]
    for place in missing:
        step = steps.steps[place]
        codes = np.rint(np.rint(middles / step) * step + steps.origin)
        is_near = (codes >= bars.first_codes[bar]) & (codes <= bars.last_codes[bar])
        is_near |= is_bare & (place == finest) & (codes >= 0) & (codes < steps.num_codes)
        runs = np.flatnonzero(in_use & is_missing[:, place] & is_near)
        found.append((codes[runs].astype(np.int64), runs, np.full(len(runs), place), widths[runs]))
    codes, runs, classes, sizes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return codes, runs, classes, sizes


def _fitted(masses: Floats, wanted: Floats, density: Floats) -> Floats:
    """Rows of each run on multiples of each step: raking to the rows of runs and the wanted rows of steps.

    # (runs,), (steps,), (runs, steps) -> (runs, steps)
    """
    total = max(float(masses.sum()), 1e-9)
    wanted = np.append(wanted, max(total - float(wanted.sum()), 0.0))
    wanted *= total / wanted.sum()
    table = np.column_stack([density, np.ones(len(masses))]) * (wanted > 0)
    table *= np.divide(1.0, table.mean(axis=0), out=np.ones(len(wanted)), where=wanted > 0) * wanted
    for _ in range(ROUNDS):
        rows = table.sum(axis=1)
        table *= np.divide(masses, rows, out=np.zeros(len(masses)), where=rows > 0)[:, None]
        columns = table.sum(axis=0)
        table *= np.divide(wanted, columns, out=np.ones(len(wanted)), where=columns > 0)
    rows = table.sum(axis=1)
    table *= np.divide(masses, rows, out=np.zeros(len(masses)), where=rows > 0)[:, None]
    return np.asarray(table[:, :-1])
