from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from typer.testing import CliRunner

from understudy.cli.app import app
from understudy.errors import InputError, UsageError

SCHEMA = """
name: tiny
columns:
- {name: x, kind: continuous, bounds: [0, 1]}
- {name: colour, kind: categorical, categories: [red, "<b>blue"]}
- {name: y, kind: binary, categories: ["no", "yes"], role: label}
"""
runner = CliRunner()


def run(*words: object) -> str:
    done = runner.invoke(app, list(map(str, words)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("classify")
    (path / "schema.yaml").write_text(SCHEMA)
    rng = np.random.default_rng(0)
    x = rng.random(2000)
    colour = np.where(rng.random(2000) < 0.5, "red", "<b>blue")
    rows = pa.table({"x": x, "colour": colour, "y": np.where(x > 0.5, "yes", "no")})
    csv.write_csv(rows, path / "rows.csv")
    csv.write_csv(rows.drop_columns(["y"]).slice(0, 100), path / "new.csv")
    run("ledger", "init", path / "l", "-e", "3")
    made = run(
        "classify",
        path / "rows.csv",
        "-s",
        path / "schema.yaml",
        "-e",
        "3",
        "-o",
        path / "clf",
        "--ledger",
        path / "l",
        "--json",
    )
    assert json.loads(made)["epsilon"] <= 3
    assert json.loads(made)["ledger"]["row"] == 1
    return path


def test_a_classifier_is_verified_as_a_release_is(folder: Path) -> None:
    assert "Consistent" in run("verify", folder / "clf")
    (folder / "bad").mkdir()
    for file in (folder / "clf").iterdir():
        (folder / "bad" / file.name).write_bytes(file.read_bytes())
    (folder / "bad" / "certificate.json").write_text("{}")
    with pytest.raises(InputError, match="changed or damaged"):
        run("verify", folder / "bad")


def test_rows_without_a_label_are_predicted(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert "100 rows" in run("predict", folder / "clf", folder / "new.csv", "-o", out)
    found = csv.read_csv(out)
    assert found.column_names == ["predicted_y", "chance_no", "chance_yes"]
    known = csv.read_csv(folder / "rows.csv")["y"].to_pylist()[:100]
    right = [a == b for a, b in zip(found["predicted_y"].to_pylist(), known, strict=True)]
    assert np.mean(right) > 0.85


def test_a_page_about_the_maps_is_public_and_one_about_rows_is_not(folder: Path, tmp_path: Path) -> None:
    run("explain", folder / "clf", "-o", tmp_path / "all.html")
    words = ("--rows", folder / "new.csv", "--row", 3, "--row", 5)
    run("explain", folder / "clf", "-o", tmp_path / "rows.html", *words)
    assert stat.S_IMODE((tmp_path / "all.html").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "rows.html").stat().st_mode) == 0o600
    page = (tmp_path / "rows.html").read_text()
    assert "SHOWS SINGLE ROWS" in page
    assert page.count("predicted yes") + page.count("predicted no") == 2
    assert "<b>blue" not in page
    assert "&lt;b&gt;blue" in page
    assert "SHOWS SINGLE ROWS" not in (tmp_path / "all.html").read_text()


def test_settings_reach_the_plan(folder: Path) -> None:
    out = folder / "maps"
    run(
        "classify",
        folder / "rows.csv",
        "-s",
        folder / "schema.yaml",
        "-e",
        "3",
        "-o",
        out,
        "--maps",
        2,
        "--beta",
        2,
        "--steps",
        5,
        "--look",
        0.2,
        "--rows",
        2000,
        "--projected",
        4,
    )
    plan = json.loads((out / "classifier.json").read_text())["plan"]
    training = plan["training"]
    assert (training["num_maps"], training["steps"], training["projected"]) == (2, 5, 4)
    assert plan["num_rows"] == 2000
    page = run("explain", out, "-o", folder / "maps.html", "--rows", folder / "new.csv", "--json")
    assert "maps.html" in page
    assert "map 2" in (folder / "maps.html").read_text()


def test_a_ledger_with_a_reserve_takes_samples(folder: Path) -> None:
    run("ledger", "init", folder / "r", "-e", "3", "--reserve", "0.1")
    words = ["-s", folder / "schema.yaml", "-e", "1", "--sampling", "0.5", "--steps", "4"]
    run("classify", folder / "rows.csv", *words, "-o", folder / "s", "--ledger", folder / "r")
    assert "classifier on tiny" in run("ledger", "show", folder / "r", "--json")


def test_a_key_with_another_query_is_refused(folder: Path) -> None:
    run("ledger", "init", folder / "k", "-e", "3")
    words = ["-s", folder / "schema.yaml", "-e", "1", "--steps", "2", "--ledger", folder / "k", "--key", "spring"]
    run("classify", folder / "rows.csv", *words, "-o", folder / "keyed")
    with pytest.raises(InputError, match="key 'spring': was used with another query"):
        run("classify", "no-such-file.csv", *words, "--query", "SELECT * FROM data", "-o", folder / "other")
    run("classify", "no-such-file.csv", *words, "-o", folder / "again")
    assert (folder / "again" / "classifier.json").read_bytes() == (folder / "keyed" / "classifier.json").read_bytes()


def test_refusals(folder: Path, tmp_path: Path) -> None:
    words = ["-s", folder / "schema.yaml", "-e", "1", "-o", tmp_path / "x"]
    with pytest.raises(UsageError, match="key"):
        run("classify", folder / "rows.csv", *words, "--key", "k")
    with pytest.raises(UsageError, match="Add --rows"):
        run("explain", folder / "clf", "-o", tmp_path / "p.html", "--row", 1)
    rows = ["--rows", folder / "new.csv", "--row", 100]
    with pytest.raises(UsageError, match="beyond"):
        run("explain", folder / "clf", "-o", tmp_path / "p.html", *rows)
    with pytest.raises(InputError, match="not the directory"):
        run("predict", folder, folder / "new.csv", "-o", tmp_path / "p.csv")
