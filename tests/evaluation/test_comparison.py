from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from understudy.evaluation.columns import column_sets, marginal_gaps
from understudy.evaluation.scoring import chance_ratio, compare, equal_parts
from understudy.evaluation.tables import CodedTable, code_table, make_sides
from understudy.schema import load_schema

CELLS = load_schema(
    {"name": "cells", "columns": [{"name": name, "kind": "categorical", "categories": list(range(8))} for name in "ab"]}
)
PAIRS = partial(marginal_gaps, sets=column_sets(2, 2))


def draw(num_rows: int, seed: int, *, tied: bool = False) -> CodedTable:
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, 9, (num_rows, 2))
    codes[:, 1] = codes[:, 0] if tied else codes[:, 1]
    return CodedTable(CELLS.used, codes, codes.astype(float))


@pytest.mark.parametrize(("num_real", "num_made"), [(2000, 2000), (2000, 200), (200, 2000)])
def test_the_floor_is_what_equally_many_fresh_rows_would_score(num_real, num_made):
    floors, fresh, unmatched = [], [], []
    for seed in range(30):
        real, made = draw(num_real, 3 * seed), draw(num_made, 3 * seed + 1)
        found = compare(PAIRS, make_sides(real, made, seed=seed))
        floors.append(found.floor.mean())
        fresh.append(found.value.mean())
        unmatched.append(PAIRS(*make_sides(real, made, seed=seed).halves).mean())
    assert np.mean(floors) == pytest.approx(np.mean(fresh), rel=0.1)
    assert abs(np.mean(unmatched) / np.mean(fresh) - 1) > 0.2


def test_the_baseline_keeps_columns_and_breaks_their_ties():
    found = compare(PAIRS, make_sides(draw(4000, 0, tied=True), draw(4000, 1, tied=True), seed=0))
    assert found.baseline.mean() == pytest.approx(7 / 8, abs=0.02)
    assert found.value.mean() < 0.05
    table = draw(4000, 0, tied=True)
    shuffled = table.independent(10**6, seed=5)
    np.testing.assert_array_equal(np.sort(shuffled.bins, axis=0), np.sort(table.bins, axis=0))


def test_values_and_bins_of_an_independent_cell_stay_together(schema, clinic):
    shuffled = code_table(schema, clinic).independent(100, seed=0)
    assert len(shuffled) == 100
    np.testing.assert_array_equal(shuffled.bins[:, 2], shuffled.values[:, 2])
    np.testing.assert_array_equal(shuffled.bins[:, 1] == 0, np.isnan(shuffled.values[:, 1]))


def test_halves_share_no_row():
    table = CodedTable(CELLS.used, np.arange(22).reshape(11, 2), np.zeros((11, 2)))
    first, second = make_sides(table, draw(30, 0), seed=0).halves
    assert len(first) == len(second) == 5
    assert not set(first.bins[:, 0]) & set(second.bins[:, 0])


def test_chance_that_does_not_shrink_is_taken_as_it_is():
    assert chance_ratio(np.array([0.0]), np.array([0.0]), 0.5) == 1.0
    assert chance_ratio(np.array([0.9]), np.array([0.9]), 0.5) == 1.0
    assert chance_ratio(np.array([0.1]), np.array([0.9]), 0.5) == pytest.approx(np.sqrt(0.5))


def test_equal_parts_have_equally_many_rows():
    sides = make_sides(draw(101, 0), draw(30, 1), seed=0)
    assert [len(part) for part in equal_parts(sides, 1000)] == [30] * 4
    assert [len(part) for part in equal_parts(sides, 7)] == [7] * 4
