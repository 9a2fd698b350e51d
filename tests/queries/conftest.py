"""A small table of every kind of column, and releases of it with noise that tests can choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.methods import make_plan
from understudy.private.noise import SeededNoise
from understudy.private.release import release_table
from understudy.private.spending import Receipt
from understudy.released import Release
from understudy.schema import Schema, load_schema

NUM_ROWS = 2000
SCHEMA = {
    "name": "small",
    "columns": [
        {"name": "sex", "kind": "binary", "categories": ["Female", "Male"]},
        {"name": "region", "kind": "categorical", "categories": ["n", "s", "e"], "nullable": True},
        {"name": "stage", "kind": "ordinal", "categories": ["low", "mid", "high"]},
        {"name": "visits", "kind": "integer", "bounds": [0, 5], "nullable": True},
        {"name": "age", "kind": "integer", "bounds": [18, 90]},
        {"name": "weight", "kind": "continuous", "bounds": [30, 150]},
        {"name": "seen", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"], "resolution": "day"},
        {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
    ],
}

Rows = dict[str, npt.NDArray[Any]]


class Silence:
    """No noise at all, so that what is left is the arithmetic."""

    name = "silence, for tests only"
    is_private = False

    def add_noise(self, sums: npt.NDArray[np.int64], noise_std: float, receipt: Receipt) -> npt.NDArray[np.int64]:
        return sums


@dataclass(frozen=True)
class World:
    """Rows whose every statistic is known, and their schema."""

    rows: Rows
    schema: Schema

    @property
    def table(self) -> pa.Table:
        return pa.table({name: pa.array(list(cells)) for name, cells in self.rows.items()})

    def release(
        self,
        noise: Any,
        *,
        neighbours: str = "add-remove",
        epsilon: float = 2.0,
        method: str = "dp-anova",
        **options: Any,
    ) -> Release:
        options |= {"num_rows": NUM_ROWS, "neighbours": neighbours}
        plan = make_plan(self.schema, Budget(epsilon, 1e-6), method=method, options=options)
        return release_table(self.table, plan, noise=noise)


def simulated() -> Rows:
    rng = np.random.default_rng(7)
    ill = rng.random(NUM_ROWS) < 0.3
    male = rng.random(NUM_ROWS) < 0.4 + 0.2 * ill
    regions = np.array(["n", "s", "e", None], dtype=object)
    visits = np.clip(rng.poisson(1.2 + ill), 0, 5).astype(object)
    visits[rng.random(NUM_ROWS) < 0.1] = None
    days = rng.integers(0, 366, NUM_ROWS).astype("timedelta64[D]")
    return {
        "sex": np.where(male, "Male", "Female"),
        "region": regions[rng.choice(4, NUM_ROWS, p=[0.4, 0.3, 0.2, 0.1])],
        "stage": rng.choice(["low", "mid", "high"], NUM_ROWS, p=[0.5, 0.3, 0.2]),
        "visits": visits,
        "age": np.clip(np.rint(rng.normal(45 + 8 * ill, 14)), 18, 90).astype(int),
        "weight": np.clip(rng.normal(70 + 8 * male, 12), 30, 150),
        "seen": (np.datetime64("2020-01-01") + days).astype(object),
        "ill": np.where(ill, "yes", "no"),
    }


@pytest.fixture(scope="session")
def world() -> World:
    return World(simulated(), load_schema(SCHEMA))


@pytest.fixture(scope="session")
def silent(world: World) -> Release:
    """A release without noise, whose plan still states it."""
    return world.release(Silence())


@pytest.fixture(scope="session")
def noisy(world: World) -> Release:
    return world.release(SeededNoise(5))
