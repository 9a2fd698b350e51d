"""Points drawn at public random over a schema's domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from understudy.errors import UsageError
from understudy.features.draws import uniforms
from understudy.features.points import Points, points_of_codes
from understudy.schema import NULL, Column, Layout, Schema
from understudy.schema.encode import encode_column
from understudy.schema.layout import from_position

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
