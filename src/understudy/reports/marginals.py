"""Single columns and pairs as a release measured them, beside rows of its generator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.features import Cells, Grid, OneHot, Tables
from understudy.released import Release
from understudy.reports.agreement import INTERVAL, Agreement, counts_per_feature, root_mean_square, share_inside
from understudy.reports.charts import Series, short
from understudy.schema import Column
from understudy.schema.layout import decode_column, from_position

MOST_BINS = 20
NULL_NAME = "(null)"


@dataclass(frozen=True)
class Margin:
    """One column: noisy counts of its bins or categories, and what drawn rows would give."""

    column: Column
    names: tuple[str, ...]
    ticks: tuple[str, ...]
    measured: Floats  # (bins,)
    expected: Floats  # (bins,)
    doubt: float
    """How far the 95 % interval of a count's noise reaches."""
    residuals: Floats

    @property
    def rms(self) -> float:
        """Size of the residuals; 1 is what noise alone gives."""
        return root_mean_square(self.residuals)

    def series(self, total: float) -> Series:
        """As shares of all rows; bins of a number are merged until they can be drawn."""
        if self.column.is_choice:
            sides = (self.measured, self.expected)
            given, drawn = (tuple((side / total).tolist()) for side in sides)
            return Series(self.names, (), given, drawn, self.doubt / total)
        merged = -(-len(self.measured) // MOST_BINS)
        starts = np.arange(0, len(self.measured), merged)
        given, drawn = (
            tuple((np.add.reduceat(side, starts) / total).tolist()) for side in (self.measured, self.expected)
        )
        edges = [*starts.tolist(), len(self.measured)]
        return Series(
            tuple(self.names[i] for i in starts),
            tuple(self.ticks[i] for i in edges),
            given,
            drawn,
            self.doubt * math.sqrt(merged) / total,
        )


@dataclass(frozen=True)
class PairFit:
    """A pair of columns that was measured, and how well drawn rows agree with it."""

    pair: tuple[str, str]
    size: int
    rms: float
    inside: float


def margins_of(release: Release, agreements: Iterable[Agreement]) -> list[Margin]:
    """Every column that was counted by itself, worst first; the first count of each."""
    found: dict[str, Margin] = {}
    for agreement in agreements:
        for margin in _margins(release, agreement):
            found.setdefault(margin.column.name, margin)
    return sorted(found.values(), key=lambda margin: -margin.rms)


def _margins(release: Release, agreement: Agreement) -> Iterator[Margin]:
    scale = counts_per_feature(agreement.block)
    if scale is None:
        return
    copies = len(agreement.measured)
    start = 0
    for column, size, names, ticks in _columns(release, agreement):
        part = slice(start, start + size)
        start += size
        if column is None:
            continue
        yield Margin(
            column,
            names,
            ticks,
            agreement.measured[:, part].sum(axis=0)[: len(names)] * scale,
            agreement.expected[:, part].sum(axis=0)[: len(names)] * scale,
            agreement.mechanism.deviations(INTERVAL) * agreement.noise * scale * math.sqrt(copies),
            agreement.residuals[:, part],
        )


def _columns(
    release: Release, agreement: Agreement
) -> Iterator[tuple[Column | None, int, tuple[str, ...], tuple[str, ...]]]:
    """Each run of features: its column (none: not to be drawn), length, names and ticks."""
    used, layout, map_ = release.plan.schema.used, release.plan.layout, agreement.block.map
    by_name = {column.name: column for column in used}
    if isinstance(map_, Tables):
        for subset, shape in zip(map_.subsets, map_.shapes, strict=True):
            cells = map_.factors[subset[0]]
            column = used[cells.column] if len(subset) == 1 and not cells.groups else None
            words = _cell_words(column, cells) if column is not None else ((), ())
            yield column, math.prod(shape), *words
    elif isinstance(map_, OneHot):
        choices = {(choice.start, choice.stop): choice for choice in layout.choices}
        for span in map_.spans:
            choice = choices[span]
            column = None if choice.flags_null else by_name[choice.column]
            names = _category_names(column, choice.width) if column is not None else ()
            yield column, choice.width, names, ()
    elif isinstance(map_, Grid):
        for number in map_.numbers:
            column = by_name[layout.numbers[number]]
            edges = from_position(column, np.arange(map_.num_bins + 1) / map_.num_bins)
            ticks = _values(column, edges)
            yield column, map_.num_bins, ticks[:-1], ticks


def _cell_words(column: Column, cells: Cells) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if column.is_choice:
        return _category_names(column, cells.dim), ()
    ticks = _values(column, np.append(cells.first_codes, cells.num_codes - 1))
    return ticks[:-1], ticks  # a null has a cell, and no place on the axis


def _category_names(column: Column, width: int) -> tuple[str, ...]:
    return (*map(str, column.categories), NULL_NAME)[:width]


def _values(column: Column, codes: Integers) -> tuple[str, ...]:
    """What codes of a number stand for, in a few characters."""
    decoded = decode_column(column, codes)
    if column.resolution is not None:
        return tuple(str(cell)[:10] for cell in decoded.cast(pa.timestamp("us")).to_pylist())
    return tuple(short(float(cell)) for cell in decoded.to_pylist())


def pairs_of(release: Release, agreements: Iterable[Agreement]) -> list[PairFit]:
    """Every pair of columns that was counted, worst first."""
    names, law = [column.name for column in release.plan.schema.used], release.plan.mechanism
    residuals: dict[tuple[str, str], list[Floats]] = {}
    for agreement in agreements:
        map_ = agreement.block.map
        if not isinstance(map_, Tables):
            continue
        for subset, table in zip(map_.subsets, map_.split(agreement.residuals), strict=True):
            if len(subset) == 2:
                first, second = sorted(map_.factors[j].column for j in subset)
                residuals.setdefault((names[first], names[second]), []).append(table.ravel())
    found = [
        PairFit(pair, sum(map(len, parts)), root_mean_square(joined), share_inside(joined, law))
        for pair, parts in residuals.items()
        if len(joined := np.concatenate(parts))
    ]
    return sorted(found, key=lambda fit: -fit.rms)
