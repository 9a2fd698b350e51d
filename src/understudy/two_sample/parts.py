"""A release's noisy sums in parts, each about some columns, with the same features of public rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from understudy.arrays import Floats, Integers
from understudy.features import Block, Cells, Tables
from understudy.measurement import Measurement
from understudy.released import Release
from understudy.schema import Layout
from understudy.two_sample.public_rows import PublicRows, column_at, feature_groups

# Cells of a column that one release has, or that two releases can both express.

MOST_CELLS = 512
"""A longer column is compared in runs of its cells: thousands of cells hold noise and little else."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One column of a table: the cells of each release, and the union that each is a part of.

    The last of ``unions`` takes what is in no union; ``num_ordered`` of them, the first, lie in the order of
    their codes.
    """

    cells: tuple[Cells, ...]
    unions: tuple[Integers, ...]  # (cells of that release,) each
    dim: int
    num_ordered: int

    def __call__(self, codes: Integers) -> Integers:
        """The union of each row; ``dim`` if it is in none.  # (num_rows, num_used) -> (num_rows,)"""
        cells, unions = self.cells[0], self.unions[0]
        return np.append(unions, self.dim)[cells(codes[:, cells.column])]

    @cached_property
    def sizes(self) -> tuple[Integers, ...]:
        """How many cells of each release a union holds."""
        return tuple(np.bincount(u, minlength=self.dim + 1)[: self.dim] for u in self.unions)

    def merge(self, values: Floats, release: int, axis: int) -> Floats:
        """Counts of a release's cells as counts of unions, along one axis."""
        moved = np.moveaxis(values, axis, 0)
        found = np.zeros((self.dim + 1, *moved.shape[1:]))
        np.add.at(found, self.unions[release], moved)
        return np.moveaxis(found[: self.dim], 0, axis)


def common_axis(cells: Sequence[Cells]) -> Axis:
    """The finest cells that are unions of every release's own."""
    known, count = _common_unions(cells)
    is_ordered = all(each.is_ordered for each in cells)
    if count > MOST_CELLS:
        known, count = [each * MOST_CELLS // count for each in known], MOST_CELLS
    has_null = all(each.has_null for each in cells)
    dim = count + has_null
    unions = []
    for own, each in zip(cells, known, strict=True):
        null = [count if has_null else dim] * own.has_null
        unions.append(np.append(each, null).astype(np.int64))
    return Axis(tuple(cells), tuple(unions), dim, count if is_ordered else 0)


def _common_unions(cells: Sequence[Cells]) -> tuple[list[Integers], int]:
    """Which union each known cell belongs to, unions in the order of their first codes."""
    if len(cells) == 1:
        return [np.arange(cells[0].num_known)], cells[0].num_known
    starts = np.unique(np.concatenate([each.first_codes for each in cells]))
    places = [each(starts) for each in cells]
    offsets = np.cumsum([0, *(each.num_known for each in cells)])
    # Cells that share a run of codes must be in one union: connected components of the overlaps.
    size = int(offsets[-1])
    links = [places[i] + offsets[i] for i in range(len(cells))]
    graph = coo_array((np.ones(len(starts)), (links[0], links[-1])), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    order = np.full(labels.max() + 1, -1, dtype=np.int64)
    met, first = np.unique(labels[links[0]], return_index=True)
    order[met[np.argsort(first)]] = np.arange(len(met))
    whole = order[labels]
    return [whole[offsets[i] : offsets[i + 1]] for i in range(len(cells))], len(met)


@dataclass(frozen=True, eq=False)
class Part:
    """Noisy sums of features of norm at most one, of one release or of two that share them.

    Numbers run through the copies (one per label value, or a single one) and through the features
    within a copy. Noise of different numbers is independent. ``bands`` takes features apart that
    differ in how fast they vary; the first ``num_ordered`` features are cells along a line.
    """

    block: str
    columns: tuple[str, ...]
    copies: int
    dim: int
    sums: tuple[Floats, ...]  # (copies * dim,) for each release
    noise: tuple[Floats, ...]  # deviations, likewise
    place: Callable[[PublicRows], Integers] | None = None
    values: Callable[[PublicRows], Floats] | None = None
    label: tuple[int, int] | None = None
    label_column: str = ""
    num_ordered: int = 0
    bands: Integers | None = None
    is_count: bool = False

    def matrix(self, rows: PublicRows) -> Any:
        """Features of rows, a SciPy or NumPy matrix.  # (num_rows, copies * dim)"""
        slots = rows.slots(self.label)
        if self.place is not None:
            places = self.place(rows)
            inside = np.flatnonzero((slots < self.copies) & (places < self.dim))
            index = slots[inside] * self.dim + places[inside]
            shape = (len(rows), self.copies * self.dim)
            return csr_array((np.ones(len(inside)), (inside, index)), shape=shape)
        values = self.values(rows) if self.values is not None else np.ones((len(rows), 1))
        if self.label is None:
            return values
        found = np.zeros((len(rows), self.copies + 1, self.dim))
        found[np.arange(len(rows)), slots] = values
        return found[:, : self.copies].reshape(len(rows), -1)


@dataclass
class Parts:
    """All parts that can be compared, in words what they are, and blocks that cannot."""

    found: list[Part] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def find_parts(releases: Sequence[Release]) -> Parts:
    """The parts of a release, or those that two releases of the same columns have in common."""
    parts, layout = Parts(), releases[0].plan.layout
    for reading in releases[0].readings:
        for block in reading.embedding.blocks:
            others = [r.reading_of(block.name) for r in releases[1:] if _has(r, block.name)]
            is_shared = len(others) == len(releases) - 1
            made = list(_parts_of(block, [reading, *others], layout)) if is_shared else []
            parts.found += made
            shared = sum(part.dim for part in made)
            if not made:
                parts.left_out.append(block.name)
            elif others and isinstance(block.map, Tables) and shared < block.map.listed_dim:
                own = f"{block.map.listed_dim:,} cells"
                parts.compared.append(f"{block.name} (in {shared:,} that both have, of {own})")
            else:
                parts.compared.append(block.name)
    return parts


def _has(release: Release, name: str) -> bool:
    return any(reading.has(name) for reading in release.readings)


def _parts_of(block: Block, readings: list[Measurement], layout: Layout) -> Iterator[Part]:
    """The parts of one block; none if the releases' features of it have nothing in common."""
    blocks = [reading.embedding.block(block.name) for reading in readings]
    copies = {reading.embedding.copies(b) for reading, b in zip(readings, blocks, strict=True)}
    if len(copies) > 1 or len({reading.embedding.label for reading in readings}) > 1:
        return
    if all(isinstance(each.map, Tables) for each in blocks):
        yield from _table_parts(block, readings, layout)
    elif all(each.map == block.map for each in blocks):
        for columns, entries, scale, options in feature_groups(block, readings[0].embedding.label, layout):
            yield _plain_part(block, readings, layout, columns, entries, scale, options)


def _table_parts(block: Block, readings: list[Measurement], layout: Layout) -> Iterator[Part]:
    names = [column.name for column in layout.schema.used]
    noise = [reading.noise_of_count(block.name) for reading in readings]
    named = [_tables_by_columns(reading, block.name, names) for reading in readings]
    for columns in named[0]:
        if not all(columns in own for own in named):
            continue
        cuts, counts = zip(*(own[columns] for own in named), strict=True)
        axes = tuple(common_axis(some) for some in zip(*cuts, strict=True))
        if all(axis.dim > 1 for axis in axes):
            yield _table_part(block, readings[0], layout, columns, axes, counts, noise)


def _tables_by_columns(
    reading: Measurement, name: str, names: list[str]
) -> dict[tuple[str, ...], tuple[tuple[Cells, ...], Floats]]:
    """Cells and noisy counts of each table of a block, by the names of its columns."""
    map_ = reading.map(name)
    cells = [tuple(map_.factors[j] for j in subset) for subset in map_.subsets]
    columns = [tuple(names[each.column] for each in some) for some in cells]
    return dict(zip(columns, zip(cells, reading.tables(name), strict=True), strict=True))


def _table_part(
    block: Block,
    reading: Measurement,
    layout: Layout,
    columns: tuple[str, ...],
    axes: tuple[Axis, ...],
    counts: tuple[Floats, ...],
    noise: list[float],
) -> Part:
    sums, deviations = [], []
    for i, (table, deviation) in enumerate(zip(counts, noise, strict=True)):
        size = np.ones(1)
        for number, axis in enumerate(axes, start=1):
            table = axis.merge(table, i, number)
            size = np.multiply.outer(size, axis.sizes[i])
        sums.append(table.ravel())
        deviations.append(deviation * np.sqrt(np.tile(size.ravel(), len(table))))

    def place(rows: PublicRows) -> Integers:
        found, inside = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool)
        for axis in axes:
            along = axis(rows.codes)
            inside &= along < axis.dim
            found = found * axis.dim + along
        return np.where(inside, found, math.prod(axis.dim for axis in axes))

    return Part(
        block.name,
        columns,
        len(counts[0]),
        math.prod(axis.dim for axis in axes),
        tuple(sums),
        tuple(deviations),
        place=place,
        **_label_of(block, reading, layout),
        num_ordered=axes[0].num_ordered if len(axes) == 1 else 0,
    )


def _plain_part(
    block: Block,
    readings: list[Measurement],
    layout: Layout,
    columns: tuple[str, ...],
    entries: Integers,
    scale: float,
    options: dict[str, Any],
) -> Part:
    """Some of a block's features, multiplied so that their norm is at most one."""
    sums = tuple((r.sums(block.name)[:, entries] * scale).ravel() for r in readings)
    noise = tuple(np.full(len(own), r.noise_of_sum(block.name) * scale) for own, r in zip(sums, readings, strict=True))
    if options.get("is_count"):  # the copies are what it counts
        return Part(block.name, columns, 1, len(sums[0]), sums, noise, **options)
    options = {"values": lambda rows: rows.features(block)[:, entries] * scale} | options
    copies = len(sums[0]) // len(entries)
    options |= _label_of(block, readings[0], layout)
    return Part(block.name, columns, copies, len(entries), sums, noise, **options)


def _label_of(block: Block, reading: Measurement, layout: Layout) -> dict[str, Any]:
    """The label that a block has copies for, and the name of its column."""
    label = reading.embedding.label if block.per_label else None
    return {} if label is None else {"label": label, "label_column": column_at(layout, label[0])}
