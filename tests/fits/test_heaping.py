from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from understudy.features import Cells
from understudy.features.tables import round_steps
from understudy.fits.heaping import with_heaps
from understudy.generators.mixture import ColumnGrid
from understudy.schema import load_schema
from understudy.schema.columns import Column, number_values

Integers = npt.NDArray[np.int64]
ROWS = 20_000


def column_of(kind: str, low: float, high: float) -> Column:
    return load_schema({"name": "t", "columns": [{"name": "x", "kind": kind, "bounds": [low, high]}]}).used[0]


def drawn(column: Column, values: npt.ArrayLike, *, noise: float = 50.0, cells: int = 64) -> npt.NDArray[np.float64]:
    """Values drawn from a grid of even runs, with the heaps that a noisy table of round steps tells of."""
    steps, rng = round_steps(0, column), np.random.default_rng(0)
    assert steps is not None
    low, high = column.low_high
    codes = np.rint((np.asarray(values) - low) / (high - low) * column.num_steps).astype(np.int64)
    bars = Cells(
        0,
        column.num_steps + 1,
        is_ordered=True,
        lows=tuple((np.arange(cells) * (column.num_steps + 1) // cells).tolist()),
    )
    grid = ColumnGrid(bars.first_codes, bars.last_codes, has_null=False)
    rows = np.bincount(bars(codes), minlength=cells).astype(np.float64)
    counts = np.bincount(steps(codes), minlength=steps.num_known) + rng.normal(0, noise, steps.num_known)
    found = with_heaps(grid, rows, bars, np.zeros(cells, dtype=bool), steps, counts, noise)
    assert np.bincount(found.cell_of_piece, found.share_of_piece) == pytest.approx(1)
    places = rng.choice(cells, ROWS, p=rows / rows.sum())
    return number_values(column, found.codes(places, rng)).astype(np.float64)


def share_of(values: npt.NDArray[np.float64], step: float) -> float:
    return float(np.mean(np.abs(values / step - np.rint(values / step)) < 1e-9))


def test_amounts_in_thousands_come_back_as_such() -> None:
    values = 1000 * np.random.default_rng(1).integers(0, 1000, ROWS)
    assert share_of(drawn(column_of("integer", 0, 1_000_000), values), 1000) > 0.99


def test_zeros_inside_the_bounds_come_back_as_zeros() -> None:
    rng = np.random.default_rng(1)
    values = np.where(rng.random(ROWS) < 0.34, 0, rng.integers(-20_000, 60_000, ROWS))
    found = drawn(column_of("integer", -500_000, 1_000_000), values)
    assert np.mean(found == 0) == pytest.approx(0.34, abs=0.01)


def test_numbers_with_two_decimals_come_back_with_them() -> None:
    values = np.round(np.random.default_rng(1).uniform(0.2, 5, ROWS), 2)
    found = drawn(column_of("continuous", 0, 10), values)
    assert np.mean(found == np.round(found, 2)) > 0.99
    assert np.mean(found == np.round(found, 1)) == pytest.approx(0.1, abs=0.02)


def test_part_of_the_values_are_round_if_part_of_them_were() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 100_001, ROWS)
    values = np.where(rng.random(ROWS) < 0.4, 500 * (values // 500), values)
    assert share_of(drawn(column_of("integer", 0, 100_000), values), 500) == pytest.approx(0.4, abs=0.02)


def test_values_without_heaps_stay_as_they_are() -> None:
    rng = np.random.default_rng(1)
    assert share_of(drawn(column_of("integer", 0, 100_000), rng.integers(0, 100_001, ROWS)), 10) < 0.13
    assert share_of(drawn(column_of("continuous", 0, 10), rng.uniform(0, 10, ROWS)), 0.001) < 0.01


@pytest.mark.parametrize("noise", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("rows", [0.0, 1.0])
def test_grids_without_rows_and_counts_without_sense_break_nothing(noise: float, rows: float) -> None:
    steps = round_steps(0, column_of("integer", -100, 1_000_000))
    assert steps is not None
    grid = ColumnGrid(np.array([0, 400]), np.array([399, steps.num_codes - 1]), has_null=True)
    bars = Cells(0, steps.num_codes, is_ordered=True, lows=(0, 400))
    counts = np.random.default_rng(0).normal(0, noise, steps.num_known)
    found = with_heaps(grid, np.full(2, rows), bars, np.zeros(2, dtype=bool), steps, counts, noise)
    assert np.isfinite(found.share_of_piece).all()
    assert found.share_of_piece.min() >= 0
    codes = found.codes(np.arange(3).repeat(50), np.random.default_rng(0))
    assert ((codes >= -1) & (codes < steps.num_codes)).all()
