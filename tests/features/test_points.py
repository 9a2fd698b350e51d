"""Public points: to cells and codes and back, through files too."""

from __future__ import annotations

import json

import numpy as np

from understudy import load_schema
from understudy.codec import decode, encode
from understudy.features.points import Points, points_of_codes
from understudy.schema import NULL, Layout

LAYOUT = Layout(
    load_schema(
        {
            "columns": [
                {"name": "age", "kind": "integer", "bounds": [0, 120], "nullable": True},
                {"name": "city", "kind": "categorical", "categories": ["a", "b"], "nullable": True},
                {"name": "share", "kind": "continuous", "bounds": [0, 1]},
                {"name": "smoker", "kind": "binary", "categories": ["no", "yes"]},
            ]
        }
    )
)


def some_codes(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack(
        [
            rng.integers(NULL, 121, count),
            rng.integers(NULL, 2, count),
            rng.integers(0, 2**32, count),
            rng.integers(NULL, 2, count),
        ],
        axis=1,
    )


def test_points_have_the_cells_of_their_rows() -> None:
    codes = some_codes(200)
    assert np.array_equal(points_of_codes(LAYOUT, codes).cells, LAYOUT.expand(codes))


def test_codes_come_back_and_long_columns_to_the_nearest_of_65536_steps() -> None:
    codes = some_codes(200)
    found = points_of_codes(LAYOUT, codes).codes(LAYOUT)
    for column in (0, 1, 3):
        assert np.array_equal(found[:, column], codes[:, column])
    assert np.abs(found[:, 2] - codes[:, 2]).max() <= 2**15


def test_points_come_back_from_their_description_and_some_of_them_keep_their_order() -> None:
    points = points_of_codes(LAYOUT, some_codes(20))
    assert decode(Points, json.loads(json.dumps(encode(points)))) == points
    assert np.array_equal(points.take([7, 2]).cells, points.cells[[7, 2]])
    assert len(points) == 20
