"""Peers see codes and give codes, whatever the columns are."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import peers
import pytest

from understudy import load_schema
from understudy.evaluation.tables import code_table

SCHEMA = load_schema(
    {
        "name": "clinic",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 99]},
            {"name": "dose", "kind": "continuous", "bounds": [0, 10], "nullable": True},
            {"name": "visits", "kind": "integer", "bounds": [1, 5]},
            {"name": "ward", "kind": "categorical", "categories": ["north", "south"], "nullable": True},
            {"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"},
        ],
    }
)


def test_codes_become_values_of_the_same_codes(monkeypatch: pytest.MonkeyPatch):
    def copy_codes(command: list[str | Path]) -> tuple[float, float]:
        folder = Path(command[-1])
        shutil.copy(folder / "codes.parquet", folder / "made.parquet")
        return 2.0, 1.0

    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(0, 100, 500),
            "dose": np.where(rng.random(500) < 0.2, np.nan, rng.random(500) * 10),
            "visits": rng.integers(1, 6, 500),
            "ward": rng.choice(np.array(["north", "south", None], dtype=object), 500),
            "ill": rng.integers(0, 2, 500),
        }
    )
    monkeypatch.setenv("UNDERSTUDY_DPMM", "python-of-the-peer")
    monkeypatch.setattr(peers, "timed", copy_codes)
    made = peers.run_peer(rows, SCHEMA, peer="privbayes", epsilon="1", seed=0)
    assert (made.wall_seconds, made.cpu_seconds) == (2.0, 1.0)
    assert np.array_equal(code_table(SCHEMA, made.rows).bins, code_table(SCHEMA, rows).bins)
    assert not np.array_equal(made.rows["age"], rows["age"])  # spread inside bins, not copied


def test_only_peers_with_an_environment_are_offered(monkeypatch: pytest.MonkeyPatch):
    for variable in peers.PEERS.values():
        monkeypatch.delenv(variable, raising=False)
    assert peers.installed() == ()
    monkeypatch.setenv("UNDERSTUDY_SMARTNOISE", "python-of-the-peer")
    assert peers.installed() == ("dp-gan",)
