"""Columns with their public domains, what their codes stand for, and where they lie among the cells.

A row's *cells*, the matrix that feature maps and generators speak, are one position in [0, 1] per number, then one
membership vector per choice. On the private side memberships are 0 or 1; a generator puts probabilities there, and
because the features of a choice are linear in its membership, that gives expected features.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Codes
from understudy.errors import column_error

if TYPE_CHECKING:
    from understudy.schema.table import Schema

NULL = -1
"""The code of a cell that holds none of the column's values."""

UNLISTED = -2
"""The code of such a cell that is not blank, where that is told apart: a category that is not listed, or text that is
no number or date. It counts as null wherever it is not."""

CONTINUOUS_STEPS = 2**32
"""Steps between the bounds of a continuous column: its codes are fixed-point numbers of 32 bits."""

CODES_PER_DECIMAL = 256
"""The last decimal of a short number is worth so many codes, so that few other numbers are taken for one."""

BLANKS = " \t\n\v\f\r"
"""What is trimmed from both ends of a text cell and of a category."""

NULL_WORDS = r"na|n/a|n\.a|nan|nat|null|none|<na>|\\n"
"""What programs write for null in text, as alternatives of a regular expression; letters of any case."""

Category = str | int | float | bool


class Kind(StrEnum):
    """What a column measures."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    ORDINAL = "ordinal"
    CATEGORICAL = "categorical"
    BINARY = "binary"
    DATETIME = "datetime"
    ID = "id"


class Role(StrEnum):
    """What a column is for. Only features and labels are ever read."""

    FEATURE = "feature"
    LABEL = "label"
    SPLIT = "split"
    AUX = "aux"
    ID = "id"


class Resolution(StrEnum):
    """The step between neighbouring codes of a datetime column."""

    DAY = "day"
    SECOND = "second"

    @property
    def microseconds(self) -> int:
        """Length of one step."""
        return {"day": 86_400_000_000, "second": 1_000_000}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column and its public domain.

    Numbers (continuous, integer, ordinal, datetime) have inclusive ``bounds``; choices
    (categorical, binary, or an ordinal with names) have ``categories``. Every cell has an
    integer code: ``0..num_steps`` for numbers, the index of the category for choices, and
    ``NULL`` for a cell that holds no listed value.
    """

    name: str
    kind: Kind
    role: Role = Role.FEATURE
    bounds: tuple[float, float] | None = None
    categories: tuple[Category, ...] = ()
    nullable: bool = False
    bounds_from: str = "not stated"
    scale_hint: str | None = None
    unknown: Category | None = None
    resolution: Resolution | None = None
    description: str = ""
    members: tuple[Column, ...] = ()
    """The yes/no columns that it stands for, if it is a one-hot group."""

    @property
    def is_choice(self) -> bool:
        """Whether the column's values are names rather than positions on a line."""
        return bool(self.categories)

    @property
    def is_used(self) -> bool:
        """Whether the column is read and synthesised."""
        return self.kind is not Kind.ID and self.role in (Role.FEATURE, Role.LABEL)

    @property
    def is_whole(self) -> bool:
        """Whether the column's numbers are whole numbers."""
        return self.kind in (Kind.INTEGER, Kind.ORDINAL)

    @property
    def num_steps(self) -> int:
        """The largest code of a number; its codes are ``0..num_steps``."""
        low, high = self.low_high
        if low == high:
            return 0
        if self.kind is Kind.CONTINUOUS:
            return CONTINUOUS_STEPS
        if self.resolution is not None:
            return int((high - low) // self.resolution.microseconds)
        return int(high - low)

    @property
    def low_high(self) -> tuple[float, float]:
        """The bounds of a number; microseconds since 1970 for a datetime."""
        if self.bounds is None:
            raise column_error(self.name, "it has no bounds")
        return self.bounds

    @property
    def num_choices(self) -> int:
        """How many codes a choice has, its null code included."""
        return len(self.categories) + (1 if self.nullable else 0)

    @property
    def unlisted_code(self) -> int:
        """The code of a category that the schema does not list."""
        return NULL if self.unknown is None else self.categories.index(self.unknown)

    def to_dict(self) -> dict[str, Any]:
        """The column as the YAML file has it."""
        entry: dict[str, Any] = {"name": self.name, "kind": self.kind.value, "role": self.role.value}
        if self.categories:
            entry["categories"] = list(self.categories)
        elif self.bounds is not None:
            entry["bounds"] = [self.written(bound) for bound in self.bounds]
        if self.resolution is not None:
            entry["resolution"] = self.resolution.value
        if self.kind is not Kind.ID:
            entry |= {"nullable": self.nullable, "bounds_from": self.bounds_from}
        others = {key: getattr(self, key) for key in ("scale_hint", "unknown", "description")}
        return entry | {key: value for key, value in others.items() if value not in (None, "")}

    def written(self, value: float) -> int | float | str:
        """A value of a number as the YAML file has it; that of a datetime as an ISO date or time."""
        if self.kind is Kind.DATETIME:
            moment = EPOCH + dt.timedelta(microseconds=int(value))
            return (moment.date() if self.resolution is Resolution.DAY else moment).isoformat()
        return int(value) if self.is_whole else float(value)


EPOCH = dt.datetime(1970, 1, 1)  # naive on purpose: zones are turned into UTC first


def number_values(column: Column, codes: Codes) -> npt.NDArray[Any]:
    """What the codes of a number stand for: float64, or int64 if whole; moments in microseconds.

    The decoder writes these very values, so what holds of them holds of the rows.
    """
    low, high = column.low_high
    if column.kind is Kind.CONTINUOUS:
        share = codes / (column.num_steps or 1)
        return _short_decimals(column, codes, low * (1.0 - share) + high * share)
    if column.resolution is not None:
        return int(low) + codes * column.resolution.microseconds
    return codes + int(low)


def _short_decimals(column: Column, codes: Codes, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Values of codes; a decimal with few digits that has the same code instead, 0.7 and not 0.70000000012."""
    low, high = column.low_high
    codes_per_unit = column.num_steps / (high - low) if high > low else math.inf
    if not math.isfinite(codes_per_unit):
        return values
    short = np.round(values, math.floor(math.log10(codes_per_unit / CODES_PER_DECIMAL)))
    is_same = (np.rint((short - low) / (high - low) * column.num_steps) == codes) & (short >= low) & (short <= high)
    return np.where(is_same, short, values)


def spoken(column: Column, value: float) -> str:
    """A value of a number or a date in words."""
    written = column.written(value)
    return f"{written:.6g}" if isinstance(written, float) else str(written)


POSITION_BITS = 16
"""Positions lie on multiples of 2^-16, so that phases are exact (see proofs/lattice.md)."""

Cells = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A run of cells that holds one membership vector.

    ``flags_null`` marks the two-way choice (present, null) that goes with a nullable number.
    """

    column: str
    start: int
    width: int
    flags_null: bool = False

    @property
    def stop(self) -> int:
        """One past the last cell."""
        return self.start + self.width


@dataclass(frozen=True)
class Layout:
    """Where each used column of a schema lies among the cells."""

    schema: Schema

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers; the i-th has cell i."""
        return tuple(column.name for column in self.schema.used if not column.is_choice)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """The membership vectors, in the schema's order."""
        start, found = len(self.numbers), []
        for column in self.schema.used:
            width = column.num_choices if column.is_choice else 2 if column.nullable else 0
            if width:
                found.append(Choice(column.name, start, width, flags_null=not column.is_choice))
                start += width
        return tuple(found)

    def column_at(self, cell: int) -> str:
        """The name of the column that a cell belongs to."""
        if cell < len(self.numbers):
            return self.numbers[cell]
        return next(choice.column for choice in self.choices if choice.start <= cell < choice.stop)

    @cached_property
    def width(self) -> int:
        """Number of cells per row."""
        return self.choices[-1].stop if self.choices else len(self.numbers)

    def expand(self, codes: npt.NDArray[np.int64]) -> Cells:
        """Codes to cells.  # (num_rows, num_used) -> (num_rows, width)

        Guarantee:
            A row's cells depend on its codes alone; positions are multiples of 2^-16 in
            [0, 1]; a membership vector is zero or one-hot (proofs/lattice.md).
        """
        cells = np.zeros((len(codes), self.width))
        rows = np.arange(len(codes))
        number_cell = {name: i for i, name in enumerate(self.numbers)}
        choice_of = {choice.column: choice for choice in self.choices}
        for i, column in enumerate(self.schema.used):
            code = codes[:, i]
            if column.name in number_cell:
                cells[:, number_cell[column.name]] = to_position(column, code)
            choice = choice_of.get(column.name)
            if choice is None:
                continue
            slot = (code < 0).astype(np.int64) if choice.flags_null else code
            slot = np.where(slot < 0, len(column.categories), slot)  # the null slot, if any
            listed = slot < choice.width
            cells[rows[listed], choice.start + slot[listed]] = 1.0
        return cells

    def collapse(self, cells: Cells, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Cells with probabilities to codes: positions are rounded, choices are drawn."""
        codes = np.empty((len(cells), len(self.schema.used)), dtype=np.int64)
        drawn = {choice.column: _draw(cells[:, choice.start : choice.stop], rng) for choice in self.choices}
        number_cell = {name: i for i, name in enumerate(self.numbers)}
        for i, column in enumerate(self.schema.used):
            if column.is_choice:
                slot = drawn[column.name]
                codes[:, i] = np.where(slot == len(column.categories), NULL, slot)
                continue
            codes[:, i] = from_position(column, cells[:, number_cell[column.name]])
            if column.nullable:
                codes[drawn[column.name] == 1, i] = NULL
        return codes


def to_position(column: Column, codes: npt.NDArray[np.int64]) -> Cells:
    """Codes of a number to positions; a null lies in the middle."""
    missing = codes < 0
    share: Cells = codes / (column.num_steps or 1)
    if column.scale_hint == "log1p":
        share[missing] = 0.0
        share = np.log1p(share * _span(column)) / np.log1p(_span(column))
    share[missing] = 0.5
    share *= 2**POSITION_BITS
    np.rint(share, out=share)
    share /= 2**POSITION_BITS
    return share


def from_position(column: Column, positions: Cells) -> npt.NDArray[np.int64]:
    """Positions to the nearest codes."""
    share = np.clip(positions, 0.0, 1.0)
    if column.scale_hint == "log1p":
        share = np.expm1(share * np.log1p(_span(column))) / _span(column)
    return np.clip(np.rint(share * column.num_steps), 0, column.num_steps).astype(np.int64)


def _span(column: Column) -> float:
    low, high = column.low_high
    return (high - low) or 1.0


def _draw(probabilities: Cells, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    cumulative = np.cumsum(probabilities, axis=1)
    uniforms = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
    slots: npt.NDArray[np.int64] = np.minimum((cumulative <= uniforms).sum(axis=1), probabilities.shape[1] - 1)
    return slots
