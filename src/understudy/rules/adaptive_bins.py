"""Histograms of single columns, and adaptive bins: cells cut where the noisy histograms show the rows to be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.features.base import Norm
from understudy.features.embedding import Embedding
from understudy.features.tables import Cells, Tables, bars_carried, coarser_bars, values_stand_out
from understudy.rules.denoise import haar_threshold, scale_to_total, universal_threshold
from understudy.rules.measurement import Measurement
from understudy.rules.tails import Tails, doubling_breaks, fit_tails

ROWS = "rows"
COLUMNS = "columns"
VALUES = "values"
DIGITS = ("digits", "last digits")
CELLS = "cells"
COARSE_PAIRS = "looks"
MARGINALS = "marginals"
"""Blocks: the row count where nobody states it, every column by itself (coarsely, and value by value), parts of values
that repeat in columns too long for that (``rules.spikes``), columns by label, a first look at pairs, and last of all
columns cut anew and the selected pairs."""

MOST_CELLS = 100
MOST_WIDTH = 6_000
"""Cells of one column, and of all columns together."""

CELL_DEVIATIONS = 6.0
ATOM_DEVIATIONS = 2.0
"""A cell holds at least so many noise deviations of rows; a value that repeats may do with fewer."""

FINE_DEVIATIONS = 4.0
"""The same for cells that are cut anew, which are not counted by label."""

ATOM_SHARE = 0.5
"""In a pair, a cell with this part of what a union should hold is left by itself."""

TOP_DEVIATIONS = 3.0
COARSE_CELLS = (2, 8)
COARSE_NOISE = 1.5
"""Cells per column in the first look at pairs: a pair's cell should hold 1.5 deviations of rows."""

ROWS_PER_COARSE_PAIR = {Norm.L2: 22.0, Norm.L1: 30.0}
"""Pairs are looked at if the table has so many times the noise of one of their counts in rows."""

LEAST_COVERAGE = 0.5
"""If noise allows fewer of the pairs, there are none: the budget serves single columns better."""


def place_bars(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Histograms with as many bars as the noisy row count carries (a rule of ``RULES``).

    Finer ones are left out if no value would stand out of them; how round values are is counted in any case.
    """
    template, rows = planned.map(COLUMNS), max(1.0, float(earlier[0].all_sums(ROWS)[0, 0]))
    most = bars_carried(planned.noise_of_count(COLUMNS) / rows)
    bars = tuple(coarser_bars(cells, most) if cells.is_ordered else cells for cells in template.factors)
    embedding = planned.embedding.with_map(COLUMNS, replace(template, factors=bars))
    if not planned.has(VALUES):
        return embedding
    finer, noise = planned.map(VALUES), planned.noise_of_count(VALUES) / rows
    steps = tuple(cells for cells in finer.factors if cells.steps)
    if not steps or values_stand_out(finer.factors, noise, tail=planned.tail):
        return embedding
    return embedding.with_map(VALUES, replace(finer, factors=steps, subsets=tuple((j,) for j in range(len(steps)))))


@dataclass(frozen=True)
class Pieces:
    """A column in runs of codes, with the estimated number of rows in each."""

    lows: tuple[int, ...]
    masses: Floats
    atoms: npt.NDArray[np.bool_]


def place_bins(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Cut every column into cells for the second stage (a rule of ``RULES``).

    Histograms are denoised into level runs of codes; long runs are split; runs are joined until a cell holds enough
    rows beside its noise. Values that repeat keep a cell to themselves.
    """
    first, template = earlier[-1], planned.map(CELLS)
    noise, most = planned.noise_of_count(CELLS), most_cells(len(template.factors))
    cells = tuple(_cut(first, factor.column, noise, most) for factor in template.factors)
    embedding = planned.embedding.with_map(CELLS, replace(template, factors=cells))
    if planned.has(COARSE_PAIRS):
        rows = total_rows(first)
        wanted = np.sqrt(max(rows, 1.0) / (COARSE_NOISE * planned.noise_of_count(COARSE_PAIRS)))
        count = float(np.clip(np.rint(wanted), *COARSE_CELLS))
        coarse = tuple(merged(first, each, count) for each in cells)
        embedding = embedding.with_map(COARSE_PAIRS, replace(planned.map(COARSE_PAIRS), factors=coarse))
    return embedding


def place_bins_by_rows(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """The same where nobody has stated a row count: the noisy one decides if pairs are looked at (a rule of ``RULES``).

    If it carries fewer than half of them, their share of the budget measures columns by label once more, and in the
    last stage columns by themselves.
    """
    embedding, template = place_bins(planned, earlier), planned.map(COARSE_PAIRS)
    norm, every = planned.embedding.block(COARSE_PAIRS).norm, template.subsets
    noise = planned.noise_of_count(COARSE_PAIRS) / norm.dilution(len(every)) / total_rows(earlier[-1])
    allowed = pairs_carried(noise, norm)
    if allowed >= len(every):
        return embedding
    if allowed < LEAST_COVERAGE * len(every):
        cells = embedding.block(CELLS).map_of(Tables).factors
        columns = tuple((j,) for j in range(len(cells)))
        return embedding.with_map(COARSE_PAIRS, replace(template, factors=cells, subsets=columns))
    looks = embedding.block(COARSE_PAIRS).map_of(Tables)
    some = tuple(every[i * len(every) // allowed] for i in range(allowed))
    return embedding.with_map(COARSE_PAIRS, replace(looks, subsets=some))


def pairs_carried(noise: float, norm: Norm) -> int:
    """How many pairs a table carries, given the noise on the share of rows in a cell of a single one."""
    return math.floor(min(norm.parts(1 / (ROWS_PER_COARSE_PAIR[norm] * noise)), 1e9))


def looks_at_pairs(second: Measurement) -> bool:
    """Whether the second stage looked at pairs, and not at columns once more."""
    return second.has(COARSE_PAIRS) and len(second.map(COARSE_PAIRS).subsets[0]) > 1


def total_rows(first: Measurement) -> float:
    """The noisy number of rows."""
    return first.once("total rows", lambda: max(1.0, float(rows_by_label(first).sum())))


def rows_by_label(*measurements: Measurement) -> Floats:
    """Noisy rows, in as many copies as the count has: of each label value, and unlisted ones last.

    The count and the sums of all tables that have a cell for every row, by inverse variance. Together, columns of few
    cells say what the count says with several times the noise.
    """
    totals, weight = 0.0, 0.0
    counts, variance = measurements[0].all_sums("count")[:, 0], measurements[0].noise_of_sum("count") ** 2
    for measured in measurements:
        for name in filter(measured.has, (COLUMNS, CELLS, COARSE_PAIRS, MARGINALS, *DIGITS)):
            if not measured.map(name).with_unlisted:
                continue
            noise = measured.noise_of_count(name)
            for table in measured.all_tables(name):
                sums, spread = table.reshape(len(table), -1).sum(axis=1), table[0].size * noise**2
                if len(sums) == len(counts):
                    counts = (counts * spread + sums * variance) / (spread + variance)
                    variance = spread * variance / (spread + variance)
                else:
                    spread *= len(sums)
                    totals, weight = totals + float(sums.sum()) / spread, weight + 1 / spread
    gain = weight / (weight + 1 / (len(counts) * variance))
    return np.asarray(counts + gain * (totals / weight - counts.sum()) / len(counts)) if weight else counts


def pieces_of(first: Measurement, column: int) -> Pieces:
    """Runs of codes of a column and their rows, from its noisy histograms."""
    return first.once(("pieces", column), lambda: _pieces(first, column))


def masses_in(cells: Cells, first: Measurement) -> Floats:
    """Rows in each piece of a column's cells, from its noisy histograms.

    If rows were added since the cells were placed, histograms show other pieces; rows of each of them are then taken to
    be spread evenly over its codes.
    """
    found = pieces_of(first, cells.column)
    if tuple(cells.first_codes.tolist()) == found.lows:
        return found.masses
    edges = np.append(found.lows, cells.num_codes)
    below = np.append(0.0, np.cumsum(found.masses))
    return np.diff(np.interp(np.append(cells.first_codes, cells.num_codes), edges, below))


def level_starts(first: Measurement, column: int) -> Integers:
    """Where the runs of codes begin that a column's noisy histograms tell apart, before long ones are split."""
    return first.once(("level starts", column), lambda: np.asarray(_level_pieces(first, column).lows))


def _pieces(first: Measurement, column: int) -> Pieces:
    found, whole = _level_pieces(first, column), first.map(COLUMNS).factors[column]
    return _split(found, whole.num_codes, total_rows(first) / (2 * MOST_CELLS)) if whole.is_ordered else found


def _split(pieces: Pieces, num_codes: int, limit: float) -> Pieces:
    """Pieces with more rows than a cell should have, in parts of equal numbers of codes; values that repeat stay."""
    lows = np.asarray(pieces.lows, dtype=np.int64)
    spans = np.diff(np.append(lows, num_codes))
    parts = np.clip(np.ceil(np.where(pieces.atoms, 0.0, pieces.masses) / limit), 1, spans).astype(np.int64)
    whole = np.repeat(np.arange(len(lows)), parts)
    place = np.arange(len(whole)) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = lows[whole] + place * spans[whole] // parts[whole]
    masses = pieces.masses[whole] / parts[whole]
    return Pieces(tuple(starts.tolist()), masses, pieces.atoms[whole])


def _level_pieces(first: Measurement, column: int) -> Pieces:
    """Runs of codes in which nothing stands out."""
    cells, noise = first.map(COLUMNS).factors[column], first.noise_of_count(COLUMNS)
    counts = first.tables(COLUMNS)[column][0]
    known = counts[: cells.num_known].copy()
    # Bounds have bars of one code, which share no level with the wide ones between them.
    has_bounds = cells.is_ordered and cells.num_codes > cells.num_pieces > 4
    inner = slice(1, -1) if has_bounds else slice(None)
    tails = Tails(np.zeros(len(known), dtype=bool), np.zeros(len(known)))
    if cells.is_ordered and cells.num_known > 2:
        tails = fit_tails(np.append(cells.first_codes, cells.num_codes), known, np.full(len(known), noise**2))
        known = np.where(tails.is_tail, tails.counts, known)
        known[inner] = haar_threshold(known[inner], noise, deviations=TOP_DEVIATIONS)
    total = total_rows(first)
    masses = tails.put(scale_to_total(np.append(known, counts[cells.num_known :]), total), total)
    masses = masses[: cells.num_known]  # the rest are nulls
    fine = _fine(first, column)
    if has_bounds:
        is_far = tails.is_tail[[0, -1]] & tails.is_tail[[1, -2]]
        stands_out = (known[[0, -1]] > TOP_DEVIATIONS * noise) & ~is_far
        cells, masses = _without_bounds(cells, masses, stands_out)
        if fine is not None and fine[0].num_codes > fine[0].num_pieces:
            fine = (*_without_bounds(fine[0], fine[1], stands_out), fine[2])
    if fine is None:
        lows = tuple(cells.first_codes.tolist())
        is_atom = cells.is_ordered & (masses > ATOM_DEVIATIONS * noise) & (cells.num_codes > cells.num_pieces)
        return Pieces(lows, masses, is_atom & (cells.last_codes == cells.first_codes))
    tail_starts = first.map(COLUMNS).factors[column].first_codes[tails.is_tail]
    return _refined(cells, masses, *fine, is_tail=np.isin(cells.first_codes, tail_starts), tail=first.tail)


def _without_bounds(cells: Cells, masses: Floats, kept: npt.NDArray[np.bool_]) -> tuple[Cells, Floats]:
    """Bars of one code at the bounds made part of the next, unless rows surely pile up there."""
    begins = np.ones(len(masses), dtype=bool)
    begins[1], begins[-1] = kept
    starts = np.flatnonzero(begins)
    lows = tuple(cells.first_codes[starts].tolist())
    return replace(cells, lows=lows), np.add.reduceat(masses, starts)


def _fine(first: Measurement, column: int) -> tuple[Cells, Floats, float] | None:
    """The value-by-value histogram of a column, if there is one."""
    return _of_values(first, column, has_steps=False)


def round_counts(first: Measurement, column: int) -> tuple[Cells, Floats, float] | None:
    """The rows of a column by how round their values are, if that was counted, and the noise of a count."""
    return _of_values(first, column, has_steps=True)


def _of_values(first: Measurement, column: int, *, has_steps: bool) -> tuple[Cells, Floats, float] | None:
    factors = first.map(VALUES).factors if first.has(VALUES) else ()
    for place, cells in enumerate(factors):
        if cells.column == column and bool(cells.steps) == has_steps:
            return cells, first.tables(VALUES)[place][0][: cells.num_known], first.noise_of_count(VALUES)
    return None


def _refined(
    tops: Cells,
    masses: Floats,
    fine: Cells,
    counts: Floats,
    noise: float,
    *,
    is_tail: npt.NDArray[np.bool_],
    tail: Callable[[float], float],
) -> Pieces:
    """Masses of coarse cells shared out by the finer histogram, where that tells of anything.

    The coarse histogram has less noise per row, so it decides on totals; the finer one, thresholded at what the
    largest of its noises seldom passes, only on shares within a bar.
    """
    level = np.maximum(haar_threshold(counts, noise, deviations=tail(universal_threshold(len(counts)))), 0.0)
    top = np.searchsorted(tops.first_codes, fine.first_codes, side="right") - 1
    level[is_tail[top]] = 0.0  # a law knows more of them than noise does
    within = np.bincount(top, weights=level, minlength=len(masses))
    widths = np.bincount(top, minlength=len(masses))
    even = masses[top] / np.maximum(widths[top], 1)
    shared = np.where(within[top] > 0, masses[top] * level / np.where(within > 0, within, 1)[top], even)
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(top) != 0) | (np.diff(level) != 0)]))
    runs = np.add.reduceat(shared, starts)
    lows = fine.first_codes[starts]
    singles = np.append(np.diff(starts), len(level) - starts[-1]) == 1
    single_codes = fine.last_codes[starts] == lows
    beside = np.append(level[1:], 0.0) + np.append(0.0, level[:-1])
    is_spike = single_codes | (level[starts] > beside[starts])  # a value that repeats, somewhere in a bar
    atoms = singles & is_spike & (level[starts] > ATOM_DEVIATIONS * noise)
    return Pieces(tuple(lows.tolist()), runs, atoms)


def _cut(first: Measurement, column: int, noise: float, most: int) -> Cells:
    """Cells of about equal numbers of rows, finer in the tails, values that repeat by themselves."""
    whole, pieces = first.map(COLUMNS).factors[column], pieces_of(first, column)
    least = CELL_DEVIATIONS * noise
    if whole.is_ordered:
        atoms = _frequent_atoms(pieces, noise, most)
        breaks = doubling_breaks(np.asarray(pieces.lows), pieces.masses, whole.num_codes)
        groups = _runs(pieces.masses, atoms, least, most, breaks=breaks)
    else:
        least = max(2 * first.noise_of_count(COLUMNS), noise)
        counts = first.tables(COLUMNS)[column][0][: whole.num_known]
        groups = _largest(counts, least, most)
    return replace(whole, lows=pieces.lows, groups=tuple(groups.tolist()))


def refined(first: Measurement, cells: Cells, rows: Floats, noise: float, most: int) -> Cells:
    """A column cut anew inside its cells, by what is known of their rows by now; a choice into its categories.

    Where histograms showed a wide bar with many rows, cells have shown since in which part of it they lie.

    Args:
        first: the stage of histograms.
        cells: the column's cells so far.
        rows: estimated rows of each.
        noise: deviation of the noise that the new cells are counted with.
        most: about how many cells there may be; a choice of more categories stays as it is.
    """
    whole, groups, least = first.map(COLUMNS).factors[cells.column], cells.cell_of_piece, FINE_DEVIATIONS * noise
    if not cells.is_ordered:
        return whole if whole.num_known <= most else cells
    found = pieces_of(first, cells.column)
    masses = rows[groups] * spread_inside(cells, masses_in(cells, first))
    atoms = np.isin(cells.first_codes, np.asarray(found.lows)[found.atoms])
    whole_pieces = Pieces(tuple(cells.first_codes.tolist()), masses, atoms)
    pieces = _split(whole_pieces, cells.num_codes, max(least / 2, float(masses.sum()) / (2 * MOST_CELLS)))
    breaks = np.isin(pieces.lows, cells.first_codes[np.flatnonzero(np.diff(groups, prepend=-1))])
    runs = _runs(pieces.masses, _frequent_atoms(pieces, noise, most), least, most, breaks=breaks)
    return replace(whole, lows=pieces.lows, groups=tuple(runs.tolist()))


def _frequent_atoms(pieces: Pieces, noise: float, most: int) -> npt.NDArray[np.bool_]:
    """Values that repeat and stand out, the most frequent ones: runs between them need cells too."""
    atoms = pieces.atoms & (pieces.masses > ATOM_DEVIATIONS * noise)
    if atoms.sum() > most // 2:
        atoms &= pieces.masses > np.sort(pieces.masses[atoms])[-(most // 2) - 1]
    return np.asarray(atoms)


def most_cells(num_columns: int) -> int:
    """Cells that each of so many columns may have."""
    return max(2, min(MOST_CELLS, MOST_WIDTH // num_columns))


def spread_inside(cells: Cells, masses: Floats) -> Floats:
    """Which part of its cell's rows each piece has; where nothing is known, by its number of codes."""
    groups = cells.cell_of_piece
    held = np.bincount(groups, weights=masses, minlength=cells.num_known)
    masses = np.where(held[groups] > 0, masses, cells.last_codes - cells.first_codes + 1.0)
    return np.asarray(masses / np.bincount(groups, weights=masses, minlength=cells.num_known)[groups])


def merged(first: Measurement, cells: Cells, count: float) -> Cells:
    """The same column in about ``count`` cells, each a union of the given ones."""
    pieces = pieces_of(first, cells.column)
    masses: Floats = np.bincount(cells.cell_of_piece, weights=pieces.masses).astype(np.float64)
    total = float(masses.sum())
    if cells.is_ordered:
        nothing = np.zeros(len(masses), dtype=bool)
        union = _runs(masses, nothing, total / count, max(2, round(count)))
    else:
        union = _largest(masses, total / count / 4, MOST_CELLS)
    return replace(cells, groups=tuple(union[cells.cell_of_piece].tolist()))


def _runs(
    masses: Floats,
    atoms: npt.NDArray[np.bool_],
    least: float,
    most: int,
    *,
    breaks: npt.NDArray[np.bool_] | None = None,
) -> Integers:
    """The run of each piece: neighbours together until they hold enough rows.

    With breaks, at which a run ends in any case, there are tails: towards both ends less is enough (half of what lies
    beyond).
    """
    has_tails, breaks = breaks is not None, np.zeros(len(masses), dtype=bool) if breaks is None else breaks
    total = float(masses.sum())
    largest = max(least, total / most)
    groups = np.empty(len(masses), dtype=np.int64)
    group, held, beyond, is_open = -1, 0.0, 0.0, False
    for i, (mass, is_atom, is_break) in enumerate(zip(masses.tolist(), atoms.tolist(), breaks.tolist(), strict=True)):
        is_open = is_open and not is_break
        enough = largest
        if has_tails:
            enough = min(largest, max(least, 0.5 * min(beyond, total - beyond)))
        if is_atom or mass >= (largest if has_tails else ATOM_SHARE * largest):
            group, is_open = group + 1, False
        elif not is_open:
            group, held, is_open = group + 1, mass, True
        else:
            held += mass
        groups[i] = group
        beyond += mass
        is_open = is_open and held < enough
    return groups


def _largest(counts: Floats, least: float, most: int) -> Integers:
    """A cell for each category with enough rows, and one for all others together."""
    order = np.argsort(-counts, kind="stable")
    own = np.zeros(len(counts), dtype=bool)
    own[order[: max(1, most - 1)]] = True
    own &= counts >= least
    if (~own).sum() == 1:
        own[:] = True
    groups = np.cumsum(own) - 1
    return np.where(own, groups, own.sum())
