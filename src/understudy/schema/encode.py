"""The total encoder: every cell, whatever its bytes, becomes a bounded integer code.

Out of bounds is clipped. A null, a NaN, text that is no number or date where one is due, or an unlisted
category becomes ``NULL`` (or the category that the schema names as ``unknown``). The only refusal is a
column whose declared type does not fit; it depends on no cell, and names the column. A column that is
typed otherwise because of one row (integers as floats, truths as objects, dates in another unit) gives
the other rows the codes that they had (proofs/cells.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.arrays import Bytes, Codes
from understudy.errors import InputError
from understudy.schema.columns import BLANKS, NULL, NULL_WORDS, Column, Kind, Resolution, Role, number_values
from understudy.schema.images import ImageShape
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


def encode_batch(schema: Schema, batch: pa.RecordBatch, *, unlisted: int = NULL) -> Codes:
    """Encode a record batch that holds the schema's used columns.

    Args:
        schema: the columns.
        batch: their cells.
        unlisted: the code of cells that are not blank and hold no value of their column.

    Returns:
        One integer code per cell, columns in the schema's order.  # (num_rows, num_used)

    Guarantee:
        A row's codes depend on that row's cells and the schema alone (proofs/encoder.md).
    """
    codes = np.empty((batch.num_rows, len(schema.used)), dtype=np.int64, order="F")
    for position, column in enumerate(schema.used):
        codes[:, position] = encode_column(column, batch.column(column.name), unlisted=unlisted)
    return codes


def encode_column(column: Column, cells: Any, *, unlisted: int = NULL) -> Codes:
    """Encode one Arrow array.

    Guarantee:
        The code of a cell is a function of that cell and the column; refusals depend on the array's type alone
        (proofs/encoder.md).
    """
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    cells = _unwrapped(column, cells)
    if column.is_choice and _is_plain_text(cells.type):
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
    codes = encode_column(column, cells)
    blank = _blanks(column, cells)
    if column.is_choice:
        found = _listed_places(column, _blank_to_null(column, cells))
        listed = found.is_valid().to_numpy(zero_copy_only=False)
        unlisted = ~blank & ~listed & (column.unknown is None)
        return Misfits(blank=int((blank & ~listed).sum()), unlisted=int(unlisted.sum()))
    values, (low, high) = _values(column, cells), column.low_high
    if column.resolution is not None:
        values = values - values % column.resolution.microseconds
    return Misfits(
        blank=int(blank.sum()),
        unreadable=int(((codes == NULL) & ~blank).sum()),
        outside=int(((values < low) | (values > high)).sum()),
    )


def _blanks(column: Column, cells: Any) -> npt.NDArray[np.bool_]:
    """Which cells are null, NaN or empty, or a word for that."""
    cells = _blank_to_null(column, cells)
    blank = cells.is_null()
    if _is_text(cells.type):
        blank = pc.or_(blank, pc.fill_null(pc.match_substring_regex(cells, _NULL_WORDS), False))
    found: npt.NDArray[np.bool_] = blank.to_numpy(zero_copy_only=False)
    return found


def _plain_codes(column: Column, cells: Any, unlisted: int) -> Codes:
    if pa.types.is_nested(cells.type):
        raise _wrong_type(column, "a nested type")
    codes = _choice_codes(column, cells) if column.is_choice else _number_codes(column, _values(column, cells))
    missing = codes == NULL
    if unlisted != NULL and missing.any():
        codes[missing & ~_blanks(column, cells)] = unlisted
    return codes


def _values(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    return _moments(column, cells) if column.kind is Kind.DATETIME else _floats(column, cells)


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
        return _digits(cells).cast(pa.binary())
    if pa.types.is_nested(cells.type):
        raise _wrong_type(column, "a nested type")
    if _is_text(cells.type):
        return _text_ids(cells)
    return _labels(column, _blank_to_null(column, cells)).cast(pa.binary())


def _text_ids(cells: Any) -> Any:
    """Bytes of a fixed width may be numbers, whose bytes are no blanks; other text is trimmed."""
    text = _text(cells)
    is_fixed = pa.types.is_fixed_size_binary(cells.type)
    own = cells if is_fixed else pc.replace_substring_regex(text, _WHOLE, r"\1")
    named = pc.invert(pc.match_substring_regex(text, _NO_BYTES if is_fixed else _NOBODY))
    return pc.if_else(named, own.cast(pa.binary()), None)


def _unwrapped(column: Column, cells: Any) -> Any:
    """Cells of an extension type as what they stand for, UUIDs and JSON as text; others are refused by type."""
    kind = cells.type
    if not isinstance(kind, pa.BaseExtensionType):
        return cells
    if isinstance(kind, pa.UuidType):
        return _uuid_text(cells.storage)
    if isinstance(kind, pa.JsonType | pa.Bool8Type):
        return cells.storage
    raise _wrong_type(column, f"cells of type {kind}")


def _uuid_text(cells: Any) -> Any:
    """Sixteen bytes each as text, in groups of 8, 4, 4, 4 and 12 hexadecimal digits."""
    known = cells.is_valid().to_numpy(zero_copy_only=False)
    joined = b"".join(cells.drop_null().to_pylist()).hex()
    digits = np.frombuffer(joined.encode(), dtype="S1").reshape(-1, 32)
    text = np.full((len(digits), 36), b"-", dtype="S1")
    text[:, [i for i in range(36) if i not in (8, 13, 18, 23)]] = digits
    places = np.where(known, np.cumsum(known) - 1, -1)
    words = pa.array(text.reshape(-1).view("S36").astype(str) if len(digits) else [], pa.string())
    return words.take(pa.array(places, pa.int64(), mask=~known))


def _dictionary_codes(column: Column, cells: Any, unlisted: int) -> Codes:
    """Encode the values that rows refer to; others are not this table's cells."""
    if isinstance(cells.dictionary.type, pa.BaseExtensionType):
        values = _unwrapped(column, cells.dictionary)
        cells = pa.DictionaryArray.from_arrays(cells.indices, values)
    size = len(cells.dictionary)
    indices = cells.indices.cast(pa.int64()).fill_null(size).to_numpy(zero_copy_only=False)
    referred = np.flatnonzero(np.bincount(indices, minlength=size + 1)[:size])
    codes: Codes = np.full(size + 1, NULL, dtype=np.int64)
    codes[referred] = _plain_codes(column, cells.dictionary.take(pa.array(referred)), unlisted)
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


def _floats(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    kind = cells.type
    if _is_text(kind):
        return parse_numbers(_text(cells))
    if pa.types.is_null(kind):
        return np.full(len(cells), np.nan)
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
    """Microseconds since 1970 in UTC, as floats so that no far date wraps around."""
    kind = cells.type
    if _is_text(kind):
        return _parse_dates(_text(cells))
    if pa.types.is_null(kind):
        return np.full(len(cells), np.nan)
    if pa.types.is_date32(kind):
        return _to_numpy(cells.cast(pa.int32()).cast(pa.float64())) * 86_400e6
    if pa.types.is_date64(kind):
        return _to_numpy(cells.cast(pa.int64()).cast(pa.float64(), safe=False)) * 1e3
    if pa.types.is_timestamp(kind):
        return _micros(cells.cast(pa.int64()), kind.unit)
    raise _wrong_type(column, f"cells of type {kind}")


def _micros(ticks: Any, unit: str) -> npt.NDArray[np.float64]:
    if unit != "ns":
        per_tick = {"s": 1e6, "ms": 1e3, "us": 1.0}[unit]
        return _to_numpy(ticks.cast(pa.float64(), safe=False)) * per_tick
    # Nanoseconds are past 2^53: as floats they would cross into the next second.
    whole = ticks.fill_null(0).to_numpy(zero_copy_only=False) // 1000
    return np.where(pc.is_null(ticks).to_numpy(zero_copy_only=False), np.nan, whole)


def _parse_dates(text: Any) -> npt.NDArray[np.float64]:
    """Moments of cells that are ISO dates, which Arrow is given alone: it refuses a column for one other cell."""
    dated = pc.if_else(pc.match_substring_regex(text, _DATE), text, None)
    dated = pc.replace_substring_regex(dated, _PAST_MICROSECONDS, r"\1")
    zoned = pc.match_substring_regex(dated, _ZONED)
    local = pc.if_else(zoned, None, dated).cast(pa.timestamp("us"))
    universal = pc.if_else(zoned, dated, None).cast(pa.timestamp("us", tz="UTC"))
    return _micros(pc.coalesce(local.cast(pa.int64()), universal.cast(pa.int64())), "us")


def _choice_codes(column: Column, cells: Any) -> Codes:
    cells = _blank_to_null(column, cells)
    found = _listed_places(column, cells)
    listed = pc.fill_null(found, column.unlisted_code).cast(pa.int64()).to_numpy(zero_copy_only=False)
    codes: Codes = np.where(pc.is_null(cells).to_numpy(zero_copy_only=False), NULL, listed)
    return codes


def _listed_places(column: Column, cells: Any) -> Any:
    """Where cells stand among the categories, null where they do not; a spelling that is listed comes first."""
    if isinstance(column.categories[0], str):
        text = _labels(column, cells)
        names = pa.array([str(category).strip(BLANKS) for category in column.categories])
        return pc.coalesce(
            pc.index_in(text, value_set=names), pc.index_in(_spelt_alike(text), value_set=_spelt_alike(names))
        )
    numbers = pa.array(_floats(column, cells))
    exact = np.asarray(column.categories, dtype=np.float64)
    # What was stored in single precision holds 0.1 rounded.
    rounded = exact.astype(np.float32).astype(np.float64)
    return pc.coalesce(
        pc.index_in(numbers, value_set=pa.array(exact)), pc.index_in(numbers, value_set=pa.array(rounded))
    )


def _blank_to_null(column: Column, cells: Any) -> Any:
    """Text is trimmed and numbers become float64; blanks and NaN become null."""
    is_number = not column.is_choice or not isinstance(column.categories[0], str)
    if _is_text(cells.type):
        text = _text(cells)
        blank = r"(?i)^([+-]?nan)?$" if is_number else "^$"
        return pc.if_else(pc.match_substring_regex(text, blank), None, text)
    if pa.types.is_decimal(cells.type) and not is_number:
        return _digits(cells)
    if pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type):
        return pa.array(_floats(column, cells), from_pandas=True)
    return cells


def _digits(cells: Any) -> Any:
    """Decimals as text, without zeros at the end: as floats, long ones would fall together."""
    text = pc.replace_substring_regex(cells.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
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
        text = pc.replace_substring_regex(naive.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
        return pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.$", ""), zone, "")
    if pa.types.is_duration(kind):  # whose text would be a count of its unit
        raise _wrong_type(column, f"cells of type {kind}")
    try:
        return cells.cast(pa.string())
    except pa.ArrowException:
        pass
    raise _wrong_type(column, f"cells of type {kind}")


def _spelt_alike(text: Any) -> Any:
    """Spell True, TRUE and true alike, and 1.0 as 1: columns of text spell truths and floats apart from typed ones."""
    for word in ("true", "false"):
        text = pc.if_else(pc.match_substring_regex(text, f"(?i)^{word}$"), word, text)
    return pc.replace_substring_regex(text, r"^([+-]?\d+)\.0$", r"\1")


def _is_text(kind: Any) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_string_view,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
    )


def _is_plain_text(kind: Any) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _text(cells: Any) -> Any:
    """Any text or bytes as a trimmed string array, bytes untouched (they may be no UTF-8)."""
    if not pa.types.is_string(cells.type):
        cells = cells.cast(pa.binary()).view(pa.string())
    return pc.ascii_trim_whitespace(cells)


def _to_numpy(cells: Any) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = cells.to_numpy(zero_copy_only=False)
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
