"""Consistent one-way marginals by label: every table's evidence weighed by its variance, and shrinkage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats
from understudy.features.tables import Cells
from understudy.rules.adaptive_bins import CELLS, COARSE_PAIRS, COLUMNS, MARGINALS, looks_at_pairs, rows_by_label
from understudy.rules.denoise import james_stein, runs_that_stand_out, scale_to_total, shrink_levels
from understudy.rules.measurement import Measurement
from understudy.rules.tails import Tails, fit_tails

RAKINGS = 10
"""Rounds of raking; factors are near one by then."""

Positive = Callable[[Cells, Floats, float, float], Floats]
"""Noisy counts of a column's cells, their noise and total, to counts that are not negative."""


@dataclass(frozen=True)
class Marginals:
    """Shares of each label value, and of each column's cells within each label value."""

    total: float
    label_shares: Floats  # (labels,)
    by_label: tuple[Floats, ...]  # (labels, cells) of each column
    cells: tuple[Cells, ...]

    def independent(self, pair: tuple[int, int], cells: Sequence[Cells]) -> Floats:
        """The table of a pair if its columns were independent within labels.

        # (labels, cells of one, cells of the other)
        """
        left, right = (self.over(cells[j]) for j in pair)
        return np.asarray(self.label_shares[:, None, None] * (left[:, :, None] * right[:, None, :]))

    def over(self, cells: Cells) -> Floats:
        """A column's shares over unions of its cells.  # (labels, cells)"""
        place = self.place(cells)
        union = unions(self.cells[place], cells)
        return np.stack([np.bincount(union, weights=row, minlength=cells.dim) for row in self.by_label[place]])

    def of_all(self, place: int) -> Floats:
        """A column's shares of all rows.  # (cells,)"""
        return np.asarray(self.label_shares @ self.by_label[place])

    def split(self, cells: Cells, parts: Floats) -> Marginals:
        """The same with finer cells of a column, each with a part of its former cell's rows.  # (known cells,)"""
        columns, by_label, place = list(self.cells), list(self.by_label), self.place(cells)
        parent = unions(cells, columns[place])
        parts = np.append(parts, np.ones(cells.dim - cells.num_known))
        columns[place], by_label[place] = cells, by_label[place][:, parent] * parts
        return replace(self, cells=tuple(columns), by_label=tuple(by_label))

    def place(self, cells: Cells) -> int:
        """Where the column of these cells stands among the columns here."""
        return next(i for i, own in enumerate(self.cells) if own.column == cells.column)


def split_cells(cells: Cells, codes: Sequence[int]) -> Cells:
    """A number's cells split so that each of these codes begins one."""
    lows = np.unique([*cells.first_codes.tolist(), *codes])
    pieces = np.searchsorted(cells.first_codes, lows, side="right") - 1
    begins = (np.diff(cells.cell_of_piece[pieces], prepend=-1) != 0) | np.isin(lows, codes)
    return replace(cells, lows=tuple(lows.tolist()), groups=tuple((np.cumsum(begins) - 1).tolist()))


def unions(finer: Cells, coarser: Cells) -> npt.NDArray[np.int64]:
    """Which cell of ``coarser`` each cell of ``finer`` lies in."""
    found = np.full(finer.dim, coarser.dim - 1, dtype=np.int64)  # nulls stay nulls
    pieces = np.searchsorted(coarser.first_codes, finer.first_codes, side="right") - 1
    found[finer.cell_of_piece] = coarser.cell_of_piece[pieces]
    return found


def summed(union: npt.NDArray[np.int64], numbers: Floats, size: int) -> Floats:
    """Sums over the cells of each union."""
    return np.bincount(union, weights=numbers, minlength=size).astype(np.float64)


def project_positive(cells: Cells, counts: Floats, noise: float, total: float) -> Floats:
    """The nearest nonnegative counts of that total."""
    return scale_to_total(counts, total)


def find_marginals(measurements: Sequence[Measurement], *, positive: Positive = project_positive) -> Marginals:
    """Combine histograms, columns by label and cut anew, and the margins of all pairs, by inverse variance.

    Then each label's counts are shrunk towards its share of all (James & Stein), made nonnegative, and raked, so that
    labels add up to what is known of all of them. Cells are the finest that were counted: those cut anew, if there are.
    """
    first, second = measurements[0], measurements[1]
    rows = rows_by_label(*measurements)
    total = max(1.0, float(rows.sum()))
    tables = _columns_by_label(second)
    num_labels = len(tables[0][0])
    counts = np.maximum(rows[: len(first.sums("count"))], 1.0)
    shares = counts / counts.sum() if len(counts) == num_labels else np.full(num_labels, 1 / num_labels)
    cells, by_label, found_cells = second.map(CELLS).factors, [], []
    finest, evidence = _last_columns(measurements), _pair_margins(measurements)
    for own, (table, noise) in zip(cells, tables, strict=True):
        finer, known, variance = _from_all(
            first, own, table, noise, finest.get(own.column), evidence.get(own.column, [])
        )
        of_all = _tails(finer, known, variance).put(scale_to_total(known, total), total)
        union, size = unions(finer, own), own.dim
        known, variance, pooled = (summed(union, numbers, size) for numbers in (known, variance, of_all))
        adjusted, tails = table + (known - table.sum(axis=0)) / num_labels, _tails(own, known, variance)
        # The part of a label's noise that all labels share is replaced by the noise of what is known of all of them.
        own_noise = min(noise, math.sqrt(noise**2 * (1 - 1 / num_labels) + float(variance.mean()) / num_labels**2))
        likely = []
        for row, share in zip(adjusted, shares, strict=True):
            found, runs = _likely(own, row, pooled * share, own_noise, second.tail)
            likely.append(
                tails.of_label(share, runs).put(positive(own, found, own_noise, total * share), total * share)
            )
        raked = _raked(np.stack(likely), shares, pooled) / (total * shares[:, None])
        by_label.append(raked[:, union] * (of_all / np.where(pooled > 0, pooled, 1.0)[union]))
        found_cells.append(finer)
    return Marginals(total, shares, tuple(by_label), tuple(found_cells))


def _from_all(
    first: Measurement,
    own: Cells,
    table: Floats,
    noise: float,
    anew: tuple[Cells, Floats, float] | None,
    margins: Sequence[tuple[Cells, Floats, float]],
) -> tuple[Cells, Floats, Floats]:
    """The finest cells of a column, their counts and variances: of histograms, columns by label and pairs' margins."""
    if anew is None:
        finer = own
        known, variance = _from_histogram(first, own, table, noise)
    else:
        finer, counts, spread = anew
        known, variance = _from_histogram(first, finer, counts, spread)
        known, variance = _updated(known, variance, unions(finer, own), table.sum(axis=0), len(table) * noise**2)
    for union, sums, spread in margins:
        known, variance = _updated(known, variance, unions(finer, union), sums, spread)
    return finer, known, variance


def _last_marginals(measurements: Sequence[Measurement]) -> dict[tuple[Cells, ...], tuple[Floats, float]]:
    """What the last stage has measured, by its cells, if it has been: columns and pairs of them."""
    return measurements[2].by_cells(MARGINALS) if len(measurements) > 2 else {}


def _last_columns(measurements: Sequence[Measurement]) -> dict[int, tuple[Cells, Floats, float]]:
    """For each column, the cells that the last stage has cut anew, their counts and the deviation of the noise.

    # counts: (1, cells)
    """
    known = _last_marginals(measurements).items()
    return {cells[0].column: (cells[0], table, noise) for cells, (table, noise) in known if len(cells) == 1}


def _raked(table: Floats, shares: Floats, pooled: Floats) -> Floats:
    """Counts by label that add up to those of all labels, which are known best, and to every label's rows.

    Raking (Deming & Stephan 1940). Labels by themselves are made nonnegative one by one, which moves their sum.

    # (labels, cells), (labels,), (cells,) -> (labels, cells)
    """
    even = shares[:, None] * pooled
    found = np.where(table.sum(axis=0) > 0, table, even)
    for _ in range(RAKINGS):
        sums = found.sum(axis=0)
        found = found * np.divide(pooled, sums, out=np.zeros(len(sums)), where=sums > 0)
        rows = found.sum(axis=1)
        wanted = shares * float(pooled.sum())
        found = found * np.divide(wanted, rows, out=np.zeros(len(rows)), where=rows > 0)[:, None]
    return np.asarray(np.where(found.sum(axis=1, keepdims=True) > 0, found, even))


def _columns_by_label(second: Measurement) -> list[tuple[Floats, float]]:
    """Columns by label and the deviation of their noise: by inverse variance, if they were measured in place of pairs.

    # (labels, cells) of each column
    """
    blocks = [second.by_cells(block.name) for block in second.embedding.blocks]
    return [_pooled([block[own,] for block in blocks if (own,) in block]) for own in second.map(CELLS).factors]


def _pooled(ways: list[tuple[Floats, float]]) -> tuple[Floats, float]:
    """Tables of the same counts averaged by inverse variance, and the deviation of the noise that is left."""
    weights = [noise**-2 for _, noise in ways]
    total = sum(weights)
    return np.asarray(sum(w * table for w, (table, _) in zip(weights, ways, strict=True)) / total), 1 / math.sqrt(total)


def _tails(cells: Cells, counts: Floats, variance: Floats) -> Tails:
    """The tails of a column that is a number."""
    size = cells.num_known
    if not cells.is_ordered or size < 3:
        return Tails(np.zeros(size, dtype=bool), np.zeros(size))
    starts = cells.first_codes[np.flatnonzero(np.diff(cells.cell_of_piece, prepend=-1))]
    return fit_tails(np.append(starts, cells.num_codes), counts[:size], variance[:size])


def _likely(
    cells: Cells, counts: Floats, expected: Floats, noise: float, tail: Callable[[float], float]
) -> tuple[Floats, Floats]:
    """A label's counts, pulled towards what all labels together make one expect; and its runs that stand out of that.

    # (cells,), (known cells,)
    """
    apart, size = counts - expected, cells.num_known
    if not cells.is_ordered:
        return expected + james_stein(apart, noise), np.zeros(size)
    runs = runs_that_stand_out(apart[:size], noise, tail)
    known = runs + shrink_levels(apart[:size] - runs, noise)
    return expected + np.append(known, apart[size:]), runs


def _from_histogram(first: Measurement, cells: Cells, table: Floats, noise: float) -> tuple[Floats, Floats]:
    """Counts of cells, and their variances, from the first stage and the columns by label."""
    sums, spread = table.sum(axis=0), np.full(cells.dim, len(table) * noise**2)
    whole = first.map(COLUMNS).factors[cells.column]
    place = np.searchsorted(cells.first_codes, whole.first_codes, side="right") - 1
    found = cells.cell_of_piece[place]
    if cells.has_null:
        found = np.append(found, cells.num_known)
    counts = np.bincount(found, weights=first.tables(COLUMNS)[cells.column][0], minlength=cells.dim)
    # Cells that split a bar of the histogram learn nothing from it.
    bar_of_piece = np.searchsorted(whole.first_codes, cells.first_codes, side="right") - 1
    overlaps = np.unique(np.stack([bar_of_piece, cells.cell_of_piece]), axis=1)
    split = np.bincount(overlaps[0], minlength=len(whole.first_codes)) > 1
    spoilt = np.zeros(cells.dim, dtype=bool)
    spoilt[found[: len(split)][split]] = True
    spoilt[cells.cell_of_piece[split[bar_of_piece]]] = True
    bars = np.bincount(found, minlength=cells.dim) * first.noise_of_count(COLUMNS) ** 2
    weight = np.where(spoilt | (bars == 0), 0.0, 1 / np.maximum(bars, 1e-300))
    variance = 1 / (1 / spread + weight)
    return variance * (sums / spread + counts * weight), variance


def _pair_margins(measurements: Sequence[Measurement]) -> dict[int, list[tuple[Cells, Floats, float]]]:
    """For each column, cells with their counts and variance, one entry per way of cutting it."""
    second = measurements[1]
    looks = second.by_cells(COARSE_PAIRS) if looks_at_pairs(second) else {}
    found: dict[int, dict[Cells, list[tuple[Floats, float]]]] = {}
    for cells, (table, noise) in [*looks.items(), *_last_marginals(measurements).items()]:
        if len(cells) == 1:
            continue
        for axis, own in enumerate(cells):
            sums = table.sum(axis=(0, 2 - axis))
            variance = table.size / len(sums) * noise**2
            found.setdefault(own.column, {}).setdefault(own, []).append((sums, variance))
    return {j: [(cells, *_average(entries)) for cells, entries in ways.items()] for j, ways in found.items()}


def _average(entries: list[tuple[Floats, float]]) -> tuple[Floats, float]:
    weights = np.array([1 / variance for _, variance in entries])
    sums = np.stack([sums for sums, _ in entries])
    return (weights[:, None] * sums).sum(axis=0) / weights.sum(), float(1 / weights.sum())


def _updated(
    known: Floats, variance: Floats, union: npt.NDArray[np.int64], sums: Floats, spread: float
) -> tuple[Floats, Floats]:
    """Counts corrected by new counts of unions of their cells, each as its variance deserves.

    The Kalman update for an observed sum: cells take the correction in proportion to their variances. Covariances that
    the sum brings about are dropped, so that a variance stays a number per cell.
    """
    size = len(sums)
    current = np.bincount(union, weights=known, minlength=size)
    doubt = np.bincount(union, weights=variance, minlength=size)
    gain = doubt / (doubt + spread)
    part = variance / doubt[union]
    known = known + part * (gain * (sums - current))[union]
    return known, variance * (1 - part * gain[union])
