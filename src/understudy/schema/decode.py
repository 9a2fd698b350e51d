"""The exact decoder: codes become cells of the column's own type."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.schema.columns import NULL, Column, Resolution
from understudy.schema.table import Schema
from understudy.schema.values import number_values


def decode_table(schema: Schema, codes: npt.NDArray[np.int64]) -> pa.Table:
    """Turn codes into an Arrow table: integers stay integers, nulls stay nulls, dates stay dates."""
    arrays = [decode_column(column, codes[:, i]) for i, column in enumerate(schema.used)]
    return pa.table(dict(zip((column.name for column in schema.used), arrays, strict=True)))


def decode_column(column: Column, codes: npt.NDArray[np.int64]) -> Any:
    """Decode one column; a code outside ``0..`` is null."""
    missing = codes == NULL
    known = np.where(missing, 0, codes)
    if column.is_choice:
        return _categories(column).take(pa.array(known, mask=missing))
    values = pa.array(number_values(column, known), mask=missing)
    if column.resolution is None:
        return values
    moments = values.cast(pa.timestamp("us"))
    return moments.cast(pa.date32()) if column.resolution is Resolution.DAY else moments


def _categories(column: Column) -> Any:
    first = column.categories[0]
    if isinstance(first, bool):
        return pa.array(column.categories, type=pa.bool_())
    if isinstance(first, str):
        return pa.array(column.categories, type=pa.string())
    whole = all(isinstance(category, int) for category in column.categories)
    return pa.array(
        [float(c) if not whole else c for c in column.categories], type=pa.int64() if whole else pa.float64()
    )
