from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from understudy.evaluation.columns import (
    association_gaps,
    association_matrix,
    correlation_ratio,
    cramers_v,
    rank_correlation,
)
from understudy.evaluation.tables import code_table

RNG = np.random.default_rng(11)
GROUPS = RNG.integers(0, 4, 300)
OTHERS = (GROUPS + RNG.integers(0, 2, 300)) % 3
VALUES = GROUPS + RNG.standard_normal(300)


def test_uncorrected_chi_square_of_cramers_v_is_scipys():
    table = pd.crosstab(GROUPS, OTHERS).to_numpy()
    plain = stats.contingency.association(table, method="cramer")
    # Bergsma (2013): phi^2 - (r-1)(c-1)/(n-1) over min(r~, c~) - 1, x~ = x - (x-1)^2/(n-1)
    (rows, columns), n = table.shape, 300
    phi = max(0, plain**2 * (min(rows, columns) - 1) - (rows - 1) * (columns - 1) / (n - 1))
    smaller = min(size - (size - 1) ** 2 / (n - 1) for size in (rows, columns)) - 1
    assert cramers_v(GROUPS, OTHERS) == pytest.approx(np.sqrt(phi / smaller), abs=1e-9)


def test_cramers_v_is_one_for_copies_and_small_for_strangers():
    assert cramers_v(GROUPS, 3 - GROUPS) == pytest.approx(1.0)
    assert cramers_v(GROUPS, RNG.permutation(GROUPS)) < 0.1
    assert cramers_v(GROUPS, np.zeros_like(GROUPS)) == 0.0


def test_the_correlation_ratio_is_the_root_of_r2_on_one_hot_groups():
    model = LinearRegression().fit(np.eye(4)[GROUPS], VALUES)
    expected = np.sqrt(model.score(np.eye(4)[GROUPS], VALUES))
    assert correlation_ratio(GROUPS, VALUES) == pytest.approx(expected, abs=1e-9)
    assert correlation_ratio(GROUPS, np.ones(300)) == 0.0


def test_two_numbers_are_ranked_as_scipy_ranks_them_without_nulls():
    other = np.where(RNG.random(300) < 0.2, np.nan, -np.round(VALUES + RNG.standard_normal(300), 1))
    known = ~np.isnan(other)
    expected = abs(stats.spearmanr(VALUES[known], other[known]).statistic)
    assert rank_correlation(VALUES, other) == pytest.approx(expected, abs=1e-9)
    assert rank_correlation(VALUES, np.full(300, np.nan)) == 0.0
    assert rank_correlation(VALUES, np.ones(300)) == 0.0


def test_the_matrix_is_symmetric_and_takes_each_pair_by_its_own_measure(schema, clinic):
    table = code_table(schema, clinic)
    found = association_matrix(table)
    names = [column.name for column in table.columns]
    place = {name: i for i, name in enumerate(names)}
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1)
    assert ((found >= 0) & (found <= 1)).all()
    expected = {
        ("age", "stage"): abs(stats.spearmanr(clinic["age"], clinic["stage"]).statistic),
        ("age", "weight"): rank_correlation(table.values[:, 0], table.values[:, 1]),
        ("sick", "age"): correlation_ratio(table.bins[:, 4], table.values[:, 0]),
        ("city", "sick"): cramers_v(table.bins[:, 3], table.bins[:, 4]),
    }
    for (first, second), value in expected.items():
        assert found[place[first], place[second]] == pytest.approx(value, abs=1e-9)


def test_gaps_list_every_pair_once(schema, clinic):
    table = code_table(schema, clinic)
    shuffled = table.independent(len(table), seed=0)
    gaps = association_gaps(table, shuffled)
    assert len(gaps) == 10
    assert gaps.max() == pytest.approx(np.abs(association_matrix(table) - association_matrix(shuffled)).max())
    assert gaps.max() > 0.3
