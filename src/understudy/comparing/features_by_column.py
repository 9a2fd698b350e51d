"""A block's features by the columns that they are about."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.comparing.public_rows import PublicRows
from understudy.features import Block, Constant, Fourier, Grid, Hermite, OneHot, Tensors
from understudy.features.combine import tensor
from understudy.schema import Layout

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
