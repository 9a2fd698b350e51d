"""Rows as the sums see them: codes, and what is made of them on demand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.features import Block, Embedding
from understudy.private.kernels import Positions, centred
from understudy.schema import Layout
from understudy.schema.layout import Choice, to_position


@dataclass(frozen=True)
class Rows:
    """Some rows as codes, and as cells for the maps that read those."""

    layout: Layout
    codes: Integers  # (num_rows, num_used)

    @cached_property
    def cells(self) -> Floats:
        """Positions and memberships.  # (num_rows, width)"""
        return self.layout.expand(self.codes)

    def positions(self, numbers: tuple[int, ...]) -> Positions:
        """Positions of some numbers, column by column.  # (numbers, num_rows)"""
        used = {column.name: i for i, column in enumerate(self.layout.schema.used)}
        found = np.empty((len(numbers), len(self.codes)), dtype=np.int16)
        for place, number in enumerate(numbers):
            at = used[self.layout.numbers[number]]
            found[place] = centred(to_position(self.layout.schema.used[at], self.codes[:, at]))
        return found

    def slots(self, span: tuple[int, int]) -> Integers:
        """Which value of a choice each row has; one past the last if it has none.  # (num_rows,)"""
        choice = next(c for c in self.layout.choices if (c.start, c.stop) == span)
        names = [column.name for column in self.layout.schema.used]
        codes = self.codes[:, names.index(choice.column)]
        if choice.flags_null:
            return np.asarray(codes < 0, dtype=np.int64)
        last = choice.width - 1 if self._null_is_last(choice) else choice.width
        return np.where(codes < 0, last, codes)

    def _null_is_last(self, choice: Choice) -> bool:
        column = next(c for c in self.layout.schema.used if c.name == choice.column)
        return choice.width > len(column.categories)


def copies_of(rows: Rows, block: Block, embedding: Embedding) -> tuple[Integers, int]:
    """Which copy of a block each row adds to (one past the last: none), and how many there are."""
    if not block.per_label or embedding.label is None:
        return np.zeros(len(rows.codes), dtype=np.int64), 1
    return rows.slots(embedding.label), embedding.copies(block)


def members_of(slots: Integers, copies: int) -> Floats:
    """Which copy each row adds to, as ones and zeros.  # (num_rows, copies)"""
    return np.asarray(slots[:, None] == np.arange(copies), dtype=np.float64)
