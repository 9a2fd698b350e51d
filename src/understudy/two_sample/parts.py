"""A release's noisy sums in parts, each about some columns, with the same features of public rows.

Where releases chose their own cells, they are compared on the finest cells that both can express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.features import Block, Cells, FeatureGroup, FeatureMap
from understudy.features.tables import Memberships
from understudy.released import Release
from understudy.released.tables import common_coarsening, listed_tables, sum_cells
from understudy.rules.measurement import Measurement
from understudy.schema import Layout, Schema
from understudy.schema.encode import encode_batch

MOST_CELLS = 512
"""A longer column is compared in runs of its cells: thousands of cells hold noise and little else."""


@dataclass(frozen=True)
class PublicRows:
    """Rows that anybody may see, as codes, and as cells and features for the maps that read those."""

    layout: Layout
    codes: Integers  # (num_rows, num_used)
    _kept: dict[str, Floats] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def cells(self) -> Floats:
        """Positions and memberships.  # (num_rows, width)"""
        return self.layout.expand(self.codes)

    def slots(self, label: tuple[int, int] | None) -> Integers:
        """Which label value each row has; one past the last if it has none; 0 without a label."""
        if label is None:
            return np.zeros(len(self), dtype=np.int64)
        members = self.cells[:, slice(*label)]
        return np.asarray(np.where(members.any(axis=1), members.argmax(axis=1), members.shape[1]))

    def features(self, map_: FeatureMap) -> Floats:
        """Features of every row.  # (num_rows, dim)"""
        return np.asarray(map_(self.codes if map_.reads_codes else self.cells), dtype=np.float64)

    def features_of(self, block: Block) -> Floats:
        """Features of a block, which are kept: several parts share them."""
        if block.name not in self._kept:
            self._kept[block.name] = self.features(block.map)
        return self._kept[block.name]


def code_rows(schema: Schema, data: Any) -> Integers:
    """Codes of an Arrow, pandas or polars table that has the schema's columns.

    Raises:
        InputError: a column is missing, or there are no rows.
    """
    table = data if isinstance(data, pa.Table) else pa.table(data)
    absent = next((c.name for c in schema.in_files if c.name not in table.column_names), None)
    if absent is not None:
        raise InputError(f"column '{absent}'", "is not among the other rows", "Compare rows of the same schema")
    batches = table.select(schema.file_names).to_batches()
    found = [encode_batch(schema, batch) for batch in batches if batch.num_rows]
    if not found:
        raise InputError("the other rows", "there are none", "Check the file")
    return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class CommonAxis:
    """One column of a table: the cells of each release, and the union that each is a part of (-1: none).

    ``num_ordered`` of the unions, the first, lie in the order of their codes.
    """

    cells: tuple[Cells, ...]
    unions: tuple[Integers, ...]  # (cells of that release,) each
    dim: int
    num_ordered: int

    def __call__(self, codes: Integers) -> Integers:
        """The union of each row; -1 if it is in none.  # (num_rows, num_used) -> (num_rows,)"""
        cells, unions = self.cells[0], self.unions[0]
        return np.append(unions, -1)[cells(codes[:, cells.column])]

    @cached_property
    def sizes(self) -> tuple[Integers, ...]:
        """How many cells of each release a union holds."""
        return tuple(np.bincount(union[union >= 0], minlength=self.dim) for union in self.unions)


def common_axis(cells: Sequence[Cells]) -> CommonAxis:
    """The finest cells that are unions of every release's own."""
    unions, dim = [np.arange(cells[0].dim)], cells[0].dim
    if len(cells) == 2:
        *unions, dim = common_coarsening(*cells)
    has_null = all(each.has_null for each in cells)
    known = dim - has_null
    if known > MOST_CELLS:
        dim = MOST_CELLS + has_null
        unions = [np.where(union < known, union * MOST_CELLS // known, MOST_CELLS) for union in unions]
    is_ordered = all(each.is_ordered for each in cells)
    return CommonAxis(tuple(cells), tuple(unions), dim, dim - has_null if is_ordered else 0)


@dataclass(frozen=True, eq=False)
class Part:
    """Noisy sums of features of norm at most one, of one release or of two that share them.

    Numbers run through the copies (one per label value, or a single one) and through the features
    within a copy. Noise of different numbers is independent. ``features`` gives those of rows within
    their copy, or of a table the one cell that each row is in (-1: none). ``bands`` takes features apart that
    differ in how fast they vary; the first ``num_ordered`` features are cells along a line.
    """

    block: str
    columns: tuple[str, ...]
    copies: int
    sums: tuple[Floats, ...]  # (copies * dim,) for each release
    noise: tuple[Floats, ...]  # deviations, likewise
    features: Callable[[PublicRows], Any]
    is_table: bool = False
    label: tuple[int, int] | None = None
    label_column: str = ""
    num_ordered: int = 0
    bands: Integers | None = None
    is_count: bool = False

    @property
    def dim(self) -> int:
        """Features within a copy."""
        return len(self.sums[0]) // self.copies

    def matrix(self, rows: PublicRows) -> Any:
        """Features of rows, a SciPy or NumPy matrix.  # (num_rows, copies * dim)"""
        slots, features = rows.slots(self.label), self.features(rows)
        if self.is_table:
            inside = np.flatnonzero((slots < self.copies) & (features >= 0))
            index = slots[inside] * self.dim + features[inside]
            shape = (len(rows), self.copies * self.dim)
            return csr_array((np.ones(len(inside)), (inside, index)), shape=shape)
        if self.label is None:
            return features
        found = np.zeros((len(rows), self.copies + 1, self.dim))
        found[np.arange(len(rows)), slots] = features
        return found[:, : self.copies].reshape(len(rows), -1)


@dataclass
class Parts:
    """All parts that can be compared, in words what they are, and blocks that cannot."""

    found: list[Part] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def find_parts(releases: Sequence[Release]) -> Parts:
    """The parts of a release, or those that two releases of the same columns have in common.

    Raises:
        InputError: nothing can be compared but row counts.
    """
    parts, layout = Parts(), releases[0].plan.layout
    for measurement in releases[0].measurements:
        for block in measurement.embedding.blocks:
            others = [own for release in releases[1:] for own in release.measurements if own.has(block.name)]
            is_shared = len(others) == len(releases) - 1
            made = list(_parts_of(block, [measurement, *others], layout)) if is_shared else []
            parts.found += made
            shared = sum(part.dim for part in made)
            tables = listed_tables(measurement, block, layout).values()
            own = sum(counts[0].size for _, counts, _ in tables)
            if not made and tables and own == len(tables):
                continue  # tables of one cell are row counts, which are compared elsewhere
            if not made:
                parts.left_out.append(block.name)
            elif others and block.map.reads_codes and shared < own:
                parts.compared.append(f"{block.name} (in {shared:,} that both have, of {own:,} cells)")
            else:
                parts.compared.append(block.name)
    if not any(part.columns or not part.is_count for part in parts.found):
        raise InputError(
            "the releases",
            "hold no numbers that can be compared",
            "Release both with the same method, settings and public seed",
        )
    return parts


def _parts_of(block: Block, measurements: list[Measurement], layout: Layout) -> Iterator[Part]:
    """The parts of one block; none if the releases' features of it have nothing in common.

    Cells that are read off codes need not be the same in both releases; other features must be.
    """
    blocks = [measurement.embedding.block(block.name) for measurement in measurements]
    copies = {measurement.embedding.copies(b) for measurement, b in zip(measurements, blocks, strict=True)}
    labels = {measurement.embedding.label for measurement in measurements}
    if len(copies) > 1 or len(labels) > 1:
        return
    label = labels.pop() if block.per_label else None
    name = "" if label is None else Memberships(label).choice_in(layout).column
    parts: Iterable[Part] = ()
    if all(each.map.reads_codes and each.map.count_tables for each in blocks):
        parts = _table_parts(block, measurements, layout)
    elif all(each.map == block.map for each in blocks):
        parts = [_group_part(block, measurements, group) for group in block.map.groups(layout)]
    for part in parts:
        yield _count_part(part, label, name) if part.is_count else replace(part, label=label, label_column=name)


def _table_parts(block: Block, measurements: list[Measurement], layout: Layout) -> Iterator[Part]:
    """Counts in the cells that the releases' tables over the same columns have in common."""
    by_columns = [listed_tables(own, own.embedding.block(block.name), layout) for own in measurements]
    for columns in by_columns[0]:
        if not all(columns in own for own in by_columns):
            continue
        cells, counts, noise = zip(*(own[columns] for own in by_columns), strict=True)
        axes = tuple(common_axis(some) for some in zip(*cells, strict=True))
        if all(axis.dim > 1 for axis in axes):
            names = tuple(layout.schema.used[column].name for column in columns)
            merged = [_merged(axes, i, *table) for i, table in enumerate(zip(counts, noise, strict=True))]
            ordered = axes[0].num_ordered if len(axes) == 1 else 0
            sums, deviations = zip(*merged, strict=True)
            place = partial(_place, axes)
            yield Part(block.name, names, len(counts[0]), sums, deviations, place, is_table=True, num_ordered=ordered)


def _merged(axes: Sequence[CommonAxis], release: int, counts: Floats, noise: float) -> tuple[Floats, Floats]:
    """A table's counts in the unions of cells along its axes, and the deviations of their noise."""
    size = np.ones(1)
    for number, axis in enumerate(axes, start=1):
        counts = sum_cells(counts, axis.unions[release], axis.dim, axis=number)
        size = np.multiply.outer(size, axis.sizes[release])
    return counts.ravel(), noise * np.sqrt(np.tile(size.ravel(), len(counts)))


def _place(axes: Sequence[CommonAxis], rows: PublicRows) -> Integers:
    """The cell of a table that each row is in; -1 for none."""
    found, inside = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool)
    for axis in axes:
        along = axis(rows.codes)
        inside &= along >= 0
        found = found * axis.dim + along
    return np.where(inside, found, -1)


def _group_part(block: Block, measurements: list[Measurement], group: FeatureGroup) -> Part:
    """Features about the same columns, multiplied so that their norm is at most one."""
    chosen, scale = group.features, group.scale
    sums = [own.sums(block.name)[:, chosen] * scale for own in measurements]
    noise = [own.noise_of_sum(block.name) * scale for own in measurements]

    def values(rows: PublicRows) -> Floats:
        return rows.features(group.map) if group.map is not None else rows.features_of(block)[:, chosen] * scale

    return Part(
        block.name,
        # Products are of columns that were chosen; waves are of all numbers, and a list of them would say no more.
        group.columns if group.columns and (group.map is not None or len(group.columns) == 1) else (),
        len(sums[0]),
        tuple(own.ravel() for own in sums),
        tuple(np.full(own.size, deviation) for own, deviation in zip(sums, noise, strict=True)),
        values,
        num_ordered=group.num_ordered,
        bands=group.bands,
        is_count=group.columns == (),
    )


def _count_part(part: Part, label: tuple[int, int] | None, label_column: str) -> Part:
    """The row count, or rows of each label value: what it counts are its copies."""
    columns, values = () if label is None else (label_column,), np.arange(len(part.sums[0]))
    return replace(part, columns=columns, copies=1, features=lambda rows: (rows.slots(label)[:, None] == values) * 1.0)
