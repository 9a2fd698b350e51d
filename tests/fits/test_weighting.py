"""From a release to weights on public points: near the private mean, with the bound that was asked."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, Neighbours, fit_release, load_schema, make_plan, release_table
from understudy.features import Landmarks
from understudy.generators import WeightedDatabase
from understudy.private.noise import SeededNoise
from understudy.released import Release

SCHEMA = load_schema(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "continuous", "bounds": [0, 1]},
            {"name": "city", "kind": "categorical", "categories": ["a", "b"]},
        ],
        "rows": 4000,
    }
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    city = rng.random(4000) < 0.7
    x = np.clip(rng.normal(np.where(city, 0.3, 0.7), 0.08), 0, 1)
    y = np.clip(x + rng.normal(0, 0.1, 4000), 0, 1)
    return pd.DataFrame({"x": x, "y": y, "city": np.where(city, "a", "b")})


def released(table: pd.DataFrame, seed: int = 1, epsilon: float = 2.0, **options: Any) -> Release:
    plan = make_plan(SCHEMA, Budget(epsilon, 1e-5), method="balog-subspace", options=options)
    return release_table(table, plan, noise=SeededNoise(seed))


def distance(database: WeightedDatabase, release: Release, table: pd.DataFrame) -> float:
    """RKHS distance to the mean of all rows, in the kernel of the release."""
    kernel = next(b.map for b in release.blocks if isinstance(b.map, Landmarks)).kernel
    layout = release.plan.layout
    own = layout.expand(database.row_codes)
    rows = layout.expand(encoded(table))
    weights = database.weights
    square = weights @ kernel(own, own) @ weights - 2 * weights @ kernel(own, rows).mean(axis=1)
    return float(np.sqrt(max(square + mean_square(kernel, rows), 0.0)))


MEAN_SQUARES: dict[tuple[str, bytes], float] = {}


def mean_square(kernel: Any, rows: np.ndarray) -> float:
    """The squared norm of the mean of rows: 16 million numbers, so once for each kernel."""
    key = (repr(kernel), sha256(rows.tobytes()).digest())
    if key not in MEAN_SQUARES:
        MEAN_SQUARES[key] = float(kernel(rows, rows).mean())
    return MEAN_SQUARES[key]


def encoded(table: pd.DataFrame) -> np.ndarray:
    columns = [np.rint(table[name] * 2**32) for name in ("x", "y")]
    return np.stack([*columns, table["city"] == "b"], axis=1).astype(np.int64)


def fitted(release: Release) -> WeightedDatabase:
    found = fit_release(release)
    assert isinstance(found, WeightedDatabase)
    return found


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("weights", ["shrunk", "plain", "bounded"])
def test_weighted_points_have_nearly_the_private_mean(table: pd.DataFrame, weights: str, look: bool) -> None:
    release = released(table, weights=weights, look=look, length_scale=0.2, num_candidates=400)
    assert distance(fitted(release), release, table) < 0.06  # the norm of the mean is 0.7


def test_means_of_smooth_functions_come_out(table: pd.DataFrame) -> None:
    rows = fitted(released(table, length_scale=0.2, num_candidates=400)).weighted_rows().to_pandas()
    assert (rows.weight * np.cos(3 * rows.x)).sum() == pytest.approx(np.cos(3 * table.x).mean(), abs=0.02)
    assert rows.weight[rows.city == "a"].sum() == pytest.approx((table.city == "a").mean(), abs=0.02)


@pytest.mark.parametrize("bound", [1.0, 1.7])
def test_bounded_weights_keep_their_bound(table: pd.DataFrame, bound: float) -> None:
    release = released(table, weights="bounded", bound=bound, num_candidates=300)
    assert np.abs(fitted(release).weights).sum() <= bound + 1e-9


def test_rows_that_are_public_are_weighted_anew_and_all_kept(table: pd.DataFrame) -> None:
    release = released(table, public_points=table[:80])
    database = fitted(release)
    assert len(database.weights) == 80
    uniform = replace(database, weights=np.full(80, 1 / 80))
    assert distance(database, release, table) < 0.5 * distance(uniform, release, table)


@pytest.mark.parametrize("count", [1, 3, 10, 40])
def test_few_public_rows_are_weighted_as_well_as_their_span_allows(table: pd.DataFrame, count: int) -> None:
    """Also where all but one of them span the space, so that weights of sum one are hard to come by."""
    release = released(table, epsilon=50.0, public_points=table[:count], length_scale=0.15)
    map_ = next(b.map for b in release.blocks if isinstance(b.map, Landmarks))
    kernel, layout = map_.kernel, release.plan.layout
    rows, own = layout.expand(encoded(table)), layout.expand(encoded(table[:count]))
    at = kernel(own, rows).mean(axis=1)
    best = mean_square(kernel, rows) - at @ np.linalg.lstsq(kernel(own, own), at)[0]
    assert distance(fitted(release), release, table) ** 2 <= best * 1.02 + 1e-4


def test_with_noise_alone_public_rows_weigh_alike(table: pd.DataFrame) -> None:
    database = fitted(released(table, epsilon=1e-4, public_points=table[:80]))
    assert database.weights == pytest.approx(np.full(80, 1 / 80), abs=0.02)


def test_shrinking_comes_nearer_than_the_noisy_weights(table: pd.DataFrame) -> None:
    def mean_error(weights: str) -> float:
        found = []
        for seed in range(8):
            release = released(table, seed, 0.1, weights=weights, public_points=table[:150], length_scale=0.2)
            found.append(distance(fitted(release), release, table))
        return float(np.mean(found))

    assert mean_error("shrunk") < 0.6 * mean_error("plain")


def test_a_row_count_that_is_public_is_taken_as_it_is(table: pd.DataFrame) -> None:
    release = released(table, neighbours=Neighbours.REPLACE_ONE, num_candidates=50)
    assert fitted(release).default_num_rows == 4000
