"""Cells that a query is answered on, groups that rows are told apart by, and functions over cells.

A function that is the same for all codes of a cell is known there exactly; of any other only the range is. Ranges
multiply, so that they carry over to tables of several columns. Which cells are used is chosen by what the tables of a
release can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.features import Cells
from understudy.queries.least_squares import DENSE, fit_tables
from understudy.released.tables import (
    NoisyTable,
    ReleaseTables,
    cell_edges,
    cut_at,
    edges_of,
    merged_cells,
    nearest_edges,
    whole_column,
)
from understudy.schema import Column
from understudy.schema.columns import Kind, number_values, spoken
from understudy.schema.scales import own_scale
from understudy.schema.values import CodeSet

DEFAULT_BARS = 20
"""Bars of a number unless a query says how many."""

NOISE_WEIGHT = 2.0
"""Deviations of noise that weigh as much as rows whose place in a cell is unknown."""


class Ranged(NamedTuple):
    """The least, middle and largest value of functions in each cell, all of one shape."""

    low: Floats
    middle: Floats
    high: Floats

    @property
    def is_exact(self) -> bool:
        """Whether every cell has one value only."""
        return bool(np.array_equal(self.low, self.high))

    def each(self, change: Callable[[Floats], Floats]) -> Ranged:
        """All three changed alike."""
        return Ranged(*map(change, self))

    def row(self, i: int) -> Ranged:
        """One of several functions.  # (count, cells) -> (1, cells)"""
        return self.each(lambda part: part[i : i + 1])

    def outer(self, other: Ranged) -> Ranged:
        """Products of every value here with every value there.  # (a, b), (c, d) -> (a * c, b * d)"""
        ends = [np.kron(mine, theirs) for mine in (self.low, self.high) for theirs in (other.low, other.high)]
        middle = np.asarray(np.kron(self.middle, other.middle), dtype=np.float64)
        return Ranged(np.minimum.reduce(ends), middle, np.maximum.reduce(ends))

    def minus(self, factor: float, other: Ranged) -> Ranged:
        """This less a nonnegative multiple of another, cell by cell."""
        return Ranged(
            self.low - factor * other.high, self.middle - factor * other.middle, self.high - factor * other.low
        )

    def squared(self) -> Ranged:
        """Squares; in the middle of a cell those of values spread evenly over it."""
        ends = np.maximum(self.low**2, self.high**2)
        least = np.where((self.low < 0) & (self.high > 0), 0.0, np.minimum(self.low**2, self.high**2))
        return Ranged(least, self.middle**2 + (self.high - self.low) ** 2 / 12, ends)

    def within(self, members: Ranged) -> Ranged:
        """This where a membership holds, and 0 elsewhere."""
        some, every = members.high > 0, members.low > 0
        return Ranged(
            np.where(every, self.low, np.where(some, np.minimum(self.low, 0.0), 0.0)),
            self.middle * members.middle,
            np.where(every, self.high, np.where(some, np.maximum(self.high, 0.0), 0.0)),
        )


def membership(cells: Cells, codes: CodeSet, masses: Floats | None = None) -> Ranged:
    """Whether codes are in a set, for each cell with that of nulls; the middle is a part of it.

    ``masses`` are the rows in each of the cells' pieces, as far as they are known; without them
    codes are taken as equally frequent.
    """
    firsts, lasts = cells.first_codes, cells.last_codes
    inside = np.zeros(len(firsts), dtype=np.int64)
    for low, high in codes.ranges:
        inside += np.maximum(0, np.minimum(lasts, high) - np.maximum(firsts, low) + 1)
    widths = lasts - firsts + 1
    pieces = Ranged((inside == widths).astype(np.float64), inside / widths, (inside > 0).astype(np.float64))
    return _by_cell(cells, pieces, masses, (float(codes.has_null), float(codes.has_unlisted)))


def values(column: Column, cells: Cells, *, centre: float = 0.0, masses: Floats | None = None) -> Ranged:
    """A column's values, less ``centre``, in each cell; 0 for nulls."""
    scale = own_scale(column)
    ends = [scale.values(codes) - centre for codes in (cells.first_codes, cells.last_codes)]
    low, high = np.minimum(*ends).astype(np.float64), np.maximum(*ends).astype(np.float64)
    return _by_cell(cells, Ranged(low, (low + high) / 2, high), masses, (0.0, 0.0))


def _by_cell(cells: Cells, pieces: Ranged, masses: Floats | None, others: tuple[float, float]) -> Ranged:
    """Ranges of pieces made ranges of the cells that they lie in, and values of nulls and of unlisted ones."""
    if cells.groups:
        known = cells.last_codes - cells.first_codes + 1.0 if masses is None else masses
        place, weight = cells.cell_of_piece, np.maximum(known, 1e-9)
        low, high = np.full(cells.num_known, np.inf), np.full(cells.num_known, -np.inf)
        np.minimum.at(low, place, pieces.low)
        np.maximum.at(high, place, pieces.high)
        total = np.bincount(place, weights=weight, minlength=cells.num_known)
        middle = np.bincount(place, weights=weight * pieces.middle, minlength=cells.num_known)
        pieces = Ranged(low, np.clip(middle / np.where(total > 0, total, 1), low, high), high)
    exists = (cells.has_null, cells.has_unlisted)
    last = [value for value, is_there in zip(others, exists, strict=True) if is_there]
    return pieces.each(lambda part: np.append(part, last))


@dataclass(frozen=True, slots=True)
class Group:
    """A set of codes of a column, with the names of both."""

    name: tuple[str, str]
    codes: CodeSet


def groups_of(column: Column, cells: Cells, *, most: int | None = None) -> list[Group]:
    """The groups of a column; for a number runs of the given cells, at most ``most`` of them."""
    if column.is_choice:
        found = [(str(category), CodeSet(((code, code),))) for code, category in enumerate(column.categories)]
    else:
        found = _runs(column, cells, most or DEFAULT_BARS)
    if column.nullable:
        found.append(("null", CodeSet((), has_null=True)))
    return [Group((column.name, words), codes) for words, codes in found]


def _runs(column: Column, cells: Cells, most: int) -> list[tuple[str, CodeSet]]:
    """Equal numbers of cells made one."""
    firsts = cell_edges(cells)
    firsts = firsts[:: -(-len(firsts) // most)]
    lasts = np.append(firsts[1:] - 1, cells.num_codes - 1)
    found = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        low, high = (spoken(column, value) for value in number_values(column, np.array([first, last])))
        below = "below " if column.kind is Kind.CONTINUOUS and last < cells.num_codes - 1 else ""
        found.append((low if low == high else f"{low} to {below}{high}", CodeSet(((first, last),))))
    return found


@dataclass(frozen=True, eq=False)
class Sources:
    """A release's tables with what was found of single columns, which several queries need."""

    measured: ReleaseTables
    _masses: dict[int, tuple[Cells, Floats]] = field(default_factory=dict)

    def masses(self, cells: Cells) -> Floats:
        """Estimated rows in each piece of a column's cells, none below zero.  # (num_pieces,)"""
        if cells.column not in self._masses:
            own = single_axis(self.measured, cells.column, [], every_value=False)
            fit = fit_tables(self.measured, [own])
            self._masses[cells.column] = own, np.maximum(fit.atoms[: own.num_known], 0.0)
        own, counts = self._masses[cells.column]
        reached = np.interp(
            np.append(cells.first_codes, cells.num_codes),
            np.append(own.first_codes, own.num_codes),
            np.concatenate([[0.0], np.cumsum(counts)]),
        )
        return np.asarray(np.diff(reached))


def single_axis(
    measured: ReleaseTables, place: int, sets: Sequence[CodeSet], *, every_value: bool, also: Integers | None = None
) -> Cells:
    """The cells of a query about one column: all edges of all tables that matter to it.

    Tables of very many cells lend the edges next to those of the sets only. If ``every_value``
    matters the longest of them has all the edges. ``also`` are further edges.
    """
    column = measured.columns[place]
    cuts = set(measured.cuts(place))
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


def several_axes(sources: Sources, sets: Mapping[int, Sequence[CodeSet]], valued: int | None) -> list[Cells]:
    """The cells of a query about several columns: those of the table that tells most of it.

    Cells that a query does not tell apart are made one. ``sets`` are the codes of each column's groups.
    """
    best = min(sources.measured.over(tuple(sets)), key=lambda table: _width(sources, table, sets, valued))
    found = []
    for place, own in sets.items():
        cells = best.cells[best.columns.index(place)]
        parts = _functions(sources, cells, own, is_valued=place == valued)
        found.append(merged_cells(cells, np.concatenate(parts)[:, : cells.num_known].T))
    return found


def _functions(sources: Sources, cells: Cells, sets: Sequence[CodeSet], *, is_valued: bool) -> list[Ranged]:
    masses = sources.masses(cells)
    found = [membership(cells, codes, masses) for codes in sets]
    if is_valued:
        found.append(values(sources.measured.columns[cells.column], cells, masses=masses))
    return found


def _width(sources: Sources, table: NoisyTable, sets: Mapping[int, Sequence[CodeSet]], valued: int | None) -> float:
    """About how wide intervals from a table would be: rows whose place is unknown, and noise.

    Rows are spread as if columns were independent, which serves to choose and for nothing else.
    """
    unknown, squares = 0.0, table.noise**2
    rows = 1.0
    for cells in table.cells:
        masses = sources.masses(cells)
        rows = max(1.0, float(masses.sum()))
        if cells.column not in sets:
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
    return unknown / 2 + NOISE_WEIGHT * float(np.sqrt(squares)) + 1e-9 * rows


def can_tell(measured: ReleaseTables, place: int) -> bool:
    """Whether any table cuts a column at all, beside nulls."""
    return any(cells.num_known > 1 for cells in measured.cuts(place))


def finest_cells(measured: ReleaseTables, place: int, columns: Sequence[int]) -> Cells:
    """The finest cells of a column in a table over all of these columns, very long ones apart."""
    found = [table.cells[table.columns.index(place)] for table in measured.over(tuple(columns))]
    short = [cells for cells in found if cells.num_pieces <= DENSE // 2] or found
    return max(short, key=lambda cells: cells.num_known)
