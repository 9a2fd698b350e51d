"""Rows that anybody may see, ready to be turned into the features of a release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.features import Block, Constant, Fourier, Grid, Hermite, OneHot, Tensors
from understudy.features.combine import tensor
from understudy.schema import Layout, Schema
from understudy.schema.encode import encode_batch


@dataclass(frozen=True)
class PublicRows:
    """Rows as codes, and as cells and features for the maps that read those."""

    layout: Layout
    codes: Integers  # (num_rows, num_used)
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

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

    def features(self, block: Block) -> Floats:
        """Features of a plain block, which are kept: several parts share them."""
        if block.name not in self._kept:
            self._kept[block.name] = np.asarray(block.map(self.cells), dtype=np.float64)
        return np.asarray(self._kept[block.name])

    def factors(self, block: Block, map_: Tensors) -> dict[int, Floats]:
        """Features of every factor of a block of products."""
        if block.name not in self._kept:
            self._kept[block.name] = map_.single(self.cells)
        return dict(self._kept[block.name])

    def some(self, count: int, rng: np.random.Generator) -> PublicRows:
        """At most so many of the rows, drawn without repetition."""
        if len(self) <= count:
            return self
        return PublicRows(self.layout, self.codes[rng.choice(len(self), count, replace=False)])


def code_rows(schema: Schema, data: Any) -> Integers:
    """Codes of an Arrow, pandas or polars table that has the schema's columns; codes stay codes.

    Raises:
        InputError: a column is missing, or there are no rows.
    """
    if isinstance(data, np.ndarray):
        return np.asarray(data, dtype=np.int64)
    table = data if isinstance(data, pa.Table) else pa.table(data)
    absent = next((c.name for c in schema.used if c.name not in table.column_names), None)
    if absent is not None:
        raise InputError(f"column '{absent}'", "is not among the other rows", "Compare rows of the same schema")
    batches = table.select([column.name for column in schema.used]).to_batches()
    found = [encode_batch(schema, batch) for batch in batches if batch.num_rows]
    if not found:
        raise InputError("the other rows", "there are none", "Check the file")
    return np.concatenate(found)


# A block's features by the columns that they are about.

FREQUENCY_BANDS = (0.75, 1.5, 3.0, 6.0, 12.0)
"""Turns per range of a column at which Fourier features are taken apart."""

Group = tuple[tuple[str, ...], Integers, float, dict[str, Any]]
"""Columns, which features of the block are about them, their scale, and what else a part is told."""


def feature_groups(block: Block, label: tuple[int, int] | None, layout: Layout) -> Iterator[Group]:
    """A block's features by the columns that they are about."""
    map_: Any = block.map
    match map_:
        case Constant():
            yield _count_group(block, label, layout)
        case OneHot():
            start, scale = 0, math.sqrt(len(map_.spans))
            for first, last in map_.spans:
                entries = np.arange(start, start + last - first)
                yield (column_at(layout, first),), entries, scale, {}
                start += last - first
        case Grid():
            for i, number in enumerate(map_.numbers):
                entries = np.arange(i * map_.num_bins, (i + 1) * map_.num_bins)
                ordered = {"num_ordered": map_.num_bins}
                yield (column_at(layout, number),), entries, math.sqrt(len(map_.numbers)), ordered
        case Hermite():
            orders = np.arange(map_.order + 1)
            bands = {"bands": np.floor(np.log2(np.maximum(orders, 1))).astype(np.int64)}
            for i, number in enumerate(map_.numbers):
                scale = math.sqrt(len(map_.numbers))
                yield (column_at(layout, number),), i * len(orders) + orders, scale, bands
        case Fourier():
            yield from _fourier_groups(map_, layout)
        case Tensors():
            yield from _product_groups(block, map_, layout)
        case _:
            yield (), np.arange(map_.dim), 1.0, {}


def _count_group(block: Block, label: tuple[int, int] | None, layout: Layout) -> Group:
    """The row count, or rows of each label value: what it counts are its copies."""
    if not block.per_label or label is None:
        return ((), np.arange(1), 1.0, {"is_count": True, "values": lambda rows: np.ones((len(rows), 1))})
    options = {
        "is_count": True,
        "values": lambda rows: (rows.slots(label)[:, None] == np.arange(label[1] - label[0])) * 1.0,
    }
    return (column_at(layout, label[0]),), np.arange(1), 1.0, options


def _fourier_groups(map_: Fourier, layout: Layout) -> Iterator[Group]:
    """Frequencies of one column by that column, all others together, in bands from slow to fast."""
    turns = map_.frequencies  # (numbers, count)
    touched = turns != 0
    speeds = np.digitize(np.sqrt((turns**2).sum(axis=0)), FREQUENCY_BANDS)
    own = np.where(touched.sum(axis=0) == 1, touched.argmax(axis=0), -1)
    for which in np.unique(own):
        chosen = np.flatnonzero(own == which)
        entries = np.concatenate([chosen, chosen + map_.dim // 2])
        columns = (column_at(layout, map_.numbers[which]),) if which >= 0 else ()
        scale = math.sqrt(map_.dim / len(entries))
        yield columns, entries, scale, {"bands": np.tile(speeds[chosen], 2)}


def _product_groups(block: Block, map_: Tensors, layout: Layout) -> Iterator[Group]:
    """Every subset's products by themselves."""
    start = 0
    for subset, size in zip(map_.subsets, map_.sizes, strict=True):
        columns = tuple(dict.fromkeys(c for j in subset for c in _columns_of(map_.factors[j], layout)))
        values = partial(_products, block=block, map_=map_, subset=subset)
        yield (columns, np.arange(start, start + size), math.sqrt(len(map_.subsets)), {"values": values})
        start += size


def _products(rows: PublicRows, *, block: Block, map_: Tensors, subset: tuple[int, ...]) -> Floats:
    factors = rows.factors(block, map_)
    return np.asarray(tensor([factors[j] for j in subset]), dtype=np.float64)


def _columns_of(map_: Any, layout: Layout) -> list[str]:
    """Names of the columns that a factor of a product reads."""
    spans = [first for first, _ in getattr(map_, "spans", ())]
    return [column_at(layout, cell) for cell in (*getattr(map_, "numbers", ()), *spans)]


def column_at(layout: Layout, cell: int) -> str:
    """The name of the column that a cell belongs to."""
    if cell < len(layout.numbers):
        return layout.numbers[cell]
    return next(choice.column for choice in layout.choices if choice.start <= cell < choice.stop)
