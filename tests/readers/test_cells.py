"""A row's codes are those of its own cells: no other row changes them, however Python holds the table."""

from __future__ import annotations

import datetime as dt
import enum
import math
import traceback
import uuid
import warnings
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from understudy import LocallyLinearClassifier, Synthesizer, load_schema
from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.private.dpsgd.classifier import IntegerRows, integer_rows
from understudy.private.release import release_table
from understudy.readers import open_source
from understudy.readers.cells import raw_text
from understudy.schema import NULL, Schema
from understudy.schema.columns import UNLISTED
from understudy.schema.encode import encode_batch, encode_ids
from understudy.schema.table import parse_schema

SECRET = "SECRET4711"
SLOW = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def trained_on(X: Any, y: Any, **public: Any) -> IntegerRows:
    """The integers of rows and labels that reach the noisy sums of a classifier."""
    caught: list[IntegerRows] = []

    def train(data: object, plan: Any, **_: Any) -> Any:
        caught.append(integer_rows(data, plan, query=None))

    settings: dict[str, Any] = {"bounds": (-10, 10), "classes": [0, 1]} | public
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("understudy.estimator.train_classifier", train)
        LocallyLinearClassifier(**settings).fit(X, y)
    return caught[0]


def same_but(position: int, one: IntegerRows, more: IntegerRows) -> bool:
    """Whether two tables have the same rows apart from an added one."""
    inputs, labels = np.delete(more.inputs, position, axis=0), np.delete(more.labels, position)
    return np.array_equal(inputs, one.inputs) and np.array_equal(labels, one.labels)


# The finding: one row turned all labels of the classifier to text, and every row became null.


@pytest.mark.parametrize("label", ["x", None, 0.5, True, 2**70, [1], dt.date(2020, 1, 1), b"1"])
def test_one_label_changes_no_other_row_of_a_classifier(label: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 2)).tolist(), rng.integers(0, 2, 2000).tolist()
    before = trained_on(X, y)
    assert not (before.inputs == 0).all(axis=1).any(), "no row is null"
    after = trained_on([*X, [1.0, 2.0]], [*y, label])
    assert same_but(2000, before, after)


@pytest.mark.parametrize("cell", [SECRET, None, math.nan, math.inf, 10**400, [1], b"\xff", True])
def test_one_cell_changes_no_other_row_of_a_classifier(cell: Any) -> None:
    X, y = [[0.5, 1], [-3, 2.25], [7.125, -0.0]], [0, 1, 1]
    assert same_but(1, trained_on(X, y), trained_on([X[0], [cell, 1], *X[1:]], [0, 1, 1, 1]))


# Any cells, in any container, beside any other row.

numbers = st.integers(-12, 12) | st.floats(-12, 12, width=32)
plain = (
    numbers
    | st.sampled_from(["1", "2.5", "1.0", "a", " b ", "true", "", "NA", "1e2", "0007", "nan"])
    | st.sampled_from([None, True, False, math.nan, Decimal("2.50"), np.int8(3), np.float32(0.1)])
)
adversaries = st.sampled_from(
    [
        SECRET,
        None,
        math.nan,
        -math.inf,
        2**63,
        -(2**200),
        10**5000,
        1.5,
        True,
        b"\xff\xfe",
        "\udc80",
        [SECRET],
        {"a": 1},
        object(),
        dt.date(2020, 1, 1),
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        dt.timedelta(1),
        pd.NaT,
        pd.NA,
        pd.Timestamp("2020-01-01"),
        np.datetime64("NaT"),
        np.float16(1),
        Decimal("sNaN"),
        1j,
        np.array([1, 2]),
        "é",
        "",
        "1e999",
        uuid.UUID(int=7),
    ]
)


def object_array(cells: list[Any]) -> Any:
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


UNTYPED: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": object_array,
    "pandas objects": lambda cells: pd.Series(object_array(cells), dtype=object),
    "polars objects": lambda cells: pl.Series("a", cells, dtype=pl.Object),
}

MIXED = parse_schema(
    {
        "columns": [
            {"name": "n", "kind": "continuous", "bounds": [-10, 10]},
            {"name": "i", "kind": "integer", "bounds": [0, 9], "nullable": True},
            {"name": "d", "kind": "datetime", "bounds": ["2000-01-01", "2030-01-01"]},
            {"name": "w", "kind": "categorical", "categories": ["a", "b", "1", "2.5", "true"]},
            {"name": "c", "kind": "categorical", "categories": [0, 1, 2.5], "unknown": 0},
        ]
    },
    name="t",
)
NAMES = [column.name for column in MIXED.used]


def codes_of(data: object, schema: Schema = MIXED) -> Any:
    names = [column.name for column in schema.used]
    parts = [np.empty((0, len(names)), dtype=np.int64)]
    with open_source(data, columns=names) as stream:
        parts += [encode_batch(schema, batch, unlisted=UNLISTED) for batch in stream]
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", UNTYPED)
@given(cells=st.lists(plain, min_size=1, max_size=6), other=adversaries, place=st.integers(0, 6))
@SLOW
def test_no_cell_changes_another_in_a_column_without_type(kind: str, cells: list[Any], other: Any, place: int) -> None:
    place = min(place, len(cells))
    more = [*cells[:place], other, *cells[place:]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = codes_of(dict.fromkeys(NAMES, UNTYPED[kind](cells)))
        after = codes_of(dict.fromkeys(NAMES, UNTYPED[kind](more)))
        alone = codes_of([dict.fromkeys(NAMES, cell) for cell in cells])
    assert np.array_equal(np.delete(after, place, axis=0), before)
    assert np.array_equal(alone, before)


@pytest.mark.parametrize("kind", ["lists", "objects", "pandas"])
@given(data=st.data(), other=adversaries, label=adversaries, place=st.integers(0, 4))
@SLOW
def test_no_row_changes_another_in_a_classifier(
    kind: str, data: st.DataObject, other: Any, label: Any, place: int
) -> None:
    count = data.draw(st.integers(1, 4))
    place = min(place, count)
    X = data.draw(st.lists(st.tuples(plain, plain), min_size=count, max_size=count))
    y = data.draw(st.lists(plain, min_size=count, max_size=count))

    def held(rows: list[Any]) -> Any:
        cells = np.empty((len(rows), 2), dtype=object)
        for at, row in enumerate(rows):
            cells[at, 0], cells[at, 1] = row
        return {"lists": rows, "objects": cells, "pandas": pd.DataFrame(cells, dtype=object)}[kind]

    before = trained_on(held(X), y)
    more = [*X[:place], (other, 1), *X[place:]]
    after = trained_on(held(more), [*y[:place], label, *y[place:]])
    assert same_but(place, before, after)


# Libraries that choose a type for a whole column: cells keep their codes when one row changes it.

whole = st.integers(-(2**53) + 1, 2**53 - 1) | st.integers(-3, 12)
same_kind = {
    "integers": (whole, ["n", "i", "w", "c"]),
    "floats": (st.floats(-1e6, 1e6, width=32) | st.integers(-3, 12).map(float), ["n", "i", "c"]),
    "whole floats": (st.integers(-3, 12).map(float) | st.just(-0.0), ["n", "i", "w", "c"]),
    "truths": (st.booleans(), ["n", "i", "c"]),
    "words": (st.sampled_from(["a", "b", "1", " 2.5 ", "true", "x", ""]), ["n", "i", "w", "c"]),
    "moments": (st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2040, 1, 1)), ["d"]),
}


def pandas_inferred(cells: list[Any]) -> Any:
    return pd.Series(cells)


def polars_inferred(cells: list[Any]) -> Any:
    return pl.Series("a", cells, strict=False)


INFERRED: dict[str, tuple[Callable[[list[Any]], Any], list[Any]]] = {
    "pandas": (
        pandas_inferred,
        [SECRET, None, math.nan, 1.5, 2**63, 10**30, True, b"\xff", [SECRET], pd.NaT, dt.date(2020, 1, 1), Decimal(1)],
    ),
    "numpy": (lambda cells: np.array(cells), [SECRET, None, math.nan, 1.5, {"a": 1}]),
    "polars": (polars_inferred, [SECRET, None, math.nan, 1.5]),
}


@pytest.mark.parametrize("categories", [[0, 1], ["0", "1"], [False, True]])
def test_a_zero_with_a_sign_is_zero_in_every_type(categories: list[Any]) -> None:
    """Floats lost the category 0 for it, and had it once one other cell made them text: a row moved 1,000 others."""
    schema = load_schema({"columns": [{"name": "a", "kind": "binary", "categories": categories}]})
    zeros = [-0.0] * 3
    columns = [
        np.array(zeros),
        pd.Series([*zeros, SECRET]),
        pl.Series("a", [*zeros, SECRET], dtype=pl.Object),
        pl.Series("a", zeros).cast(pl.String),
        [*zeros, SECRET],
        [Decimal("-0.0")] * 3,
        pa.array([Decimal("-0.0")] * 3),
        pa.array(["-0.0", " -0 ", "0"]),
        pa.array(zeros, pa.float32()),
    ]
    for column in columns:
        assert codes_of({"a": column}, schema)[:3].ravel().tolist() == [0, 0, 0], column


@pytest.mark.parametrize("library", INFERRED)
@given(data=st.data())
@SLOW
def test_a_type_that_one_row_changes_leaves_the_codes_of_the_others(library: str, data: st.DataObject) -> None:
    infer, others = INFERRED[library]
    kind = data.draw(st.sampled_from(sorted(same_kind)))
    strategy, names = same_kind[kind]
    cells = data.draw(st.lists(strategy, min_size=1, max_size=5))
    other = data.draw(st.sampled_from(others))
    schema = Schema(columns=tuple(column for column in MIXED.columns if column.name in names))
    try:
        columns = infer(cells), infer([*cells, other])
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return  # the library makes no column of them
    before = codes_of(dict.fromkeys(names, columns[0]), schema)
    after = codes_of(dict.fromkeys(names, columns[1]), schema)
    assert np.array_equal(after[:-1], before)


# Every cell has a text or is null, and no code of the caller's is run for it.


class Loud(str):
    """Text whose methods tell."""

    def encode(self, *_: Any) -> bytes:  # type: ignore[override]
        raise AssertionError("user code")

    __str__ = __repr__ = strip = encode  # type: ignore[assignment]


class Lying(int):
    def __add__(self, other: int) -> int:
        return 99

    __int__ = __index__ = __repr__ = __str__ = __hash__ = __add__  # type: ignore[assignment]


class Proxy:
    """An object that passes for text if it is asked."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return str


class Broken(dt.tzinfo):
    def utcoffset(self, _: Any) -> dt.timedelta:
        raise ValueError(SECRET)


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (Loud("x"), b"x"),
        (Lying(5), b"5"),
        (Size.LARGE, b"3"),
        (Colour.RED, None),
        (Proxy(), None),
        (True, b"true"),
        (np.False_, b"false"),
        (10**5000, b"1" + b"0" * 5000),
        (-(2**64), b"-18446744073709551616"),
        (1e-5, b"0.00001"),
        (1e22, b"1e+22"),
        (2.0**53, b"9.007199254740992e+15"),
        (math.nan, None),
        (-math.inf, b"-inf"),
        (np.longdouble(0.5), b"0.5"),
        (1j, None),
        ("\udc80", b"\xed\xb2\x80"),
        (np.str_("é"), "é".encode()),
        (np.bytes_(b"q"), b"q"),
        (bytearray(b"q"), None),
        (Decimal("1.50"), b"1.5"),
        (Decimal("-0.00"), b"0"),
        (Decimal("1E+3"), b"1000"),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (Decimal("-Infinity"), b"-inf"),
        (Decimal("1E+999999"), b"1E+999999"),
        (Decimal("1234567890123456789012345678901234567890.10"), b"1234567890123456789012345678901234567890.1"),
        (pd.NaT, None),
        (pd.NA, None),
        (type(pd.NaT)(), None),
        (np.datetime64("NaT"), None),
        (pd.Timestamp("2020-01-01 10:00:00.123456789"), b"2020-01-01 10:00:00.123456789"),
        (pd.Timestamp("2020-01-01 10:00", tz="Europe/Berlin"), b"2020-01-01 09:00:00Z"),
        (dt.datetime(2020, 1, 1, 10, 0, 0, 500_000), b"2020-01-01 10:00:00.5"),
        (dt.datetime(1890, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), b"1889-12-31 23:06:32Z"),
        (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), b"0001-01-01T00:00:00+02:00"),
        (dt.datetime(2020, 1, 1, tzinfo=Broken()), None),
        (dt.date(2020, 1, 2), b"2020-01-02"),
        (np.datetime64("2020"), b"2020-01-01"),
        (np.datetime64("2020-01-01T10"), b"2020-01-01 10:00:00"),
        (np.datetime64("2020-01-01T00:00:00.000"), b"2020-01-01 00:00:00"),
        (dt.time(1, 2), b"01:02:00"),
        (dt.timedelta(1), None),
        (np.timedelta64(1, "D"), None),
        ([SECRET], None),
        ((), None),
        (np.array(3), None),
        (uuid.UUID(int=7), b"00000000-0000-0000-0000-000000000007"),
        (pd.Interval(0, 1), None),
        (str, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_cell_has_one_text_or_none(cell: Any, text: bytes | None) -> None:
    assert raw_text(cell) == text


@given(value=st.floats() | st.floats(width=32) | st.integers(-(2**63), 2**63 - 1))
@example(value=10000000000.5)
@example(value=1234567890.75)
@example(value=0.00012501)
@settings(deadline=None, max_examples=200)
def test_numbers_without_a_type_are_spelt_as_those_of_typed_columns(value: float | int) -> None:
    text = raw_text(value)
    names = {"columns": [{"name": "w", "kind": "categorical", "categories": [(text or b"-").decode()]}]}
    (code,) = codes_of({"w": pa.array([value])}, parse_schema(names, name="t"))
    assert (code[0] == 0) == (text is not None)


# What is refused, and what such a refusal holds.


def leaves_without(secret: str, *own: Any, action: Callable[[], object]) -> UnderstudyError:
    """The refusal of an action, none of whose words, causes and frames hold a secret; ``own`` is the caller's."""
    with pytest.raises(UnderstudyError) as caught:
        action()
    refusal = caught.value
    assert refusal.__cause__ is None
    assert refusal.__context__ is None
    assert secret not in "".join(traceback.format_exception_only(refusal))
    for frame, _ in traceback.walk_tb(refusal.__traceback__):
        if frame.f_code.co_filename != __file__:
            for value in frame.f_locals.values():
                assert secret not in repr(value) or any(value is each for each in own)
    return refusal


def fit(X: Any, y: Any, **public: Any) -> LocallyLinearClassifier:
    settings: dict[str, Any] = {"bounds": (-10, 10), "classes": [0, 1], "options": {"steps": 2}} | public
    return LocallyLinearClassifier(**settings).fit(X, y)


class Tensor:
    """What hands out an array, and fails with a cell."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(SECRET)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[SECRET, 1], [2]], [0, 1], "rows differ in length"),
        ([[SECRET, 1], [2, 3]], [SECRET], "differ in their number of rows"),
        ([[1, 2], SECRET], [0, 1], "rows differ in length"),
        ([SECRET, SECRET], [0, 1], "must be rows of features"),
        (np.zeros((2, 2, 2)), [SECRET, 1], "must be rows of features"),
        (np.zeros(2), [SECRET, 1], "must be rows of features"),
        ({"a": [SECRET]}, [1], "must be rows of features"),
        ((row for row in [[SECRET]]), [1], "must be rows of features"),
        ([[], []], [SECRET, 1], "has no features"),
        (np.empty((2, 0)), [SECRET, 1], "has no features"),
        ([[1.0]], {SECRET}, "must hold one label per row"),
        ([[1.0]], SECRET, "must hold one label per row"),
        ([[1.0]], [[SECRET], [2]], "differ in their number of rows"),
        (np.array([[1j]]), [SECRET], "Complex data not supported"),
        ([[1.0]], np.array([1j]), "cannot be turned into Arrow columns"),
        (pd.DataFrame({"a": pd.arrays.IntervalArray.from_tuples([(0, 1)])}), [SECRET], "holds cells of type"),
    ],
    ids=range(16),
)
def test_what_is_no_table_is_refused_without_cells_and_counts(X: Any, y: Any, words: str) -> None:
    refusal = leaves_without(SECRET, X, y, action=lambda: fit(X, y))
    assert words in refusal.rule
    told = str(refusal).replace("x0", "")
    assert not any(character.isdigit() for character in told), "no count"


def test_an_array_that_fails_is_refused_without_its_words() -> None:
    leaves_without(SECRET, action=lambda: fit(Tensor(), [1]))
    leaves_without(SECRET, action=lambda: fit([[1.0]], Tensor()))
    schema = parse_schema({"columns": [{"name": "a", "kind": "integer", "bounds": [0, 9]}]}, name="t")
    leaves_without(SECRET, action=lambda: Synthesizer(schema, epsilon=1.0).fit({"a": Tensor()}))
    rows = [[SECRET]]
    leaves_without(SECRET, rows, action=lambda: Synthesizer(schema, epsilon=1.0).fit(rows))


def test_a_cell_that_is_no_number_is_missing_and_nothing_is_said_of_it() -> None:
    X, y = [[SECRET, 1], [math.nan, 2], [math.inf, None]] * 5, [0.25, 1, "1"] * 5
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        fit(X, y)
        fit(np.arange(20.0).reshape(-1, 2), np.arange(10) / 7)  # as many labels as rows
    assert not shown


@pytest.mark.parametrize("y", [[], np.empty(0, dtype=np.int64)], ids=["list", "array"])
@pytest.mark.parametrize("X", [[], np.empty((0, 2)), pd.DataFrame({"a": [], "b": []})], ids=type)
def test_a_table_without_rows_is_a_table(X: Any, y: Any) -> None:
    found = fit(X, y, bounds=[(0, 1), (0, 2)])
    rows = pd.DataFrame({"a": [1.0], "b": [2.0]}) if isinstance(X, pd.DataFrame) else [[1.0, "2"]]
    assert found.predict(rows).shape == (1,)
    assert found.predict_proba(rows).shape == (1, 2)


def test_labels_are_found_in_every_form() -> None:
    X = [[1.0], [2.0]]
    for classes in ([0, 1], [0.0, 1.0], ["0", "1"], [False, True], np.array([1, 0])):
        for y in (
            [0, 1],
            [0.0, 1.0],
            ["0", "1"],
            ["0.0", "1.0"],
            np.array([0, 1], np.int8),
            [np.int64(0), "1"],
            pd.Series([0, 1]),
            pd.Series([0, 1], dtype="category"),
            pl.Series([0, 1]),
            pa.array([0, 1]),
            np.array([[0], [1]]),
            pd.DataFrame({"y": [0, 1]}),
            pa.chunked_array([[0], [1]]),
        ):
            rows = trained_on(X, y, classes=classes)
            assert rows.labels.tolist() == [0, 1]
            assert rows.inputs.any(axis=1).all()
    truths = trained_on(X, [False, True], classes=[0, 1])
    assert truths.labels.tolist() == [0, 1]


def test_features_are_read_alike_from_every_form() -> None:
    cells = [[1.0, -2.5], [3.25, 4.0], [0.0, 12.0]]
    frame = pd.DataFrame(cells, columns=["a", "b"])
    expected = trained_on(cells, [0, 1, 1])
    for X in (
        tuple(map(tuple, cells)),
        np.array(cells),
        np.array(cells, dtype=">f4"),
        np.array(cells, dtype=object),
        np.ma.masked_array(cells),
        np.array(cells).view(np.matrix),
        frame,
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        np.asfortranarray(cells),
        pa.Table.from_pandas(frame).to_batches()[0],
        [np.array(row) for row in cells],
        frame.astype(object),
        [[str(cell) for cell in row] for row in cells],
    ):
        found = trained_on(X, [0, 1, 1])
        assert np.array_equal(found.inputs, expected.inputs)


@pytest.mark.parametrize(
    "classes", [[0, "0"], ["a", " a "], ["True", "true"], [""], [None, 1], [b"\xff", b"a"], [[1], [2]], [math.nan]]
)
def test_classes_that_cells_cannot_tell_apart_are_refused(classes: Any) -> None:
    with pytest.raises(UsageError, match="classes"):
        LocallyLinearClassifier(bounds=(0, 1), classes=classes).plan(2)


def test_a_synthesizer_reads_what_python_has() -> None:
    schema = parse_schema(
        {
            "columns": [
                {"name": "a", "kind": "integer", "bounds": [0, 9]},
                {"name": "w", "kind": "categorical", "categories": ["x", "y"]},
            ]
        },
        name="t",
    )
    plan = Synthesizer(schema, epsilon=5.0).plan()
    rows = [{"a": 1, "w": "x"}, {"a": "2", "w": SECRET}, {"a": SECRET, "w": None}]
    columns = {name: [row[name] for row in rows] for name in ("a", "w")}
    for data in (rows, columns, [], pd.DataFrame(columns), pl.DataFrame(columns, strict=False)):
        assert release_table(data, plan).plan == plan
    assert codes_of(rows, schema).tolist() == [[1, 0], [2, UNLISTED], [UNLISTED, NULL]]
    assert codes_of(columns, schema).tolist() == [[1, 0], [2, UNLISTED], [UNLISTED, NULL]]


@pytest.mark.parametrize("beside", [["a"], ["x"], [None], ["NA", "y", "z"]])
def test_what_is_unlisted_is_told_cell_by_cell(beside: list[Any]) -> None:
    """A word for null is null, another word is unlisted, whatever stands in the other rows."""
    cells = {"x": UNLISTED, "A": UNLISTED, "NA": NULL, "none": NULL, " ": NULL, "a": 0}
    schema = parse_schema({"columns": [{"name": "c", "kind": "categorical", "categories": ["a", "b"]}]}, name="t")
    for cell, code in cells.items():
        for column in (pa.array([cell, *beside]), pa.array([cell, *beside]).dictionary_encode()):
            batch = pa.record_batch({"c": column})
            assert encode_batch(schema, batch, unlisted=UNLISTED)[0, 0] == code


def test_text_that_is_no_number_or_date_is_unlisted_and_a_word_for_null_is_not() -> None:
    columns = [
        {"name": "n", "kind": "integer", "bounds": [0, 9]},
        {"name": "d", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"], "resolution": "day"},
    ]
    batch = pa.record_batch(
        {"n": ["3", "3,5", "NA", None, "nan"], "d": ["2020-01-03", "03.01.2020", "null", None, "2020-02-31"]}
    )
    codes = encode_batch(parse_schema({"columns": columns}, name="t"), batch, unlisted=UNLISTED)
    assert codes.tolist() == [[3, 2], [UNLISTED] * 2, [NULL] * 2, [NULL] * 2, [NULL, UNLISTED]]


QUARTERS = parse_schema(
    {"columns": [{"name": "q", "kind": "categorical", "categories": ["2020Q1", "200", "2020Q2"], "nullable": True}]},
    name="t",
)


@pytest.mark.parametrize("other", ["x", None, 3.5])
def test_periods_have_the_codes_that_they_have_among_objects(other: Any) -> None:
    """Pandas keeps periods as counts, or as objects if one row is none: typed, 2020Q1 was read as 200."""
    quarters = list(pd.PeriodIndex(["2020Q1", "2020Q2", "2021Q3"], freq="Q"))
    before = codes_of(pd.DataFrame({"q": quarters}), QUARTERS)
    assert before.ravel().tolist() == [0, 2, UNLISTED]
    assert np.array_equal(codes_of(pd.DataFrame({"q": [*quarters, other]}), QUARTERS)[:3], before)
    frame = pd.DataFrame({"q": pd.Series(quarters).astype("category")})
    assert np.array_equal(codes_of(frame, QUARTERS), before)


@pytest.mark.parametrize("more", [b"", b"\xff" * 16])
def test_extension_types_are_read_by_what_they_stand_for_or_refused_by_type(more: bytes) -> None:
    """UUIDs whose bytes were text were read, and one that was none refused them all."""
    names = [uuid.UUID(bytes=bytes([65 + i]) * 16) for i in range(3)]
    cells = [each.bytes for each in names] + [None] + ([more] if more else [])
    column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(cells, pa.binary(16)))
    ids = encode_ids("id", column).to_pylist()
    assert ids[:4] == [*(str(name).encode() for name in names), None]
    opaque = pa.opaque(pa.binary(), "thing", "vendor")
    with pytest.raises(InputError, match="extension"):
        encode_ids("id", pa.ExtensionArray.from_storage(opaque, pa.array(cells, pa.binary())))


def test_ids_that_show_nothing_name_nobody() -> None:
    empty = ["NA", " null ", "", "\u200b", "\x00", "\ufeff", "NULL\x00", "\x1f", "-"]
    for cells in (pa.array(empty), pa.ExtensionArray.from_storage(pa.json_(), pa.array(empty))):
        assert encode_ids("id", cells).null_count == len(empty)
    assert encode_ids("id", pa.array(["7", "NATO", "\u200b7"])).null_count == 0
    assert encode_ids("id", pa.array([b"\x00\x01", b"\x00\x02"], pa.binary(2))).null_count == 0


def test_decimals_among_words_are_read_by_their_digits() -> None:
    long = "12345678901234567890"
    schema = parse_schema({"columns": [{"name": "c", "kind": "categorical", "categories": [long, "1.5"]}]}, name="t")
    for kind in (pa.decimal128(38, 0), pa.decimal128(38, 5)):
        batch = pa.record_batch({"c": pa.array([Decimal(long)], kind)})
        assert encode_batch(schema, batch).tolist() == [[0]]
    assert encode_batch(schema, pa.record_batch({"c": pa.array([Decimal("1.500")])})).tolist() == [[1]]
