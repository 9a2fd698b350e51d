"""Values that repeat in columns too long to be counted code by code: 0.6194 in a column of many decimals.

The finer histogram shows the bars in which a value repeats. The next stage cuts each of them into 1,024 parts, and the
last one the parts that stand out, until a part is one of 2^32 codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from understudy.arrays import Integers
from understudy.features.embedding import Embedding
from understudy.features.tables import Cells
from understudy.rules.adaptive_bins import COLUMNS, DIGITS, VALUES, pieces_of
from understudy.rules.denoise import universal_threshold
from understudy.rules.measurement import Measurement, Rule

PARTS = 1024
"""That a run of codes is cut into: two cuts of a 4096th of a column find one of its 2^32 codes."""

MOST_RUNS = 64
"""Runs of all columns that are cut, those with most rows: a release has 512 kB of their parts at most."""


class Run(NamedTuple):
    """Codes from a first to a last that hold a value that repeats, and how many rows they have."""

    column: int
    first: int
    last: int
    rows: float


def and_spikes(rule: Rule) -> Rule:
    """A rule that settles a stage, and cuts the runs that earlier stages have found if the stage counts their parts."""

    def settled(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
        embedding, block = rule(planned, earlier), _block(planned)
        if block is None:
            return embedding
        factors = parts_of(planned.map(block).factors, earlier)
        subsets = tuple((j,) for j in range(len(factors)))
        return embedding.with_map(block, replace(planned.map(block), factors=factors, subsets=subsets))

    return settled


def parts_of(columns: Sequence[Cells], earlier: Sequence[Measurement]) -> tuple[Cells, ...]:
    """Columns whose runs that earlier stages have found are cut, with a cell for each part.

    Where nothing stands out, columns stay as they are: one cell each, which is one more count of all rows.
    """
    longest = [run for run in last_runs(earlier) if run.first < run.last]
    longest = sorted(longest, key=lambda run: -run.rows)[:MOST_RUNS]
    used = {run.column for run in longest}
    cut = (_cut(own, [run for run in longest if run.column == own.column]) for own in columns if own.column in used)
    return tuple(cut) or tuple(columns)


def _block(measured: Measurement) -> str | None:
    """The block of parts of a stage, if it has one."""
    return next(filter(measured.has, DIGITS), None)


def last_runs(measurements: Sequence[Measurement]) -> list[Run]:
    """The shortest runs that hold a value that repeats, as far as it has been looked for."""
    found = _bars(measurements)
    for measured in measurements:
        block = _block(measured)
        if block is not None:
            shorter = _standing_out(measured, block)
            found = [run for run in found if not any(_holds(run, part) for part in shorter)] + shorter
    return found


def _holds(run: Run, part: Run) -> bool:
    return run.column == part.column and run.first <= part.first and part.last <= run.last


def _bars(measurements: Sequence[Measurement]) -> list[Run]:
    """Bars of finer histograms that stand out as values that repeat do: of the first stage but for a row count."""
    first = next(each for each in measurements if each.has(COLUMNS))
    found = []
    for cells in first.map(VALUES).factors if first.has(VALUES) else ():
        if cells.num_codes > cells.num_pieces and not cells.steps:
            pieces = pieces_of(first, cells.column)
            lasts = np.append(pieces.lows[1:], cells.num_codes) - 1
            for place in np.flatnonzero(pieces.atoms).tolist():
                found.append(Run(cells.column, pieces.lows[place], int(lasts[place]), float(pieces.masses[place])))
    return found


def _standing_out(measured: Measurement, block: str) -> list[Run]:
    """Parts of runs that stand out."""
    noise, found = measured.noise_of_count(block), []
    for cells, (table,) in zip(measured.map(block).factors, measured.tables(block), strict=True):
        counts, parts = table[cells.cell_of_piece], cells.cell_of_piece > 0
        least = measured.tail(universal_threshold(int(parts.sum()))) * noise
        for place in np.flatnonzero(parts & (counts > least)).tolist():
            first, last = int(cells.first_codes[place]), int(cells.last_codes[place])
            found.append(Run(cells.column, first, last, float(counts[place])))
    return found


def _cut(whole: Cells, runs: Sequence[Run]) -> Cells:
    """A column's codes outside of runs as one cell, the first, and each part of a run as one of its own."""
    inside = [_starts(run) for run in runs]
    outside = [0, *(run.last + 1 for run in runs if run.last + 1 < whole.num_codes)]
    lows = np.unique(np.concatenate([outside, *inside]))
    parts = np.isin(lows, np.concatenate(inside))
    return replace(whole, lows=tuple(lows.tolist()), groups=tuple(np.where(parts, np.cumsum(parts), 0).tolist()))


def _starts(run: Run) -> Integers:
    span = run.last + 1 - run.first
    return run.first + np.arange(min(PARTS, span)) * span // min(PARTS, span)
