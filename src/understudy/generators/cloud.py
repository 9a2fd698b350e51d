"""Rows on the move: positions that can be any number, and values of choices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.features.points import Points
from understudy.schema import Layout
from understudy.schema.layout import POSITION_BITS


@dataclass(frozen=True)
class Cloud:
    """Rows as positions in [0, 1] and slots of choices; a null number lies in the middle."""

    layout: Layout
    positions: Floats  # (rows, numbers)
    slots: Integers  # (rows, choices)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def members(self) -> Floats:
        """Memberships of all choices.  # (rows, cells of the choices)"""
        first = len(self.layout.numbers)
        found = np.zeros((len(self), self.layout.width - first))
        for place, choice in enumerate(self.layout.choices):
            found[np.arange(len(self)), choice.start - first + self.slots[:, place]] = 1.0
        return found

    @property
    def cells(self) -> Floats:
        """What feature maps read, on the grid that positions have in files.  # (rows, width)"""
        steps = np.rint(self.positions * 2**POSITION_BITS) / 2**POSITION_BITS
        return np.concatenate([steps, self.members], axis=1)

    @property
    def is_null(self) -> npt.NDArray[np.bool_]:
        """Which numbers are null.  # (rows, numbers)"""
        found = np.zeros(self.positions.shape, dtype=bool)
        for place, choice in enumerate(self.layout.choices):
            if choice.flags_null:
                found[:, self.layout.numbers.index(choice.column)] = self.slots[:, place] == 1
        return found

    def at(self, positions: Floats) -> Cloud:
        """The same rows elsewhere: inside the bounds, and nulls in the middle."""
        inside = np.where(self.is_null, 0.5, np.clip(positions, 0.0, 1.0))
        return Cloud(self.layout, inside, self.slots)

    def take(self, places: npt.ArrayLike) -> Cloud:
        """Some of the rows, in that order."""
        chosen = np.asarray(places, dtype=np.int64)
        return Cloud(self.layout, self.positions[chosen], self.slots[chosen])

    def joined(self, other: Cloud) -> Cloud:
        """These rows and others."""
        return Cloud(
            self.layout, np.concatenate([self.positions, other.positions]), np.concatenate([self.slots, other.slots])
        )

    def jittered(self, width: Floats, flips: float, rng: np.random.Generator) -> Cloud:
        """Rows nearby: numbers moved by about ``width``, and some choices changed at random."""
        slots = self.slots.copy()
        for place, choice in enumerate(self.layout.choices):
            changed = rng.random(len(self)) < flips
            slots[changed, place] = rng.integers(choice.width, size=int(changed.sum()))
        moved = self.positions + width * rng.standard_normal(self.positions.shape)
        return Cloud(self.layout, moved, slots).at(moved)

    def codes(self) -> Integers:
        """Codes of the rows.  # (rows, num_used)"""
        steps = np.rint(self.positions * 2**POSITION_BITS).astype(np.int64)
        rows = np.concatenate([steps, self.slots], axis=1).tolist()
        spans = tuple((choice.start, choice.stop) for choice in self.layout.choices)
        return Points(tuple(tuple(row) for row in rows), spans).codes(self.layout)


def cloud_of(layout: Layout, points: Points) -> Cloud:
    """Points as rows on the move; one with no listed value gets the first."""
    rows = np.asarray(points.rows, dtype=np.int64).reshape(len(points), -1)
    first = len(layout.numbers)
    return Cloud(layout, rows[:, :first] / 2**POSITION_BITS, np.maximum(rows[:, first:], 0))
