"""Data frames of any origin, read column by column in the schema's own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.schema.columns import BLANKS, NULL, Column, Kind
from understudy.schema.encode import encode_column
from understudy.schema.values import number_values

if TYPE_CHECKING:
    import pandas as pd


FARTHEST = 1e6
"""Ranges of a column beyond its bounds. Farther numbers would overflow squares and single precision."""


def choice_codes(column: Column, cells: pd.Series) -> Integers:
    """0 for null, then the categories from 1 in order; one past them for what the schema does not list."""
    codes = encode_column(column, _arrow(column, cells)) + 1
    unclear = np.flatnonzero(codes == NULL + 1)
    doubtful = cells.iloc[unclear]
    blank = doubtful.isna() | doubtful.astype(str).str.strip(BLANKS).eq("")
    codes[unclear[~blank.to_numpy(dtype=bool)]] = len(column.categories) + 1
    return codes


def numbers(column: Column, cells: pd.Series) -> Floats:
    """The numbers of a column, NaN for null; dates are microseconds.

    Infinities, and what lies so far out that it is no measurement, stop at the bounds.
    """
    found, (low, high) = _as_written(column, cells), column.low_high
    reach = FARTHEST * ((high - low) or 1.0)
    return np.where(found > high + reach, high, np.where(found < low - reach, low, found))


def _as_written(column: Column, cells: pd.Series) -> Floats:
    if column.kind is Kind.DATETIME:
        codes = encode_column(column, _arrow(column, cells))
        return np.where(codes == NULL, np.nan, number_values(column, codes).astype(np.float64))
    try:
        if cells.dtype.kind not in "mM":  # moments and durations, which NumPy would count in ticks
            return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"column '{column.name}'",
        f"is {column.kind} and must hold numbers",
        "Mend the column, or change its kind in the schema",
    )


def is_invalid(column: Column, cells: pd.Series) -> npt.NDArray[np.bool_]:
    """Which cells the schema does not allow."""
    if column.is_choice:
        codes = choice_codes(column, cells)
        missing, wrong = codes == 0, codes > len(column.categories)
    else:
        found, (low, high) = _as_written(column, cells), column.low_high
        missing, wrong = np.isnan(found), (found < low) | (found > high)
        if column.is_whole:
            wrong |= np.isfinite(found) & (found != np.rint(found))
    return wrong if column.nullable else wrong | missing


def _arrow(column: Column, cells: pd.Series) -> Any:
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        pass
    try:  # an object column whose cells are of several types
        return pa.array(cells.astype(str).where(cells.notna(), None), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(f"column '{column.name}'", "holds cells that are no values", "Mend the column") from None
