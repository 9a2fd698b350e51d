from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from understudy.evaluation.columns import (
    column_sets,
    kolmogorov_smirnov,
    marginal_gaps,
    null_gaps,
    number_gaps,
    number_shifts,
    wasserstein,
)
from understudy.evaluation.scoring import Compared, column_views
from understudy.evaluation.tables import UNLISTED, code_table

RNG = np.random.default_rng(7)
LEFT, RIGHT = RNG.gamma(2.0, size=301), np.round(RNG.gamma(2.5, size=207), 1)


def views_of(real, made):
    distances = marginal_gaps(real, made, sets=column_sets(len(real.columns), 1))
    return column_views(
        real,
        made,
        distances=Compared(distances, distances / 2, distances),
        gaps=number_gaps(real, made),
        shifts=number_shifts(real, made),
    )


def test_the_largest_gap_is_scipys():
    assert kolmogorov_smirnov(LEFT, RIGHT) == pytest.approx(stats.ks_2samp(LEFT, RIGHT).statistic, abs=1e-12)


def test_the_largest_gap_is_that_of_sdmetrics():
    # sdmetrics 0.32.0, KSComplement: 0.9, and 0.8857142857142857 without the nulls
    i = np.arange(40)
    real, made = i * 7 % 31 + 20.0, i * 11 % 37 + 18.0
    assert 1 - kolmogorov_smirnov(real, made) == pytest.approx(0.9, abs=1e-6)
    real, made = np.where(i % 6 == 0, np.nan, real), np.where(i % 9 == 0, np.nan, made)
    assert 1 - kolmogorov_smirnov(real, made) == pytest.approx(0.8857142857142857, abs=1e-6)


def test_the_shift_is_that_of_sorted_values():
    # The definition for equally many values: the mean distance of values of the same rank.
    left, right = np.sort(LEFT[:200]), np.sort(RIGHT[:200])
    assert wasserstein(left, right, width=4.0) == pytest.approx(np.abs(left - right).mean() / 4.0, abs=1e-12)


@pytest.mark.parametrize("distance", [kolmogorov_smirnov, lambda a, b: wasserstein(a, b, width=1)])
def test_a_column_of_nulls_is_as_far_as_can_be_from_one_with_values(distance):
    nulls = np.full(3, np.nan)
    assert distance(nulls, np.array([0.2, 0.4])) == 1.0
    assert distance(nulls, nulls) == 0.0


def test_shares_of_nulls_are_compared_where_nulls_may_occur(schema, clinic):
    real = code_table(schema, clinic)
    made = code_table(schema, clinic.assign(weight=np.nan))
    assert null_gaps(real, made) == pytest.approx([clinic["weight"].notna().mean(), 0.0])


def test_shares_and_nulls_of_a_view_sum_to_one(schema, clinic, other_clinic):
    for view in views_of(code_table(schema, clinic), code_table(schema, other_clinic)):
        assert sum(view.real) + view.null_share_real == pytest.approx(1)
        assert sum(view.synthetic) + view.null_share_synthetic == pytest.approx(1)
        assert len(view.bins) == len(view.real) == len(view.synthetic)
        assert len(view.edges) == (len(view.bins) + 1 if view.kind == "number" else 0)
        assert (view.wasserstein is None) == (view.kind == "choice")
        apart = 0.5 * np.abs(np.subtract(view.real, view.synthetic)).sum()
        nulls = 0.5 * abs(view.null_share_real - view.null_share_synthetic)
        assert view.distance == pytest.approx(apart + nulls)


def test_views_come_worst_first_and_show_what_is_not_in_the_schema(schema, clinic):
    made = clinic.assign(city="elsewhere", stage=1)
    views = views_of(code_table(schema, clinic), code_table(schema, made))
    assert [view.name for view in views[:2]] == ["city", "stage"]
    assert views[0].bins[-1] == UNLISTED
    assert views[0].synthetic[-1] == 1.0
    assert UNLISTED not in next(view for view in views if view.name == "sick").bins


def test_a_frame_with_other_index_and_column_order_is_the_same_table(schema, clinic):
    moved = clinic[clinic.columns[::-1]].set_index(pd.Index(np.arange(len(clinic)) * 3))
    left, right = code_table(schema, clinic), code_table(schema, moved)
    np.testing.assert_array_equal(left.bins, right.bins)
    np.testing.assert_array_equal(left.values, right.values)
