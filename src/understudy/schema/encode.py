"""The total encoder: every cell, whatever its bytes, becomes a bounded integer code.

Out of bounds is clipped. A null, a NaN, text that is no number or date where one is due, or an unlisted
category becomes ``NULL`` (or the category that the schema names as ``unknown``). The only refusal is a
column whose declared type does not fit; it depends on no cell, and names the column. A column that is
typed otherwise because of one row (integers as floats, truths as objects, dates in another unit) gives
the other rows the codes that they had (proofs/cells.md).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bytes, Codes
from understudy.errors import InputError
from understudy.schema.columns import BLANKS, NULL, NULL_WORDS, UNLISTED, Column, Kind, Resolution, Role, number_values
from understudy.schema.images import ImageShape
from understudy.schema.onehot import group_codes, member_codes
from understudy.schema.table import Schema

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SPECIAL = r"(?i)^[+-]?(inf|infinity|nan)$"
_NULL_WORDS = rf"(?i)^({NULL_WORDS})?$"
_NOBODY = rf"(?i)^[\pP\pS\pZ\pC\pM]*({NULL_WORDS})?[\pP\pS\pZ\pC\pM]*$"
"""A word for null with signs around it, or signs and invisible characters alone."""

_NO_BYTES = rf"(?i)^[\pP\pS\pZ]*({NULL_WORDS})?[\pP\pS\pZ]*$"
"""The same for bytes of a fixed width, which may be numbers."""

_WHOLE = r"^([+-]?\d+)\.0*$"
_MONTHS = r"((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
_LEAP_DAY = r"(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
_HOUR = r"([01]\d|2[0-3])"
_SIXTIETH = r"[0-5]\d"
_TIME = rf"{_HOUR}(:{_SIXTIETH}(:{_SIXTIETH}(\.\d+)?)?)?"
_ZONE = rf"(Z|[+-]{_HOUR}(:?{_SIXTIETH})?)"
_DATE = rf"^(\d{{4}}-{_MONTHS}|{_LEAP_DAY})([T ]{_TIME}{_ZONE}?)?$"
"""The dates and times that there are: what fits, Arrow reads."""

_ZONED = rf"[T ]{_TIME}{_ZONE}$"
_PAST_MICROSECONDS = r"(\.\d{6})\d+"
_PLAIN_TEXT = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def encode_batch(schema: Schema, batch: pa.RecordBatch, *, unlisted: int = NULL) -> Codes:
    """Encode a record batch that holds the schema's used columns.

    Args:
        schema: the columns.
        batch: cells of the columns that rows are read with.
        unlisted: the code of cells that are not blank and hold no value of their column.

    Returns:
        One integer code per cell, columns in the schema's order.  # (num_rows, num_used)

    Guarantee:
        A row's codes depend on that row's cells and the schema alone (proofs/encoder.md).
    """
    codes = np.empty((batch.num_rows, len(schema.used)), dtype=np.int64, order="F")
    for position, column in enumerate(schema.used):
        if column.members:
            codes[:, position] = _group_codes(column, batch, unlisted)
        else:
            codes[:, position] = encode_column(column, batch.column(column.name), unlisted=unlisted)
    return codes


def _group_codes(group: Column, batch: pa.RecordBatch, unlisted: int) -> Codes:
    own = [encode_column(each, batch.column(each.name), unlisted=unlisted) for each in group.members]
    return group_codes(group, np.stack(own, axis=1), unlisted=unlisted)


def encode_column(column: Column, cells: Any, *, unlisted: int = NULL) -> Codes:
    """Encode one Arrow array.

    Guarantee:
        The code of a cell is a function of that cell and the column; refusals depend on the array's type alone
        (proofs/encoder.md).
    """
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    cells = _unwrapped(column, cells)
    if column.is_choice and cells.type in _PLAIN_TEXT:
        cells = cells.dictionary_encode()  # so that each word is looked up once
    if pa.types.is_dictionary(cells.type):
        return _dictionary_codes(column, cells, unlisted)
    return _plain_codes(column, cells, unlisted)


@dataclass(frozen=True)
class Misfits:
    """How many cells of a column are no value of it, and why. PRIVATE: these are exact."""

    blank: int = 0
    unreadable: int = 0
    outside: int = 0
    unlisted: int = 0

    def __add__(self, other: Misfits) -> Misfits:
        return Misfits(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def count_misfits(column: Column, cells: Any) -> Misfits:
    """Count what ``encode_column`` turns into null, or clips."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    codes = encode_column(replace(column, unknown=None), cells, unlisted=UNLISTED)
    blank, other = int((codes == NULL).sum()), int((codes == UNLISTED).sum())
    if column.is_choice:
        return Misfits(blank=blank, unlisted=other if column.unknown is None else 0)
    values, (low, high) = _values(column, _unwrapped(column, cells)), column.low_high
    if column.resolution is not None:
        values = values - values % column.resolution.microseconds
    return Misfits(blank=blank, unreadable=other, outside=int(((values < low) | (values > high)).sum()))


def batch_misfits(schema: Schema, batch: pa.RecordBatch) -> dict[str, Misfits]:
    """The same for every column of a batch; rows of a one-hot group have none set (blank) or several (unlisted)."""
    found = {column.name: count_misfits(column, batch.column(column.name)) for column in schema.in_files}
    for group in (column for column in schema.used if column.members):
        codes = _group_codes(group, batch, UNLISTED)
        found[group.name] = Misfits(blank=int((codes == NULL).sum()), unlisted=int((codes == UNLISTED).sum()))
    return found


def _blanks(column: Column, cells: Any) -> npt.NDArray[np.bool_]:
    """Which cells are null, NaN or empty, or a word for that."""
    cells = _blank_to_null(column, cells)
    blank = cells.is_null()
    if _is_text(cells.type):
        blank = pc.or_(blank, pc.fill_null(pc.match_substring_regex(cells, _NULL_WORDS), False))
    return _to_numpy(blank)


def _plain_codes(column: Column, cells: Any, unlisted: int) -> Codes:
    codes = _choice_codes(column, cells) if column.is_choice else _number_codes(column, _values(column, cells))
    missing = codes == NULL
    if unlisted != NULL and missing.any():
        codes[missing & ~_blanks(column, cells)] = unlisted
    return codes


def encode_ids(name: str, cells: Any) -> Any:
    """The cells of a column of ids as bytes; null where a cell names nobody.

    That is a null or NaN, and in text a blank, a word for null, or signs without a letter or digit.

    Guarantee:
        What a cell becomes depends on that cell alone. Equal cells become equal bytes; different ones of a type
        that name somebody different bytes, but for blanks around text and zeros after the point of whole numbers
        (proofs/units.md).
    """
    column = Column(name=name, kind=Kind.ID, role=Role.ID)
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    cells = _unwrapped(column, cells)
    if pa.types.is_decimal(cells.type):  # as floats, two people with long numbers would be one
        return _without_last_zeros(cells.cast(pa.string())).cast(pa.binary())
    if not _is_text(cells.type):
        return _labels(column, _blank_to_null(column, cells)).cast(pa.binary())
    # Bytes of a fixed width may be numbers, whose bytes are no blanks; other text is trimmed.
    text = _text(cells)
    is_fixed = pa.types.is_fixed_size_binary(cells.type)
    own = cells if is_fixed else pc.replace_substring_regex(text, _WHOLE, r"\1")
    named = pc.invert(pc.match_substring_regex(text, _NO_BYTES if is_fixed else _NOBODY))
    return pc.if_else(named, own.cast(pa.binary()), None)


def _unwrapped(column: Column, cells: Any) -> Any:
    """Cells of an extension type as what they stand for, UUIDs and JSON as text; nested and other ones are refused."""
    kind = cells.type
    if pa.types.is_nested(kind):
        raise _wrong_type(column, "a nested type")
    if not isinstance(kind, pa.BaseExtensionType):
        return cells
    if isinstance(kind, pa.UuidType):
        return _uuid_text(cells.storage)
    if isinstance(kind, pa.JsonType | pa.Bool8Type):
        return cells.storage
    raise _wrong_type(column, f"cells of type {kind}")


def _uuid_text(cells: Any) -> Any:
    """Sixteen bytes each as text, in groups of 8, 4, 4, 4 and 12 hexadecimal digits."""
    known = _to_numpy(cells.is_valid())
    joined = b"".join(cells.drop_null().to_pylist()).hex()
    digits = np.frombuffer(joined.encode(), dtype="S1").reshape(-1, 32)
    text = np.full((len(digits), 36), b"-", dtype="S1")
    text[:, [i for i in range(36) if i not in (8, 13, 18, 23)]] = digits
    places = np.where(known, np.cumsum(known) - 1, -1)
    words = pa.array(text.reshape(-1).view("S36").astype(str) if len(digits) else [], pa.string())
    return words.take(pa.array(places, pa.int64(), mask=~known))


def _dictionary_codes(column: Column, cells: Any, unlisted: int) -> Codes:
    """Encode the values that rows refer to; others are not this table's cells."""
    values = _unwrapped(column, cells.dictionary)
    size = len(values)
    indices = _to_numpy(cells.indices.cast(pa.int64()).fill_null(size))
    referred = np.flatnonzero(np.bincount(indices, minlength=size + 1)[:size])
    codes: Codes = np.full(size + 1, NULL, dtype=np.int64)
    codes[referred] = _plain_codes(column, values.take(pa.array(referred)), unlisted)
    found: Codes = codes[indices]
    return found


def _number_codes(column: Column, values: npt.NDArray[np.float64]) -> Codes:
    low, high = column.low_high
    missing = np.isnan(values)
    clipped = np.where(missing, low, values)
    np.minimum(np.maximum(clipped, low, out=clipped), high, out=clipped)
    if column.kind is Kind.CONTINUOUS:
        clipped -= low
        clipped /= (high - low) or 1.0
        clipped *= column.num_steps
        codes: Codes = np.rint(clipped, out=clipped).astype(np.int64)
    else:  # whole numbers below 2^53, whose difference may be above it
        codes = np.rint(clipped, out=clipped).astype(np.int64)
        codes -= int(low)
        codes //= column.resolution.microseconds if column.resolution is not None else 1
    np.clip(codes, 0, column.num_steps, out=codes)
    codes[missing] = NULL
    return codes


def _values(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    """Numbers, or microseconds since 1970 in UTC, as floats so that no far date wraps around; NaN for what is none."""
    is_moment = column.kind is Kind.DATETIME
    if _is_text(cells.type):
        found = (_parse_dates if is_moment else parse_numbers)(_text(cells))
    elif pa.types.is_null(cells.type):
        found = np.full(len(cells), np.nan)
    else:
        found = _moments(column, cells) if is_moment else _floats(column, cells)
    return found + 0.0  # -0.0 becomes 0: Arrow's look-up and text tell them apart


def _floats(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    kind = cells.type
    if pa.types.is_boolean(kind):
        cells = cells.cast(pa.int8())
    elif pa.types.is_decimal(kind):  # by their digits: Arrow's own cast rounds by the scale of the column
        cells = cells.cast(pa.string())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise _wrong_type(column, f"cells of type {kind}")
    return _to_numpy(cells.cast(pa.float64(), safe=False))


def parse_numbers(text: Any) -> npt.NDArray[np.float64]:
    """Numbers of cells that are numbers; true and false are 1 and 0, as they are in columns of truths."""
    for word, digit in (("true", "1"), ("false", "0")):
        text = pc.if_else(pc.match_substring_regex(text, f"(?i)^{word}$"), digit, text)
    number = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _SPECIAL))
    return _to_numpy(pc.if_else(number, text, None).cast(pa.float64()))


def _moments(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    if pa.types.is_date(cells.type):
        cells = cells.cast(pa.timestamp("ms"))
    if not pa.types.is_timestamp(cells.type):
        raise _wrong_type(column, f"cells of type {cells.type}")
    return _micros(cells.cast(pa.int64()), cells.type.unit)


def _micros(ticks: Any, unit: str) -> npt.NDArray[np.float64]:
    if unit != "ns":
        per_tick = {"s": 1e6, "ms": 1e3, "us": 1.0}[unit]
        return _to_numpy(ticks.cast(pa.float64(), safe=False)) * per_tick
    # Nanoseconds are past 2^53: as floats they would cross into the next second.
    whole = _to_numpy(ticks.fill_null(0)) // 1000
    return np.where(_to_numpy(pc.is_null(ticks)), np.nan, whole)


def _parse_dates(text: Any) -> npt.NDArray[np.float64]:
    """Moments of cells that are ISO dates, which Arrow is given alone: it refuses a column for one other cell."""
    dated = pc.if_else(pc.match_substring_regex(text, _DATE), text, None)
    dated = pc.replace_substring_regex(dated, _PAST_MICROSECONDS, r"\1")
    zoned = pc.match_substring_regex(dated, _ZONED)
    local = pc.if_else(zoned, None, dated).cast(pa.timestamp("us"))
    universal = pc.if_else(zoned, dated, None).cast(pa.timestamp("us", tz="UTC"))
    return _micros(pc.coalesce(local.cast(pa.int64()), universal.cast(pa.int64())), "us")


def _choice_codes(column: Column, cells: Any) -> Codes:
    """Where cells stand among the categories; a spelling that is listed comes first."""
    cells = _blank_to_null(column, cells)
    if isinstance(column.categories[0], str):
        text = _labels(column, cells)
        names = pa.array([str(category).strip(BLANKS) for category in column.categories])
        alike = pc.index_in(_spelt_alike(text), value_set=_spelt_alike(names))
        found = pc.coalesce(pc.index_in(text, value_set=names), alike)
    else:
        numbers = pa.array(_values(column, cells))
        exact = np.asarray(column.categories, dtype=np.float64)
        # What was stored in single precision holds 0.1 rounded.
        rounded = pc.index_in(numbers, value_set=pa.array(exact.astype(np.float32).astype(np.float64)))
        found = pc.coalesce(pc.index_in(numbers, value_set=pa.array(exact)), rounded)
    listed = _to_numpy(pc.fill_null(found, column.unlisted_code).cast(pa.int64()))
    return np.where(_to_numpy(pc.is_null(cells)), NULL, listed)


def _blank_to_null(column: Column, cells: Any) -> Any:
    """Text is trimmed and numbers become float64; blanks and NaN become null."""
    is_number = not column.is_choice or not isinstance(column.categories[0], str)
    if _is_text(cells.type):
        text = _text(cells)
        blank = r"(?i)^([+-]?nan)?$" if is_number else "^$"
        return pc.if_else(pc.match_substring_regex(text, blank), None, text)
    if pa.types.is_decimal(cells.type) and not is_number:
        return _without_last_zeros(cells.cast(pa.string()))  # as floats, long ones would fall together
    if pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type):
        return pa.array(_values(column, cells), from_pandas=True)
    return cells


def _without_last_zeros(text: Any) -> Any:
    text = pc.replace_substring_regex(text, r"(\.\d*?)0+$", r"\1")
    return pc.replace_substring_regex(text, r"\.$", "")


def _labels(column: Column, cells: Any) -> Any:
    """Cells as text; whole floats lose their point, as names of categories have none, and moments their last zeros."""
    kind = cells.type
    if pa.types.is_floating(kind):
        whole = pc.and_(pc.is_finite(cells), pc.equal(cells, pc.floor(cells)))
        whole = pc.and_(whole, pc.less(pc.abs(cells), 2.0**53))
        integers = pc.if_else(whole, cells, None).cast(pa.int64()).cast(pa.string())
        return pc.if_else(pc.fill_null(whole, False), integers, cells.cast(pa.string()))
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        zone = "Z" if pa.types.is_timestamp(kind) and kind.tz else ""
        naive = cells.cast(pa.int64()).cast(pa.timestamp(kind.unit)) if zone else cells
        return pc.binary_join_element_wise(_without_last_zeros(naive.cast(pa.string())), zone, "")
    if not pa.types.is_duration(kind):  # whose text would be a count of its unit
        with contextlib.suppress(pa.ArrowException):
            return cells.cast(pa.string())
    raise _wrong_type(column, f"cells of type {kind}")


def _spelt_alike(text: Any) -> Any:
    """Spell True, TRUE and true alike, 1.0 as 1 and -0.0 as 0: columns of text spell truths and floats apart from
    typed ones.
    """
    for word in ("true", "false"):
        text = pc.if_else(pc.match_substring_regex(text, f"(?i)^{word}$"), word, text)
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0$", r"\1")
    return pc.replace_substring_regex(text, r"^-0$", "0")


def _is_text(kind: Any) -> bool:
    is_fixed = pa.types.is_fixed_size_binary(kind)
    return is_fixed or kind in (*_PLAIN_TEXT, pa.string_view(), pa.binary_view())


def _text(cells: Any) -> Any:
    """Any text or bytes as a trimmed string array, bytes untouched (they may be no UTF-8)."""
    if not pa.types.is_string(cells.type):
        cells = cells.cast(pa.binary()).view(pa.string())
    return pc.ascii_trim_whitespace(cells)


def _to_numpy(cells: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = cells.to_numpy(zero_copy_only=False)
    return values


def _wrong_type(column: Column, found: str) -> InputError:
    kinds = {Kind.DATETIME: "dates", Kind.ID: "text or numbers"}
    wanted = "categories" if column.is_choice else kinds.get(column.kind, "numbers")
    return InputError(
        f"column '{column.name}'",
        f"is {column.kind} and must hold {wanted}, but holds {found}",
        "Mend the column, or change its kind in the schema",
    )


def pixel_columns(images: Bytes, shape: ImageShape, wanted: Iterable[str] | None = None) -> dict[str, Any]:
    """Arrow columns of images, all of them or those that are wanted.

    Args:
        images: of this shape, with or without an axis for channels.  # (num_images, ...)
        shape: what every image looks like.
        wanted: names of pixels.
    """
    chosen = frozenset(shape.names if wanted is None else wanted)
    by_pixel = np.ascontiguousarray(images.reshape(len(images), shape.num_pixels).T)
    return {name: pa.array(cells) for name, cells in zip(shape.names, by_pixel, strict=True) if name in chosen}


def pixel_array(rows: Any, shape: ImageShape) -> Bytes:
    """Images of a table or batch that has their pixels, in any type that a schema reads.

    Returns:
        Whole numbers from 0 to 255, and 0 for null.  # (num_rows, height, width[, channels])
    """
    flat = np.empty((rows.num_rows, shape.num_pixels), dtype=np.uint8)
    for position, column in enumerate(shape.columns):
        flat[:, position] = encode_column(column, rows.column(column.name)).clip(min=0)
    return flat.reshape(rows.num_rows, *shape.axes)


def decode_table(schema: Schema, codes: npt.NDArray[np.int64]) -> pa.Table:
    """Turn codes into an Arrow table: integers stay integers, nulls stay nulls, dates stay dates."""
    found = dict[str, Any]()
    for own, column in zip(codes.T, schema.used, strict=True):
        parts = zip(column.members, member_codes(column, own).T, strict=True) if column.members else [(column, own)]
        found |= {each.name: decode_column(each, part) for each, part in parts}
    return pa.table({name: found[name] for name in schema.file_names})


def decode_column(column: Column, codes: npt.NDArray[np.int64]) -> Any:
    """Decode one column; a code outside ``0..`` is null."""
    missing = codes == NULL
    known = np.where(missing, 0, codes)
    if column.is_choice:
        return pa.array(column.categories).take(pa.array(known, mask=missing))
    values = pa.array(number_values(column, known), mask=missing)
    if column.resolution is None:
        return values
    moments = values.cast(pa.timestamp("us"))
    return moments.cast(pa.date32()) if column.resolution is Resolution.DAY else moments
