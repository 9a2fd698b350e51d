"""Public points (landmarks, candidates): rows given or drawn from a public seed, stored as integers in the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import ndtri

from understudy.arrays import Floats, Integers
from understudy.errors import UsageError
from understudy.features.base import PublicInput
from understudy.schema import NULL, Column, Layout, Schema
from understudy.schema.columns import POSITION_BITS, from_position
from understudy.schema.encode import encode_column


def uniforms(seed: int, count: int) -> npt.NDArray[np.float64]:
    """Public uniform numbers in (0, 1) from a seed; never used for noise."""
    return next(uniform_stream(seed, count))


def uniform_stream(seed: int, count: int) -> Iterator[npt.NDArray[np.float64]]:
    """Endless batches of uniform numbers in (0, 1).

    From the raw bits of PCG64, which are the same in every NumPy release; NumPy's distributions may change.
    """
    source = np.random.PCG64(seed)
    while True:
        bits = source.random_raw(count)
        yield ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


@dataclass(frozen=True)
class Points(PublicInput):
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


MOST_POINTS = 20_000
"""Public points are part of the plan and of every release, so there may not be too many."""

NULL_SHARE = 0.05
"""Share of drawn cells that are null, in a column that may be."""

Draw = Literal["uniform", "gaussian"]
DRAWS: tuple[Draw, ...] = ("uniform", "gaussian")


def drawn_points(
    schema: Schema,
    count: int,
    *,
    draw: Draw = "uniform",
    means: Mapping[str, float] | None = None,
    deviations: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Points:
    """Independent draws over the schema's public domain.

    Args:
        schema: bounds and categories.
        count: how many points.
        draw: numbers are ``uniform`` over the position scale of each column, or ``gaussian`` and
            clipped to its bounds. Choices are uniform over their categories either way.
        means: of Gaussian numbers, in the column's own units; the middle of the range if not given.
        deviations: likewise; a quarter of the range if not given.
        seed: public seed.
    """
    if draw not in DRAWS:
        raise UsageError("draw", "must be one of " + ", ".join(DRAWS))
    if not 1 <= count <= MOST_POINTS:
        raise UsageError("candidates", f"must be between 1 and {MOST_POINTS}")
    numbers = {column.name for column in schema.used if not column.is_choice}
    stray = sorted((set(means or {}) | set(deviations or {})) - numbers)
    if stray or ((means or deviations) and draw == "uniform"):
        what = f"'{stray[0]}' is no numeric column" if stray else "are for gaussian draws"
        raise UsageError("means and deviations", what, "See the schema, or use --draw gaussian")
    draws = uniforms(seed, 2 * count * len(schema.used)).reshape(len(schema.used), 2, count)
    codes = np.empty((count, len(schema.used)), dtype=np.int64)
    for i, column in enumerate(schema.used):
        value, chance = draws[i]
        if column.is_choice:
            codes[:, i] = np.minimum(value * len(column.categories), len(column.categories) - 1)
        elif draw == "gaussian":
            mean, deviation = _moments(column, means or {}, deviations or {})
            codes[:, i] = encode_column(column, pa.array(mean + deviation * ndtri(value)))
        else:
            codes[:, i] = from_position(column, value)
        if column.nullable:
            codes[chance < NULL_SHARE, i] = NULL
    return points_of_codes(Layout(schema), codes)


def _moments(column: Column, means: Mapping[str, float], deviations: Mapping[str, float]) -> tuple[float, float]:
    low, high = column.low_high
    mean = float(means.get(column.name, (low + high) / 2))
    deviation = float(deviations.get(column.name, (high - low) / 4))
    if not (np.isfinite(mean) and np.isfinite(deviation) and deviation >= 0):
        raise UsageError("means and deviations", f"of '{column.name}' must be plain numbers")
    if column.resolution is not None:
        raise UsageError("draw", f"'{column.name}' holds dates", "Use --draw uniform")
    return mean, deviation
