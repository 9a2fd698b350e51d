"""Rules that every row obeys: comparisons, and combinations of values that never occur together.

A rule is public, like the rest of a schema: it must not come from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.arrays import Codes, Truths
from understudy.errors import InputError
from understudy.schema.columns import NULL, Category, Column
from understudy.schema.scales import Family, Operator, Scale, Values, can_compare, common_scales, family_of, own_scale
from understudy.schema.values import CodeSet, Range, Value, codes_of, every_code, spelt, spelt_known, spelt_range

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

    def forbidden(self, column: Column) -> CodeSet:
        """The codes of its column that break it."""
        return every_code(column) - own_scale(column).subset(self.operator, self.constant)

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
        return codes_of(column, *dict(self.cells)[column.name])

    def to_dict(self) -> dict[str, Any]:
        """The rule as the YAML file has it."""
        return {"forbid": {name: _listed(values) for name, values in self.cells}}


Rule = Limit | Comparison | Forbidden


def holds(rule: Rule, used: Columns, codes: Codes) -> Truths:
    """Which rows obey a rule.  # (num_rows, num_used) -> (num_rows,)"""
    if isinstance(rule, Comparison):
        left, right = (codes[:, place_of(used, name)] for name in rule.columns)
        scales = rule.scales(used)
        found = rule.operator(scales[0].values(left), scales[1].values(right))
        found |= (left == NULL) | (right == NULL)
        return found
    found = np.ones(len(codes), dtype=bool)
    for name in rule.columns:
        place = place_of(used, name)
        found &= rule.forbidden(used[place]).contains(codes[:, place])
    return ~found


def place_of(used: Columns, name: str) -> int:
    """Where a column stands among the used ones."""
    return next(i for i, column in enumerate(used) if column.name == name)


def obeys(schema: Schema, codes: Codes) -> Truths:
    """Which rows obey every rule of a schema, by the exact values that they decode to.

    # (num_rows, num_used) -> (num_rows,)
    """
    found = np.ones(len(codes), dtype=bool)
    for rule in schema.rules:
        found &= holds(rule, schema.used, codes)
    return found


def allowed_codes(used: Columns, rules: Sequence[Rule]) -> dict[int, CodeSet]:
    """What rules about single columns leave of them, by the columns' places."""
    found: dict[int, CodeSet] = {}
    for rule in rules:
        if isinstance(rule, Comparison) or len(rule.columns) > 1:
            continue
        place = place_of(used, rule.columns[0])
        found[place] = found.get(place, every_code(used[place])) - rule.forbidden(used[place])
    return found


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


_SIDE = r"(`(?:[^`]|``)+`|'(?:[^']|'')+'|\"(?:[^\"]|\"\")+\"|[^`'\"<>=!]+?)"
_COMPARISON = re.compile(rf"\s*{_SIDE}\s*(<=|>=|==|!=|<|>)\s*{_SIDE}\s*", flags=re.DOTALL)
FORMS = "Write 'admitted <= discharged', 'age >= 18' or forbid: {sex: male, pregnant: yes}"


def parse_rules(entries: Any, columns: Columns) -> tuple[Rule, ...]:
    """Read a schema's ``rules`` list.

    Raises:
        InputError: it names the rule; also if no row could obey the rules, as far as one column
            or one comparison shows it.
    """
    if not isinstance(entries, list):
        raise InputError("rules", "must be a list", FORMS)
    rules = tuple(_parse_rule(entry, columns) for entry in entries)
    used = [column for column in columns if column.is_used]
    kept = allowed_codes(used, rules)
    for place, codes in kept.items():
        if not codes.ranges:
            name = used[place].name
            culprits = [rule_words(rule) for rule in rules if rule.columns == (name,)]
            raise InputError(
                ", ".join(culprits),
                f"no value of column '{name}' is left",
                "Mend the rules, or the column's bounds or categories",
            )
    for rule in rules:
        if isinstance(rule, Comparison):
            _check_comparison(rule, used, kept)
    return rules


def rule_words(rule: Rule) -> str:
    """How a rule is called in messages."""
    words = f"forbid {', '.join(rule.columns)}" if isinstance(rule, Forbidden) else rule.to_dict()
    return f"rule '{words}'"


def _parse_rule(entry: Any, columns: Columns) -> Rule:
    if isinstance(entry, str):
        with _about_rule(entry):
            return _parse_comparison(entry, columns)
    if isinstance(entry, dict) and set(entry) == {"forbid"} and isinstance(entry["forbid"], dict):
        with _about_rule("forbid " + ", ".join(map(str, entry["forbid"]))):
            return _parse_forbidden(entry["forbid"], columns)
    raise InputError(f"rule '{entry}'", "is neither a comparison nor forbid: {...}", FORMS)


@contextmanager
def _about_rule(words: str) -> Iterator[None]:
    """Have refusals name the rule; those of a column say which column it was."""
    try:
        yield
    except InputError as error:
        rule = f"{error.where} {error.rule}".strip()
        raise InputError(f"rule '{words.strip()}'", rule, error.remedy) from None


def _parse_comparison(text: str, columns: Columns) -> Rule:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise InputError("", "is no comparison of two things", FORMS)
    left_words, op, right_words = found[1], Operator(found[2]), found[3]
    left = _column(left_words, columns)
    if _is_column(right_words, columns):
        right = _column(right_words, columns)
        if left == right:
            raise InputError("", "compares a column with itself", FORMS)
        if not can_compare(left, right, op):
            sides = [f"'{column.name}' holds {family_of(column)}" for column in (left, right)]
            raise InputError(
                "",
                f"{sides[0]} and {sides[1]}, which cannot be compared so",
                "Compare numbers with numbers, dates with dates, categories by == or !=",
            )
        return Comparison(left.name, op, right.name)
    family = family_of(left)
    if op.is_order and family is Family.NAME:
        raise InputError(
            "",
            f"the categories of '{left.name}' have no order",
            "Use == or !=, or kind: ordinal with the categories in order",
        )
    is_listed = not (op.is_order and family is Family.NUMBER)
    return Limit(left.name, op, spelt_known(left, _unquoted(right_words), is_listed=is_listed))


def _parse_forbidden(entry: dict[Any, Any], columns: Columns) -> Forbidden:
    if not entry:
        raise InputError("", "names no column", FORMS)
    cells = []
    for name, value in entry.items():
        column = _known_column(name, columns)
        listed = value if isinstance(value, list) else [value]
        values = tuple(_parse_value(column, each) for each in listed)
        if (codes_of(column, *values) & every_code(column)).is_empty:
            raise InputError("", f"names nothing that '{column.name}' can hold", "Mend it, or leave it out")
        cells.append((column.name, values))
    order = [column.name for column in columns]  # files need not keep the order of a mapping
    return Forbidden(tuple(sorted(cells, key=lambda cell: order.index(cell[0]))))


def _parse_value(column: Column, value: Any) -> Value:
    if isinstance(value, dict):
        if not value or set(value) - {"from", "to"}:
            raise InputError("", "a range has from and to", "Write {from: 0, to: 17}")
        return spelt_range(column, value.get("from"), value.get("to"))
    if isinstance(value, list):
        raise InputError("", "holds a list in a list", "Write [one, two]")
    return spelt(column, value)


def _is_column(words: str, columns: Columns) -> bool:
    """Whether the right side names a column; what looks like a number or date is one."""
    is_bare = words[0] not in "'\"+-.0123456789"
    return words[0] == "`" or (is_bare and words in {column.name for column in columns})


def _column(words: str, columns: Columns) -> Column:
    return _known_column(words if words[0] in "'\"" else _unquoted(words), columns)


def _known_column(name: Any, columns: Columns) -> Column:
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        known = ", ".join(column.name for column in columns if column.is_used)
        raise InputError("", f"{name} is not a column", f"Columns are {known}")
    if not found.is_used:
        raise InputError("", f"column '{name}' is not synthesised", "Leave the rule out, or change its role")
    return found


def _unquoted(words: str) -> str:
    mark = words[0]
    return words[1:-1].replace(mark * 2, mark) if mark in "`'\"" else words


def _check_comparison(rule: Comparison, used: Columns, kept: dict[int, CodeSet]) -> None:
    """Refuse a comparison that no two values of its columns meet."""
    scales = rule.scales(used)
    left, right = (
        _some_values(scale, kept.get(place_of(used, scale.column.name), every_code(scale.column))) for scale in scales
    )
    can_hold = rule.operator(left[:, None], right).any()
    if rule.operator is Operator.EQUAL and any(scale.table is None for scale in scales):
        can_hold = max(left.min(), right.min()) <= min(left.max(), right.max())
    if not can_hold:
        raise InputError(
            rule_words(rule),
            "no two values of its columns obey it",
            "Mend the rule, or the columns' bounds or categories",
        )


def _some_values(scale: Scale, kept: CodeSet) -> Values:
    """All values that are left of a choice; the least and the largest of a number."""
    if scale.table is not None:
        codes = np.arange(len(scale.table))
        return scale.values(codes[kept.contains(codes)])
    return scale.values(np.asarray([kept.ranges[0][0], kept.ranges[-1][1]]))
