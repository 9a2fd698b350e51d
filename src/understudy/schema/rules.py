"""Rules that every row obeys: comparisons, and combinations of values that never occur together.

A rule is public, like the rest of a schema: it must not come from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.arrays import Codes, Truths
from understudy.schema.codesets import CodeSet, code_set, every_code
from understudy.schema.columns import NULL, Category, Column
from understudy.schema.scales import Family, Operator, Scale, common_scales, family_of, own_scale
from understudy.schema.values import Range, Value, codes_of, measure

if TYPE_CHECKING:
    from understudy.schema.table import Schema

Columns = Sequence[Column]


@dataclass(frozen=True, slots=True)
class Limit:
    """A column against a constant, such as ``age >= 18``. A null obeys it."""

    column: str
    operator: Operator
    constant: Category

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (self.column,)

    def holds(self, used: Columns, codes: Codes) -> Truths:
        """Which rows obey it.  # (num_rows, num_used) -> (num_rows,)"""
        place = place_of(used, self.column)
        cells, scale = codes[:, place], own_scale(used[place])
        constant = np.asarray(_on_scale(scale.column, self.constant))
        is_so = self.operator(scale.values(cells), constant)
        found: Truths = is_so | (cells == NULL)
        return found

    def allowed(self, column: Column) -> CodeSet:
        """The codes of its column that obey it."""
        return own_scale(column).subset(self.operator, _on_scale(column, self.constant))

    def to_dict(self) -> str:
        """The rule as the YAML file has it."""
        return f"{_name(self.column)} {self.operator} {_constant(self.constant)}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two columns of the same row, such as ``admitted <= discharged``. A null obeys it."""

    left: str
    operator: Operator
    right: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (self.left, self.right)

    def scales(self, used: Columns) -> tuple[Scale, Scale]:
        """What the codes of both columns must become to be compared."""
        return common_scales(used[place_of(used, self.left)], used[place_of(used, self.right)])

    def holds(self, used: Columns, codes: Codes) -> Truths:
        """Which rows obey it.  # (num_rows, num_used) -> (num_rows,)"""
        left, right = (codes[:, place_of(used, name)] for name in self.columns)
        scales = self.scales(used)
        is_so = self.operator(scales[0].values(left), scales[1].values(right))
        found: Truths = is_so | (left == NULL) | (right == NULL)
        return found

    def to_dict(self) -> str:
        """The rule as the YAML file has it."""
        return f"{_name(self.left)} {self.operator} {_name(self.right)}"


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Values of several columns that must not occur together in a row."""

    cells: tuple[tuple[str, tuple[Value, ...]], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return tuple(name for name, _ in self.cells)

    def forbidden(self, column: Column) -> CodeSet:
        """The codes of one of its columns that take part in the combination."""
        found = [codes_of(column, value) for value in dict(self.cells)[column.name]]
        ranges = [each for part in found for each in part.ranges]
        return code_set(ranges, has_null=any(part.has_null for part in found))

    def holds(self, used: Columns, codes: Codes) -> Truths:
        """Which rows obey it.  # (num_rows, num_used) -> (num_rows,)"""
        found = np.ones(len(codes), dtype=bool)
        for name in self.columns:
            place = place_of(used, name)
            found &= self.forbidden(used[place]).contains(codes[:, place])
        return ~found

    def to_dict(self) -> dict[str, Any]:
        """The rule as the YAML file has it."""
        return {"forbid": {name: _listed(values) for name, values in self.cells}}


Rule = Limit | Comparison | Forbidden


def place_of(used: Columns, name: str) -> int:
    """Where a column stands among the used ones."""
    return next(i for i, column in enumerate(used) if column.name == name)


def obeys(schema: Schema, codes: Codes) -> Truths:
    """Which rows obey every rule of a schema, by the exact values that they decode to.

    # (num_rows, num_used) -> (num_rows,)
    """
    found = np.ones(len(codes), dtype=bool)
    for rule in schema.rules:
        found &= rule.holds(schema.used, codes)
    return found


def allowed_codes(used: Columns, rules: Sequence[Rule]) -> dict[int, CodeSet]:
    """What rules about single columns leave of them, by the columns' places."""
    found: dict[int, CodeSet] = {}
    for rule in rules:
        if isinstance(rule, Comparison) or len(rule.columns) > 1:
            continue
        place = place_of(used, rule.columns[0])
        column = used[place]
        kept = rule.allowed(column) if isinstance(rule, Limit) else every_code(column) - rule.forbidden(column)
        found[place] = found.get(place, every_code(column)) & kept
    return found


def _on_scale(column: Column, constant: Category) -> int | float:
    if column.is_choice and family_of(column) is not Family.NUMBER:
        return column.categories.index(constant)
    return measure(column, constant)


def _name(column: str) -> str:
    plain = re.fullmatch(r"[^\W\d]\w*", column)
    return column if plain else "`" + column.replace("`", "``") + "`"


def _constant(value: Category) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return '"' + str(value).replace('"', '""') + '"'
    return repr(value)


def _listed(values: tuple[Value, ...]) -> Any:
    written = [{"from": value.low, "to": value.high} if isinstance(value, Range) else value for value in values]
    return written[0] if len(written) == 1 else written
