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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy import LocallyLinearClassifier, Synthesizer
from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.private.descent.linear import IntegerRows
from understudy.private.readers import open_source
from understudy.private.readers.cells import raw_text
from understudy.private.release import release_table
from understudy.private.training import integer_rows
from understudy.schema import NULL, Schema
from understudy.schema.encode import encode_batch
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
        SECRET, None, math.nan, -math.inf, 2**63, -(2**200), 10**5000, 1.5, True, b"\xff\xfe", "\udc80", [SECRET],
        {"a": 1}, object(), dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.timedelta(1),
        pd.NaT, pd.NA, pd.Timestamp("2020-01-01"), np.datetime64("NaT"), np.float16(1), Decimal("sNaN"),
        1j, np.array([1, 2]), "é", "", "1e999", uuid.UUID(int=7),
    ]
)  # fmt: skip


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
        parts += [encode_batch(schema, batch) for batch in stream]
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", UNTYPED)
@given(cells=st.lists(plain, min_size=1, max_size=6), other=adversaries, place=st.integers(0, 6))
@SLOW
def test_no_cell_changes_another_in_a_column_without_type(
    kind: str, cells: list[Any], other: Any, place: int
) -> None:
    place = min(place, len(cells))
    more = [*cells[:place], other, *cells[place:]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = codes_of(dict.fromkeys(NAMES, UNTYPED[kind](cells)))
        after = codes_of(dict.fromkeys(NAMES, UNTYPED[kind](more)))
        alone = codes_of([dict.fromkeys(NAMES, cell) for cell in cells])
    assert np.array_equal(np.delete(after, place, axis=0), before)
    assert np.array_equal(alone, before)


@pytest.mark.parametrize("kind", ["lists", "objects", "pandas objects"])
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
        return {"lists": rows, "objects": cells, "pandas objects": pd.DataFrame(cells)}[kind]

    before = trained_on(held(X), y)
    more = [*X[:place], (other, 1), *X[place:]]
    after = trained_on(held(more), [*y[:place], label, *y[place:]])
    assert same_but(place, before, after)


# Libraries that choose a type for a whole column: cells keep their codes when one row changes it.

whole = st.integers(-(2**53) + 1, 2**53 - 1) | st.integers(-3, 12)
same_kind = {
    "integers": (whole, ["n", "i", "w", "c"]),
    "floats": (st.floats(-1e6, 1e6, width=32) | st.integers(-3, 12).map(float), ["n", "i", "c"]),
    "whole floats": (st.integers(-3, 12).map(float), ["n", "i", "w", "c"]),
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
}  # fmt: skip


@pytest.mark.parametrize("library", INFERRED)
@given(data=st.data())
@SLOW
def test_a_type_that_one_row_changes_leaves_the_codes_of_the_others(
    library: str, data: st.DataObject
) -> None:
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
    try:
        after = codes_of(dict.fromkeys(names, columns[1]), schema)
    except InputError as refusal:  # of a declared type, and nothing else
        assert "cells of type" in refusal.rule or "nested type" in refusal.rule
        return
    assert np.array_equal(after[:-1], before)
