"""Plans of rows that move: features of norm one over all cells, so that choices have a kernel too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from understudy import Budget, Neighbours, balog_features, load_schema
from understudy.errors import UsageError
from understudy.features import Fourier
from understudy.plan.plan import plan_from_dict

SCHEMA = load_schema(
    {
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 100], "nullable": True},
            {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"]},
        ],
        "rows": 5000,
    }
)


def the_map(**options: Any) -> Fourier:
    plan = balog_features(SCHEMA, Budget(1.0), **options)
    map_ = plan.stages[0].embedding.block("embedding").map
    assert isinstance(map_, Fourier)
    return map_


def test_features_have_the_kernel_of_numbers_and_choices_together() -> None:
    plan = balog_features(SCHEMA, Budget(1.0), num_features=20_000, mismatch=0.3, length_scale=0.2)
    map_ = plan.stages[0].embedding.block("embedding").map
    cells = plan.layout.expand(np.array([[50, 0], [60, 0], [50, 1], [60, 2], [-1, 0]]))
    features = np.asarray(map_(cells), dtype=np.float64)
    near = math.exp(-0.5 * (0.1 / 0.2) ** 2)
    gram = features @ features.T
    six_sigma = 6 / math.sqrt(10_000)
    assert gram[0, 1] == pytest.approx(near, abs=six_sigma)
    assert gram[0, 2] == pytest.approx(0.3, abs=six_sigma)
    assert gram[0, 3] == pytest.approx(0.3 * near, abs=six_sigma)
    assert gram[0, 4] == pytest.approx(0.3, abs=six_sigma)  # a null lies in the middle, as 50 does
    assert np.abs(np.diag(gram) - 1).max() < 1e-5


def test_features_come_in_pairs_and_cover_every_cell() -> None:
    assert the_map(num_features=31).dim == 32
    assert the_map().numbers == tuple(range(6))


def test_the_row_count_rides_free_where_rows_are_replaced() -> None:
    plan = balog_features(SCHEMA, Budget(1.0), neighbours=Neighbours.REPLACE_ONE)
    ((square,),) = plan.mechanism_sensitivities
    assert math.sqrt(square) / plan.lattice == pytest.approx(2.0)


def test_the_plan_says_features_rows_and_weights_and_comes_back_from_its_form() -> None:
    plan = balog_features(SCHEMA, Budget(1.0), weights="uniform", num_points=30)
    assert "4000 random features" in plan.setting("explanation")[1]
    assert plan.setting("explanation")[2] == "30 rows with equal weights"
    assert plan_from_dict(plan.to_dict()).fingerprint == plan.fingerprint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "plain"}, "one of free, uniform"),
        ({"num_features": 1}, "between 2 and"),
        ({"num_points": 10_001}, "between 1 and 10000"),
        ({"steps": 0}, "at least 1"),
        ({"draw": "cauchy"}, "one of uniform, gaussian"),
        ({"means": {"age": 1.0}}, "gaussian draws"),
        ({"length_scale": {"city": 1.0}}, "every numeric column"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        balog_features(SCHEMA, Budget(1.0), **options)
