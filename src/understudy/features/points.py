"""Public points: rows that anybody may know, kept as cells in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.schema import NULL, Layout
from understudy.schema.layout import POSITION_BITS, from_position


@dataclass(frozen=True)
class Points:
    """Rows as positions (in steps of 2^-16) and slots of choices (-1 for no listed value).

    ``spans`` are the cells of the choices. That is what feature maps see of a row, so a number with
    more than 65,536 values is kept to the nearest of as many steps.
    """

    rows: tuple[tuple[int, ...], ...]  # positions, then slots
    spans: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def cells(self) -> Floats:
        """The points' cells, as ``Layout.expand`` has them.  # (points, width)"""
        whole = np.asarray(self.rows, dtype=np.int64)
        num_numbers = whole.shape[1] - len(self.spans)
        width = self.spans[-1][1] if self.spans else num_numbers
        cells = np.zeros((len(whole), width))
        cells[:, :num_numbers] = whole[:, :num_numbers] / 2**POSITION_BITS
        for place, (start, _) in enumerate(self.spans):
            slots = whole[:, num_numbers + place]
            listed = np.flatnonzero(slots >= 0)
            cells[listed, start + slots[listed]] = 1.0
        return cells

    def take(self, places: Sequence[int] | Integers) -> Points:
        """Some of the points, in that order."""
        return Points(tuple(self.rows[place] for place in places), self.spans)

    def codes(self, layout: Layout) -> Integers:
        """The points' codes.  # (points, num_used)"""
        whole = np.asarray(self.rows, dtype=np.int64).reshape(len(self.rows), -1)
        number = {name: i for i, name in enumerate(layout.numbers)}
        slot = {c.column: len(number) + i for i, c in enumerate(layout.choices)}
        found = np.empty((len(whole), len(layout.schema.used)), dtype=np.int64)
        for i, column in enumerate(layout.schema.used):
            if column.is_choice:
                slots = whole[:, slot[column.name]]
                found[:, i] = np.where(slots == len(column.categories), NULL, slots)
                continue
            steps = whole[:, number[column.name]] / 2**POSITION_BITS
            found[:, i] = from_position(column, steps)
            if column.nullable:
                found[whole[:, slot[column.name]] == 1, i] = NULL
        return found

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {"rows": [list(row) for row in self.rows], "spans": [list(span) for span in self.spans]}


def points_of_codes(layout: Layout, codes: Integers) -> Points:
    """Public rows, given as codes."""
    cells = layout.expand(codes)
    spans = tuple((choice.start, choice.stop) for choice in layout.choices)
    columns = [np.rint(cells[:, j] * 2**POSITION_BITS) for j in range(len(layout.numbers))]
    for start, stop in spans:
        members = cells[:, start:stop]
        columns.append(np.where(members.any(axis=1), members.argmax(axis=1), -1))
    rows = np.stack(columns, axis=1).astype(np.int64).tolist()
    return Points(tuple(tuple(row) for row in rows), spans)


def points_from_dict(document: dict[str, Any]) -> Points:
    """Read points back from their public description."""
    return Points(
        rows=tuple(tuple(int(value) for value in row) for row in document["rows"]),
        spans=tuple((int(start), int(stop)) for start, stop in document["spans"]),
    )
