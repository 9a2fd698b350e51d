"""Ways to cut a column into cells, and what two of them have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from understudy.accounting import Neighbours
from understudy.arrays import Floats, Integers
from understudy.features import Block, Cells, Constant, Grid, OneHot, Tables, Tensors
from understudy.measurement import Measurement
from understudy.released import Release
from understudy.released.intervals import Law, law_of
from understudy.schema import Column, Layout
from understudy.schema.layout import to_position
from understudy.schema.values import CodeSet

# Every table of noisy counts that a release holds, whatever method made it.

SHORTFALL_DEVIATIONS = 4.0
"""Deviations of noise by which a table's total must fall short for rows to be surely missing."""


@dataclass(frozen=True, eq=False)
class Counted:
    """A table of counts with independent noise of one deviation in every cell.

    ``columns`` are places among the schema's used columns, with the cells that the table cuts each
    into; no columns: the number of rows.
    """

    block: str
    columns: tuple[int, ...]
    cells: tuple[Cells, ...]
    counts: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class Measured:
    """A release as tables of counts, and the row count if it is public.

    ``incomplete`` are columns of which some table surely misses rows: it has no cell for values that the schema
    does not list, and counts fewer rows than there are.
    """

    release: Release
    tables: tuple[Counted, ...]
    num_rows: int | None
    incomplete: frozenset[int] = frozenset()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that queries are about."""
        return self.release.plan.schema.used

    @property
    def law(self) -> Law:
        """How the noise of a count is distributed."""
        return law_of(self.release.plan)

    def is_whole(self, cells: Cells) -> bool:
        """Whether every row is in a cell: nulls and unlisted values have one, or there are none to speak of."""
        if holds_all(cells):
            return True
        return cells.column not in self.incomplete and not self.columns[cells.column].nullable

    @cached_property
    def of_column(self) -> dict[int, list[Counted]]:
        """The tables that each column is in."""
        found: dict[int, list[Counted]] = {}
        for table in self.tables:
            for column in table.columns:
                found.setdefault(column, []).append(table)
        return found

    def over(self, columns: tuple[int, ...]) -> list[Counted]:
        """The tables over all of these columns; others they have are summed over."""
        return [
            table
            for table in (self.of_column.get(columns[0], []) if columns else self.tables)
            if set(columns) <= set(table.columns)
            and all(self.is_whole(c) for c in table.cells if c.column not in columns)
        ]


def measure_release(release: Release) -> Measured:
    """Find the tables of counts in a release's blocks."""
    layout = release.plan.layout
    tables = [
        table
        for reading in release.readings
        for block in reading.embedding.blocks
        for table in _tables(layout, reading, block)
        if len(set(table.columns)) == len(table.columns)
    ]
    is_public = release.plan.neighbours is Neighbours.REPLACE_ONE
    num_rows = release.plan.num_rows if is_public else None
    return Measured(release, tuple(tables), num_rows, _incomplete(release, tables, num_rows))


def _incomplete(release: Release, tables: list[Counted], num_rows: int | None) -> frozenset[int]:
    """Columns of which tables without a cell for unlisted values surely miss rows.

    A column is judged by the tables in which no other could be to blame: those that count its unlisted values, and
    those that miss nothing but them. If a table misses rows and none of its columns is known to, all may.
    """
    doubt = release.plan.mechanism.deviations(SHORTFALL_DEVIATIONS)
    counts = release.reading_of("count").all_sums("count")
    total, variance = release.total_rows, len(counts) * release.noise_std("count") ** 2
    if num_rows is not None:
        total, variance = float(num_rows), 0.0
    judged: dict[int, bool] = {}
    unclear = []
    for table in tables:
        is_open = {cells.column for cells in table.cells if not holds_all(cells)}
        missing = total - float(table.counts.sum())
        is_short = missing > doubt * math.sqrt(variance + table.counts.size * table.noise**2)
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


def _tables(layout: Layout, reading: Measurement, block: Block) -> Iterator[Counted]:
    label = reading.embedding.label if block.per_label else None
    first: tuple[Cells, ...] = ()
    if label is not None:
        own = _cells_of_span(layout, label)
        first = (replace(own, has_unlisted=block.with_unlisted),)
    for cells, counts, noise in _by_copy(layout, reading, block):
        counts = counts if label is not None else counts[0]
        every = (*first, *cells)
        yield Counted(block.name, tuple(each.column for each in every), every, counts, noise)


def _by_copy(layout: Layout, reading: Measurement, block: Block) -> Iterator[tuple[tuple[Cells, ...], Floats, float]]:
    """Cells, counts and noise of each table of a block.  # (copies, *shape)"""
    map_, name = block.map, block.name
    if isinstance(map_, Tables):
        noise = reading.noise_of_count(name)
        every = tuple(replace(cells, has_unlisted=map_.with_unlisted) for cells in map_.factors)
        for subset, counts in zip(map_.subsets, reading.all_tables(name), strict=True):
            yield tuple(every[j] for j in subset), counts, noise
    elif isinstance(map_, Constant):
        yield (), reading.all_sums(name)[:, 0], reading.noise_of_sum(name)
    elif isinstance(map_, OneHot):
        scale = math.sqrt(len(map_.spans))
        ends = np.cumsum([0, *(stop - start for start, stop in map_.spans)])
        for span, (start, stop) in zip(map_.spans, pairwise(ends.tolist()), strict=True):
            counts = reading.all_sums(name)[:, start:stop] * scale
            yield (_cells_of_span(layout, span),), counts, reading.noise_of_sum(name) * scale
    elif isinstance(map_, Grid):
        yield from _histograms(layout, reading, block, map_)
    elif isinstance(map_, Tensors):
        yield from _products(layout, reading, block, map_)


def _histograms(
    layout: Layout, reading: Measurement, block: Block, grid: Grid
) -> Iterator[tuple[tuple[Cells, ...], Floats, float]]:
    """Bins of positions; a null lies among the others, so nullable numbers tell nothing."""
    scale = math.sqrt(len(grid.numbers))
    sums = reading.all_sums(block.name).reshape(-1, len(grid.numbers), grid.num_bins) * scale
    for i, number in enumerate(grid.numbers):
        place, column = _column(layout, layout.numbers[number])
        if not column.nullable:
            cells = _bins(place, column, grid.num_bins)
            if cells.num_pieces == grid.num_bins:
                yield (cells,), sums[:, i], reading.noise_of_sum(block.name) * scale


def _products(
    layout: Layout, reading: Measurement, block: Block, map_: Tensors
) -> Iterator[tuple[tuple[Cells, ...], Floats, float]]:
    """Products of memberships are tables too."""
    scale, start = math.sqrt(len(map_.subsets)), 0
    sums = reading.all_sums(block.name) * scale
    for subset, size in zip(map_.subsets, map_.sizes, strict=True):
        factors = [map_.factors[j] for j in subset]
        spans = [f.spans[0] for f in factors if isinstance(f, OneHot) and len(f.spans) == 1]
        if len(spans) == len(factors):
            shape = [stop - first for first, stop in spans]
            counts = sums[:, start : start + size].reshape(-1, *shape)
            cells = tuple(_cells_of_span(layout, span) for span in spans)
            yield cells, counts, reading.noise_of_sum(block.name) * scale
        start += size


def _cells_of_span(layout: Layout, span: tuple[int, int]) -> Cells:
    """The cells of a choice, or of a number that is there or null."""
    choice = next(c for c in layout.choices if (c.start, c.stop) == span)
    place, column = _column(layout, choice.column)
    if choice.flags_null:
        return Cells(place, column.num_steps + 1, True, is_ordered=True, lows=(0,))
    return Cells(place, len(column.categories), choice.width > len(column.categories))


def _column(layout: Layout, name: str) -> tuple[int, Column]:
    return next((i, c) for i, c in enumerate(layout.schema.used) if c.name == name)


def _bins(place: int, column: Column, count: int) -> Cells:
    """The codes that lie in each of equal bins of positions."""
    low = np.zeros(count, dtype=np.int64)
    high = np.full(count, column.num_steps + 1)
    edges = np.arange(count) / count
    while (low < high).any():
        middle = (low + high) // 2
        reached = to_position(column, middle) >= edges
        high = np.where(reached, middle, high)
        low = np.where(reached | (low >= high), low, middle + 1)
    whole = Cells(place, column.num_steps + 1, is_ordered=True)
    return replace(whole, lows=tuple(np.unique(low[low <= column.num_steps]).tolist()))


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
    for left, right in _same_others(one, other):
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


def _same_others(one: Cells, other: Cells) -> list[tuple[int, int]]:
    """Cells of nulls and of unlisted values that hold the same rows, or some of the same.

    A cell of nulls holds unlisted values too where these have none of their own, and the other way round.
    """
    mine, theirs = _others(one), _others(other)
    if len(mine) == len(theirs):
        return list(zip(mine, theirs, strict=True))
    return [(left, right) for left in mine for right in theirs]


def _others(cells: Cells) -> range:
    return range(cells.num_known, cells.dim)


def merged_cells(cells: Cells, signatures: npt.NDArray[np.float64]) -> Cells:
    """Cells with equal signatures made one; that of nulls stays by itself.

    # signatures: (known cells, any number)
    """
    _, group = np.unique(signatures, axis=0, return_inverse=True)
    group = group.ravel()
    if len(np.unique(group)) == cells.num_known:
        return cells
    return replace(cells, groups=tuple(group[cells.cell_of_piece].tolist()))
