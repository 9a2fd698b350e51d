"""Scales: what the codes of two columns must become so that their values can be compared."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Codes
from understudy.schema.columns import Category, Column, Kind, number_values
from understudy.schema.entries import category_key
from understudy.schema.values import CodeSet, code_set, every_code, first_code

Values = npt.NDArray[Any]


class Operator(StrEnum):
    """How two values are compared."""

    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    EQUAL = "=="
    UNEQUAL = "!="

    def __call__(self, left: Values, right: Values) -> npt.NDArray[np.bool_]:
        """Whether each left value stands so to its right value."""
        found: npt.NDArray[np.bool_] = np.asarray(_COMPARE[self](left, right))
        return found

    @property
    def is_order(self) -> bool:
        """Whether it asks which of two values is larger."""
        return self not in (Operator.EQUAL, Operator.UNEQUAL)

    @property
    def mirrored(self) -> Operator:
        """The operator that says the same with its sides swapped."""
        return _MIRRORED.get(self, self)


_COMPARE: Mapping[Operator, Callable[[Any, Any], Any]] = {
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.MORE: operator.gt,
    Operator.AT_LEAST: operator.ge,
    Operator.EQUAL: operator.eq,
    Operator.UNEQUAL: operator.ne,
}
_MIRRORED: Mapping[Operator, Operator] = {
    Operator.LESS: Operator.MORE,
    Operator.MORE: Operator.LESS,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.AT_LEAST: Operator.AT_MOST,
}


class Family(StrEnum):
    """Columns of one family can be compared."""

    NUMBER = "numbers"
    MOMENT = "dates"
    RANK = "ranks"
    NAME = "names"


def family_of(column: Column) -> Family:
    """Numbers, and categories that are numbers; dates; categories in order; other categories."""
    if column.kind is Kind.DATETIME:
        return Family.MOMENT
    if not column.is_choice or category_key(column.categories[0])[0] == "number":
        return Family.NUMBER
    return Family.RANK if column.kind is Kind.ORDINAL else Family.NAME


@dataclass(frozen=True)
class Scale:
    """A column's codes as values; ``table`` has a value per category of a choice."""

    column: Column
    table: Values | None = None

    def values(self, codes: Codes) -> Values:
        """The value of each code; that of a null means nothing."""
        return number_values(self.column, codes) if self.table is None else self.table[codes]

    def matching(self, op: Operator, values: Values) -> list[tuple[Codes, Codes]]:
        """Ranges of codes that stand in ``op`` to each value: arrays of first and last codes."""
        if self.table is not None:
            fits = op(self.table[:, None], values)  # (categories, values)
            return [(np.full(len(values), code), np.where(row, code, code - 1)) for code, row in enumerate(fits)]
        start, past = np.zeros(values.shape, dtype=np.int64), self.column.num_steps + 1
        reached = first_code(self.column, values, above=False)
        passed = first_code(self.column, values, above=True)
        pieces = {
            Operator.LESS: [(start, reached)],
            Operator.AT_MOST: [(start, passed)],
            Operator.MORE: [(passed, start + past)],
            Operator.AT_LEAST: [(reached, start + past)],
            Operator.EQUAL: [(reached, passed)],
            Operator.UNEQUAL: [(start, reached), (passed, start + past)],
        }[op]
        return [(first, end - 1) for first, end in pieces]

    def subset(self, op: Operator, value: int | float) -> CodeSet:
        """Codes of the column that stand in ``op`` to a value, and null."""
        ranges = self.matching(op, np.asarray([value]))
        found = code_set((first[0], last[0]) for first, last in ranges)
        return CodeSet(found.ranges, has_null=self.column.nullable) & every_code(self.column)


def own_scale(column: Column) -> Scale:
    """The scale on which a column is compared with constants: names by their place in the list."""
    if not column.is_choice:
        return Scale(column)
    if family_of(column) is Family.NUMBER:
        return Scale(column, np.asarray(column.categories, dtype=np.float64))
    return Scale(column, np.arange(len(column.categories)))


def can_compare(left: Column, right: Column, op: Operator) -> bool:
    """Whether a comparison of two columns means anything; names have no order of their own."""
    families = {family_of(left), family_of(right)}
    if families & {Family.NUMBER, Family.MOMENT}:
        return len(families) == 1
    if op.is_order:
        return families == {Family.RANK} and left.categories == right.categories
    return category_key(left.categories[0])[0] == category_key(right.categories[0])[0]


def common_scales(left: Column, right: Column) -> tuple[Scale, Scale]:
    """The scales on which two columns are compared; equal names get equal values."""
    if can_compare(left, right, Operator.LESS):
        return own_scale(left), own_scale(right)
    places: dict[tuple[str, Category], int] = {}
    for category in left.categories + right.categories:
        places.setdefault(category_key(category), len(places))
    return (
        Scale(left, np.asarray([places[category_key(c)] for c in left.categories])),
        Scale(right, np.asarray([places[category_key(c)] for c in right.categories])),
    )
