"""Scales: what the codes of two columns must become so that their values can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Codes
from understudy.schema.columns import Category, Column, Kind, number_values
from understudy.schema.values import CodeSet, category_key, code_set, every_code, first_code, measure

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
        return np.asarray(_COMPARE[self](left, right), dtype=np.bool_)

    @property
    def is_order(self) -> bool:
        """Whether it asks which of two values is larger."""
        return self not in (Operator.EQUAL, Operator.UNEQUAL)

    @property
    def mirrored(self) -> Operator:
        """The operator that says the same with its sides swapped."""
        return Operator(self.translate({ord("<"): ">", ord(">"): "<"}))


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}


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
        # What holds of -1, 0 and 1 against 0 holds of the codes below, at and above a value.
        pieces = [(-1, start, reached), (0, reached, passed), (1, passed, start + past)]
        return [(first, end - 1) for side, first, end in pieces if _COMPARE[op](side, 0)]

    def subset(self, op: Operator, constant: Category) -> CodeSet:
        """Codes of the column that stand in ``op`` to a spelt value, and null."""
        is_place = self.table is not None and family_of(self.column) is not Family.NUMBER
        value = self.column.categories.index(constant) if is_place else measure(self.column, constant)
        ranges = [(first[0], last[0]) for first, last in self.matching(op, np.asarray([value]))]
        return code_set(ranges, has_null=self.column.nullable) & every_code(self.column)


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
    places: dict[tuple[str, str | float], int] = {}
    for category in left.categories + right.categories:
        places.setdefault(category_key(category), len(places))
    return (
        Scale(left, np.asarray([places[category_key(c)] for c in left.categories])),
        Scale(right, np.asarray([places[category_key(c)] for c in right.categories])),
    )
