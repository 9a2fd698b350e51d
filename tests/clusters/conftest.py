"""Tables, work and expectations that the engines share. These tests run in an environment with the engines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from understudy.accounting.mechanisms import Budget
from understudy.arrays import Integers
from understudy.methods import make_plan
from understudy.private.passes import Run, sum_table
from understudy.private.sums import Work
from understudy.schema import load_schema

ON_THIS_MACHINE = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
os.environ.update(ON_THIS_MACHINE)

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "bounds": [0, 100]},
    {"name": "dose given", "kind": "continuous", "bounds": [0, 2], "nullable": True},
    {"name": "ward", "kind": "categorical", "categories": ["north", "south", "west"]},
    {"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"},
]
PRIVACY = {"row": {"unit": "row"}, "person": {"unit": "person", "max_rows": 3}}
OPTIONS: dict[str, dict[str, Any]] = {"dp-anova": {"pairs": True}, "dp-merf": {"num_features": 40}}


def plan_of(method: str, unit: str) -> Any:
    schema = load_schema({"name": "visits", "columns": COLUMNS, "privacy": PRIVACY[unit]})
    return make_plan(schema, Budget(1.0), method=method, options=OPTIONS[method])


def work_of(method: str, unit: str) -> Work:
    """The first stage that measures more than the row count."""
    plan = plan_of(method, unit)
    stage = next(stage for stage in plan.stages if stage.name != "rows")
    return Work(plan.layout, stage.embedding, plan.lattice)


@pytest.fixture(scope="session")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    count = 3000
    dose = np.where(rng.random(count) < 0.1, np.nan, rng.uniform(0, 2, count))
    people = [f"p{number}" if number else None for number in rng.zipf(1.4, count) % 500]
    return pa.table(
        {
            "age": rng.integers(0, 101, count),
            "dose given": pa.array(dose, from_pandas=True),
            "ward": rng.choice(["north", "south", "west", "moon"], count).tolist(),
            "ill": rng.integers(0, 2, count),
            "person": people,
            "unread": ["x"] * count,
        }
    )


@pytest.fixture(scope="session")
def folder(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    for number, (start, stop) in enumerate([(0, 10), (10, 10), (10, 1700), (1700, 3000)]):
        pq.write_table(shuffled.slice(start, stop - start), path / f"{number}.parquet")
    return path


@pytest.fixture(scope="session")
def expected(table: pa.Table) -> Callable[[Work], Integers]:
    """What the local engine finds, with one thread and with two."""

    def both(work: Work) -> Integers:
        one, two = (sum_table(table, work, query=None, run=Run(engine="local", threads=threads)) for threads in (1, 2))
        assert np.array_equal(one, two)
        return one

    return both


@pytest.fixture
def released_by(folder: Path, tmp_path: Path) -> Callable[[str], tuple[str, Path]]:
    """A release of the directory by the real command line, and what it printed."""
    schema, release = tmp_path / "schema.yaml", tmp_path / "release"
    schema.write_text(yaml.safe_dump({"columns": COLUMNS}))
    understudy = Path(sys.executable).with_name("understudy")

    def ran(*words: object) -> str:
        done = subprocess.run([str(word) for word in (understudy, *words)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def by(engine: str) -> tuple[str, Path]:
        wishes = ("-s", schema, "-e", 1, "--engine", engine, "-o", release, "--json")
        printed = ran("release", folder, *wishes)
        ran("verify", release)
        return printed, release

    return by
