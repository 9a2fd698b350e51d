"""A release as tables of noisy counts, whatever method made it, and ways to cut a column into cells.

Queries, two-sample tests, reports and tests of noise all walk a release's blocks here, and ask a feature map for its
``count_tables``, never for its class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from understudy.accounting.mechanisms import Mechanism, Neighbours
from understudy.arrays import Floats, Integers
from understudy.features import Block, Cells, CountTable, Embedding
from understudy.features.base import Axis
from understudy.features.tables import Memberships
from understudy.released.release import Release
from understudy.rules.measurement import Measurement
from understudy.schema import Column, Layout
from understudy.schema.values import CodeSet

SHORTFALL_DEVIATIONS = 4.0
"""Deviations of noise by which a table's total must fall short for rows to be surely missing."""


@dataclass(frozen=True)
class LabelAxis:
    """The axis of a block that has one copy for each value of the label, and one for unlisted values if counted."""

    span: tuple[int, int]
    has_unlisted: bool

    @property
    def dim(self) -> int:
        """Copies of the block."""
        return self.span[1] - self.span[0] + self.has_unlisted

    def cells_in(self, layout: Layout) -> Cells:
        """Every category by itself."""
        return replace(Memberships(self.span).cells_in(layout), has_unlisted=self.has_unlisted)

    def edges_in(self, layout: Layout) -> tuple[str, Integers] | None:
        """Categories have no edges."""
        return Memberships(self.span).edges_in(layout)


def walk_tables(embedding: Embedding) -> Iterator[tuple[Block, tuple[Axis, ...], CountTable]]:
    """Every table of counts in a stage's vector: its block, its axes with that of the label first, where it lies."""
    for block in embedding.blocks:
        label: tuple[Axis, ...] = ()
        if block.per_label and embedding.label is not None:
            label = (LabelAxis(embedding.label, block.with_unlisted),)
        for table in block.map.count_tables:
            yield block, (*label, *table.axes), table


def counts_of(axes: tuple[Axis, ...], table: CountTable, sums: Floats) -> Floats:
    """A table's counts in sums of its block's features; copies of the block are the label's axis, if it is one.

    # (copies, dim) -> (*shape,)
    """
    counts = table.counts(sums)
    return counts if counts.ndim == len(axes) else counts[0]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A table of counts with independent noise of one deviation in every cell.

    ``columns`` are places among the schema's used columns, with the cells that the table cuts each
    into; no columns: the number of rows.
    """

    block: str
    columns: tuple[int, ...]
    cells: tuple[Cells, ...]
    counts: Floats
    noise: float


@dataclass(frozen=True)
class NoisyCount:
    """An estimated number of rows and the deviation of its noise."""

    rows: float
    noise: float


@dataclass(frozen=True, eq=False)
class ReleaseTables:
    """A release as tables of counts, and the row count if it is public.

    ``incomplete`` are columns of which some table surely misses rows: it has no cell for values that the schema
    does not list, and counts fewer rows than there are.
    """

    release: Release
    tables: tuple[NoisyTable, ...]
    num_rows: int | None
    incomplete: frozenset[int] = frozenset()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that queries are about."""
        return self.release.plan.schema.used

    @property
    def mechanism(self) -> Mechanism:
        """How the noise of a count is distributed."""
        return self.release.plan.mechanism

    def is_whole(self, cells: Cells) -> bool:
        """Whether every row is in a cell: nulls and unlisted values have one, or there are none to speak of."""
        if holds_all(cells):
            return True
        return cells.column not in self.incomplete and not self.columns[cells.column].nullable

    @cached_property
    def of_column(self) -> dict[int, list[NoisyTable]]:
        """The tables that each column is in."""
        found: dict[int, list[NoisyTable]] = {}
        for table in self.tables:
            for column in table.columns:
                found.setdefault(column, []).append(table)
        return found

    def over(self, columns: tuple[int, ...]) -> list[NoisyTable]:
        """The tables over all of these columns; others they have are summed over."""
        return [
            table
            for table in (self.of_column.get(columns[0], []) if columns else self.tables)
            if set(columns) <= set(table.columns)
            and all(self.is_whole(c) for c in table.cells if c.column not in columns)
        ]

    def cuts(self, column: int) -> list[Cells]:
        """The cells of a column in every table that tells of it, other columns summed over."""
        return [cells for table in self.over((column,)) for cells in table.cells if cells.column == column]


def tables_of(release: Release) -> ReleaseTables:
    """Find the tables of counts in a release's blocks; those whose cells are no runs of codes are no use here."""
    layout, tables = release.plan.layout, []
    for measurement in release.measurements:
        for block, axes, table in walk_tables(measurement.embedding):
            cells = [found for axis in axes if (found := axis.cells_in(layout)) is not None]
            columns = tuple(each.column for each in cells)
            is_whole = len(cells) == len(axes) and len(set(columns)) == len(columns)
            if is_whole and all(each.are_runs for each in cells):
                counts = counts_of(axes, table, measurement.all_sums(block.name))
                noise = measurement.noise_of_sum(block.name) * table.scale
                tables.append(NoisyTable(block.name, columns, tuple(cells), counts, noise))
    is_public = release.plan.neighbours is Neighbours.REPLACE_ONE
    num_rows = release.plan.num_rows if is_public else None
    return ReleaseTables(release, tuple(tables), num_rows, _incomplete(release, tables))


def total_rows(release: Release) -> NoisyCount:
    """The number of rows: public under replace-one, else noisy and at least 1."""
    if release.plan.neighbours is Neighbours.REPLACE_ONE and release.plan.num_rows is not None:
        return NoisyCount(float(release.plan.num_rows), 0.0)
    counts = release.measurement_of("count").all_sums("count")
    return NoisyCount(release.total_rows, release.noise_std("count") * math.sqrt(len(counts)))


def _incomplete(release: Release, tables: list[NoisyTable]) -> frozenset[int]:
    """Columns of which tables without a cell for unlisted values surely miss rows.

    A column is judged by the tables in which no other could be to blame: those that count its unlisted values, and
    those that miss nothing but them. If a table misses rows and none of its columns is known to, all may.
    """
    doubt = release.plan.mechanism.deviations(SHORTFALL_DEVIATIONS)
    total = total_rows(release)
    judged: dict[int, bool] = {}
    unclear = []
    for table in tables:
        is_open = {cells.column for cells in table.cells if not holds_all(cells)}
        missing = total.rows - float(table.counts.sum())
        is_short = missing > doubt * math.sqrt(total.noise**2 + table.counts.size * table.noise**2)
        if len(is_open) == 1:
            (column,) = is_open
            judged[column] = judged.get(column, False) or is_short
        elif is_open and is_short:
            unclear.append(is_open)
        elif len(table.columns) == 1 and table.cells[0].has_unlisted:
            unlisted = float(table.counts[-1]) > doubt * table.noise
            judged[table.columns[0]] = judged.get(table.columns[0], False) or unlisted
    found = {column for column, is_short in judged.items() if is_short}
    for is_open in unclear:
        if not is_open & found:
            found |= is_open - judged.keys() or is_open
    return frozenset(found)


def holds_all(cells: Cells) -> bool:
    """Whether a column has a cell for whatever a row may hold; without one of their own, unlisted values are null."""
    return cells.has_null or cells.has_unlisted


def listed_tables(
    measurement: Measurement, block: Block, layout: Layout
) -> dict[tuple[int, ...], tuple[tuple[Cells, ...], Floats, float]]:
    """Cells, counts and noise of a block's tables over columns, by the columns' places; unlisted values left out.

    # counts: (label values, *cells)
    """
    found = {}
    for table in block.map.count_tables:
        every = [cells for axis in table.axes if (cells := axis.cells_in(layout)) is not None]
        if len(every) == len(table.axes):
            listed = tuple(replace(cells, has_unlisted=False) for cells in every)
            counts = table.counts(measurement.sums(block.name))[(slice(None), *(slice(cells.dim) for cells in listed))]
            noise = measurement.noise_of_sum(block.name) * table.scale
            found[tuple(cells.column for cells in listed)] = listed, counts, noise
    return found


def whole_column(place: int, column: Column, *, has_unlisted: bool) -> Cells:
    """A column whose every code is a cell, and so are unlisted values if they can be told from nulls."""
    size = len(column.categories) if column.is_choice else column.num_steps + 1
    ordered = not column.is_choice
    return Cells(place, size, column.nullable, is_ordered=ordered, has_unlisted=has_unlisted)


def cut_at(cells: Cells, edges: Integers) -> Cells:
    """A column in runs of codes that begin at these edges, and at its first code."""
    inside = edges[(edges > 0) & (edges < cells.num_codes)]
    lows = np.unique(np.append(inside, 0)).astype(np.int64)
    return replace(cells, lows=tuple(lows.tolist()), groups=())


def cell_edges(cells: Cells) -> Integers:
    """The first code of each run of codes that lie in one cell."""
    place = cells.cell_of_piece
    return np.asarray(cells.first_codes[np.append(True, place[1:] != place[:-1])])


def edges_of(sets: Iterable[CodeSet]) -> Integers:
    """The codes at which membership in some of the sets begins or ends."""
    ranges = [each for codes in sets for each in codes.ranges]
    return np.unique([edge for low, high in ranges for edge in (low, high + 1)]).astype(np.int64)


def nearest_edges(wanted: Integers, available: Integers) -> Integers:
    """For each wanted edge the available ones next to it; itself if it is available."""
    below = np.searchsorted(available, wanted, side="right") - 1
    above = np.searchsorted(available, wanted, side="left")
    keep = [below[below >= 0], above[above < len(available)]]
    return np.asarray(available[np.unique(np.concatenate(keep))])


def common_coarsening(one: Cells, other: Cells) -> tuple[Integers, Integers, int]:
    """The finest cells that are unions of cells of both: the union of each cell, and their number.

    -1 for cells of which the other way of cutting knows nothing.  # (one.dim,), (other.dim,)
    """
    edges = np.union1d(one.first_codes, other.first_codes)
    mine, theirs = one(edges), other(edges)
    # Cells of nulls and of unlisted values hold the same rows, or some of the same: a cell of nulls holds unlisted
    # values too where these have none of their own, and the other way round.
    others = range(one.num_known, one.dim), range(other.num_known, other.dim)
    is_alike = len(others[0]) == len(others[1])
    for left, right in zip(*others, strict=True) if is_alike else product(*others):
        mine, theirs = np.append(mine, left), np.append(theirs, right)
    size = one.dim + other.dim
    graph = coo_array((np.ones(len(mine)), (mine, one.dim + theirs)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    left, right = component[: one.dim], component[one.dim :]
    shared = np.intersect1d(left, right)

    def numbered(parts: npt.NDArray[np.generic]) -> Integers:
        place = np.minimum(np.searchsorted(shared, parts), len(shared) - 1)
        return np.where(shared[place] == parts, place, -1).astype(np.int64)

    return numbered(left), numbered(right), len(shared)


def sum_cells(counts: Floats, union: Integers, size: int, *, axis: int) -> Floats:
    """Counts added up along an axis by the union that each of its cells is in; -1: none."""
    if size == len(union) and np.array_equal(union, np.arange(size)):
        return counts
    moved, known = np.moveaxis(counts, axis, 0), union >= 0
    found = np.zeros((size, *moved.shape[1:]))
    np.add.at(found, union[known], moved[known])
    return np.moveaxis(found, 0, axis)


def merged_cells(cells: Cells, signatures: npt.NDArray[np.float64]) -> Cells:
    """Cells with equal signatures made one; that of nulls stays by itself.

    # signatures: (known cells, any number)
    """
    _, group = np.unique(signatures, axis=0, return_inverse=True)
    group = group.ravel()
    if len(np.unique(group)) == cells.num_known:
        return cells
    return replace(cells, groups=tuple(group[cells.cell_of_piece].tolist()))
