"""Columns that are constant, empty, very long or oddly ordered, at every amount of noise."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.methods import make_plan
from understudy.private.noise import SeededNoise
from understudy.private.release import release_table
from understudy.queries import Asker, QueryError, catalogue
from understudy.schema import load_schema

NUM_ROWS = 400
CITIES = [f"c{i}" for i in range(300)]
SCHEMA = {
    "columns": [
        {"name": "same", "kind": "integer", "bounds": [3, 3]},
        {"name": "city", "kind": "categorical", "categories": CITIES},
        {"name": "dose", "kind": "ordinal", "categories": [9.0, 1.5, 2.5]},
        {"name": "flag", "kind": "binary", "categories": [False, True]},
        {"name": "kind", "kind": "categorical", "categories": ["a", "b"], "nullable": True, "role": "label"},
        {"name": "time", "kind": "datetime", "bounds": ["2000-01-01", "2025-01-01"], "resolution": "second"},
        {"name": "x", "kind": "continuous", "bounds": [0, 1], "scale_hint": "log1p"},
        {"name": "empty", "kind": "continuous", "bounds": [-1, 1], "nullable": True},
    ]
}
NAMES = [str(column["name"]) for column in SCHEMA["columns"]]
QUERIES = [
    *(f"{each}({name})" for each in ("sum", "mean", "std", "median", "histogram") for name in NAMES),
    *(f"count by {name}, kind" for name in NAMES),
    *(f"mean({name}) by flag" for name in NAMES),
    *(f"median({name}) by kind" for name in NAMES),
    "share where city = c3 by kind",
    "count where x > 0.3 by kind",
    "mean(dose) where x > 0.5",
    "mean(empty) where empty > 0",
    "share where empty is null",
    "mean(x) where x > 2",
    "mean(x) where x between 0.2 and 0.4 by flag",
    "count where flag = true",
]


def awkward_rows() -> pa.Table:
    rng = np.random.default_rng(1)
    kinds = np.array(["a", "b", None], dtype=object)[rng.choice(3, NUM_ROWS, p=[0.5, 0.4, 0.1])]
    moments = rng.integers(1_000_000_000, 1_600_000_000, NUM_ROWS) * 1_000_000
    return pa.table(
        {
            "same": [3] * NUM_ROWS,
            "city": rng.choice(CITIES, NUM_ROWS).tolist(),
            "dose": rng.choice([1.5, 2.5, 9.0], NUM_ROWS).tolist(),
            "flag": (rng.random(NUM_ROWS) < 0.5).tolist(),
            "kind": kinds.tolist(),
            "time": pa.array(moments, pa.timestamp("us")),
            "x": rng.random(NUM_ROWS),
            "empty": pa.array([None] * NUM_ROWS, pa.float64()),
        }
    )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.01, 0.2, 5.0])
def test_every_answer_has_its_estimate_inside_its_interval_and_is_valid_json(epsilon, neighbours):
    options = {"num_rows": NUM_ROWS, "neighbours": neighbours, "pairs": epsilon > 0.1}
    plan = make_plan(load_schema(SCHEMA), Budget(epsilon, 1e-6), options=options)
    asker = Asker(release_table(awkward_rows(), plan, noise=SeededNoise(1)))
    assert len(catalogue(asker.sources).columns) == len(NAMES)
    answered = 0
    for query in QUERIES:
        try:
            answer = asker.ask(query)
        except QueryError:
            continue
        answered += 1
        json.dumps(answer.to_dict(), allow_nan=False)
        for row in answer.rows:
            assert row.low <= row.high, query
            room = 1e-9 * max(1.0, abs(row.low), abs(row.high))
            assert math.isnan(row.estimate) or row.low - room <= row.estimate <= row.high + room, query
    assert answered > 20
