"""The total encoder: every cell, whatever its bytes, becomes a bounded integer code.

Out of bounds is clipped. A null, a NaN or an unlisted category becomes ``NULL`` (or the
category that the schema names as ``unknown``). The only refusal is a column of the wrong
type, and it names the column, never a cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.errors import InputError
from understudy.schema.columns import BLANKS, NULL, NULL_WORDS, Column, Kind, Role
from understudy.schema.table import Schema

Codes = npt.NDArray[np.int64]

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SPECIAL = r"(?i)^[+-]?(inf|infinity|nan)$"
_NULL_WORDS = rf"(?i)^({NULL_WORDS})?$"
_NOBODY = rf"(?i)^[\pP\pS\pZ]*({NULL_WORDS})?[\pP\pS\pZ]*$"  # with signs around it, or signs alone
_WHOLE = r"^([+-]?\d+)\.0*$"
_TIME, _ZONE = r"\d{2}(:?\d{2}(:?\d{2}(\.\d+)?)?)?", r"(Z|[+-]\d{2}(:?\d{2})?)"
_DATE = rf"^\d{{4}}-\d{{2}}-\d{{2}}([T ]{_TIME}{_ZONE}?)?$"
_ZONED = rf"[T ]{_TIME}{_ZONE}$"
_PAST_MICROSECONDS = r"(\.\d{6})\d+"


def encode_batch(schema: Schema, batch: pa.RecordBatch) -> Codes:
    """Encode a record batch that holds the schema's used columns.

    Returns:
        One integer code per cell, columns in the schema's order.  # (num_rows, num_used)

    Guarantee:
        A row's codes depend on that row's cells and the schema alone.
    """
    codes = np.empty((batch.num_rows, len(schema.used)), dtype=np.int64, order="F")
    for position, column in enumerate(schema.used):
        codes[:, position] = encode_column(column, batch.column(column.name))
    return codes


def encode_column(column: Column, cells: Any) -> Codes:
    """Encode one Arrow array."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if column.is_choice and _is_plain_text(cells.type):
        cells = cells.dictionary_encode()  # so that each word is looked up once
    if pa.types.is_dictionary(cells.type):
        return _dictionary_codes(column, cells)
    return _plain_codes(column, cells)


def _plain_codes(column: Column, cells: Any) -> Codes:
    if pa.types.is_nested(cells.type):
        raise _wrong_type(column, "a nested type")
    if column.is_choice:
        return _choice_codes(column, cells)
    return _number_codes(
        column, _moments(column, cells) if column.kind is Kind.DATETIME else _floats(column, cells)
    )


def encode_ids(name: str, cells: Any) -> Any:
    """The cells of a column of ids as bytes; null where a cell names nobody.

    That is a null or NaN, and in text a blank, a word for null, or signs without a letter or digit.

    Guarantee:
        What a cell becomes depends on that cell alone. Equal cells become equal bytes; different ones of a type
        that name somebody different bytes, but for blanks around text and zeros after the point of whole numbers.
    """
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    column = Column(name=name, kind=Kind.ID, role=Role.ID)
    if pa.types.is_decimal(cells.type):  # as floats, two people with long numbers would be one
        digits = pc.replace_substring_regex(cells.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
        return pc.replace_substring_regex(digits, r"\.$", "").cast(pa.binary())
    if pa.types.is_nested(cells.type):
        raise _wrong_type(column, "a nested type")
    if _is_text(cells.type):
        return _text_ids(cells)
    return _labels(column, _blank_to_null(cells)).cast(pa.binary())


def _text_ids(cells: Any) -> Any:
    """Bytes of a fixed width may be numbers, whose bytes are no blanks; other text is trimmed."""
    text = _text(cells)
    is_fixed = pa.types.is_fixed_size_binary(cells.type)
    own = cells if is_fixed else pc.replace_substring_regex(text, _WHOLE, r"\1")
    named = pc.invert(pc.match_substring_regex(text, _NOBODY))
    return pc.if_else(named, own.cast(pa.binary()), None)


def _dictionary_codes(column: Column, cells: Any) -> Codes:
    """Encode the values that rows refer to; others are not this table's cells."""
    size = len(cells.dictionary)
    indices = cells.indices.cast(pa.int64()).fill_null(size).to_numpy(zero_copy_only=False)
    referred = np.flatnonzero(np.bincount(indices, minlength=size + 1)[:size])
    codes: Codes = np.full(size + 1, NULL, dtype=np.int64)
    codes[referred] = _plain_codes(column, cells.dictionary.take(pa.array(referred)))
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
        return _parse_numbers(column, _text(cells))
    if pa.types.is_null(kind):
        return np.full(len(cells), np.nan)
    if pa.types.is_boolean(kind):
        cells = cells.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise _wrong_type(column, f"cells of type {kind}")
    return _to_numpy(cells.cast(pa.float64(), safe=False))


def _parse_numbers(column: Column, text: Any) -> npt.NDArray[np.float64]:
    number = pc.or_(
        pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _SPECIAL)
    )
    blank = pc.match_substring_regex(text, _NULL_WORDS)
    if not pc.all(pc.or_(number, blank), min_count=0).as_py():
        raise _wrong_type(column, "text that is no number")
    return _to_numpy(pc.if_else(number, text, None).cast(pa.float64()))


def _moments(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    """Microseconds since 1970 in UTC, as floats so that no far date wraps around."""
    kind = cells.type
    if _is_text(kind):
        return _parse_dates(column, _text(cells))
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


def _parse_dates(column: Column, text: Any) -> npt.NDArray[np.float64]:
    blank = pc.match_substring_regex(text, _NULL_WORDS)
    dated = pc.if_else(blank, None, text)
    if pc.all(pc.match_substring_regex(dated, _DATE), min_count=0).as_py():
        dated = pc.replace_substring_regex(dated, _PAST_MICROSECONDS, r"\1")
        zoned = pc.match_substring_regex(dated, _ZONED)
        try:
            local = pc.if_else(zoned, None, dated).cast(pa.timestamp("us"))
            universal = pc.if_else(zoned, dated, None).cast(pa.timestamp("us", tz="UTC"))
            return _micros(pc.coalesce(local.cast(pa.int64()), universal.cast(pa.int64())), "us")
        except pa.ArrowInvalid:  # such as the 30th of February
            pass
    raise _wrong_type(column, "text that is no ISO date")


def _choice_codes(column: Column, cells: Any) -> Codes:
    precision = np.float32 if pa.types.is_float32(cells.type) else np.float64
    cells = _blank_to_null(cells)
    if isinstance(column.categories[0], str):
        names = pa.array([str(category).strip(BLANKS) for category in column.categories])
        found = pc.index_in(_same_truths(_labels(column, cells)), value_set=_same_truths(names))
    else:
        # A single-precision file holds 0.1 rounded, so its categories are rounded alike.
        values = pa.array(np.asarray(column.categories, dtype=precision).astype(np.float64))
        found = pc.index_in(pa.array(_lenient_floats(column, cells)), value_set=values)
    listed = (
        pc.fill_null(found, column.unlisted_code).cast(pa.int64()).to_numpy(zero_copy_only=False)
    )
    codes: Codes = np.where(pc.is_null(cells).to_numpy(zero_copy_only=False), NULL, listed)
    return codes


def _blank_to_null(cells: Any) -> Any:
    """Text is trimmed and numbers become float64; blanks and NaN become null."""
    if _is_text(cells.type):
        text = _text(cells)
        return pc.if_else(pc.equal(text, ""), None, text)
    if pa.types.is_floating(cells.type) or pa.types.is_decimal(cells.type):
        values = cells.cast(pa.float64(), safe=False)
        return pc.if_else(pc.is_nan(values), None, values)
    return cells


def _labels(column: Column, cells: Any) -> Any:
    """Cells as text; whole floats lose their point, as category names have none."""
    if pa.types.is_floating(cells.type):
        whole = pc.and_(pc.is_finite(cells), pc.equal(cells, pc.floor(cells)))
        whole = pc.and_(whole, pc.less(pc.abs(cells), 2.0**53))
        integers = pc.if_else(whole, cells, None).cast(pa.int64()).cast(pa.string())
        return pc.if_else(pc.fill_null(whole, False), integers, cells.cast(pa.string()))
    try:
        return cells.cast(pa.string())
    except pa.ArrowException:
        pass
    raise _wrong_type(column, f"cells of type {cells.type}")


def _same_truths(text: Any) -> Any:
    """Spell True, TRUE and true alike, as files of truth values and of text spell them apart."""
    for word in ("true", "false"):
        text = pc.if_else(pc.match_substring_regex(text, f"(?i)^{word}$"), word, text)
    return text


def _lenient_floats(column: Column, cells: Any) -> npt.NDArray[np.float64]:
    """Cells as numbers for a column whose categories are numbers; other text is unlisted."""
    if not _is_text(cells.type):
        return _floats(column, cells)
    for word, digit in (("true", "1"), ("false", "0")):
        cells = pc.if_else(pc.match_substring_regex(cells, f"(?i)^{word}$"), digit, cells)
    number = pc.match_substring_regex(cells, _NUMBER)
    return _to_numpy(pc.if_else(number, cells, None).cast(pa.float64()))


def _is_text(kind: Any) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
            pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        )
    )  # fmt: skip


def _is_plain_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


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
        f"column '{column.name}'", f"is {column.kind} and must hold {wanted}, but holds {found}",
        "Mend the column, or change its kind in the schema",
    )  # fmt: skip
