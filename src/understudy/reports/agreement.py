"""Rows of a generator against the noisy sums that it was made from, by block, column and pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.accounting.mechanisms import GAUSSIAN, Mechanism
from understudy.arrays import Floats, Integers, StageProgress
from understudy.features import Block, CountTable, Sign
from understudy.released import Release
from understudy.reports.charts import Series, short
from understudy.schema import Column
from understudy.schema.encode import decode_column

STEP_ROWS = 2**12
MOST_ROWS = 400_000
MOST_CELLS = 16_000_000
MOST_FEATURES = 300_000_000
"""Rows to draw at most: in all, by their cells, and by the features that have to be computed."""

FEWEST_ROWS = 4_000  # drawn however dear they are: sampling noise is then below 1 % of a share

PRODUCT_COST = 20
"""How much more a row's features cost if they are multiplied with one another."""

INTERVAL = 1.96
"""Deviations of a normal law on either side that hold 95 % of it."""

MOST_BINS = 20  # bars of a number in a picture
NULL_NAME = "(null)"


MISSES = 1.2
DOUBT = 3.0
"""Residuals of this size and more, beyond three deviations of chance: the generator misses something."""


def is_missed(rms: float, size: int, mechanism: Mechanism = GAUSSIAN) -> bool:
    """Whether residuals are larger than noise makes them, in what they are and in what is likely."""
    from scipy.stats import gamma, norm

    # The mean square of n residuals has mean 1 and variance (kurtosis - 1) / n. Of normal ones its law
    # is this gamma law (a chi-square); of Laplace ones that is close.
    shape = max(size, 1) / (mechanism.kurtosis - 1)
    return rms >= max(MISSES, math.sqrt(gamma.isf(norm.sf(DOUBT), shape) / shape))


@dataclass(frozen=True)
class Fit:
    """How far drawn rows are from what was measured of a block, a column or a pair of columns.

    ``residuals`` are differences in deviations of the known noise (with what chance adds to the
    drawn rows, and the noise of the row count). A perfect generator's have deviation 1 and, where
    noise is most of it, the shape of the mechanism's noise.
    """

    names: tuple[str, ...]
    residuals: Floats
    mechanism: Mechanism

    @property
    def words(self) -> str:
        """What was measured, for people."""
        return " with ".join(f"'{name}'" for name in self.names)

    @property
    def size(self) -> int:
        """Numbers that were measured."""
        return self.residuals.size

    @property
    def rms(self) -> float:
        """Root mean square of the residuals; 1 is what noise alone gives."""
        return math.sqrt(float(np.mean(self.residuals**2)))

    @property
    def inside(self) -> float:
        """Share of the residuals that lie in their 95 % interval."""
        return float(np.mean(np.abs(self.residuals) <= self.mechanism.deviations(INTERVAL)))

    @property
    def is_missed(self) -> bool:
        """Whether noise does not explain the residuals."""
        return is_missed(self.rms, self.size, self.mechanism)


@dataclass(frozen=True)
class Agreement:
    """One block of a release: what was measured, and what drawn rows would give."""

    stage: str
    block: Block
    measured: Floats  # (copies, dim), sums over rows
    expected: Floats  # (copies, dim)
    fit: Fit
    noise: float


def rows_to_draw(release: Release) -> int:
    """So many rows that their own chance matters little, as far as time and memory allow."""
    maps = [block.map for block in release.blocks]
    width = max(map_.row_width * (1 if map_.components[0] is map_ else PRODUCT_COST) for map_ in maps)
    affordable = min(MOST_ROWS, MOST_CELLS // len(release.plan.schema.used), MOST_FEATURES // max(width, 1))
    return max(FEWEST_ROWS, affordable)


def compare(release: Release, halves: Sequence[Integers], *, progress: StageProgress | None = None) -> list[Agreement]:
    """Every block of a release against two independently drawn sets of rows, as codes.

    How much two draws differ tells what chance adds to the comparison.
    """
    rows = sum(map(len, halves))

    def told(done: int) -> None:
        if progress is not None:
            progress("comparing", done, rows)

    first, second = (_mean_features(release, codes, told, before=i * len(halves[0])) for i, codes in enumerate(halves))
    total = float(release.label_counts.sum())
    counts = release.sums("count")
    noise_of_total = release.noise_std("count") * math.sqrt(len(counts))
    found = []
    for stage, measurement in zip(release.plan.stages, release.measurements, strict=True):
        for block in measurement.embedding.blocks:
            if block.map.sign is Sign.CONSTANT and measurement.embedding.copies(block) == 1:
                continue  # the row count, which the other numbers are compared by
            measured, noise = measurement.sums(block.name), measurement.noise_of_sum(block.name)
            means = (first[block.name] + second[block.name]) / 2
            chance = _chance(block, first[block.name], second[block.name])
            variance = noise**2 + (means * noise_of_total) ** 2 + chance * total**2
            fit = Fit((block.name,), (measured - means * total) / np.sqrt(variance), release.plan.mechanism)
            found.append(Agreement(stage.name, block, measured, means * total, fit, noise))
    return found


def _chance(block: Block, first: Floats, second: Floats) -> Floats:
    """Variance of the mean of two draws: its size from their difference, its shape as counts have it."""
    means = (first + second) / 2
    scale = counts_per_feature(block)
    shape = np.ones_like(means)
    if scale is not None:
        shape = np.clip(means * scale * (1 - means * scale), 1e-9, None) / scale**2
    return np.asarray(shape * np.sum((first - second) ** 2) / (4 * np.sum(shape)))


def counts_per_feature(block: Block) -> float | None:
    """What a sum of a block's features is multiplied by to be a count of rows, if all of them are counts."""
    tables = block.map.count_tables
    is_counted = sum(table.size for table in tables) == block.map.dim
    return tables[0].scale if is_counted else None


def _mean_features(release: Release, codes: Integers, told: Callable[[int], None], *, before: int) -> dict[str, Floats]:
    """Mean over rows of every block's features.  # (copies, dim) of each"""
    sums: dict[str, Any] = {}
    for start in range(0, len(codes), STEP_ROWS):
        told(before + start)
        part = codes[start : start + STEP_ROWS]
        cells = release.plan.layout.expand(part)
        for embedding in release.embeddings:
            for block in embedding.blocks:
                members = np.ones((len(part), 1))
                if block.per_label and embedding.label is not None:
                    members = cells[:, slice(*embedding.label)]
                copies = members.shape[1]
                slots = np.where(members.any(axis=1), members.argmax(axis=1), copies)
                sums[block.name] = sums.get(block.name, 0.0) + block.map.sums(part, cells, slots, copies)
    return {name: np.asarray(total / len(codes)) for name, total in sums.items()}


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
    fit: Fit

    def series(self, total: float) -> Series:
        """As shares of all rows; bins of a number are merged until they can be drawn."""
        merged = 1 if self.column.is_choice else -(-len(self.measured) // MOST_BINS)
        starts = np.arange(0, len(self.measured), merged)
        given, drawn = (
            tuple((np.add.reduceat(side, starts) / total).tolist()) for side in (self.measured, self.expected)
        )
        edges = [] if self.column.is_choice else [*starts.tolist(), len(self.measured)]
        names, ticks = tuple(self.names[i] for i in starts), tuple(self.ticks[i] for i in edges)
        return Series(names, ticks, given, drawn, self.doubt * math.sqrt(merged) / total)


def margins_of(release: Release, agreements: Iterable[Agreement]) -> list[Margin]:
    """Every column that was counted by itself, labels summed over, worst first; the first count of each."""
    found: dict[str, Margin] = {}
    used = {column.name: column for column in release.plan.schema.used}
    for agreement, table in _tables(agreements):
        edges = table.axes[0].edges_in(release.plan.layout) if len(table.axes) == 1 else None
        if edges is None or edges[0] in found:
            continue
        column, copies = used[edges[0]], len(agreement.measured)
        if not column.is_choice and not len(edges[1]):
            continue
        ticks = () if column.is_choice else _values(column, edges[1])
        # A null has a cell, and no place on the axis of a number; unlisted values are not drawn.
        names = ticks[:-1]
        if column.is_choice:
            names = (*map(str, column.categories), NULL_NAME)[: min(table.size, column.num_choices)]
        measured, expected = (
            table.counts(side).sum(axis=0)[: len(names)] for side in (agreement.measured, agreement.expected)
        )
        fit = Fit((column.name,), _residuals(agreement, table), release.plan.mechanism)
        doubt = fit.mechanism.deviations(INTERVAL) * agreement.noise * table.scale * math.sqrt(copies)
        found[column.name] = Margin(column, names, ticks, measured, expected, doubt, fit)
    return sorted(found.values(), key=lambda margin: -margin.fit.rms)


def _tables(agreements: Iterable[Agreement]) -> Iterator[tuple[Agreement, CountTable]]:
    for agreement in agreements:
        for table in agreement.block.map.count_tables:
            yield agreement, table


def _residuals(agreement: Agreement, table: CountTable) -> Floats:
    return agreement.fit.residuals[:, table.start : table.start + table.size]


def _values(column: Column, codes: Integers) -> tuple[str, ...]:
    """What codes of a number stand for, in a few characters."""
    decoded = decode_column(column, codes)
    if column.resolution is not None:
        return tuple(str(cell)[:10] for cell in decoded.cast(pa.timestamp("us")).to_pylist())
    return tuple(short(float(cell)) for cell in decoded.to_pylist())


def pairs_of(release: Release, agreements: Iterable[Agreement]) -> list[Fit]:
    """Every pair of columns that was counted, worst first."""
    layout = release.plan.layout
    residuals: dict[tuple[str, ...], list[Floats]] = {}
    for agreement, table in _tables(agreements):
        cells = [own for axis in table.axes if (own := axis.cells_in(layout)) is not None]
        if len(cells) == len(table.axes) == 2:
            pair = tuple(layout.schema.used[place].name for place in sorted(each.column for each in cells))
            residuals.setdefault(pair, []).append(_residuals(agreement, table).ravel())
    found = [Fit(pair, np.concatenate(parts), release.plan.mechanism) for pair, parts in residuals.items()]
    return sorted((fit for fit in found if fit.size), key=lambda fit: -fit.rms)
