"""Conditional sampling: what is asked of rows, in a caller's words, as the codes that columns may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy.arrays import Integers, Truths
from understudy.errors import InputError, UsageError
from understudy.schema import NULL, Column, Schema
from understudy.schema.onehot import grouped
from understudy.schema.rules import allowed_codes
from understudy.schema.values import CodeSet, Value, codes_of, every_code, spelt, spelt_range


@dataclass(frozen=True)
class Condition:
    """The codes that columns may have, by the columns' places; other columns are free."""

    allowed: Mapping[int, CodeSet] = field(default_factory=dict)

    def holds(self, codes: Integers) -> Truths:
        """Which rows meet it.  # (num_rows, num_used) -> (num_rows,)"""
        found = np.ones(len(codes), dtype=bool)
        for place, kept in self.allowed.items():
            found &= kept.contains(codes[:, place])
        return found

    def and_also(self, allowed: Mapping[int, CodeSet]) -> Condition:
        """This condition and another."""
        both = dict(self.allowed)
        for place, kept in allowed.items():
            both[place] = both[place] & kept if place in both else kept
        return Condition(both)


Given = Mapping[str, Any]
"""Columns with the value they must have, a tuple (low, high) of numbers or dates, both included, or
a list of these; None is null, or an open end of a range."""

Balance = str | Mapping[Any, float]
"""``kept``, ``equal``, or shares of the label's classes, which need not add up to 1."""


def condition_of(schema: Schema, given: Given | None) -> Condition:
    """The condition that ``given`` describes.

    Raises:
        UsageError: it names a column or value that is unknown, or that the rules do not allow.
    """
    condition = Condition()
    for name, value in (given or {}).items():
        places = [i for i, column in enumerate(schema.used) if column.name == name]
        if not places:
            known = ", ".join(column.name for column in schema.used)
            words = grouped(schema.onehot_groups, name) or ("is not a column", f"Columns are {known}")
            raise UsageError(f"given '{name}'", *words)
        kept = _allowed_codes(schema.used[places[0]], value)
        if kept.is_empty:
            raise UsageError(f"given '{name}'", "the column has no such value", "Widen it")
        condition = condition.and_also({places[0]: kept})
    for place, kept in condition.and_also(allowed_codes(schema.used, schema.rules)).allowed.items():
        if kept.is_empty:
            raise UsageError(
                f"given '{schema.used[place].name}'",
                "the schema's rules allow no such value",
                "Ask for another, or change the rules",
            )
    return condition


def _allowed_codes(column: Column, value: Any) -> CodeSet:
    is_list = isinstance(value, list | set | frozenset) or (column.is_choice and isinstance(value, tuple))
    try:
        return codes_of(column, *(_spelt_value(column, each) for each in (value if is_list else [value])))
    except InputError as error:
        raise UsageError(f"given '{column.name}'", error.rule, error.remedy) from None


def _spelt_value(column: Column, value: Any) -> Value:
    if not isinstance(value, tuple):
        return spelt(column, value)
    if len(value) != 2:
        raise InputError(f"column '{column.name}'", "needs (low, high) as a range", "Or a list")
    return spelt_range(column, *value)


def class_shares(schema: Schema, condition: Condition, balance: Balance | None) -> dict[int, float] | None:
    """Shares of the label's codes, of sum 1; None leaves them as the generator has them.

    A class that the condition or the rules exclude is left out, and the others fill its place.

    Raises:
        UsageError: there is no class to balance, or a share that is none.
    """
    if balance is None or balance == "kept":
        return None
    label = schema.label
    if label is None or not label.is_choice:
        raise UsageError("balance", "the table has no label with classes", "Leave balance out")
    if balance == "equal":
        shares = dict.fromkeys(range(len(label.categories)), 1.0)
    elif isinstance(balance, Mapping):
        shares = _read_shares(label, balance)
    else:
        raise UsageError("balance", "must be kept, equal, or a share for each class")
    place = schema.used.index(label)
    kept = condition.and_also(allowed_codes(schema.used, schema.rules)).allowed
    left = kept.get(place, every_code(label))
    shares = {code: share for code, share in shares.items() if share > 0 and left.contains(np.asarray([code]))[0]}
    total = sum(shares.values())
    if not shares:
        raise UsageError("balance", "no class with a share is left by the condition and the rules")
    return {code: share / total for code, share in shares.items()}


def _read_shares(label: Column, balance: Mapping[Any, float]) -> dict[int, float]:
    shares: dict[int, float] = {}
    for value, share in balance.items():
        try:
            kept = codes_of(label, spelt(label, value))
        except InputError as error:
            raise UsageError("balance", f"{error.where} {error.rule}", error.remedy) from None
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not math.isfinite(share) or share < 0:
            raise UsageError("balance", "shares must be numbers of at least 0", "Such as 0.5")
        shares[NULL if kept.has_null else kept.ranges[0][0]] = float(share)
    return shares


def rows_per_class(shares: dict[int, float], num_rows: int) -> Integers:
    """Whole numbers of rows as near to the shares as can be, of the right sum."""
    exact = np.asarray(list(shares.values())) * num_rows
    counts: Integers = np.floor(exact).astype(np.int64)
    largest_rests = np.argsort(counts - exact, kind="stable")
    counts[largest_rests[: num_rows - counts.sum()]] += 1
    return counts


def find_strata(
    schema: Schema, num_rows: int, rng: np.random.Generator, *, given: Given | None, balance: Balance | None
) -> tuple[list[Condition], Integers]:
    """Conditions that rows are drawn under, and which of them each row is drawn under."""
    condition = condition_of(schema, given)
    shares = class_shares(schema, condition, balance)
    if shares is None or schema.label is None:
        return [condition], np.zeros(num_rows, dtype=np.int64)
    place = schema.used.index(schema.label)
    strata = [
        condition.and_also({place: CodeSet(() if code == NULL else ((code, code),), code == NULL)}) for code in shares
    ]
    members = np.repeat(np.arange(len(strata)), rows_per_class(shares, num_rows))
    return strata, rng.permutation(members)
