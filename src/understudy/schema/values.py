"""Values as people write them (18, 2020-01-31, 'north', null, a range) and the codes they stand for."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Codes
from understudy.errors import InputError
from understudy.schema.columns import BLANKS, EPOCH, MICROSECOND, NULL, Category, Column, Kind, number_values

PAST_ALL = 2**62
"""Above every code."""


@dataclass(frozen=True, slots=True)
class CodeSet:
    """Inclusive ranges of codes, in order and apart from one another, and perhaps null or unlisted values."""

    ranges: tuple[tuple[int, int], ...]
    has_null: bool = False
    has_unlisted: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it, not even null."""
        return not (self.ranges or self.has_null or self.has_unlisted)

    def contains(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which codes are in the set."""
        found: npt.NDArray[np.bool_] = (codes == NULL) & self.has_null
        if self.ranges:
            lows, highs = np.asarray(self.ranges).T
            place = np.searchsorted(lows, codes, side="right") - 1
            found |= (place >= 0) & (codes <= highs[place])
        return found

    def nearest(self, codes: Codes) -> Codes:
        """The code of the set that is nearest to each code; null if there is nothing else."""
        found = np.full(codes.shape, NULL, dtype=np.int64)
        least = np.full(codes.shape, PAST_ALL)
        for low, high in self.ranges:
            inside = np.clip(codes, low, high)
            distance = np.abs(inside - codes)
            found = np.where(distance < least, inside, found)
            least = np.minimum(distance, least)
        return found

    def __and__(self, other: CodeSet) -> CodeSet:
        """What is in both."""
        shared = [(max(low, start), min(high, stop)) for low, high in self.ranges for start, stop in other.ranges]
        return replace(
            code_set(shared, has_null=self.has_null and other.has_null),
            has_unlisted=self.has_unlisted and other.has_unlisted,
        )

    def __sub__(self, other: CodeSet) -> CodeSet:
        """What is in this one alone."""
        starts = [0, *(high + 1 for _, high in other.ranges)]
        stops = [*(low - 1 for low, _ in other.ranges), PAST_ALL]
        rest = code_set(zip(starts, stops, strict=True), has_null=not other.has_null)
        return self & replace(rest, has_unlisted=not other.has_unlisted)


def code_set(ranges: Iterable[tuple[int, int]], *, has_null: bool = False) -> CodeSet:
    """A set from ranges in any order; those that touch become one, and empty ones are left out."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted((int(low), int(high)) for low, high in ranges if low <= high):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return CodeSet(tuple(joined), has_null)


def every_code(column: Column) -> CodeSet:
    """All that a column can hold."""
    top = len(column.categories) - 1 if column.is_choice else column.num_steps
    return CodeSet(((0, top),), column.nullable)


Scalar = Category | None
"""A number, an ISO date, a category, or None for null."""

LARGEST_EXACT = 2**53
"""Below it a float holds every whole number exactly."""

TRUTHS = ("true", "false")


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers or dates from one to another, both included; None leaves an end open."""

    low: Scalar
    high: Scalar


Value = Scalar | Range


def first_code(column: Column, values: npt.NDArray[Any], *, above: bool) -> Codes:
    """The lowest code whose value is at least (or above) each of ``values``; past the top if none."""
    low = np.zeros(values.shape, dtype=np.int64)
    high = np.full(values.shape, column.num_steps + 1)
    while (low < high).any():
        middle = (low + high) // 2
        reached = number_values(column, middle)
        enough = (reached > values) if above else (reached >= values)
        high = np.where(enough, middle, high)
        low = np.where(enough | (low >= high), low, middle + 1)
    return low


def moment_of(value: Any) -> int | None:
    """Microseconds since 1970 of an ISO date or time, in UTC; None if it is none."""
    try:
        moment = dt.datetime.fromisoformat(str(value))
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (moment - EPOCH) // MICROSECOND


def spelt(column: Column, value: Any) -> Scalar:
    """A value in the form that stands for it, or null.

    Raises:
        InputError: it is no value of such a column.
    """
    if value is not None:
        return spelt_known(column, value)
    if not column.nullable:
        raise _refuse(column, "is never null", "Set nullable: true, or leave null out")
    return None


def spelt_known(column: Column, value: Any) -> Category:
    """A value in the form that stands for it: the category as listed, a number, an ISO date."""
    if column.is_choice:
        return _category(column, value)
    if column.kind is not Kind.DATETIME:
        return spelt_number(column, value)
    moment = moment_of(value)
    if moment is None:
        raise _refuse(column, f"holds dates, and '{value}' is none", "Write 2000-01-31")
    return _iso(moment)


def spelt_number(column: Column, value: Any) -> int | float:
    """A number, also from text; whole ones without a point."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, OverflowError, TypeError):
        number = math.nan
    if not math.isfinite(number):
        raise _refuse(column, f"holds numbers, and '{value}' is none", "Write a number")
    is_whole = number.is_integer() and abs(number) < LARGEST_EXACT
    return int(number) if is_whole else number


def spelt_range(column: Column, low: Any, high: Any) -> Range:
    """A range with both ends spelt.

    Raises:
        InputError: the column has no ranges, or the ends are no values of it, or out of order.
    """
    if column.is_choice:
        raise _refuse(column, "has categories, which have no ranges", "List the categories")
    ends = [None if end is None else spelt(column, end) for end in (low, high)]
    known = [measure(column, end) for end in ends if end is not None]
    if known != sorted(known):
        raise _refuse(column, "has a range here that runs backwards", "Swap its ends")
    return Range(*ends)


def measure(column: Column, value: Scalar) -> int | float:
    """A spelt number, or a spelt date in microseconds, as ``number_values`` has them."""
    found = moment_of(value) if column.kind is Kind.DATETIME else value
    if isinstance(found, str) or found is None:
        raise TypeError("only numbers and dates have a measure")
    return found


def codes_of(column: Column, value: Value) -> CodeSet:
    """The codes that a spelt value stands for; on a fine grid, the nearest one."""
    if value is None:
        return CodeSet((), has_null=True)
    if isinstance(value, Range):
        low = -math.inf if value.low is None else measure(column, value.low)
        high = math.inf if value.high is None else measure(column, value.high)
        return _between(column, low, high)
    if column.is_choice:
        code = column.categories.index(value)
        return CodeSet(((code, code),))
    number = measure(column, value)
    low, high = column.low_high
    if column.kind is Kind.CONTINUOUS and low <= number <= high:
        code = round((number - low) / ((high - low) or 1.0) * column.num_steps)
        return CodeSet(((code, code),))
    return _between(column, number, number)


def _between(column: Column, low: float, high: float) -> CodeSet:
    first = first_code(column, np.asarray([low]), above=False)[0]
    last = first_code(column, np.asarray([high]), above=True)[0] - 1
    return code_set([(first, last)])


def _category(column: Column, value: Any) -> Category:
    """The listed category that a value names; text may name a number or a truth value."""
    wanted = _meaning(column, value)
    for category in column.categories:
        if _meaning(column, category) == wanted:
            return category
    listed = ", ".join(str(category) for category in column.categories)
    raise _refuse(column, f"has no category '{value}'", f"It has {listed}")


def _meaning(column: Column, value: Any) -> str | float:
    first = column.categories[0]
    if isinstance(first, int | float) and not isinstance(first, bool):
        try:
            return float(value)
        except (ValueError, OverflowError, TypeError):
            return str(value)
    text = str(value).strip(BLANKS)
    return text.lower() if text.lower() in TRUTHS else text


def _iso(moment: int) -> str:
    when = EPOCH + moment * MICROSECOND
    is_midnight = when.time() == dt.time(0)
    return when.date().isoformat() if is_midnight else when.isoformat()


def _refuse(column: Column, rule: str, remedy: str) -> InputError:
    return InputError(f"column '{column.name}'", rule, remedy)
