"""Values that repeat in columns of many decimals: cut out of bars, stage by stage, and given back as they were."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, dp_anova, fit_release, load_schema, release_table
from understudy.features import Cells, Tables
from understudy.fits.anova import AnovaTraining
from understudy.fits.heaping import with_spikes
from understudy.generators.mixture import ColumnGrid
from understudy.private.noise import SeededNoise
from understudy.released import Release
from understudy.rules.adaptive_bins import DIGITS
from understudy.rules.spikes import MOST_RUNS, PARTS, Run, _cut, last_runs
from understudy.schema.columns import CONTINUOUS_STEPS

ROWS = 20_000
SPIKES = (-0.6194269716205983, 1.1710973279945556)
SCHEMA = load_schema(
    {
        "columns": [
            {"name": "scale", "kind": "continuous", "bounds": [-5, 5]},
            {"name": "even", "kind": "continuous", "bounds": [0, 1]},
            {"name": "big", "kind": "integer", "bounds": [0, 10_000_000]},
            {"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"},
        ]
    }
)
BIG = 1_234_567


def made_up_rows(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    scale = rng.normal(0, 1, ROWS)
    scale = np.where(rng.random(ROWS) < 0.3, SPIKES[0], np.where(rng.random(ROWS) < 0.1, SPIKES[1], scale))
    big = np.where(rng.random(ROWS) < 0.25, BIG, rng.integers(0, 10_000_001, ROWS))
    return pd.DataFrame({"scale": scale, "even": rng.random(ROWS), "big": big, "ill": rng.integers(0, 2, ROWS)})


def released(epsilon: float = 1.0, seed: int = 1) -> Release:
    plan = dp_anova(SCHEMA, Budget(epsilon), training=AnovaTraining(steps=30, num_components=40))
    return release_table(made_up_rows(), plan, noise=SeededNoise(seed))


@pytest.fixture(scope="module")
def release() -> Release:
    return released()


def code_of(value: float, low: float, high: float) -> int:
    return round((value - low) / (high - low) * CONTINUOUS_STEPS)


def test_values_that_repeat_are_found_to_the_last_digit(release: Release) -> None:
    runs = last_runs([each for each in release.measurements if not each.has("rows")])
    found = {(run.column, run.first, run.last) for run in runs}
    assert found == {(0, code, code) for code in (code_of(value, -5, 5) for value in SPIKES)} | {(2, BIG, BIG)}


def test_rows_have_these_values_as_often_as_the_table(release: Release) -> None:
    rows, real = fit_release(release).sample(ROWS, seed=0).to_pandas(), made_up_rows()
    for value in SPIKES:
        near = np.abs(rows.scale - value) < 1e-8
        assert near.mean() == pytest.approx((real.scale == value).mean(), abs=0.01)
        assert rows.scale[near].nunique() == 1
    assert (rows.big == BIG).mean() == pytest.approx(0.25, abs=0.01)
    assert rows.even.nunique() > 0.99 * ROWS


def test_each_stage_cuts_only_what_noisy_stages_before_it_have_found(release: Release) -> None:
    second, third = ([each.map(name) for each in release.measurements if each.has(name)] for name in DIGITS)
    for (map_,) in (second, third):
        assert [cells.column for cells in map_.factors] == [0, 2][: len(map_.factors)]
        assert all(cells.num_known <= 2 * PARTS + 1 for cells in map_.factors)


def test_where_nothing_repeats_parts_are_one_more_count_of_all_rows() -> None:
    frame = made_up_rows().assign(scale=np.linspace(-5, 5, ROWS), big=np.arange(ROWS) * 500)
    plan = dp_anova(SCHEMA, Budget(1.0), training=AnovaTraining(steps=1, num_components=8))
    found = release_table(frame, plan, noise=SeededNoise(1))
    for name in DIGITS:
        (measured,) = [each for each in found.measurements if each.has(name)]
        assert [cells.num_known for cells in measured.map(name).factors] == [1, 1, 1]
        for table in measured.tables(name):
            assert table[0, 0] == pytest.approx(ROWS, abs=6 * measured.noise_of_count(name))


def test_a_table_without_long_columns_pays_nothing_for_their_digits() -> None:
    short = load_schema({"columns": [{"name": "age", "kind": "integer", "bounds": [0, 120]}] * 1})
    plan = dp_anova(short, Budget(1.0))
    assert not any(block.name in DIGITS for stage in plan.stages for block in stage.embedding.blocks)


def test_parts_of_a_run_are_cells_and_all_other_codes_one() -> None:
    whole = Cells(3, 2**20, is_ordered=True, lows=(0,))
    cells = _cut(whole, [Run(3, 4096, 8191, 5.0), Run(3, 2**20 - 10, 2**20 - 1, 2.0)])
    assert cells.num_known == 1 + PARTS + 10
    codes = np.array([0, 4095, 4096, 4099, 4100, 8191, 8192, 2**20 - 10, 2**20 - 1])
    assert cells(codes).tolist() == [0, 0, 1, 1, 2, PARTS, 0, PARTS + 1, PARTS + 10]
    assert Tables((cells,), ((0,),), with_unlisted=True).dim == cells.num_known + 1
    assert MOST_RUNS * PARTS <= 2**16


def test_what_a_bar_holds_beside_its_value_is_no_more_than_its_neighbours_do() -> None:
    grid = ColumnGrid(np.array([0, 100, 200]), np.array([99, 199, 299]), has_null=False)
    found = with_spikes(grid, np.array([10.0, 1000.0, 20.0]), [Run(0, 150, 150, 900.0)])
    assert found.lows.tolist() == [0, 100, 150, 151, 200]
    np.testing.assert_allclose(np.bincount(found.cell_of_piece, weights=found.share_of_piece), 1.0)
    spike = found.share_of_piece[found.lows == 150][0]
    assert spike == pytest.approx(900 / (900 + 99 * 0.1))


def test_a_run_that_is_a_piece_already_changes_nothing() -> None:
    grid = ColumnGrid(np.array([0, 7, 8]), np.array([6, 7, 20]), has_null=False)
    found = with_spikes(grid, np.array([10.0, 100.0, 20.0]), [Run(0, 7, 7, 90.0)])
    np.testing.assert_array_equal(found.lows, grid.lows)
    np.testing.assert_allclose(found.share_of_piece, 1.0)
