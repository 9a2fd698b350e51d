"""Which cells a query is answered on, chosen by what the release's tables can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.features import Cells
from understudy.queries.groups import Ranged, membership, values
from understudy.queries.least_squares import DENSE, LeastSquares, gather
from understudy.released.tables import (
    Counted,
    Measured,
    cell_edges,
    cut_at,
    edges_of,
    merged_cells,
    nearest_edges,
    whole_column,
)
from understudy.schema.values import CodeSet

DOUBT = 2.0
"""Deviations of noise that weigh as much as rows whose place in a cell is unknown."""


@dataclass(frozen=True, eq=False)
class Sources:
    """A release's tables with what was found of single columns, which several queries need."""

    measured: Measured
    _masses: dict[int, tuple[Cells, Floats]] = field(default_factory=dict)

    def masses(self, cells: Cells) -> Floats:
        """Estimated rows in each piece of a column's cells, none below zero.  # (num_pieces,)"""
        if cells.column not in self._masses:
            own = single_axis(self.measured, cells.column, [], every_value=False)
            fit = LeastSquares(gather(self.measured, [own]), num_rows=self.measured.num_rows, law=self.measured.law)
            self._masses[cells.column] = own, np.maximum(fit.atoms[: own.num_known], 0.0)
        own, counts = self._masses[cells.column]
        reached = np.interp(
            np.append(cells.first_codes, cells.num_codes),
            np.append(own.first_codes, own.num_codes),
            np.concatenate([[0.0], np.cumsum(counts)]),
        )
        return np.asarray(np.diff(reached))


def single_axis(
    measured: Measured, place: int, sets: Sequence[CodeSet], *, every_value: bool, also: Integers | None = None
) -> Cells:
    """The cells of a query about one column: all edges of all tables that matter to it.

    Tables of very many cells lend the edges next to those of the sets only. If ``every_value``
    matters the longest of them has all the edges. ``also`` are further edges.
    """
    column = measured.columns[place]
    cuts = {c for table in measured.over((place,)) for c in table.cells if c.column == place}
    is_told = not column.nullable or any(cells.has_unlisted for cells in cuts)
    whole = whole_column(place, column, has_unlisted=is_told)
    if column.is_choice:
        return whole
    longest = max(cuts, key=lambda cells: cells.num_pieces)
    if every_value and longest.num_pieces > DENSE // 2:
        return cut_at(whole, cell_edges(longest))
    wanted = edges_of(sets) if also is None else np.union1d(edges_of(sets), also)
    edges: Integers = np.zeros(1, dtype=np.int64)
    for cells in cuts:
        firsts = cell_edges(cells)
        is_short = cells.num_pieces <= DENSE // 2
        edges = np.union1d(edges, firsts if is_short else nearest_edges(wanted, firsts))
    return cut_at(whole, edges)


def several_axes(
    sources: Sources, columns: Sequence[int], sets: Mapping[int, Sequence[CodeSet]], valued: int | None
) -> list[Cells] | None:
    """The cells of a query about several columns: those of the table that tells most of it.

    Cells that a query does not tell apart are made one. None if no table is over all columns.
    """
    tables = sources.measured.over(tuple(columns))
    if not tables:
        return None
    best = min(tables, key=lambda table: _width(sources, table, columns, sets, valued))
    found = []
    for place in columns:
        cells = best.cells[best.columns.index(place)]
        parts = _functions(sources, cells, sets[place], is_valued=place == valued)
        stacked = np.concatenate([np.stack([p.low, p.middle, p.high]) for p in parts])
        found.append(merged_cells(cells, stacked[:, : cells.num_known].T))
    return found


def _functions(sources: Sources, cells: Cells, sets: Sequence[CodeSet], *, is_valued: bool) -> list[Ranged]:
    masses = sources.masses(cells)
    found = [membership(cells, codes, masses) for codes in sets]
    if is_valued:
        found.append(values(sources.measured.columns[cells.column], cells, masses=masses))
    return found


def _width(
    sources: Sources, table: Counted, columns: Sequence[int], sets: Mapping[int, Sequence[CodeSet]], valued: int | None
) -> float:
    """About how wide intervals from a table would be: rows whose place is unknown, and noise.

    Rows are spread as if columns were independent, which serves to choose and for nothing else.
    """
    unknown, squares = 0.0, table.noise**2
    rows = 1.0
    for cells in table.cells:
        masses = sources.masses(cells)
        rows = max(1.0, float(masses.sum()))
        if cells.column not in columns:
            squares *= cells.dim
            continue
        parts = _functions(sources, cells, sets[cells.column], is_valued=cells.column == valued)
        held = np.bincount(cells.cell_of_piece, weights=masses, minlength=cells.num_known)
        for part in parts:
            scale = max(float(np.abs(part.high).max()), 1e-300)
            spread = ((part.high - part.low)[: cells.num_known] * held).sum()
            unknown += float(spread) / scale / len(parts)
        members = np.mean([(part.middle > 0).sum() for part in parts])
        squares *= max(1.0, float(members))
    return unknown / 2 + DOUBT * float(np.sqrt(squares)) + 1e-9 * rows


def can_tell(measured: Measured, place: int) -> bool:
    """Whether any table cuts a column at all, beside nulls."""
    return any(
        cells.num_known > 1 for table in measured.over((place,)) for cells in table.cells if cells.column == place
    )


def finest_cells(measured: Measured, place: int, columns: Sequence[int]) -> Cells | None:
    """The finest cells of a column in a table over all of these columns, very long ones apart."""
    found = [table.cells[table.columns.index(place)] for table in measured.over(tuple(columns))]
    short = [cells for cells in found if cells.num_pieces <= DENSE // 2] or found
    return max(short, key=lambda cells: cells.num_known, default=None)
