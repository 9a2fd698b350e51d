"""One column: its kind, its public domain, and how many codes that domain has."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from understudy.errors import column_error

NULL = -1
"""The code of a cell that holds none of the column's values."""

UNLISTED = -2
"""The code of such a cell that is not blank, where that is told apart: a category that is not listed, or text that is
no number or date. It counts as null wherever it is not."""

CONTINUOUS_STEPS = 2**32
"""Steps between the bounds of a continuous column: its codes are fixed-point numbers of 32 bits."""

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
        for key in ("scale_hint", "unknown"):
            if getattr(self, key) is not None:
                entry[key] = getattr(self, key)
        if self.description:
            entry["description"] = self.description
        return entry

    def written(self, value: float) -> int | float | str:
        """A value of a number as the YAML file has it; that of a datetime as an ISO date or time."""
        if self.kind is Kind.DATETIME:
            moment = EPOCH + dt.timedelta(microseconds=value)
            return (moment.date() if self.resolution is Resolution.DAY else moment).isoformat()
        return int(value) if self.is_whole else float(value)


EPOCH = dt.datetime(1970, 1, 1)  # naive on purpose: zones are turned into UTC first
