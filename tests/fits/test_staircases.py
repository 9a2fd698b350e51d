"""Staircases: step functions of a number, found in noisy tables; columns that are only alike are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.arrays import Floats, Integers
from understudy.features import Cells
from understudy.fits.staircases import _best_path, better_function, find_staircase
from understudy.fits.structural_zeros import find_function

ROWS, NOISE = 20_000, 60.0
WIDE = Cells(0, 1200, is_ordered=True, lows=tuple(range(0, 1200, 100)))
CHOICE = Cells(1, 4)
NARROW = Cells(1, 8, is_ordered=True)


def group_of(codes: Integers, borders: tuple[int, ...]) -> Integers:
    return np.searchsorted(np.asarray(borders), codes, side="right")


def pair_table(one: Cells, other: Cells, left: Integers, right: Integers, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Shares of rows with noise, and what independence expects."""
    counts = np.zeros((one.dim, other.dim))
    np.add.at(counts, (one(left.copy()), other(right.copy())), 1.0)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / len(left)
    noisy = counts + np.random.default_rng(seed).normal(0, NOISE, counts.shape)
    return noisy / len(left), expected / len(left)


def codes_drawn(seed: int = 0) -> Integers:
    return np.random.default_rng(seed).integers(0, 1200, ROWS)


@given(seed=st.integers(0, 200))
def test_the_best_path_is_one_of_steps_and_no_other_holds_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gains = rng.random((3, 4))
    path = _best_path(gains)
    rows, columns = np.nonzero(path)
    assert (rows[0], columns[0], rows[-1], columns[-1]) == (0, 0, 2, 3)
    assert path.sum() == sum(gains.shape) - 1, "one step at a time"
    assert (np.diff(rows) >= 0).all()
    ends = [(a, b) for a in range(4) for b in range(a, 4)]
    best = max(gains[0, : a + 1].sum() + gains[1, a : b + 1].sum() + gains[2, b:].sum() for a, b in ends)
    assert gains[path].sum() == pytest.approx(best)


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("other", [CHOICE, NARROW])
def test_a_step_function_is_found_whichever_way_it_goes(other: Cells, falls: bool) -> None:
    left = codes_drawn()
    borders = tuple(np.linspace(1200 / other.dim, 1200, other.dim - 1, endpoint=False).astype(int).tolist())
    right = group_of(left, borders)
    right = other.dim - 1 - right if falls else right
    table, expected = pair_table(WIDE, other, left, right)
    found = find_staircase(table, expected, NOISE / ROWS, (WIDE, other))
    assert found is not None
    assert not found.is_beside[WIDE(left.copy()), right].any()
    turned = find_staircase(table.T, expected.T, NOISE / ROWS, (other, WIDE))
    assert turned is not None
    np.testing.assert_array_equal(turned.is_beside, found.is_beside.T)


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_are_only_alike_have_no_staircase(seed: int) -> None:
    """One row in eight is a group further: a staircase would take these rows away."""
    left, rng = codes_drawn(seed), np.random.default_rng(seed)
    right = np.minimum(group_of(left, (250, 600, 1000)) + (rng.random(ROWS) < 0.125), 3)
    table, expected = pair_table(WIDE, CHOICE, left, right, seed=seed)
    assert find_staircase(table, expected, NOISE / ROWS, (WIDE, CHOICE)) is None


def test_where_noise_could_hide_many_rows_beside_it_there_is_no_staircase() -> None:
    left = codes_drawn()
    table, expected = pair_table(WIDE, CHOICE, left, group_of(left, (250, 600, 1000)))
    assert find_staircase(table, expected, NOISE / ROWS, (WIDE, CHOICE)) is not None
    assert find_staircase(table, expected, 40 * NOISE / ROWS, (WIDE, CHOICE)) is None


def test_categories_that_share_a_cell_need_not_lie_side_by_side() -> None:
    """The first group and the last are counted together: in no order they are steps of a staircase."""
    left, together = codes_drawn(), Cells(1, 4, groups=(0, 1, 2, 0))
    for borders, is_found in (((250, 600, 1000), False), ((2, 600, 1195), True)):
        table, expected = pair_table(WIDE, together, left, group_of(left, borders))
        found = find_staircase(table, expected, NOISE / ROWS, (WIDE, together))
        assert (found is not None) == is_found


def test_a_column_of_many_values_is_no_step_function() -> None:
    left = codes_drawn()
    long = Cells(1, 1200, is_ordered=True, lows=tuple(range(0, 1200, 100)))
    table, expected = pair_table(WIDE, long, left, left)
    assert find_staircase(table, expected, NOISE / ROWS, (WIDE, long)) is None


def test_a_rare_category_at_an_end_does_not_break_the_staircase() -> None:
    """Noise over all cells outweighs its rows: it is placed where it stands out."""
    fine = Cells(0, 1200, is_ordered=True, lows=tuple(range(0, 1200, 12)))
    left = codes_drawn()
    right = group_of(left, (10, 400, 800))
    table, expected = pair_table(fine, CHOICE, left, right)
    found = find_staircase(table, expected, NOISE / ROWS, (fine, CHOICE))
    assert found is not None
    assert found.order[0] == 0


def test_where_the_other_column_is_null_is_a_step_and_nulls_apart_are_none() -> None:
    nullable = Cells(1, 4, has_null=True)
    left = codes_drawn()
    for nulls, width in ((left >= 900, 5), (np.zeros(ROWS, dtype=bool), 4)):
        right = np.where(nulls, -1, group_of(left, (250, 600, 800)))
        table, expected = pair_table(WIDE, nullable, left, right)
        found = find_staircase(table, expected, NOISE / ROWS, (WIDE, nullable))
        assert found is not None
        assert found.masses.shape == (WIDE.num_known, width)


def test_a_function_of_cells_that_no_order_makes_a_staircase_is_the_better_one() -> None:
    left = codes_drawn()
    right = np.isin(left // 100, [0, 5, 11]).astype(np.int64) * 3
    table, expected = pair_table(WIDE, CHOICE, left, right)
    function = find_function(table, expected, NOISE / ROWS, [True, False])
    assert function is not None
    straight, usual = pair_table(WIDE, CHOICE, left, group_of(left, (300, 600, 900)))
    staircase = find_staircase(straight, usual, NOISE / ROWS, (WIDE, CHOICE))
    assert staircase is not None
    assert better_function(table / (NOISE / ROWS), function, staircase)
    assert not better_function(straight / (NOISE / ROWS), function, staircase)
