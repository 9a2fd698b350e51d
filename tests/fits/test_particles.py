"""Rows on the move stay rows: inside the bounds, nulls in the middle, codes that decode."""

from __future__ import annotations

import numpy as np

from understudy import load_schema
from understudy.features.points import drawn_points
from understudy.fits.reduced_set import Particles, particles_of
from understudy.schema import NULL, Layout

LAYOUT = Layout(
    load_schema(
        {
            "columns": [
                {"name": "age", "kind": "integer", "bounds": [0, 120], "nullable": True},
                {"name": "city", "kind": "categorical", "categories": ["a", "b"], "nullable": True},
                {"name": "share", "kind": "continuous", "bounds": [0, 1]},
            ]
        }
    )
)


def some_rows(count: int = 300) -> Particles:
    return particles_of(LAYOUT, drawn_points(LAYOUT.schema, count, seed=1))


def test_cells_are_those_of_the_codes() -> None:
    cloud = some_rows()
    assert np.array_equal(cloud.cells[:, 0], LAYOUT.expand(cloud.codes())[:, 0])
    assert np.array_equal(cloud.cells[:, 2:], LAYOUT.expand(cloud.codes())[:, 2:])
    assert np.abs(cloud.cells - LAYOUT.expand(cloud.codes())).max() < 2.0**-15


def test_jittered_rows_stay_inside_with_nulls_in_the_middle() -> None:
    rng = np.random.default_rng(2)
    moved = some_rows().jittered(np.array([5.0, 5.0]), 0.5, rng)
    assert (moved.positions >= 0).all()
    assert (moved.positions <= 1).all()
    assert moved.is_null[:, 0].any()
    assert not moved.is_null[:, 1].any()
    assert (moved.positions[moved.is_null] == 0.5).all()
    assert np.array_equal(moved.codes()[:, 0] == NULL, moved.is_null[:, 0])


def test_jitter_of_nothing_changes_nothing() -> None:
    cloud = some_rows()
    same = cloud.jittered(np.zeros(2), 0.0, np.random.default_rng(3))
    assert np.array_equal(same.codes(), cloud.codes())


def test_rows_join_and_are_taken_in_order() -> None:
    cloud = some_rows(10)
    both = cloud.take([3, 1]).joined(cloud.take([0]))
    assert np.array_equal(both.codes(), cloud.codes()[[3, 1, 0]])
    assert len(both) == 3
