from __future__ import annotations

import numpy as np
import pytest

from understudy.arrays import Floats, Integers
from understudy.fits.structural_zeros import find_function, surely_empty

ROWS = 20_000
NOISE = 78.0


def table_of(values: Integers, *, exceptions: float = 0.0, width: int = 8) -> Floats:
    """Rows of a number with as many even cells as there are values, and of what it determines."""
    table = np.full((len(values), width), exceptions / width)
    table[np.arange(len(values)), values] += 1 - exceptions
    return table * ROWS / len(values)


def noisy(table: Floats, seed: int = 0, noise: float = NOISE) -> Floats:
    return table + np.random.default_rng(seed).normal(0, noise, table.shape)


def found_in(table: Floats, *, is_ordered: bool = True, seed: int = 0, noise: float = NOISE) -> Floats | None:
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return find_function(noisy(table, seed, noise) / ROWS, expected / ROWS, noise / ROWS, [is_ordered, False])


GROUPS = np.repeat(np.arange(8), [7, 6, 9, 7, 8, 8, 7, 8])  # 60 ages


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_a_number_are_found_although_every_single_cell_is_noisy(seed: int) -> None:
    found = found_in(table_of(GROUPS), seed=seed)
    assert found is not None
    np.testing.assert_array_equal(found, np.eye(8, dtype=bool)[GROUPS])


def test_a_function_is_found_whichever_column_comes_first() -> None:
    table = table_of(GROUPS)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    found = find_function(noisy(table).T / ROWS, expected.T / ROWS, NOISE / ROWS, [False, True])
    assert found is not None
    np.testing.assert_array_equal(found.T, np.eye(8, dtype=bool)[GROUPS])


def test_categories_that_name_the_same_thing_are_a_function() -> None:
    values = np.random.default_rng(0).permutation(12)
    found = found_in(table_of(values, width=12), is_ordered=False, noise=40.0)
    assert found is not None
    np.testing.assert_array_equal(found, np.eye(12, dtype=bool)[values])


@pytest.mark.parametrize("seed", range(5))
def test_independent_columns_are_no_function(seed: int) -> None:
    table = np.outer(np.full(60, 1 / 60), np.full(8, 1 / 8)) * ROWS
    assert found_in(table, seed=seed) is None
    assert found_in(table, seed=seed, noise=1e6) is None


def test_columns_that_often_go_together_but_not_always_are_no_function() -> None:
    assert found_in(table_of(GROUPS, exceptions=0.4)) is None


def test_a_single_exception_that_stands_out_is_no_function() -> None:
    table = table_of(GROUPS)
    table[30, 0] += 300
    assert found_in(table, noise=50.0) is None


def test_cells_are_surely_empty_only_where_many_rows_are_expected_and_few_seen() -> None:
    counts, expected = np.array([[0.0, 1.0, 3.0, 0.0, 30.0]]), np.array([[30.0, 30.0, 30.0, 2.0, 30.0]])
    assert surely_empty(counts, expected, 1.0).tolist() == [[True, True, False, False, False]]


def test_where_noise_drowns_everything_nothing_is_surely_empty() -> None:
    table = table_of(GROUPS) / ROWS
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    assert not surely_empty(noisy(table, noise=10.0), expected, 10.0).any()
