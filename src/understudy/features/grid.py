"""One-way marginals as feature maps: the row count, one-hot categories, histograms of numbers, and hash buckets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.arrays import Integers
from understudy.features.base import MAP_KINDS, Array, CountTable, FeatureGroup, FeatureMap, OwnPlaces, Sign
from understudy.features.exact import exact_weights
from understudy.features.points import uniforms
from understudy.features.tables import Cells, Memberships, column_of
from understudy.schema import Column, Layout
from understudy.schema.columns import from_position, to_position

SPREAD = 64.0
"""Largest weight of a number, in turns over its range: a small change of one number sends a row to another bucket."""


@MAP_KINDS.register("buckets")
@dataclass(frozen=True)
class Buckets(FeatureMap):
    """One-hot of a hash: which of ``count`` batches a row is in, by the fractional part of a random sum of its numbers.

    The batch depends on the row alone. Were batches dealt out by the rows' order, one row more could move all others
    to other batches, and the sensitivity would be that of the whole table.
    """

    numbers: tuple[int, ...]
    count: int
    seed: int
    is_differentiable = False
    words = "rows in each batch"
    sign = Sign.NONNEGATIVE  # counts are never negative

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 2**16:
            raise ValueError("there are 1 to 65,536 batches")

    @property
    def dim(self) -> int:
        return self.count

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The rows of each batch."""
        return CountTable.in_turn([(OwnPlaces("buckets", self.count),)])

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """All numbers together decide on the batch."""
        return (FeatureGroup(tuple(layout.numbers[number] for number in self.numbers), np.arange(self.dim)),)

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """Weights of the numbers, rounded so that sums are exact.  # (numbers, 1)"""
        draws = uniforms(self.seed, len(self.numbers))[:, None]
        return exact_weights((2 * draws - 1) * SPREAD)

    def __call__(self, cells: Array) -> Array:
        """Memberships.  # (num_rows, count)"""
        xp = array_api_compat.array_namespace(cells)
        sums = xp.astype(cells[:, list(self.numbers)], xp.float64) @ xp.asarray(self.weights)
        batch = xp.floor((sums - xp.floor(sums)) * self.count)
        return xp.astype(batch == xp.arange(self.count, dtype=xp.float64), cells.dtype)


@dataclass(frozen=True)
class Bins:
    """The axis of a number cut into equal bins of its position."""

    number: int
    dim: int

    def cells_in(self, layout: Layout) -> Cells | None:
        """The codes in each bin; a null lies among the others, so nullable numbers tell nothing."""
        place, column = column_of(layout, layout.numbers[self.number])
        if column.nullable:
            return None
        found = _codes_in_bins(place, column, self.dim)
        return found if found.num_pieces == self.dim else None

    def edges_in(self, layout: Layout) -> tuple[str, Integers]:
        """The codes nearest to the bins' ends."""
        _, column = column_of(layout, layout.numbers[self.number])
        return column.name, from_position(column, np.arange(self.dim + 1) / self.dim)


def _codes_in_bins(place: int, column: Column, count: int) -> Cells:
    """The first code of each of equal bins of positions, by bisection; bins without a code have none."""
    low = np.zeros(count, dtype=np.int64)
    high = np.full(count, column.num_steps + 1)
    edges = np.arange(count) / count
    while (low < high).any():
        middle = (low + high) // 2
        reached = to_position(column, middle) >= edges
        high = np.where(reached, middle, high)
        low = np.where(reached | (low >= high), low, middle + 1)
    lows = np.unique(low[low <= column.num_steps])
    return Cells(place, column.num_steps + 1, is_ordered=True, lows=tuple(lows.tolist()))


@MAP_KINDS.register("one-hot")
@dataclass(frozen=True, slots=True)
class OneHot(FeatureMap):
    """One-hot encodings of several categorical columns, scaled by 1 / sqrt(columns) (DP-MERF, sec. 4.3).

    ``spans`` are the (start, stop) cells of each choice. Each membership vector is zero or
    one-hot, so k of them have norm at most sqrt(k), and the scaled vector at most 1.
    """

    spans: tuple[tuple[int, int], ...]
    is_linear = True
    words = "rows in each category"
    sign = Sign.NONNEGATIVE  # counts are never negative

    @property
    def dim(self) -> int:
        return sum(stop - start for start, stop in self.spans)

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The counts of each choice's values."""
        return CountTable.in_turn([(Memberships(span),) for span in self.spans])

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """The values of each choice."""
        return tuple(
            FeatureGroup((Memberships(span).choice_in(layout).column,), t.features, t.scale)
            for span, t in zip(self.spans, self.count_tables, strict=True)
        )

    def __call__(self, cells: Array) -> Array:
        """Scaled memberships.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        picked = xp.concat([cells[:, start:stop] for start, stop in self.spans], axis=1)
        return picked / math.sqrt(len(self.spans))


@MAP_KINDS.register("grid")
@dataclass(frozen=True, slots=True)
class Grid(FeatureMap):
    """Equal-width histograms of the numbers' positions, scaled like ``OneHot``.

    Bins are half-open, the last one closed. For torch the map is piecewise constant, so its
    gradient is zero: it is for reading distributions, not for training through.
    """

    numbers: tuple[int, ...]
    num_bins: int
    is_differentiable = False
    words = "rows in each bin"
    sign = Sign.NONNEGATIVE  # counts are never negative

    @property
    def dim(self) -> int:
        return len(self.numbers) * self.num_bins

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """A histogram of each number."""
        return CountTable.in_turn([(Bins(number, self.num_bins),) for number in self.numbers])

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """The bins of each number, in order."""
        return tuple(
            FeatureGroup((layout.numbers[number],), t.features, t.scale, num_ordered=self.num_bins)
            for number, t in zip(self.numbers, self.count_tables, strict=True)
        )

    def __call__(self, cells: Array) -> Array:
        """Scaled bin memberships.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        picked = xp.stack([cells[:, number] for number in self.numbers], axis=1)
        bins = xp.clip(xp.floor(picked * self.num_bins), 0, self.num_bins - 1)  # (num_rows, numbers)
        edges = xp.arange(self.num_bins, dtype=cells.dtype)
        members = xp.astype(bins[:, :, None] == edges[None, None, :], cells.dtype)
        flat = xp.reshape(members, (cells.shape[0], self.dim))
        return flat / math.sqrt(len(self.numbers))
