from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy.schema import Schema, load_schema


@pytest.fixture(scope="session")
def schema() -> Schema:
    return load_schema(
        {
            "name": "clinic",
            "columns": [
                {"name": "age", "kind": "integer", "bounds": [0, 100]},
                {"name": "weight", "kind": "continuous", "bounds": [0, 200], "nullable": True},
                {"name": "stage", "kind": "ordinal", "bounds": [1, 4]},
                {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True},
                {"name": "sick", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
            ],
        }
    )


def draw_clinic(num_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 101, num_rows)
    weight = np.clip(40 + 0.5 * age + 10 * rng.standard_normal(num_rows), 0, 200)
    sick = rng.random(num_rows) < 1 / (1 + np.exp(-(age - 60) / 8))
    return pd.DataFrame(
        {
            "age": age,
            "weight": np.where(rng.random(num_rows) < 0.1, np.nan, weight),
            "stage": rng.integers(1, 5, num_rows),
            "city": pd.Series(rng.choice(["a", "b", "c"], num_rows)).where(rng.random(num_rows) > 0.2),
            "sick": np.where(sick, "yes", "no"),
        }
    )


@pytest.fixture(scope="session")
def clinic() -> pd.DataFrame:
    return draw_clinic(600, seed=1)


@pytest.fixture(scope="session")
def other_clinic() -> pd.DataFrame:
    return draw_clinic(500, seed=2)
