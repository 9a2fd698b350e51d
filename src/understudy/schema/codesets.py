"""Sets of a column's codes: what a rule allows, or what a person asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.arrays import Codes
from understudy.schema.columns import NULL, Column

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
