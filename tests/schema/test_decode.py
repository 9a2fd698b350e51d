"""The decoder is exact: codes become cells of the column's own type, and those the same codes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.schema import NULL, Column, Kind
from understudy.schema.encode import decode_column, decode_table, encode_column
from understudy.schema.entries import parse_column
from understudy.schema.table import parse_schema


def column(kind: str, **entry: Any) -> Column:
    return parse_column({"name": "x", "kind": kind, **entry})


def decoded(column: Column, *codes: int) -> Any:
    return decode_column(column, np.array(codes, dtype=np.int64))


def largest(column: Column) -> int:
    return len(column.categories) - 1 if column.is_choice else column.num_steps


def is_finer_than_floats(column: Column) -> bool:
    """Whether floats between the bounds are too few for one per code."""
    if column.kind is not Kind.CONTINUOUS:
        return False
    low, high = column.low_high
    return high - low < max(1e-290, max(abs(low), abs(high)) * 2**-16) and low != high


@pytest.mark.parametrize(
    ("each", "kind", "cells"),
    [
        (column("continuous", bounds=[-1, 3]), pa.float64(), [-1.0, 3.0, 1.0]),
        (column("integer", bounds=[-5, 5]), pa.int64(), [-5, 5, 0]),
        (column("ordinal", bounds=[1, 3]), pa.int64(), [1, 3, 2]),
        (column("ordinal", categories=["low", "middle", "high"]), pa.string(), ["low", "high", "middle"]),
        (column("categorical", categories=["yes", "no", " x"]), pa.string(), ["yes", " x", "no"]),
        (column("categorical", categories=[7, 8, 9]), pa.int64(), [7, 9, 8]),
        (column("categorical", categories=[1, 2.5, 4]), pa.float64(), [1.0, 4.0, 2.5]),
        (
            column("datetime", bounds=["2020-02-28", "2020-03-01"]),
            pa.date32(),
            [dt.date(2020, 2, 28), dt.date(2020, 3, 1), dt.date(2020, 2, 29)],
        ),
        (
            column("datetime", bounds=["2020-01-01T00:00:00", "2020-01-01T00:00:02"]),
            pa.timestamp("us"),
            [dt.datetime(2020, 1, 1, 0, 0, second) for second in (0, 2, 1)],
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_a_column_keeps_its_own_type(each: Column, kind: Any, cells: list[Any]) -> None:
    top = largest(each)
    found = decoded(each, 0, top, top // 2, NULL)
    assert found.type == kind
    assert found.to_pylist() == [*cells, None]


def test_truth_stays_truth() -> None:
    found = decoded(column("binary", categories=[False, True]), 1, 0, NULL)
    assert found.type == pa.bool_()
    assert found.to_pylist() == [True, False, None]


def test_both_bounds_of_a_continuous_column_are_met_exactly() -> None:
    each = column("continuous", bounds=[-0.1, 0.3])
    assert decoded(each, 0, each.num_steps).to_pylist() == [-0.1, 0.3]


def test_a_column_of_one_value_decodes_to_it() -> None:
    assert decoded(column("continuous", bounds=[2.5, 2.5]), 0, NULL).to_pylist() == [2.5, None]
    assert decoded(column("integer", bounds=[3, 3]), 0).to_pylist() == [3]


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_codes_come_back_from_their_cells(any_column: st.SearchStrategy[Column], data: st.DataObject) -> None:
    each = data.draw(any_column)
    codes = data.draw(st.lists(st.integers(NULL, largest(each)), max_size=6))
    again = encode_column(each, decoded(each, *codes))
    if is_finer_than_floats(each):
        assert np.all((again >= NULL) & (again <= largest(each)))
    else:
        assert list(again) == codes


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_codes_come_back_from_their_cells_written_as_text(
    any_column: st.SearchStrategy[Column], data: st.DataObject
) -> None:
    each = data.draw(any_column.filter(lambda each: not is_finer_than_floats(each)))
    codes = data.draw(st.lists(st.integers(NULL, largest(each)), max_size=6))
    assert list(encode_column(each, decoded(each, *codes).cast(pa.string()))) == codes


@given(data=st.data())
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_every_cell_lies_in_the_public_domain(any_column: st.SearchStrategy[Column], data: st.DataObject) -> None:
    each = data.draw(any_column)
    codes = data.draw(st.lists(st.integers(0, largest(each)), min_size=1, max_size=6))
    cells = decoded(each, *codes).to_pylist()
    if each.is_choice:
        assert all(cell in each.categories for cell in cells)
    elif each.resolution is None:
        low, high = each.low_high
        assert all(low <= cell <= high for cell in cells)


def test_a_table_has_the_used_columns_in_the_order_of_the_schema() -> None:
    schema = parse_schema(
        {
            "columns": [
                {"name": "nr", "kind": "id"},
                {"name": "b", "kind": "integer", "bounds": [0, 9]},
                {"name": "a", "kind": "categorical", "categories": ["x", "y"], "nullable": True},
            ]
        },
        name="t",
    )
    table = decode_table(schema, np.array([[3, NULL], [4, 1]]))
    assert table.schema == pa.schema([("b", pa.int64()), ("a", pa.string())])
    assert table.to_pylist() == [{"b": 3, "a": None}, {"b": 4, "a": "y"}]
