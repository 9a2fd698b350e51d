"""Points drawn at public random: inside the domain, by the declared distribution, by the seed."""

from __future__ import annotations

import numpy as np
import pytest

from understudy import load_schema
from understudy.errors import UsageError
from understudy.features.points import NULL_SHARE, drawn_points
from understudy.schema import NULL, Layout

SCHEMA = load_schema(
    {
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 100], "nullable": True},
            {"name": "height", "kind": "continuous", "bounds": [0, 10]},
            {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"]},
            {"name": "day", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"]},
        ]
    }
)
NUMBERS = load_schema({"columns": [dict(c.to_dict()) for c in SCHEMA.used[:3]]})


def codes(count: int, **options: object) -> np.ndarray:
    return drawn_points(NUMBERS, count, **options).codes(Layout(NUMBERS))


def test_uniform_draws_cover_the_domain_and_nothing_else() -> None:
    found = drawn_points(SCHEMA, 4000).codes(Layout(SCHEMA))
    ages = found[found[:, 0] != NULL, 0]
    assert (ages.min(), ages.max()) == (0, 100)
    assert set(found[:, 2]) == {0, 1, 2}
    assert found[:, 3].max() <= 365
    assert abs((found[:, 0] == NULL).mean() - NULL_SHARE) < 0.02
    assert np.abs(np.bincount(found[:, 2]) / 4000 - 1 / 3).max() < 0.04


def test_gaussian_draws_have_the_declared_moments_and_are_clipped() -> None:
    found = codes(4000, draw="gaussian", means={"age": 30.0}, deviations={"age": 10.0})
    ages = found[found[:, 0] != NULL, 0]
    assert abs(ages.mean() - 30) < 1
    assert abs(ages.std() - 10) < 1
    heights = found[:, 1] / 2**32 * 10
    assert abs(heights.mean() - 5) < 0.3
    far = codes(500, draw="gaussian", means={"age": 1e6}, deviations={"age": 1.0})
    assert set(far[:, 0]) == {NULL, 100}


def test_the_seed_alone_decides() -> None:
    assert np.array_equal(codes(50, seed=3), codes(50, seed=3))
    assert not np.array_equal(codes(50, seed=3), codes(50, seed=4))


@pytest.mark.parametrize(
    "options",
    [
        {"draw": "cauchy"},
        {"means": {"age": 3.0}},
        {"draw": "gaussian", "means": {"city": 3.0}},
        {"draw": "gaussian", "deviations": {"age": -1.0}},
        {"draw": "gaussian", "means": {"age": float("nan")}},
    ],
)
def test_draws_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        codes(10, **options)


@pytest.mark.parametrize("count", [0, 20_001])
def test_no_points_and_too_many_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="between 1 and 20000"):
        codes(count)


def test_gaussian_dates_are_refused() -> None:
    with pytest.raises(UsageError, match="holds dates"):
        drawn_points(SCHEMA, 10, draw="gaussian")
