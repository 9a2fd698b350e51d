"""The encoder is total: any cell of any type that can carry a column has a bounded code."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.schema import NULL, Column, Schema
from understudy.schema.columns import BLANKS, Kind
from understudy.schema.encode import encode_batch, encode_column
from understudy.schema.entries import parse_column
from understudy.schema.table import parse_schema

SECRET = "SECRET-7f3a"


def column(kind: str, **entry: Any) -> Column:
    return parse_column({"name": "bmi", "kind": kind, **entry})


NUMBERS = (
    column("continuous", bounds=[-10, 10]),
    column("continuous", bounds=[-1e300, 1e300], nullable=True),
    column("continuous", bounds=[0, 5e-324]),
    column("continuous", bounds=[3, 3]),
    column("integer", bounds=[-5, 120], nullable=True),
    column("integer", bounds=[-(2**52), 2**52 - 1]),
    column("integer", bounds=[0, 1000], scale_hint="log1p"),
    column("ordinal", bounds=[1, 16]),
)
CHOICES = (
    column("categorical", categories=["a", "b", " c ", "1", "0.5", "true", "2020-01-01", "日本", "x\u00a0"]),
    column("categorical", categories=["a", "other"], unknown="other", nullable=True),
    column("categorical", categories=[0, 1, 2, -3]),
    column("categorical", categories=[0.5, 1.5], unknown=1.5),
    column("binary", categories=[False, True]),
    column("binary", categories=["no", "yes"], nullable=True),
    column("ordinal", categories=["low", "high"]),
)
DATES = (
    column("datetime", bounds=["1990-01-01", "2030-12-31"]),
    column("datetime", bounds=["1969-12-31T23:00:00", "2001-01-01T00:00:00.5"], nullable=True),
    column("datetime", bounds=["1700-01-01", "2250-01-01"], resolution="second"),
)
NUMBER, CHOICE, DATE = NUMBERS[0], CHOICES[0], DATES[0]

TEXT_TYPES = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
INTEGER_TYPES = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
UNITS = ("s", "ms", "us", "ns")
ZONES = (None, "UTC", "+05:30", "America/New_York", "No/SuchPlace")

EDGES = (
    "",
    " ",
    "NA",
    "n/a",
    "null",
    "None",
    "nan",
    "-NaN",
    "inf",
    "+inf",
    "-Infinity",
    "1e309",
    "-1e309",
    "1e-400",
    "5e-324",
    "1.7976931348623157e308",
    " 12 ",
    "\t-3\r\n",
    "+7",
    ".5",
    "5.",
    "-0",
    "007",
    "1E5",
    "9" * 5000,
    "0" * 5000 + "1",
    "0." + "0" * 5000 + "1",
    "1e" + "9" * 400,
)
numeric_text = (
    st.sampled_from(EDGES) | st.floats().map(repr) | st.integers().map(str) | st.decimals(allow_nan=False).map(str)
)
any_bytes = st.binary(max_size=20) | st.sampled_from(
    (b"\xff\xfe", b"a\xff", b"\x00", b" a ", b"\xc3", b"yes", b"1", b"TRUE", b"x" * 100_000, b"\xa0a", b"1\x00")
)


def largest(column: Column) -> int:
    return len(column.categories) - 1 if column.is_choice else column.num_steps


def encoded(column: Column, cells: Any) -> list[int]:
    codes = encode_column(column, cells)
    assert codes.dtype == np.int64
    assert codes.shape == (len(cells),)
    assert np.all((codes >= NULL) & (codes <= largest(column)))
    return [int(code) for code in codes]


def refusal(column: Column, cells: Any) -> str:
    with pytest.raises(InputError) as caught:
        encode_column(column, cells)
    assert caught.value.where == "column 'bmi'"
    assert caught.value.remedy == "Mend the column, or change its kind in the schema"
    assert SECRET not in str(caught.value)
    return caught.value.rule


def as_text(cells: list[str | None], kind: Any) -> Any:
    return pa.array([c if c is None else c.encode() for c in cells], pa.binary()).cast(kind)


# Numbers.


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_every_integer_of_every_width_has_a_bounded_code(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(INTEGER_TYPES))
    info = np.iinfo(kind.to_pandas_dtype())
    cells = data.draw(st.lists(st.none() | st.integers(int(info.min), int(info.max)), max_size=5))
    for each in NUMBERS:
        codes = encoded(each, pa.array(cells, kind))
        assert [code == NULL for code in codes] == [cell is None for cell in cells]
    for each in CHOICES:
        encoded(each, pa.array(cells, kind))


@given(data=st.data(), width=st.sampled_from([16, 32, 64]))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_every_float_has_a_bounded_code_nan_infinities_and_subnormals_too(data: st.DataObject, width: Any) -> None:
    cells = data.draw(st.lists(st.none() | st.floats(width=width), max_size=5))
    kind = {16: pa.float16(), 32: pa.float32(), 64: pa.float64()}[width]
    typed = pa.array([None if cell is None else np.dtype(f"f{width // 8}").type(cell) for cell in cells], kind)
    for each in NUMBERS:
        codes = encoded(each, typed)
        assert [code == NULL for code in codes] == [c is None or math.isnan(c) for c in cells]
    for each in CHOICES:
        codes = encoded(each, typed)
        nothing = [NULL if c is None or math.isnan(c) else code for c, code in zip(cells, codes, strict=True)]
        assert codes == nothing


@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_every_decimal_has_a_bounded_code(data: st.DataObject) -> None:
    kind = data.draw(
        st.sampled_from((pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(38, 10), pa.decimal256(76, 0)))
    )
    limit = 10**kind.precision - 1
    whole = data.draw(st.lists(st.none() | st.integers(-limit, limit), max_size=5))
    cells = pa.array([None if w is None else _scaled(w, kind.scale) for w in whole], kind)
    for each in NUMBERS + CHOICES:
        encoded(each, cells)


def _scaled(whole: int, scale: int) -> Decimal:
    digits = tuple(int(digit) for digit in str(abs(whole)))
    return Decimal((int(whole < 0), digits, -scale))


@given(cells=st.lists(st.none() | numeric_text, max_size=5), kind=st.sampled_from(TEXT_TYPES))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_number_written_as_text_has_the_code_of_the_number(cells: list[str | None], kind: Any) -> None:
    numbers = [_number(cell) for cell in cells]
    for each in NUMBERS:
        assert encoded(each, as_text(cells, kind)) == encoded(each, pa.array(numbers, pa.float64()))


def _number(cell: str | None) -> float | None:
    if cell is None or cell.strip().lower() in ("", "na", "n/a", "null", "none"):
        return None
    return float(cell)


def test_numbers_out_of_bounds_are_clipped() -> None:
    cells = pa.array([-1e308, -10.0, 0.0, 10.0, 11.0, 1e308, math.inf, -math.inf])
    top = NUMBER.num_steps
    assert encoded(NUMBER, cells) == [0, 0, top // 2, top, top, top, top, 0]


def test_numbers_too_large_for_a_float_are_clipped() -> None:
    assert encoded(NUMBER, pa.array(["1e309", "-1e309"])) == [NUMBER.num_steps, 0]


def test_nulls_and_nan_become_null() -> None:
    assert encoded(NUMBER, pa.array([None, math.nan])) == [NULL, NULL]
    assert encoded(NUMBER, pa.array(["", "nan", "NA", None])) == [NULL] * 4


def test_whole_number_columns_round_to_the_nearest_number() -> None:
    assert encoded(column("integer", bounds=[0, 10]), pa.array([2.4, 2.6, -0.4])) == [2, 3, 0]


def test_truth_counts_as_zero_and_one() -> None:
    assert encoded(column("integer", bounds=[0, 10]), pa.array([False, True, None])) == [0, 1, NULL]


@pytest.mark.parametrize("each", NUMBERS + CHOICES + DATES, ids=lambda each: each.kind.value)
def test_a_column_without_type_is_all_null(each: Column) -> None:
    assert encoded(each, pa.nulls(3)) == [NULL] * 3


NO_NUMBERS = (SECRET, "1,5", "0x10", "1_000", "1 2", "--1", ".", "e5", "١", "9" * 9 + "x", "2020-01-01")


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_text_that_is_no_number_is_null_and_changes_no_other_cell(kind: Any, cell: str) -> None:
    for each in NUMBERS:
        alone = encoded(each, as_text(["1", "3"], kind))
        assert encoded(each, as_text(["1", cell, "3"], kind)) == [alone[0], NULL, alone[1]]


def test_bytes_that_are_no_text_are_no_number() -> None:
    assert encoded(NUMBER, pa.array([b"\xff\xfe" + SECRET.encode(), b"10"])) == [NULL, NUMBER.num_steps]


def test_truth_in_text_counts_as_it_does_in_a_column_of_truths() -> None:
    each = column("integer", bounds=[0, 10])
    assert encoded(each, pa.array(["True", "false", "TRUE", "2", None])) == [1, 0, 1, 2, NULL]


@pytest.mark.parametrize("scale", [2, 4, 9, 20])
def test_a_decimal_has_the_code_of_its_digits_whatever_the_scale_of_its_column(scale: int) -> None:
    """Arrow casts decimals to floats by powers of ten, and rounds otherwise for every scale."""
    digits = [Decimal(n).scaleb(-2) for n in (7, 29, 58, 113, 115, 1001, 2899, 123456789)]
    typed = pa.array(digits, pa.decimal128(38, scale))
    names = tuple(str(float(each)) for each in digits)
    word = Column(name="bmi", kind=Kind.CATEGORICAL, categories=names)
    number = Column(name="bmi", kind=Kind.CATEGORICAL, categories=tuple(map(float, digits)))
    assert encoded(word, typed) == encoded(number, typed) == list(range(len(digits)))
    for each in NUMBERS:
        assert encoded(each, typed) == encoded(each, pa.array([str(d) for d in digits]))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([dt.date(2020, 1, 1)]),
        pa.array([dt.datetime(2020, 1, 1)]),
        pa.array([dt.time(1, 2)]),
        pa.array([dt.timedelta(1)]),
    ],
)
def test_dates_and_times_are_no_numbers(cells: Any) -> None:
    assert refusal(NUMBER, cells).endswith(f"must hold numbers, but holds cells of type {cells.type}")


# Choices.


@given(cells=st.lists(st.none() | any_bytes, max_size=5), kind=st.sampled_from(TEXT_TYPES[3:]))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_have_the_code_of_their_category_or_the_unlisted_one(cells: list[bytes | None], kind: Any) -> None:
    for each in CHOICES:
        codes = encoded(each, pa.array(cells, pa.binary()).cast(kind))
        if isinstance(each.categories[0], str):
            assert codes == [_code(each, cell) for cell in cells]


def _one_spelling(word: bytes) -> bytes:
    return word.lower() if word.lower() in (b"true", b"false") else word


def _code(column: Column, cell: bytes | None) -> int:
    trimmed = _one_spelling((cell or b"").strip(BLANKS.encode()))
    names = [_one_spelling(str(c).strip(BLANKS).encode()) for c in column.categories]
    if not trimmed:
        return NULL
    return names.index(trimmed) if trimmed in names else column.unlisted_code


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_an_unknown_category_becomes_null(kind: Any) -> None:
    assert encoded(CHOICE, as_text(["a", " b\t", "c", SECRET, "", None, "A"], kind)) == [
        0,
        1,
        2,
        NULL,
        NULL,
        NULL,
        NULL,
    ]


def test_an_unknown_category_becomes_the_declared_one_but_a_null_stays_null() -> None:
    each = CHOICES[1]
    assert encoded(each, pa.array(["a", SECRET, "other", "", None])) == [0, 1, 1, NULL, NULL]
    numeric = CHOICES[3]
    assert encoded(numeric, pa.array([0.5, 99.0, math.nan, None])) == [0, 1, NULL, NULL]


def test_categories_that_are_numbers_are_found_in_any_spelling() -> None:
    each = CHOICES[2]
    for cells in (
        pa.array([0, 1, -3], pa.int8()),
        pa.array([0.0, 1.0, -3.0]),
        pa.array([Decimal("0.00"), Decimal("1.00"), Decimal("-3.00")]),
        pa.array(["0", " 1.0", "-3e0"]),
        pa.array([b"false", b"TRUE", b"-3"]),
    ):
        assert encoded(each, cells) == [0, 1, 3]
    assert encoded(each, pa.array([SECRET, "1e309", "nan", "7"])) == [NULL] * 4


def test_categories_that_are_words_are_found_among_numbers_and_dates() -> None:
    assert encoded(CHOICE, pa.array([1, 7])) == [3, NULL]
    assert encoded(CHOICE, pa.array([1.0, 0.5, 0.25])) == [3, 4, NULL]
    assert encoded(CHOICE, pa.array([Decimal("1.00"), Decimal("0.50")])) == [3, 4]
    assert encoded(CHOICE, pa.array([True, False])) == [5, NULL]
    assert encoded(CHOICE, pa.array([dt.date(2020, 1, 1), dt.date(2020, 1, 2)])) == [6, NULL]


def test_truth_is_found_in_any_spelling() -> None:
    each = CHOICES[4]
    for cells in (pa.array([False, True]), pa.array(["False", "TRUE"]), pa.array([b"0", b"1"]), pa.array([0.0, 1.0])):
        assert encoded(each, cells) == [0, 1]


def test_categories_that_are_numbers_are_not_dates() -> None:
    rule = refusal(CHOICES[2], pa.array([dt.date(2020, 1, 1)]))
    assert rule == "is categorical and must hold categories, but holds cells of type date32[day]"


# Dates.


@given(data=st.data(), unit=st.sampled_from(UNITS), zone=st.sampled_from(ZONES))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_every_timestamp_of_every_unit_and_zone_has_a_bounded_code(
    data: st.DataObject, unit: str, zone: str | None
) -> None:
    ticks = data.draw(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=5))
    for each in DATES:
        codes = encoded(each, pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, tz=zone)))
        assert [code == NULL for code in codes] == [tick is None for tick in ticks]


@given(days=st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=5))
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_every_date_has_a_bounded_code(days: list[int | None]) -> None:
    narrow = pa.array(days, pa.int32()).cast(pa.date32())
    millis = [None if day is None else day * 86_400_000 for day in days]
    wide = pa.array(millis, pa.int64()).cast(pa.date64())
    for each in DATES:
        assert encoded(each, narrow) == encoded(each, wide)


@given(moment=st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1)), unit=st.sampled_from(UNITS))
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_moment_has_one_code_whatever_carries_it(moment: dt.datetime, unit: str) -> None:
    moment = moment.replace(microsecond=0)
    each = DATES[2]
    expected = [int((moment - dt.datetime(1700, 1, 1)).total_seconds())]
    assert encoded(each, pa.array([moment], pa.timestamp(unit))) == expected
    assert encoded(each, pa.array([moment], pa.timestamp(unit, tz="+05:30"))) == expected
    for text in (
        moment.isoformat(),
        moment.isoformat(" "),
        moment.isoformat() + "Z",
        moment.isoformat() + ".999999999",
        moment.isoformat() + ".000+00:00",
        (moment + dt.timedelta(hours=2)).isoformat() + "+0200",
    ):
        assert encoded(each, pa.array([text])) == expected
        assert encoded(each, pa.array([text.encode()], pa.binary_view())) == expected


def test_the_last_nanosecond_of_a_second_belongs_to_it() -> None:
    each = column("datetime", bounds=["2020-01-01T00:00:00", "2020-01-01T00:01:00"])
    start = 1_577_836_800 * 10**9
    ticks = pa.array([start, start + 10**9 - 1, start + 10**9, None], pa.int64())
    assert encoded(each, ticks.cast(pa.timestamp("ns"))) == [0, 0, 1, NULL]


def test_dates_out_of_bounds_are_clipped_and_a_time_of_day_is_dropped() -> None:
    cells = pa.array(["0001-01-01", "1990-01-01T23:59:59", "1990-01-02", "9999-12-31", "", "NA", None])
    assert encoded(DATE, cells) == [0, 0, 1, DATE.num_steps, NULL, NULL, NULL]


def test_dates_with_and_without_a_zone_may_stand_in_one_column() -> None:
    cells = pa.array(["1990-01-02", "1990-01-02T00:00:00Z", "1990-01-02 01:00+02:00", None])
    assert encoded(DATE, cells) == [1, 1, 0, NULL]


@pytest.mark.parametrize(
    "cell", [SECRET, "01/02/2020", "2020-02-30", "2020-1-2", "20200101", "2020-01-01T25:00", "2020-01-01 x", "7"]
)
def test_text_that_is_no_date_is_null_and_changes_no_other_cell(cell: str) -> None:
    for each in DATES:
        (alone,) = encoded(each, pa.array(["2000-01-01"]))
        assert encoded(each, pa.array(["2000-01-01", cell, "2000-01-01"])) == [alone, NULL, alone]


def _python_moment(text: str) -> dt.datetime | None:
    """What the standard library makes of the dates that the encoder's grammar allows."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


@given(
    year=st.integers(1690, 2250),
    month=st.integers(0, 13),
    day=st.integers(0, 32),
    gap=st.sampled_from("T "),
    clock=st.none() | st.tuples(st.integers(0, 25), st.integers(0, 61), st.integers(0, 61)),
    zone=st.sampled_from(["", "Z", "+02:00", "-0930", "+23:59", "+24:00", "-05"]),
    other=st.sampled_from(["1999-12-31", "", SECRET, "2020-02-30"]),
)
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_a_date_is_read_as_the_calendar_has_it_whatever_else_is_in_its_column(
    year: int, month: int, day: int, gap: str, clock: Any, zone: str, other: str
) -> None:
    text = f"{year:04d}-{month:02d}-{day:02d}"
    if clock is not None:
        text += gap + ":".join(f"{part:02d}" for part in clock) + zone
    moment, each = _python_moment(text), DATES[2]
    first = dt.datetime(1700, 1, 1)
    seconds = NULL if moment is None else int((moment - first).total_seconds())
    expected = seconds if moment is None else min(max(seconds, 0), each.num_steps)
    assert encoded(each, pa.array([other, text, other]))[1] == expected


@pytest.mark.parametrize("year", [1700, 1800, 1896, 1900, 1904, 2000, 2001, 2004, 2100, 2200])
def test_leap_days_are_those_of_the_calendar(year: int) -> None:
    leaps = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    (code,) = encoded(DATES[2], pa.array([f"{year}-02-29"]))
    assert (code != NULL) == leaps


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "UTC", "+02:00"])
def test_moments_that_are_categories_have_one_spelling_for_all_units(unit: str, zone: str | None) -> None:
    end = "Z" if zone else ""
    each = column("categorical", categories=["2020-01-01 10:00:00" + end, "2020-01-01 10:00:07" + end])
    moments = [dt.datetime(2020, 1, 1, 10), dt.datetime(2020, 1, 1, 10, 0, 7)]
    assert encoded(each, pa.array(moments, pa.timestamp(unit, tz=zone))) == [0, 1]


@pytest.mark.parametrize("cells", [pa.array([1]), pa.array([1.5]), pa.array([True]), pa.array([dt.time(1)])])
def test_numbers_and_times_of_day_are_no_dates(cells: Any) -> None:
    assert refusal(DATE, cells).endswith(f"must hold dates, but holds cells of type {cells.type}")


# Containers.


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}]),
        pa.array([[SECRET]]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.RunEndEncodedArray.from_arrays([2], [1.0]),
    ],
    ids=lambda cells: str(cells.type),
)
def test_nested_cells_are_refused(cells: Any) -> None:
    for each in NUMBERS + CHOICES + DATES:
        assert refusal(each, cells).endswith("but holds a nested type")


@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64()], ids=str)
def test_a_dictionary_has_the_codes_of_its_values(index: Any) -> None:
    def encode(each: Column, cells: Any) -> list[int]:
        return encoded(each, cells.cast(pa.dictionary(index, cells.type)))

    assert encode(CHOICE, pa.array(["b", None, "a", SECRET, ""])) == [1, NULL, 0, NULL, NULL]
    assert encode(NUMBER, pa.array(["10", None, "-10"])) == [NUMBER.num_steps, NULL, 0]
    assert encode(DATE, pa.array(["1990-01-02", None])) == [1, NULL]


@pytest.mark.parametrize("each", NUMBERS + CHOICES + DATES, ids=lambda each: each.kind.value)
def test_no_cells_and_dictionaries_without_values_are_no_error(each: Column) -> None:
    for kind in TEXT_TYPES:
        assert encoded(each, pa.array([], kind)) == []
    assert encoded(each, pa.array([None, None], pa.string()).dictionary_encode()) == [NULL, NULL]


def test_fixed_size_bytes_are_trimmed_text() -> None:
    assert encoded(CHOICE, pa.array([b"a  ", b" b ", b"zzz"], pa.binary(3))) == [0, 1, NULL]


# A row's codes depend on that row alone.


def _table() -> tuple[Schema, pa.Table]:
    cells = {
        "n": pa.array(["1", "", "1e309", " -3.5 ", "nan", None, "7"]),
        "f": pa.array([1.0, math.nan, 1e308, None, -math.inf, 5e-324, 3.0]),
        "c": pa.array([b"a", b"\xff", b"", None, b" b ", b"zz", b"a"]),
        "d": pa.array(["2020-01-01", "", "2020-01-01T10:00Z", "1900-01-01", None, "9999-12-31", "2020-01-01"]),
        "k": pa.array(["x", "y", None, "x", "q", "", "y"]).dictionary_encode(),
    }
    entries = [
        {"name": "n", "kind": "continuous", "bounds": [-10, 10]},
        {"name": "f", "kind": "integer", "bounds": [0, 9]},
        {"name": "c", "kind": "categorical", "categories": ["a", "b"]},
        {"name": "d", "kind": "datetime", "bounds": ["2000-01-01T00:00:00", "2030-01-01T00:00:00"]},
        {"name": "k", "kind": "categorical", "categories": ["x", "y"]},
    ]
    return parse_schema({"columns": entries}, name="t"), pa.table(cells)


@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_order_repetition_and_slicing_of_rows_gives_the_same_codes(data: st.DataObject) -> None:
    schema, table = _table()
    whole = encode_batch(schema, table.combine_chunks().to_batches()[0])
    picked = data.draw(st.lists(st.integers(0, table.num_rows - 1), min_size=1, max_size=9))
    batch = table.take(picked).combine_chunks().to_batches()[0]
    cut = data.draw(st.integers(0, len(picked)))
    parts = [encode_batch(schema, batch.slice(0, cut)), encode_batch(schema, batch.slice(cut))]
    assert np.array_equal(np.concatenate(parts), whole[picked])


def test_chunks_are_one_column() -> None:
    assert encoded(NUMBER, pa.chunked_array([["1"], [], ["nan", "-10"]])) == [2362232013, NULL, 0]


def test_columns_come_in_the_order_of_the_schema_whatever_the_order_of_the_file() -> None:
    schema, table = _table()
    turned = table.select(["k", "d", "c", "f", "n"]).combine_chunks().to_batches()[0]
    straight = table.combine_chunks().to_batches()[0]
    assert np.array_equal(encode_batch(schema, turned), encode_batch(schema, straight))


@pytest.mark.parametrize("spell", [str.upper, str.title], ids=["upper", "title"])
def test_case_matters_in_words(spell: Callable[[str], str]) -> None:
    assert encoded(CHOICES[5], pa.array([spell("yes")])) == [NULL]


def test_single_precision_cells_match_decimal_categories_in_any_column() -> None:
    column = parse_column({"name": "c", "kind": "categorical", "categories": [0.1, 0.25]})
    cells = pa.array([0.1, 0.25, 0.3], pa.float32())
    assert encode_column(column, cells).tolist() == [0, 1, -1]
    assert encode_column(column, cells.cast(pa.float64())).tolist() == [0, 1, -1]


def test_whole_floats_match_words_with_and_without_their_point() -> None:
    for names in (["1", "2"], ["1.0", "2.0"]):
        each = column("categorical", categories=names)
        for cells in (pa.array([1, 2, 3]), pa.array([1.0, 2.0, 3.0]), pa.array(["1.0", "2", "3.0"])):
            assert encoded(each, cells) == [0, 1, NULL]
    both = column("categorical", categories=["1.0", "1"])
    assert encoded(both, pa.array(["1", "1.0"])) == [1, 0]
    assert encoded(each, pa.array(["1.00", "01", "+1", "1e0"])) == [NULL] * 4


def test_durations_are_no_categories() -> None:
    assert "duration" in refusal(CHOICE, pa.array([dt.timedelta(1)]))


def test_truth_cells_match_quoted_categories() -> None:
    column = parse_column({"name": "c", "kind": "binary", "categories": ["False", "True"]})
    assert encode_column(column, pa.array([True, False, None])).tolist() == [1, 0, -1]


def test_truths_of_text_and_of_truth_columns_have_the_same_codes() -> None:
    column = parse_column({"name": "c", "kind": "binary", "categories": ["false", "true"]})
    typed = encode_column(column, pa.array([True, False, True]))
    text = encode_column(column, pa.array([b"True", b"FALSE", b"true"]))
    assert typed.tolist() == text.tolist() == [1, 0, 1]


def test_a_dictionary_value_that_no_row_has_is_not_a_cell() -> None:
    column = parse_column({"name": "c", "kind": "integer", "bounds": [0, 9]})
    cells = pa.DictionaryArray.from_arrays(pa.array([1, None, 1]), pa.array(["deleted", "7"]))
    assert encode_column(column, cells).tolist() == [7, -1, 7]
