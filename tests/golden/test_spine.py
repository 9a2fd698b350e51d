"""examples/spine.py is the package's default path: the same integers, bins, pairs and rows under the same noise."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from understudy import Budget, fit_release, make_plan, release_table
from understudy.fits.anova import AnovaTraining
from understudy.private.noise import SeededNoise
from understudy.schema import Schema
from understudy.schema.table import parse_schema

SPINE = Path(__file__).parents[2] / "examples" / "spine.py"
NUM_ROWS = 12_000
TRAINING = AnovaTraining(steps=3, num_components=20)


@pytest.fixture(scope="module")
def spine() -> ModuleType:
    spec = importlib.util.spec_from_file_location("spine", SPINE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["spine"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def made_up_schema(role: str, *, is_short: bool) -> Schema:
    """Numbers of all lengths, categories of which one is rare, nulls, and a label or none."""
    columns: list[dict[str, Any]] = [
        {"name": "age", "kind": "integer", "bounds": [0, 110]},
        {"name": "ward", "kind": "categorical", "categories": ["n", "s", "w", "rare"], "nullable": True},
        {"name": "grade", "kind": "ordinal", "categories": [1, 2, 3, 4, 5]},
        {"name": "ill", "kind": "binary", "categories": [0, 1], "role": role},
    ]
    if not is_short:
        columns += [
            {"name": "pay", "kind": "integer", "bounds": [0, 50_000], "nullable": True},
            {"name": "dose", "kind": "continuous", "bounds": [0.0, 10.0]},
        ]
    return parse_schema({"name": "made-up", "privacy": {"unit": "row"}, "columns": columns}, name="made-up")


def made_up_rows(schema: Schema) -> pa.Table:
    rng = np.random.default_rng(5)
    age = np.clip(rng.normal(45, 20, NUM_ROWS), -5, 120).astype(int)  # some lie outside of the bounds
    ill = (rng.random(NUM_ROWS) < age / 150).astype(int)
    pay = np.where(rng.random(NUM_ROWS) < 0.2, 12_000, np.exp(rng.normal(9, 0.6, NUM_ROWS))).astype(int)
    dose = np.where(rng.random(NUM_ROWS) < 0.3, 0.0, rng.gamma(2.0, 1.0, NUM_ROWS) + ill)
    columns = {
        "age": pa.array(age),
        "ward": pa.array(rng.choice(["n", "s", "w", "rare", "unheard of"], NUM_ROWS, p=[0.5, 0.3, 0.17, 0.01, 0.02])),
        "grade": pa.array(np.clip(age // 20 + rng.integers(0, 2, NUM_ROWS), 1, 5)),
        "ill": pa.array(np.where(rng.random(NUM_ROWS) < 0.01, 7, ill)),
        "pay": pa.array(pay, mask=rng.random(NUM_ROWS) < 0.05),
        "dose": pa.array(dose),
    }
    return pa.table({column.name: columns[column.name] for column in schema.used})


@pytest.mark.parametrize(
    ("role", "is_short"), [("label", False), ("feature", False), ("label", True)], ids=["classes", "none", "short"]
)
def test_the_spine_gives_the_integers_bins_pairs_and_rows_of_the_package(
    spine: ModuleType, role: str, is_short: bool
) -> None:
    schema = made_up_schema(role, is_short=is_short)
    table, budget = made_up_rows(schema), Budget(2.0, 1e-5)
    plan = make_plan(schema, budget, options={"training": TRAINING})
    release = release_table(table, plan, noise=SeededNoise(3))
    rng = np.random.default_rng(3)

    def seeded(sums: np.ndarray[Any, Any], deviation: int) -> np.ndarray[Any, Any]:
        return sums + np.rint(rng.normal(0.0, deviation, len(sums))).astype(np.int64)

    (batch,) = table.combine_chunks().to_batches()
    found = spine.synthesize(schema, batch, budget, add_noise=seeded, training=TRAINING)

    assert tuple(reading.noise_std for reading in found.measurements) == plan.noise_stds
    for mine, theirs in zip(found.measurements, release.vectors, strict=True):
        np.testing.assert_array_equal(mine.vector, theirs)
    assert found.bins == release.measurements[2].map("cells").factors
    for stage, name in ((1, "columns"), (2, "looks"), (3, "marginals")):
        assert found.measurements[stage].map(name) == release.measurements[stage].map(name)
    rows = fit_release(release).sample(50, seed=1)
    assert found.generator.sample(50, seed=1).equals(rows)
