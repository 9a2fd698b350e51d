from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy.errors import InputError
from understudy.evaluation.tables import choice_codes, is_invalid, numbers
from understudy.schema import Column, Kind, load_schema

CITY = Column(name="city", kind=Kind.CATEGORICAL, categories=("a", "b"), nullable=True)
FLAG = Column(name="flag", kind=Kind.BINARY, categories=(0, 1))
SIZE = Column(name="size", kind=Kind.CONTINUOUS, bounds=(0.0, 10.0))
COUNT = Column(name="count", kind=Kind.INTEGER, bounds=(0.0, 10.0), nullable=True)


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_null_categories_and_unlisted_values_have_codes_of_their_own(dtype):
    cells = pd.Series(["b", None, "a", "elsewhere", "  "], dtype=dtype)
    assert choice_codes(CITY, cells).tolist() == [2, 0, 1, 3, 0]


@pytest.mark.parametrize("cells", [[0, 1, 1], [0.0, 1.0, 1.0], ["0", "1", "1"], [False, True, True]])
def test_a_binary_column_is_read_however_it_is_written(cells):
    assert choice_codes(FLAG, pd.Series(cells)).tolist() == [1, 2, 2]


def test_cells_of_several_types_in_one_column_are_read_as_text():
    assert choice_codes(FLAG, pd.Series([0, "1", None, 1.5], dtype=object)).tolist() == [1, 2, 0, 3]


def test_an_unlisted_value_counts_as_the_category_that_the_schema_names_for_it():
    column = Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "other"), unknown="other")
    assert choice_codes(column, pd.Series(["a", "new", None])).tolist() == [1, 2, 0]


def test_infinities_stop_at_the_bounds_and_nulls_stay_nulls():
    found = numbers(SIZE, pd.Series([np.inf, -np.inf, np.nan, 3.5, 12.0]))
    np.testing.assert_array_equal(found, [10.0, 0.0, np.nan, 3.5, 12.0])


def test_numbers_absurdly_far_out_stop_at_the_bounds_and_others_stay_what_they_are():
    found = numbers(SIZE, pd.Series([1e300, -1e300, 1e6, -1e6]))
    np.testing.assert_array_equal(found, [10.0, 0.0, 1e6, -1e6])


def test_what_stops_at_the_bounds_is_outside_the_schema_all_the_same():
    assert is_invalid(SIZE, pd.Series([np.inf, -np.inf, 1e300, 3.0])).tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    "cells", [pd.to_datetime(["2020-01-02"]), pd.to_datetime(["2020-01-02"], utc=True), pd.to_timedelta([5])]
)
def test_moments_are_no_numbers_of_ticks(cells):
    with pytest.raises(InputError, match=r"column 'size'.*must hold numbers"):
        numbers(SIZE, pd.Series(cells))


def test_dates_are_microseconds():
    schema = load_schema(
        {
            "name": "t",
            "columns": [{"name": "day", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"], "nullable": True}],
        }
    )
    found = numbers(schema.used[0], pd.Series(pd.to_datetime(["2020-01-02", None])))
    assert found[0] == pd.Timestamp("2020-01-02").timestamp() * 1e6
    assert np.isnan(found[1])


def test_words_in_a_column_of_numbers_are_refused_by_the_columns_name():
    with pytest.raises(InputError, match="column 'size'") as refusal:
        numbers(SIZE, pd.Series(["secret"]))
    assert "secret" not in str(refusal.value)


def test_cells_outside_the_schema_are_found():
    assert is_invalid(CITY, pd.Series(["a", "x", None])).tolist() == [False, True, False]
    assert is_invalid(FLAG, pd.Series([0, 2, None])).tolist() == [False, True, True]
    assert is_invalid(SIZE, pd.Series([0.5, 10.5, np.nan])).tolist() == [False, True, True]
    assert is_invalid(COUNT, pd.Series([3, 3.5, -1, None])).tolist() == [False, True, True, False]
