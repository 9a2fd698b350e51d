"""Rows that move to a release: near the private mean, nonnegative, and the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, fit_release, load_schema, make_plan, release_table
from understudy.generators import WeightedDatabase
from understudy.private.noise import SeededNoise
from understudy.released import Release

SCHEMA = load_schema(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "y", "kind": "continuous", "bounds": [0, 1]},
            {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"]},
        ],
        "rows": 4000,
    }
)
QUICK: dict[str, Any] = {
    "num_features": 400,
    "num_points": 40,
    "num_candidates": 200,
    "steps": 120,
    "length_scale": 0.2,
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    city = rng.choice(["a", "b", "c"], 4000, p=[0.6, 0.3, 0.1])
    x = np.clip(rng.normal(np.where(city == "a", 0.2, 0.8), 0.05), 0, 1)
    y = np.clip(rng.normal(0.5, 0.05, 4000), 0, 1)
    return pd.DataFrame({"x": np.where(rng.random(4000) < 0.1, np.nan, x), "y": y, "city": city})


def released(table: pd.DataFrame, epsilon: float = 2.0, **options: Any) -> Release:
    plan = make_plan(SCHEMA, Budget(epsilon, 1e-5), method="balog-features", options=QUICK | options)
    return release_table(table, plan, noise=SeededNoise(1))


def fitted(release: Release) -> WeightedDatabase:
    found = fit_release(release)
    assert isinstance(found, WeightedDatabase)
    return found


def distance(database: WeightedDatabase, release: Release) -> float:
    """Distance to the noisy mean features, less what the noise alone makes."""
    layout, count = release.plan.layout, float(release.sums("count")[0, 0])
    map_ = release.blocks[-1].map
    mean = database.weights @ map_(layout.expand(database.row_codes))
    gap = release.sums("embedding")[0] / count - mean
    noise = map_.dim * (release.noise_std("embedding") / count) ** 2
    return float(np.sqrt(max(gap @ gap - noise, 0.0)))


@pytest.mark.parametrize("weights", ["free", "uniform"])
def test_rows_come_near_the_release(table: pd.DataFrame, weights: str) -> None:
    release = released(table, weights=weights)
    assert distance(fitted(release), release) < 0.15  # the norm of the mean is about 0.6


def test_shares_of_choices_and_nulls_and_their_ties_come_out(table: pd.DataFrame) -> None:
    rows = fitted(released(table)).weighted_rows().to_pandas()
    weight = rows.weight / rows.weight.sum()
    for name in "abc":
        assert weight[rows.city == name].sum() == pytest.approx((table.city == name).mean(), abs=0.1)
    assert weight[rows.x.isna()].sum() == pytest.approx(0.1, abs=0.08)
    low = weight[(rows.city == "a") & (rows.x < 0.5)].sum()
    assert low == pytest.approx(((table.city == "a") & (table.x < 0.5)).mean(), abs=0.12)


def test_weights_are_nonnegative_and_sum_to_one_at_most(table: pd.DataFrame) -> None:
    weights = fitted(released(table, epsilon=0.5)).weights
    assert (weights > 0).all()
    assert weights.sum() <= 1 + 1e-9


def test_uniform_weights_give_a_plain_table(table: pd.DataFrame) -> None:
    database = fitted(released(table, weights="uniform", num_points=60))
    assert (database.weights == 1 / 60).all()
    assert len(database.weighted_rows()) == 60


def test_more_rows_than_are_searched_for_come_as_many_as_were_asked_for(table: pd.DataFrame) -> None:
    database = fitted(released(table, num_points=150))
    assert 48 < len(database.weights) <= 150


def test_more_rows_come_nearer(table: pd.DataFrame) -> None:
    found = []
    for count in (1, 4, 40):
        release = released(table, num_points=count)
        found.append(distance(fitted(release), release))
    assert found[0] > found[1] > found[2]


def test_the_same_release_gives_the_same_rows(table: pd.DataFrame) -> None:
    release = released(table)
    assert fitted(release).weighted_rows().equals(fitted(release).weighted_rows())


def test_progress_counts_every_step_once(table: pd.DataFrame) -> None:
    seen: list[tuple[int, int, float]] = []
    fit_release(released(table), progress=lambda *state: seen.append(state))
    done = [state[0] for state in seen]
    assert done == sorted(set(done))
    assert seen[-1][:2] == (120, 120)
