"""Groups that rows are told apart by: categories, numbers or runs of them, and null."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats
from understudy.features import Cells
from understudy.released.tables import cell_edges
from understudy.schema import Column
from understudy.schema.columns import EPOCH, Kind
from understudy.schema.scales import own_scale
from understudy.schema.values import MICROSECOND, CodeSet, number_values

# Functions of a column's codes over cells: what they are at least, in the middle and at most.
#
# A function that is the same for all codes of a cell is known there exactly; of any other only the
# range is. Ranges multiply, so that they carry over to tables of several columns.


@dataclass(frozen=True, eq=False)
class Ranged:
    """The least, middle and largest value of functions in each cell, all of one shape."""

    low: Floats
    middle: Floats
    high: Floats

    @property
    def is_exact(self) -> bool:
        """Whether every cell has one value only."""
        return bool(np.array_equal(self.low, self.high))

    def outer(self, other: Ranged) -> Ranged:
        """Products of every value here with every value there.  # (a,), (b,) -> (a, b)"""
        ends = [np.multiply.outer(mine, theirs) for mine in (self.low, self.high) for theirs in (other.low, other.high)]
        middle = np.multiply.outer(self.middle, other.middle)
        return Ranged(np.minimum.reduce(ends), middle, np.maximum.reduce(ends))

    def minus(self, factor: float, other: Ranged) -> Ranged:
        """This less a nonnegative multiple of another, cell by cell."""
        return Ranged(
            self.low - factor * other.high, self.middle - factor * other.middle, self.high - factor * other.low
        )

    def squared(self) -> Ranged:
        """Squares; in the middle of a cell those of values spread evenly over it."""
        ends = np.maximum(self.low**2, self.high**2)
        least = np.where((self.low < 0) & (self.high > 0), 0.0, np.minimum(self.low**2, self.high**2))
        return Ranged(least, self.middle**2 + (self.high - self.low) ** 2 / 12, ends)

    def within(self, members: Ranged) -> Ranged:
        """This where a membership holds, and 0 elsewhere."""
        some, every = members.high > 0, members.low > 0
        return Ranged(
            np.where(every, self.low, np.where(some, np.minimum(self.low, 0.0), 0.0)),
            self.middle * members.middle,
            np.where(every, self.high, np.where(some, np.maximum(self.high, 0.0), 0.0)),
        )


def membership(cells: Cells, codes: CodeSet, masses: Floats | None = None) -> Ranged:
    """Whether codes are in a set, for each cell with that of nulls; the middle is a part of it.

    ``masses`` are the rows in each of the cells' pieces, as far as they are known; without them
    codes are taken as equally frequent.
    """
    firsts, lasts = cells.first_codes, cells.last_codes
    inside = np.zeros(len(firsts), dtype=np.int64)
    for low, high in codes.ranges:
        inside += np.maximum(0, np.minimum(lasts, high) - np.maximum(firsts, low) + 1)
    widths = lasts - firsts + 1
    every, some = (each.astype(np.float64) for each in (inside == widths, inside > 0))
    pieces = Ranged(every, inside / widths, some)
    others = float(codes.has_null), float(codes.has_unlisted)
    return _by_cell(cells, pieces, widths if masses is None else masses, others)


def values(column: Column, cells: Cells, *, centre: float = 0.0, masses: Floats | None = None) -> Ranged:
    """A column's values, less ``centre``, in each cell; 0 for nulls."""
    scale = own_scale(column)
    ends = [scale.values(codes) - centre for codes in (cells.first_codes, cells.last_codes)]
    low, high = np.minimum(*ends).astype(np.float64), np.maximum(*ends).astype(np.float64)
    widths = cells.last_codes - cells.first_codes + 1
    pieces = Ranged(low, (low + high) / 2, high)
    return _by_cell(cells, pieces, widths if masses is None else masses, (0.0, 0.0))


def _by_cell(cells: Cells, pieces: Ranged, masses: npt.NDArray[np.generic], others: tuple[float, float]) -> Ranged:
    """Ranges of pieces made ranges of the cells that they lie in, and values of nulls and of unlisted ones."""
    if cells.groups:
        place, weight = cells.cell_of_piece, np.maximum(masses.astype(np.float64), 1e-9)
        low, high = np.full(cells.num_known, np.inf), np.full(cells.num_known, -np.inf)
        np.minimum.at(low, place, pieces.low)
        np.maximum.at(high, place, pieces.high)
        total = np.bincount(place, weights=weight, minlength=cells.num_known)
        middle = np.bincount(place, weights=weight * pieces.middle, minlength=cells.num_known)
        pieces = Ranged(low, np.clip(middle / np.where(total > 0, total, 1), low, high), high)
    exists = (cells.has_null, cells.has_unlisted)
    last = [value for value, is_there in zip(others, exists, strict=True) if is_there]
    return Ranged(*(np.append(each, last) for each in (pieces.low, pieces.middle, pieces.high)))


MOST_GROUPS = 20
"""Bars of a number unless a query says how many."""


@dataclass(frozen=True, slots=True)
class Group:
    """A set of codes with a name; ``middle`` is where it lies on a number's axis."""

    words: str
    codes: CodeSet
    middle: float | None = None


def groups_of(column: Column, cells: Cells, *, most: int | None = None) -> list[Group]:
    """The groups of a column; for a number runs of the given cells, at most ``most`` of them."""
    if column.is_choice:
        found = [Group(str(category), CodeSet(((code, code),))) for code, category in enumerate(column.categories)]
    else:
        found = _runs(column, cells, most or MOST_GROUPS)
    return [*found, Group("null", CodeSet((), has_null=True))] if column.nullable else found


def _runs(column: Column, cells: Cells, most: int) -> list[Group]:
    """Equal numbers of cells made one."""
    firsts = cell_edges(cells)
    firsts = firsts[:: -(-len(firsts) // most)]
    lasts = np.append(firsts[1:] - 1, cells.num_codes - 1)
    low, high = number_values(column, firsts), number_values(column, lasts)
    return [
        Group(
            _named(column, low[i], high[i], is_last=i == len(firsts) - 1),
            CodeSet(((int(firsts[i]), int(lasts[i])),)),
            (float(low[i]) + float(high[i])) / 2,
        )
        for i in range(len(firsts))
    ]


def _named(column: Column, low: float, high: float, *, is_last: bool) -> str:
    ends = [spoken(column, low), spoken(column, high)]
    if ends[0] == ends[1]:
        return ends[0]
    if column.kind is Kind.CONTINUOUS and not is_last:
        return f"{ends[0]} to below {ends[1]}"
    return f"{ends[0]} to {ends[1]}"


def spoken(column: Column, value: float) -> str:
    """A value of a number or a date in words."""
    if column.kind is Kind.DATETIME:
        moment = EPOCH + int(value) * MICROSECOND
        is_day = column.resolution is not None and column.resolution.value == "day"
        return moment.date().isoformat() if is_day else moment.isoformat()
    return str(int(value)) if column.is_whole else f"{value:.6g}"
