"""Compare: a release against public rows, or against another release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def release(run: Any, office: Any, quick: Any) -> Path:
    return made(run, office, quick, "release", "many.parquet", 2000)


def made(run: Any, office: Any, quick: Any, name: str, table: str, rows: int) -> Path:
    office.write(rows, office.path(table))
    words = ("-s", office.schema, "-e", 1, "-o", office.path(name), *quick)
    assert run("release", office.path(table), *words).code == 0
    return Path(office.path(name))


def test_rows_of_the_same_kind_are_not_told_apart(run: Any, office: Any, release: Path) -> None:
    outcome = run("compare", release, office.path("many.parquet"), "--level", "0.000001")
    assert outcome.code == 0
    assert "No difference can be seen" in outcome.out
    assert "noticed in four of five" in outcome.out
    assert "rows of 'many.parquet' were treated as public" in outcome.out


def test_other_rows_are_told_apart_and_the_column_is_named(run: Any, office: Any, release: Path) -> None:
    rows = pq.read_table(office.path("many.parquet"))
    office.put(
        "old.csv",
        "bmi,age,sex,seen,ill\n"
        + "\n".join(
            f"{b if b is not None else ''},{min(120, a + 30)},{s},{d or ''},{i}"
            for b, a, s, d, i in zip(*(rows[n].to_pylist() for n in ("bmi", "age", "sex", "seen", "ill")), strict=True)
        ),
    )
    picture = office.path("picture.png")
    outcome = run("compare", release, office.path("old.csv"), "-o", picture, "--json")
    document = outcome.document
    assert document["differs"] is True
    assert document["p_value"] < 1e-4
    assert document["columns"][0]["columns"] == ["age"]
    assert document["picture"] == str(picture)
    assert any("age" in words for words in document["statement"])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_very_rows_are_recognised(run: Any, office: Any, release: Path) -> None:
    same = run("compare", release, office.path("many.parquet"), "--exact", "--json").document
    assert same["question"] == "same rows"
    assert same["p_value"] > 1e-6
    office.write(1500, office.path("fewer.parquet"))
    fewer = run("compare", release, office.path("fewer.parquet"), "--exact", "--json").document
    assert fewer["differs"] is True


def test_two_releases(run: Any, office: Any, release: Path, quick: Any) -> None:
    second = made(run, office, quick, "second", "again.parquet", 2000)
    model = office.path("model")
    assert run("fit", release, "-o", model).code == 0
    found = run("compare", release, second, "--generator", model, "--json").document
    assert found["p_value"] > 1e-6
    assert "columns" in found["compared"]
    plain = run("compare", release, second, "--exact", "--level", "0.000001")
    assert plain.code == 0
    assert "may well be the same rows" in plain.out
    assert "'second'" in plain.out


def test_refusals(run: Any, office: Any, release: Path) -> None:
    assert run("compare", release, office.path("absent.parquet"), "--json").code == 1
    office.put("page.png", b"")
    taken = run("compare", release, office.parquet, "-o", office.path("page.png"), "--json")
    assert "exists already" in taken.refusal["rule"]
    kind = run("compare", release, office.parquet, "-o", office.path("page.pdf"), "--json")
    assert kind.code == 2
    assert run("compare", release, office.parquet, "--level", "2", "--json").code == 2
    office.put("empty.csv", "bmi,age,sex,seen,ill\n")
    assert "no rows" in run("compare", release, office.path("empty.csv"), "--json").refusal["rule"]


def test_the_help_says_that_other_rows_are_taken_as_public(run: Any) -> None:
    words = " ".join(run("compare", "--help").out.replace("│", " ").split())
    assert "PUBLIC rows" in words
    assert "treated as public" in words
    assert "Free for ever" in run("--help").out
