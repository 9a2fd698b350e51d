from __future__ import annotations

import numpy as np
import pandas as pd

from understudy.evaluation.tables import NUM_BINS, UNLISTED, bins_and_values, column_bins
from understudy.schema import Column, Kind, load_schema

WIDE = Column(name="x", kind=Kind.CONTINUOUS, bounds=(0.0, 100.0))


def test_numbers_fall_into_twenty_equal_bins_and_ends_are_inside():
    found, _ = bins_and_values(WIDE, pd.Series([0.0, 4.99, 5.0, 99.9, 100.0, -3.0, 170.0, np.nan]))
    assert found.tolist() == [1, 1, 2, 20, 20, 1, 20, 0]
    assert len(column_bins(WIDE).labels) == NUM_BINS
    assert column_bins(WIDE).edges == tuple(5.0 * i for i in range(21))


def test_every_value_lies_between_the_edges_of_its_bin():
    values = np.random.default_rng(0).uniform(0, 100, 1000)
    edges = np.array(column_bins(WIDE).edges)
    codes, same = bins_and_values(WIDE, pd.Series(values))
    np.testing.assert_array_equal(same, values)
    assert (edges[codes - 1] <= values).all()
    assert (values <= edges[codes]).all()


def test_a_few_whole_numbers_have_a_bin_each():
    for high in (1, 3, 19):
        column = Column(name="n", kind=Kind.ORDINAL, bounds=(0.0, float(high)))
        values = np.arange(high + 1)
        assert bins_and_values(column, pd.Series(values))[0].tolist() == (values + 1).tolist()
        assert column_bins(column).labels == tuple(map(str, values))
        assert column_bins(column).edges[0] == -0.5
        assert len(column_bins(column).edges) == high + 2


def test_a_column_with_one_value_has_one_bin():
    column = Column(name="n", kind=Kind.CONTINUOUS, bounds=(5.0, 5.0))
    assert bins_and_values(column, pd.Series([5.0, 5.0]))[0].tolist() == [1, 1]


def test_a_choice_has_its_categories_and_a_place_for_the_unlisted():
    column = Column(name="b", kind=Kind.BINARY, categories=(0, 1))
    assert column_bins(column).labels == ("0", "1", UNLISTED)
    assert column_bins(column).edges == ()


def test_bins_of_dates_are_named_by_dates():
    schema = load_schema(
        {"name": "t", "columns": [{"name": "day", "kind": "datetime", "bounds": ["2020-01-01", "2020-01-21"]}]}
    )
    assert column_bins(schema.used[0]).labels[0] == "2020-01-01 to 2020-01-02"
