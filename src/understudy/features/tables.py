"""Marginals (contingency tables) as a feature map: columns cut into public bins, and counts over sets of columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import array_api_compat
import numpy as np

from understudy.arrays import Floats, Integers
from understudy.codec import OMIT_DEFAULT
from understudy.features.base import MAP_KINDS, Array, CountTable, FeatureGroup, FeatureMap, Norm, Sign
from understudy.schema import Column, Layout, Schema
from understudy.schema.columns import CODES_PER_DECIMAL, CONTINUOUS_STEPS, NULL, UNLISTED, Choice, from_position

MOST_LISTED = 2**17
"""Up to so many codes (1 MiB of int64) a lookup table is faster than a binary search for each row."""


MOST_STEP = 2.0**66
"""Codes that a step or its origin may be of: twice the longest column and its origin."""

MOST_STEPS = 64
"""Steps that a column is told apart by: each is a pass over the rows."""


@dataclass(frozen=True)
class Cells:
    """A column's codes 0 .. ``num_codes`` - 1 cut into cells.

    Pieces are runs of codes that begin at ``lows`` (none given: every code is a piece), and
    ``groups`` says in which cell each piece lies (none given: every piece is a cell). Nulls have
    the next cell if ``has_null``; unlisted values, and nulls that have no cell, have the last one if
    ``has_unlisted``, and are in no cell otherwise. ``is_ordered`` says whether neighbouring codes are
    alike, as numbers are and categories are not.

    With ``steps``, cells are not runs: a code is in the cell of the first step that it is a multiple of, counted from
    ``origin``, and in one more if of none. Steps and origin are in codes, and need not be whole: multiples are rounded.
    """

    column: int
    num_codes: int
    has_null: bool = False
    is_ordered: bool = False
    lows: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    has_unlisted: bool = field(default=False, metadata=OMIT_DEFAULT)
    steps: tuple[float, ...] = field(default=(), metadata=OMIT_DEFAULT)
    origin: float = field(default=0.0, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        """Every code has a cell: a plan from elsewhere must not fail on the rows that hold some code."""
        lows, groups = (np.asarray(self.lows, dtype=np.int64), np.asarray(self.groups, dtype=np.int64))
        runs = not self.lows or (lows[0] == 0 and (np.diff(lows) > 0).all() and lows[-1] < self.num_codes)
        if self.num_codes < 1 or self.column < 0 or not runs:
            raise ValueError("pieces begin at 0, and each at a higher code than the one before")
        cells = np.arange(groups.max(initial=-1) + 1)
        if self.groups and (len(groups) != self.num_pieces or not np.array_equal(np.unique(groups), cells)):
            raise ValueError("every piece has a cell, and every cell a piece")
        if not all(abs(number) < MOST_STEP for number in (self.origin, *self.steps)):  # not a number is refused too
            raise ValueError("steps and their origin are codes")
        if self.steps and (self.lows != (0,) or min(self.steps) < 1 or len(self.steps) > MOST_STEPS):
            raise ValueError("steps are of one code or more, and cut one piece")

    @cached_property
    def num_pieces(self) -> int:
        """Runs of codes."""
        return len(self.lows) or self.num_codes

    @cached_property
    def num_known(self) -> int:
        """Cells of codes that are not null."""
        if self.steps:
            return len(self.steps) + 1
        return max(self.groups) + 1 if self.groups else self.num_pieces

    @cached_property
    def dim(self) -> int:
        """Cells, with those of nulls and of unlisted values."""
        return self.num_known + self.has_null + self.has_unlisted

    @cached_property
    def first_codes(self) -> Integers:
        """The first code of each piece."""
        return np.asarray(self.lows, dtype=np.int64) if self.lows else np.arange(self.num_codes)

    @cached_property
    def last_codes(self) -> Integers:
        """The last code of each piece."""
        return np.append(self.first_codes[1:] - 1, self.num_codes - 1)

    @cached_property
    def cell_of_piece(self) -> Integers:
        """The cell that each piece lies in."""
        return np.asarray(self.groups or range(self.num_pieces), dtype=np.int64)

    @property
    def are_runs(self) -> bool:
        """Whether each cell of a number is one run of codes, which ranges and quantiles can be told from."""
        return not self.is_ordered or bool((np.diff(self.cell_of_piece) >= 0).all())

    def __call__(self, codes: Integers) -> Integers:
        """The cell of each code; ``dim`` if it is in none.  # (num_rows,) -> (num_rows,)"""
        known = np.clip(codes, 0, self.num_codes - 1)
        if self.steps:
            found = self._stepped(known)
        else:
            found = self.listed[known] if self.num_codes <= MOST_LISTED else self._searched(known)
        found[codes == NULL] = self.num_known
        found[codes == UNLISTED] = self.num_known + self.has_null
        return found

    @cached_property
    def listed(self) -> Integers:
        """The cell of every code."""
        return self._searched(np.arange(self.num_codes))

    def cells_in(self, layout: Layout) -> Cells | None:
        """As the axis of a table: itself, unless cells are no runs of codes in any order."""
        return None if self.steps else self

    def edges_in(self, layout: Layout) -> tuple[str, Integers] | None:
        """The first code of every run, and the last code of all; nothing for groups of runs."""
        column = layout.schema.used[self.column]
        if self.groups or self.steps:
            return None
        no_edges = np.zeros(0, dtype=np.int64)
        return column.name, no_edges if column.is_choice else np.append(self.first_codes, self.num_codes - 1)

    def _stepped(self, codes: Integers) -> Integers:
        found = np.full(len(codes), len(self.steps), dtype=np.int64)
        for cell, step in reversed(list(enumerate(self.steps))):
            multiple = np.rint(np.rint((codes - self.origin) / step) * step + self.origin)
            found[multiple == codes] = cell
        return found

    def _searched(self, codes: Integers) -> Integers:
        pieces = np.searchsorted(self.first_codes, codes, side="right") - 1 if self.lows else codes
        return self.cell_of_piece[pieces] if self.groups else pieces


@MAP_KINDS.register("tables")
@dataclass(frozen=True)
class Tables(FeatureMap):
    """For each subset of columns, their marginal over cells (one-hot features); every table has the same weight.

    A row is in at most one cell of a table, and in exactly one if ``with_unlisted``: every column then
    has one cell more, the last, for rows that are in none of its cells (a category that the schema does
    not list, text where a number should be, a blank where none is allowed for). Totals are then the same
    in all tables. With T tables a membership is worth 1 / sqrt(T), so that no row has a norm above 1.
    Features run through the tables in order; within one, the last column varies fastest. It reads
    codes, not cells of a layout: a table of 100,000 cells costs a row no more than one of two.
    """

    factors: tuple[Cells, ...]
    subsets: tuple[tuple[int, ...], ...]
    with_unlisted: bool = field(default=False, metadata=OMIT_DEFAULT)
    reads_codes = True
    is_differentiable = False
    row_width = 0  # no row's features are formed: cells are counted
    words = "rows in each cell of the tables"
    sign = Sign.NONNEGATIVE  # counts are never negative

    def __post_init__(self) -> None:
        if not self.subsets or not all(self.subsets):
            raise ValueError("there is a table, and it has a column")
        if not all(0 <= j < len(self.factors) for subset in self.subsets for j in subset):
            raise ValueError("a table is over columns that there are")
        if any(cells.has_unlisted for cells in self.factors):
            raise ValueError("whether unlisted values are counted is said of all tables")

    @cached_property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The tables, with the cell of unlisted values if there is one."""
        axes = [replace(cells, has_unlisted=self.with_unlisted) for cells in self.factors]
        return CountTable.in_turn([tuple(axes[j] for j in subset) for subset in self.subsets])

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """The cells of each table."""
        used = layout.schema.used
        return tuple(
            FeatureGroup(
                tuple(dict.fromkeys(used[self.factors[j].column].name for j in subset)), table.features, table.scale
            )
            for subset, table in zip(self.subsets, self.count_tables, strict=True)
        )

    def fits(self, layout: Layout) -> bool:
        """Whether cells are of columns that the schema has, and of all their codes."""
        sizes = [len(c.categories) if c.is_choice else c.num_steps + 1 for c in layout.schema.used]
        return all(cells.column < len(sizes) and cells.num_codes == sizes[cells.column] for cells in self.factors)

    def sums(self, codes: Integers, cells: Floats, slots: Integers, copies: int) -> Floats:
        """Counts over the root of the number of tables."""
        return np.asarray(self.counts(codes, slots, copies + 1)[:copies] / math.sqrt(len(self.subsets)))

    def inner_products(self, codes: Integers, cells: Floats, *, sums: Floats, copy: Integers) -> tuple[Floats, Floats]:
        """Features are too many to be formed: rows in the same cell of a table have a product."""
        products, own = np.zeros((len(codes), len(codes))), np.zeros(len(codes))
        for subset, table in zip(self.subsets, self.count_tables, strict=True):
            place, inside = np.zeros(len(codes), dtype=np.int64), np.ones(len(codes), dtype=bool)
            for j, width in zip(subset, table.shape, strict=True):
                cell = self.factors[j](codes[:, self.factors[j].column])
                place, inside = place * width + np.minimum(cell, width - 1), inside & (cell < width)
            products += (place[:, None] == place[None, :]) & inside[:, None] & inside[None, :]
            own += np.where(inside, sums[copy, table.start + place], 0.0)
        return products / len(self.subsets), own / math.sqrt(len(self.subsets))

    @cached_property
    def dim(self) -> int:
        """Cells of all tables."""
        return sum(table.size for table in self.count_tables)

    def counts(self, codes: Integers, copies: Integers, num_copies: int) -> Integers:
        """Rows in each cell, for each copy that rows belong to.

        # (num_rows, num_used), (num_rows,) -> (num_copies, dim)
        """
        if not self.with_unlisted:
            codes = np.where(codes == UNLISTED, NULL, codes)
        used = sorted({j for subset in self.subsets for j in subset})
        places = {j: self.factors[j](codes[:, self.factors[j].column]) for j in used}
        found = []
        for subset, table in zip(self.subsets, self.count_tables, strict=True):
            # One cell more along every column takes the rows that are in none, and is left out.
            place, size = copies, num_copies
            for j, width in zip(subset, table.shape, strict=True):
                place, size = place * (width + 1) + places[j], size * (width + 1)
            full = np.bincount(place, minlength=size).reshape(num_copies, *(w + 1 for w in table.shape))
            inside = full[(slice(None), *(slice(width) for width in table.shape))]
            found.append(inside.reshape(num_copies, table.size))
        return np.concatenate(found, axis=1)

    def __call__(self, cells: Array) -> Array:
        """Features of each row, given its codes.  # (num_rows, num_used) -> (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        whole = np.asarray(cells).astype(np.int64)
        members = self.counts(whole, np.arange(len(whole)), len(whole))
        return xp.asarray(members / math.sqrt(len(self.subsets)))


@dataclass(frozen=True)
class Memberships:
    """The axis of a choice: a category, null, or for a number with a null flag, there or not."""

    span: tuple[int, int]

    @property
    def dim(self) -> int:
        """Cells of the choice."""
        return self.span[1] - self.span[0]

    def choice_in(self, layout: Layout) -> Choice:
        """The choice that has these cells."""
        return next(choice for choice in layout.choices if (choice.start, choice.stop) == self.span)

    def cells_in(self, layout: Layout) -> Cells:
        """Every category by itself."""
        choice = self.choice_in(layout)
        place, column = column_of(layout, choice.column)
        if choice.flags_null:
            return Cells(place, column.num_steps + 1, True, is_ordered=True, lows=(0,))
        return Cells(place, len(column.categories), choice.width > len(column.categories))

    def edges_in(self, layout: Layout) -> tuple[str, Integers] | None:
        """Categories have no edges; whether a number is null is no scale."""
        choice = self.choice_in(layout)
        return None if choice.flags_null else (choice.column, np.zeros(0, dtype=np.int64))


def column_of(layout: Layout, name: str) -> tuple[int, Column]:
    """The place of a column among the schema's, and the column."""
    return next((i, column) for i, column in enumerate(layout.schema.used) if column.name == name)


HISTOGRAM_BARS = 256
"""Bars of a column's histogram at most; a power of two, so that bars can be halved."""

FEWEST_BARS = 8  # fewer would not show where rows lie, whatever the noise

MOST_BARS = 2**17
"""Bars of the histograms of all columns together."""

LONGEST_VALUES = 2**17
"""Codes of a column that is counted code by code."""

MOST_VALUES = 2**17
"""Codes of all columns that are."""

LONG_BARS = 4096
"""Bars of the finer histogram of a column with too many codes to count one by one."""

ROWS_PER_BAR = 1.0
"""A histogram has as many bars as leave so many deviations of noise in rows to each on average: bars that nothing
stands out of are joined."""

MOST_DIGITS = 12
"""Steps 1, 2.5 and 5 times a power of ten are told apart over so many powers."""

ROWS_PER_VALUE = 20.0
"""Values are counted one by one if a value with a 20th of the rows stands out."""


def first_bars(schema: Schema, noise: float) -> tuple[Cells, ...]:
    """Equal bars for every column, without a look at the data; ``noise`` is that of a bar, as a share of the rows."""
    long = sum(not c.is_choice and c.num_steps >= HISTOGRAM_BARS for c in schema.used)
    most = min(bars_carried(noise), MOST_BARS // max(1, long))
    return tuple(_bars(i, column, most) for i, column in enumerate(schema.used))


def bars_carried(noise: float) -> int:
    """Bars, a power of two, that a histogram may have, given the noise on the share of rows in a bar."""
    most = min(HISTOGRAM_BARS, max(FEWEST_BARS, int(1 / max(ROWS_PER_BAR * noise, 1e-9))))
    return 1 << (most.bit_length() - 1)


def coarser_bars(bars: Cells, most: int) -> Cells:
    """The same column in about ``most`` bars at most, and one for each bound as before."""
    step = -(-bars.num_pieces // most)
    if step == 1 or bars.num_pieces <= most + 2:
        return bars
    starts = bars.first_codes[bars.first_codes != 1][::step] if bars.lows else bars.first_codes[::step]
    return replace(bars, lows=tuple(np.unique([*starts, 1, bars.num_codes - 1]).tolist()))


def _bars(place: int, column: Column, count: int) -> Cells:
    if column.is_choice:
        return Cells(place, len(column.categories), column.nullable)
    whole = Cells(place, column.num_steps + 1, column.nullable, is_ordered=True)
    if column.num_steps < count:
        return whole
    edges = from_position(column, np.arange(count) / count)
    return replace(whole, lows=tuple(np.unique([*edges, 1, column.num_steps]).tolist()))


def fine_bars(
    schema: Schema, cuts: tuple[Cells, ...], noise: float, *, norm: Norm, tail: Callable[[float], float]
) -> tuple[Cells, ...]:
    """Finer histograms of long columns: code by code if they are not too long, in schema order.

    ``tail`` turns deviations of a normal distribution into those of the noise with the same tail probability.
    """
    found: list[Cells] = []
    room = MOST_VALUES
    for cut, column in zip(cuts, schema.used, strict=True):
        if cut.num_codes == cut.num_known:
            continue
        exact = cut.num_codes <= LONGEST_VALUES
        fine = _bars(cut.column, column, cut.num_codes if exact else LONG_BARS)
        if fine.dim > room:
            fine = _bars(cut.column, column, LONG_BARS)
        if fine.num_known <= room:
            found.append(replace(fine, has_null=False))
            room -= fine.num_known
    found += [steps for fine in found if (steps := round_steps(fine.column, schema.used[fine.column]))]
    return tuple(found) if values_stand_out(found, noise * norm.dilution(len(found)), tail=tail) else ()


def values_stand_out(bars: Sequence[Cells], noise: float, *, tail: Callable[[float], float]) -> bool:
    """Whether a value with a 20th of the rows stands out of these finer histograms, given a bar's noise as a share."""
    longest = max((fine.num_known for fine in bars), default=2)
    return noise * tail(math.sqrt(2 * math.log(longest))) * ROWS_PER_VALUE <= 1


def round_steps(place: int, column: Column) -> Cells | None:
    """A number by how round it is: 0 itself, then multiples of 1, 2.5 and 5 times powers of ten, the largest first.

    Values heap on round numbers (incomes on thousands) and have few decimals; one small table tells which.
    """
    low, high = column.low_high
    codes_per_unit = column.num_steps / (high - low) if high > low else math.inf
    if column.resolution is not None or not abs(codes_per_unit * low) < MOST_STEP / 4:
        return None
    largest = math.floor(math.log10(high - low))
    sizes = [float(f"{digits}e{largest - k}") for k in range(MOST_DIGITS) for digits in (5, 2.5, 1)]
    least = 1.0 if column.num_steps < CONTINUOUS_STEPS else CODES_PER_DECIMAL
    steps = [size * codes_per_unit for size in sizes if size <= high - low and size * codes_per_unit >= least]
    if column.num_steps < CONTINUOUS_STEPS:
        steps = [step for step in steps if step == round(step)]
    whole = 2.0 * (column.num_steps + 1 + abs(low * codes_per_unit))  # only 0 is a multiple of it
    return Cells(
        place, column.num_steps + 1, is_ordered=True, lows=(0,), steps=(whole, *steps), origin=-low * codes_per_unit
    )


def planned_cells(cells: Cells, count: int) -> Cells:
    """A stand-in for cells that are not placed yet: about as many as there may be."""
    count = min(cells.num_known, count)
    groups = np.arange(cells.num_pieces) * count // cells.num_pieces
    return replace(cells, groups=tuple(groups.tolist()))
