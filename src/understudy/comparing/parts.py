"""A release's noisy sums in parts, each about some columns, with the same features of public rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from understudy.arrays import Floats, Integers
from understudy.comparing.axes import Axis, common_axis
from understudy.comparing.features_by_column import column_at, feature_groups
from understudy.comparing.public_rows import PublicRows
from understudy.features import Block, Cells, Reading, Tables
from understudy.published import Release
from understudy.schema import Layout


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


def _parts_of(block: Block, readings: list[Reading], layout: Layout) -> Iterator[Part]:
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


def _table_parts(block: Block, readings: list[Reading], layout: Layout) -> Iterator[Part]:
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
    reading: Reading, name: str, names: list[str]
) -> dict[tuple[str, ...], tuple[tuple[Cells, ...], Floats]]:
    """Cells and noisy counts of each table of a block, by the names of its columns."""
    map_ = reading.map(name)
    cells = [tuple(map_.factors[j] for j in subset) for subset in map_.subsets]
    columns = [tuple(names[each.column] for each in some) for some in cells]
    return dict(zip(columns, zip(cells, reading.tables(name), strict=True), strict=True))


def _table_part(
    block: Block,
    reading: Reading,
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
    readings: list[Reading],
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


def _label_of(block: Block, reading: Reading, layout: Layout) -> dict[str, Any]:
    """The label that a block has copies for, and the name of its column."""
    label = reading.embedding.label if block.per_label else None
    return {} if label is None else {"label": label, "label_column": column_at(layout, label[0])}
