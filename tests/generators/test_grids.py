"""Column grids: cells hold every code once, and rows are drawn from them as they should be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chisquare

from understudy import load_schema
from understudy.generators.mixture import (
    FEWEST_CELLS_PER_NUMBER,
    MOST_CELLS_OF_NUMBERS,
    MOST_CELLS_PER_NUMBER,
    ColumnGrid,
    column_grid,
    even_marks,
    grids_of,
    pick,
    spans_of,
)
from understudy.schema import NULL, Column
from understudy.schema.columns import to_position

Floats = npt.NDArray[np.float64]
NUMBERS: dict[str, dict[str, object]] = {
    "few integers": {"kind": "integer", "bounds": [-3, 9]},
    "two integers": {"kind": "integer", "bounds": [0, 1]},
    "one cell too many": {"kind": "integer", "bounds": [0, 128]},
    "many integers": {"kind": "integer", "bounds": [0, 5000]},
    "skewed integers": {"kind": "integer", "bounds": [0, 100_000], "scale_hint": "log1p"},
    "few skewed integers": {"kind": "integer", "bounds": [0, 140], "scale_hint": "log1p"},
    "ordinal": {"kind": "ordinal", "bounds": [1, 5]},
    "continuous": {"kind": "continuous", "bounds": [-2.5, 7.5]},
    "skewed continuous": {"kind": "continuous", "bounds": [0, 1e6], "scale_hint": "log1p"},
    "constant": {"kind": "continuous", "bounds": [3, 3]},
    "constant integer": {"kind": "integer", "bounds": [3, 3]},
    "days": {"kind": "datetime", "bounds": ["2000-01-01", "2030-12-31"]},
    "seconds": {"kind": "datetime", "bounds": ["2000-01-01", "2030-12-31"], "resolution": "second"},
}


def drawn(grid: ColumnGrid, chances: Floats, rng: Any) -> npt.NDArray[np.int64]:
    """A code for each row of cells' probabilities.  # (num_rows, width) -> (num_rows,)"""
    rows = np.arange(len(chances))
    return grid.codes(pick(chances, rows, rng.random(len(chances))), rng)


def column_of(name: str, *, nullable: bool = False) -> Column:
    entry = {"name": "x", "nullable": nullable, **NUMBERS[name]}
    return load_schema({"columns": [entry]}).used[0]


@pytest.mark.parametrize("most_cells", [FEWEST_CELLS_PER_NUMBER, 100, MOST_CELLS_PER_NUMBER])
@pytest.mark.parametrize("name", NUMBERS)
def test_cells_hold_every_code_of_a_number_exactly_once(name: str, most_cells: int):
    column = column_of(name)
    grid = column_grid(column, most_cells)
    assert grid.lows[0] == 0
    assert grid.highs[-1] == column.num_steps
    assert (grid.lows <= grid.highs).all()
    np.testing.assert_array_equal(grid.lows[1:], grid.highs[:-1] + 1)
    assert 1 <= grid.width <= most_cells + 2  # one more for each bound


@pytest.mark.parametrize("name", ["few integers", "two integers", "ordinal", "constant"])
def test_a_number_with_few_values_has_a_cell_for_each(name: str):
    column = column_of(name)
    grid = column_grid(column, MOST_CELLS_PER_NUMBER)
    np.testing.assert_array_equal(grid.lows, np.arange(column.num_steps + 1))
    np.testing.assert_array_equal(grid.highs, grid.lows)


@pytest.mark.parametrize(("num_values", "cells"), [(16, 16), (17, 17), (18, 17)])
def test_cells_hold_several_values_only_where_values_are_more_than_cells(num_values: int, cells: int):
    entry = {"name": "x", "kind": "integer", "bounds": [1, num_values]}
    grid = column_grid(load_schema({"columns": [entry]}).used[0], 16)
    assert grid.width == cells
    assert (grid.width == num_values) == (grid.highs == grid.lows).all()


@pytest.mark.parametrize("name", NUMBERS)
def test_both_bounds_have_cells_of_their_own(name: str):
    column = column_of(name)
    grid = column_grid(column, 64)
    assert (grid.lows[0], grid.highs[0]) == (0, 0)
    assert (grid.lows[-1], grid.highs[-1]) == (column.num_steps, column.num_steps)


@pytest.mark.parametrize("name", ["many integers", "continuous", "skewed continuous", "days", "seconds"])
def test_cells_are_about_equally_wide_on_the_columns_scale(name: str):
    column = column_of(name)
    grid = column_grid(column, MOST_CELLS_PER_NUMBER)
    widths = np.diff(to_position(column, grid.lows))
    assert widths.max() < 1.1 / MOST_CELLS_PER_NUMBER
    assert np.median(widths) == pytest.approx(1 / MOST_CELLS_PER_NUMBER, rel=0.02)


@pytest.mark.parametrize("name", NUMBERS)
def test_nulls_have_one_more_cell_which_is_the_last(name: str):
    plain = column_grid(column_of(name), 50)
    grid = column_grid(column_of(name, nullable=True), 50)
    np.testing.assert_array_equal(grid.lows, plain.lows)
    assert grid.width == plain.width + 1
    last = np.zeros((20, grid.width))
    last[:, -1] = 1
    assert (drawn(grid, last, np.random.default_rng(0)) == NULL).all()


@pytest.mark.parametrize("nullable", [False, True])
def test_a_choice_has_a_cell_for_each_category_however_many(nullable: bool):
    names = [f"c{i}" for i in range(300)]
    entry = {"name": "x", "kind": "categorical", "categories": names, "nullable": nullable}
    grid = column_grid(load_schema({"columns": [entry]}).used[0], FEWEST_CELLS_PER_NUMBER)
    np.testing.assert_array_equal(grid.lows, np.arange(300))
    np.testing.assert_array_equal(grid.highs, np.arange(300))
    assert grid.width == 300 + nullable


@pytest.mark.parametrize("name", ["few integers", "many integers", "skewed continuous", "seconds"])
def test_codes_are_drawn_inside_cells_with_the_cells_probabilities(name: str):
    grid = column_grid(column_of(name, nullable=True), 16)
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(grid.width))
    count = 200_000
    codes = drawn(grid, np.tile(shares, (count, 1)), np.random.default_rng(1))
    assert ((codes == NULL) | ((codes >= 0) & (codes <= grid.highs[-1]))).all()
    cells = np.where(codes == NULL, grid.width - 1, np.searchsorted(grid.lows, codes, side="right") - 1)
    seen = np.bincount(cells, minlength=grid.width)
    assert chisquare(seen, shares * count).pvalue > 1e-3
    assert (codes == NULL).mean() == pytest.approx(shares[-1], abs=0.005)


def test_every_code_of_a_cell_is_as_likely_as_the_others():
    grid = ColumnGrid(np.array([0, 1, 8]), np.array([0, 7, 8]), has_null=False)
    count = 70_000
    codes = drawn(grid, np.tile([0.0, 1.0, 0.0], (count, 1)), np.random.default_rng(2))
    seen = np.bincount(codes, minlength=9)
    assert seen[0] == seen[8] == 0
    assert chisquare(seen[1:8]).pvalue > 1e-3


@pytest.mark.parametrize("nullable", [False, True])
def test_a_cell_without_probability_is_never_drawn(nullable: bool):
    grid = column_grid(column_of("ordinal", nullable=nullable), 16)
    rng = np.random.default_rng(3)
    possible = rng.random((100_000, grid.width)) < 0.5
    possible[~possible.any(axis=1), 2] = True
    chances = np.where(possible, rng.random(possible.shape) + 1e-9, 0.0)
    codes = drawn(grid, chances, rng)
    cells = np.where(codes == NULL, grid.width - 1, codes)
    assert possible[np.arange(len(cells)), cells].all()
    assert set(codes.tolist()) == set(range(5)) | ({NULL} if nullable else set())


def test_every_row_is_drawn_with_its_own_probabilities():
    grid = column_grid(column_of("few integers", nullable=True), 32)
    wanted = np.random.default_rng(4).integers(grid.width, size=500)
    codes = drawn(grid, np.eye(grid.width)[wanted], np.random.default_rng(5))
    np.testing.assert_array_equal(codes, np.where(wanted == grid.width - 1, NULL, wanted))


def test_probabilities_need_not_add_up_to_one():
    grid = column_grid(column_of("two integers"), 16)
    codes = drawn(grid, np.tile([0.3, 0.1], (40_000, 1)), np.random.default_rng(6))
    assert codes.mean() == pytest.approx(0.25, abs=0.015)


def test_the_grids_of_a_table_lie_side_by_side():
    names = ("few integers", "continuous", "constant")
    columns: list[dict[str, object]] = [
        {"name": f"n{i}", "nullable": bool(i), **NUMBERS[name]} for i, name in enumerate(names)
    ]
    columns.insert(1, {"name": "c", "kind": "categorical", "categories": ["a", "b", "c"]})
    columns.append({"name": "i", "kind": "id"})
    grids = grids_of(load_schema({"columns": columns}))
    widths = [13, 3, MOST_CELLS_PER_NUMBER + 2 + 1, 1 + 1]
    assert [grid.width for grid in grids] == widths
    edges = np.cumsum([0, *widths]).tolist()
    assert spans_of(grids) == list(pairwise(edges))


def test_wide_tables_get_fewer_cells_per_number_but_never_too_few():
    def cells(count: int) -> int:
        columns = [{"name": f"x{i}", "kind": "continuous", "bounds": [0, 1]} for i in range(count)]
        return grids_of(load_schema({"columns": columns}))[0].width

    assert cells(1) == cells(10) == MOST_CELLS_PER_NUMBER + 2
    assert cells(400) == MOST_CELLS_OF_NUMBERS // 400 + 2
    assert cells(3000) == FEWEST_CELLS_PER_NUMBER + 2


class Lowest:
    """The smallest number that a generator of uniform numbers can give."""

    def random(self, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        return np.zeros(size)


class Highest:
    """The largest one, just below 1."""

    def random(self, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        return np.full(size, np.nextafter(1.0, 0.0))


@pytest.mark.parametrize(("source", "code"), [(Lowest(), 1), (Highest(), 3)])
def test_the_ends_of_the_unit_interval_fall_into_possible_cells_too(source: Any, code: int):
    grid = column_grid(column_of("ordinal"), 16)
    shares = np.array([[0.0, 0.3, 0.0, 0.6, 0.0], [0.0, 1.0, 0.0, 2.0, 0.0]])
    np.testing.assert_array_equal(drawn(grid, shares, source), [code, code])


# Cells of several pieces.


PIECES = ColumnGrid(
    lows=np.array([0, 1, 10, 20, 21, 30]),
    highs=np.array([0, 9, 19, 20, 29, 39]),
    has_null=True,
    cells=np.array([0, 1, 1, 2, 1, 0]),
    shares=np.array([0.25, 0.5, 0.0, 1.0, 0.5, 0.75]),
)


def test_a_cell_of_several_pieces_is_one_cell():
    assert (PIECES.num_known, PIECES.width) == (3, 4)
    plain = ColumnGrid(PIECES.lows, PIECES.highs, has_null=True)
    assert (plain.num_known, plain.width) == (6, 7)


@pytest.mark.parametrize(("cell", "pieces"), [(0, {0: 0.25, 5: 0.75}), (1, {1: 0.5, 4: 0.5})])
def test_pieces_of_a_cell_are_drawn_in_their_shares_and_their_codes_evenly(cell: int, pieces: dict[int, float]):
    count = 60_000
    codes = PIECES.codes(np.full(count, cell), np.random.default_rng(7))
    found = np.searchsorted(PIECES.lows, codes, side="right") - 1
    assert set(found.tolist()) == set(pieces)  # a piece without a share is never drawn
    for piece, share in pieces.items():
        inside = codes[found == piece]
        assert len(inside) == pytest.approx(share * count, abs=3)
        low, high = PIECES.lows[piece], PIECES.highs[piece]
        if low < high:
            assert chisquare(np.bincount(inside - low, minlength=high - low + 1)).pvalue > 1e-3


def test_cells_and_nulls_that_are_mixed_get_codes_of_their_own():
    cells = np.random.default_rng(8).integers(0, 4, 5000)
    codes = PIECES.codes(cells, np.random.default_rng(9))
    np.testing.assert_array_equal(codes == NULL, cells == 3)
    known = cells < 3
    pieces = np.searchsorted(PIECES.lows, codes[known], side="right") - 1
    np.testing.assert_array_equal(PIECES.cell_of_piece[pieces], cells[known])
    assert (codes[cells == 2] == 20).all()


def test_columns_that_lie_in_one_cell_each_get_pieces_independently():
    """Even draws are even in each column by itself: no column tells another's piece."""
    halves = ColumnGrid(
        np.array([0, 1]), np.array([0, 1]), has_null=False, cells=np.zeros(2, int), shares=np.full(2, 0.5)
    )
    rng = np.random.default_rng(10)
    cells = np.zeros(40_000, dtype=np.int64)
    one, other = halves.codes(cells, rng), halves.codes(cells, rng)
    assert one.mean() == pytest.approx(0.5, abs=1e-4)
    both = np.bincount(2 * one + other, minlength=4)
    assert chisquare(both).pvalue > 1e-3
    assert chisquare(np.bincount(2 * one[:-1] + one[1:], minlength=4)).pvalue > 1e-3


# Even draws.


def test_even_marks_are_uniform_and_every_stretch_of_them_is_even():
    rng = np.random.default_rng(11)
    starts = np.array([even_marks(1, rng)[0] for _ in range(20_000)])
    assert chisquare(np.histogram(starts, 20, (0, 1))[0]).pvalue > 1e-3
    marks = even_marks(10_000, rng)
    assert ((marks >= 0) & (marks < 1)).all()
    for start, stop in ((0, 10_000), (123, 623), (9000, 9100)):
        for cut in (0.03, 0.25, 0.5, 0.9):
            below = (marks[start:stop] < cut).sum()
            assert abs(below - cut * (stop - start)) <= 4  # independent ones: up to fifty


def test_marks_fall_where_the_cumulated_probabilities_say():
    chances = np.array([[0.2, 0.0, 0.8], [1.0, 3.0, 0.0]])
    marks = np.array([0.0, 0.19, 0.21, 0.99, 0.0, 0.24, 0.26, 0.99])
    chosen = np.repeat([0, 1], 4)
    np.testing.assert_array_equal(pick(chances, chosen, marks), [0, 0, 2, 2, 0, 0, 1, 1])


@pytest.mark.parametrize("mark", [0.0, 5e-324, 1e-17, 0.5, 1 - 1e-12, np.nextafter(1.0, 0.0)])
def test_no_mark_falls_into_a_cell_without_probability_whatever_the_row(mark: float):
    rng = np.random.default_rng(12)
    chances = rng.dirichlet(np.full(5, 0.3), 3000) * (rng.random((3000, 5)) < 0.6)
    chances[chances.sum(axis=1) == 0, 2] = 1.0
    rows = np.arange(3000)
    assert (chances[rows, pick(chances, rows, np.full(3000, mark))] > 0).all()
