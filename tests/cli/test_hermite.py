"""DP-HP on the command line: from a CSV file to valid rows, the short way."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

VARIANTS: dict[str, tuple[object, ...]] = {
    "default": (),
    "mixture": ("--order", 20, "--product-order", 4, "--products", 6),
    "fresh": ("--fresh-products", "--products", 2, "--product-dim", 2),
    "network": ("--generator", "network", "--products", 2),
    "preset": ("--preset", "covtype"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_come_out_valid_and_are_paid_for_once(run: Any, office: Any, variant: str) -> None:
    made = run(
        "synth",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-m",
        "dp-hp",
        "--steps",
        3,
        *VARIANTS[variant],
        "-n",
        300,
        "-o",
        office.path("made.parquet"),
        "--release-dir",
        office.path("kept"),
        "--ledger",
        office.ledger,
        "--json",
    ).document
    assert made["num_rows"] == 300
    cells = pq.read_table(office.path("made.parquet")).to_pydict()
    assert list(cells) == ["bmi", "age", "sex", "seen", "ill"]
    assert all(len(column) == 300 for column in cells.values())
    assert all(bmi is None or 10 <= bmi <= 80 for bmi in cells["bmi"])
    assert all(isinstance(age, int) and 0 <= age <= 120 for age in cells["age"])
    assert set(cells["sex"]) <= {"f", "m"}
    assert all(day is None or 2000 <= day.year <= 2030 for day in cells["seen"])
    assert set(cells["ill"]) <= {"no", "yes"}
    (row,) = office.spent()[1]
    assert row.fingerprint == made["fingerprint"]
    found = run("verify", office.path("kept"), "--json").document
    assert found["is_private"] is True
    assert found["epsilon"] <= 1
    for path in office.path("kept").iterdir():
        assert b"SECRET" not in path.read_bytes()


def test_fresh_products_are_released_apart(run: Any, office: Any) -> None:
    ended = run(
        "release",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-m",
        "dp-hp",
        "--fresh-products",
        "--products",
        2,
        "-o",
        office.path("kept"),
        "--json",
    )
    assert (ended.code, ended.err) == (0, "")
    stages = json.loads((office.path("kept") / "release.json").read_text())["stages"]
    assert [stage["name"] for stage in stages] == ["sum", "product 1", "product 2"]


def test_the_same_seed_gives_the_same_rows_from_one_release(run: Any, office: Any) -> None:
    base = ("-s", office.schema, "-e", 1, "-m", "dp-hp", "--steps", 3, "--products", 2)
    assert run("release", office.csv, *base, "-o", office.path("kept")).code == 0
    for name in ("a", "b"):
        assert run("fit", office.path("kept"), "-o", office.path(f"model-{name}")).code == 0
        model, rows = office.path(f"model-{name}"), office.path(f"{name}.csv")
        assert run("sample", model, "-n", 50, "--seed", 3, "-o", rows).code == 0
    assert office.path("a.csv").read_bytes() == office.path("b.csv").read_bytes()
