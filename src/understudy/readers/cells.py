"""Python, pandas and polars columns to Arrow: untyped cells one at a time, typed columns in their type."""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_EXACT_BELOW = 2.0**53  # whole floats from here on stand for several integers
_PLAIN_FLOATS = (1e-4, 1e9)  # Python and Arrow write floats between these alike; Arrow has exponents from 1e10 on
_PLAIN_INTEGERS = 2**63
_PLAIN_EXPONENTS = 400  # decimals beyond are written with an exponent, as digits would be many


def raw_text(cell: object) -> bytes | None:
    """The text of one cell, as a CSV file would hold it; None for null, NaN, and what has no plain text.

    Numbers are written as the encoder writes those of typed columns: floats keep every bit (shortest round trip),
    whole ones lose their point, and decimals their last zeros.

    Guarantee:
        The result depends on this cell alone, and every cell has one. Methods that a subclass of text, numbers or
        dates may have overridden are not called (proofs/cells.md).
    """
    try:
        return _text_of(cell)
    except Exception:  # a time zone or a number of the caller's own making may do anything
        return None


def _text_of(cell: Any) -> bytes | None:
    kind = type(cell)  # not isinstance, which asks the cell itself
    if issubclass(kind, np.datetime64):
        return _numpy_moment(cell)
    if issubclass(kind, np.longdouble):
        cell = np.longdouble.__float__(cell)
    elif issubclass(kind, np.generic):
        cell = np.generic.item(cell)
    kind = type(cell)
    pandas = sys.modules.get("pandas")
    if cell is None or (pandas and kind in (type(pandas.NaT), type(pandas.NA))):
        return None  # Python takes NaT for a moment
    if kind is bool:
        return b"true" if cell else b"false"
    if issubclass(kind, bytes):
        return bytes.__getitem__(cell, slice(None))
    if issubclass(kind, str):
        return str.encode(cell, "utf-8", "surrogatepass")
    if issubclass(kind, int):
        return _integer(int.__add__(cell, 0))
    if issubclass(kind, float):
        return _float(float.__add__(cell, 0.0))
    if issubclass(kind, Decimal):
        return _decimal(cell)
    if pandas and kind is pandas.Timestamp:  # whose nanoseconds Python's own methods leave out
        zone = b"Z" if cell.tzinfo is not None else b""
        return (_numpy_moment(cell.to_datetime64()) or b"") + zone
    if pandas and kind is pandas.Period:
        return str(cell).encode()
    if issubclass(kind, dt.datetime):
        return _moment(dt.datetime.isoformat(cell))
    if issubclass(kind, dt.date):
        return dt.date.isoformat(cell).encode()
    if issubclass(kind, dt.time):
        return _trimmed(dt.time.isoformat(cell))
    return uuid.UUID.__str__(cell).encode() if kind is uuid.UUID else None


def raw_column(cells: Iterable[object]) -> pa.Array:
    return pa.array([raw_text(cell) for cell in cells], pa.binary())


def arrow_column(column: Any) -> pa.Array | pa.ChunkedArray:
    """A column of any library: typed ones in their type, lists and columns of objects as raw text.

    Raises:
        TypeError: it is no column, or of a type that Arrow has not.
    """
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, list | tuple):
        return raw_column(column)
    if isinstance(column, np.ndarray):
        return _numpy_column(column)
    if is_of(column, "pandas", "Series"):
        return _pandas_column(column)
    if is_of(column, "polars", "Series"):
        return _polars_column(column)
    raise TypeError("no column")


def has_objects(column: Any) -> bool:
    """Whether a column's cells have no type in common, so that each is read as text."""
    if isinstance(column, list | tuple):
        return True
    if is_of(column, "polars", "Series"):
        return bool(column.dtype == sys.modules["polars"].Object)
    return bool(getattr(column, "dtype", None) == np.dtype(object))


def is_of(value: object, package: str, name: str) -> bool:
    """Whether a value is of a package's class, told without importing the package."""
    module = sys.modules.get(package)
    return module is not None and isinstance(value, getattr(module, name))


def _pandas_column(column: Any) -> Any:
    if has_objects(column) or _is_period(column.dtype):
        return raw_column(column)
    categories = getattr(column.dtype, "categories", None)
    if categories is None or not (categories.dtype == object or _is_period(categories.dtype)):
        return pa.array(column, from_pandas=True)
    places = column.cat.codes.to_numpy()
    indices = pa.array(places, pa.int32(), mask=places < 0)
    return pa.DictionaryArray.from_arrays(indices, raw_column(categories))


def _is_period(dtype: object) -> bool:
    """Periods of time, which Arrow would be given as counts; one other cell makes pandas keep them as objects."""
    return is_of(dtype, "pandas", "PeriodDtype")


def _polars_column(column: Any) -> Any:
    if has_objects(column):
        return raw_column(column.to_list())
    # In the Arrow types that every consumer knows: no string views.
    return column.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())


def _numpy_column(column: Any) -> Any:
    if column.ndim != 1:
        raise TypeError("no column")
    mask = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else None
    cells = np.asarray(np.ma.getdata(column))
    if cells.dtype.kind in "OSTU":
        texts = cells.astype(object)
        if mask is not None:
            texts[mask] = None
        return raw_column(texts)
    if cells.dtype.kind == "f" and cells.dtype.itemsize > np.dtype(np.float64).itemsize:
        cells = cells.astype(np.float64)
    if cells.dtype.kind not in "biufM":
        raise TypeError("no type of a column")
    return pa.array(cells.astype(cells.dtype.newbyteorder("=")), mask=mask)


def _integer(value: int) -> bytes:
    if -_PLAIN_INTEGERS < value < _PLAIN_INTEGERS:
        return str(value).encode()
    return str(Decimal(value)).encode()  # Python refuses to write integers of thousands of digits


def _float(value: float) -> bytes | None:
    if value != value:
        return None
    if value.is_integer() and abs(value) < _EXACT_BELOW:
        return str(int(value)).encode()
    least, most = _PLAIN_FLOATS
    if least <= abs(value) < most:
        return repr(value).encode()
    return str(pa.scalar(value).cast(pa.string())).encode()


def _decimal(cell: Decimal) -> bytes | None:
    if Decimal.is_nan(cell):
        return None
    if Decimal.is_infinite(cell):
        return b"-inf" if Decimal.is_signed(cell) else b"inf"
    if Decimal.is_zero(cell):
        return b"0"  # as a typed column has it, which knows no sign of zero
    if abs(Decimal.adjusted(cell)) > _PLAIN_EXPONENTS:
        return Decimal.__str__(cell).encode()
    return _trimmed(Decimal.__format__(cell, "f"))


def _moment(text: str) -> bytes:
    """A moment in UTC if it has a zone, as typed columns have it."""
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return _trimmed(text)
    try:
        universal = moment.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:  # in the year 0 or 10000 there
        return text.encode()
    return _trimmed(universal.isoformat()) + b"Z"


def _numpy_moment(cell: np.datetime64) -> bytes | None:
    if np.isnat(cell):
        return None
    unit = np.datetime_data(cell.dtype)[0]
    finer: Any = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}.get(unit)
    return _trimmed(str(np.datetime_as_string(cell, unit=finer)))


def _trimmed(text: str) -> bytes:
    """Digits without last zeros, whatever the scale or unit; date and time apart by a blank."""
    text = text.replace("T", " ")
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()
