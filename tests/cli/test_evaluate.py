"""Evaluate and report: a page for those who hold the rows, and one that needs none of them."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from understudy.reports import agreement
from understudy.reports.internal import BANNER


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "MOST_ROWS", 2_000)


@pytest.fixture
def made(run: Any, office: Any, quick: Any) -> Any:
    """Synthetic rows, and the release that they come from."""
    found = run(
        "synth",
        office.csv,
        "-s",
        office.schema,
        "-e",
        1,
        "-n",
        80,
        "-o",
        office.path("drawn.csv"),
        "--release-dir",
        office.path("release"),
        *quick,
    )
    assert found.code == 0
    return office


def evaluated(run: Any, made: Any, *options: object) -> Any:
    rows = made.path("drawn.csv")
    return run("evaluate", rows, "-r", made.parquet, "-s", made.schema, "--quick", *options)


def test_scores_are_printed_beside_real_rows_and_baseline(run: Any, made: Any) -> None:
    found = evaluated(run, made)
    assert found.code == 0
    assert "80 synthetic rows against 60 real ones" in found.out
    for words in ("score", "synthetic", "real", "indep.", "Pairs of columns", "outside the certificate"):
        assert words in found.out
    assert "-o report.html" in found.out


def test_the_internal_report_is_written_for_its_owner_alone(run: Any, made: Any) -> None:
    page = made.path("report.html")
    found = evaluated(run, made, "-o", page, "--release", made.path("release"))
    assert found.code == 0
    assert str(page) in found.out
    text = page.read_text()
    assert BANNER in text
    assert 'epsilon 1.0 at <span class="keep">delta 1e-05</span>' in text
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_csv_and_parquet_of_the_same_rows_score_alike(run: Any, made: Any) -> None:
    rows = made.path("drawn.csv")
    scores = [
        run("evaluate", rows, "-r", real, "-s", made.schema, "--quick", "--json").document["evaluation"]["columns"]
        for real in (made.csv, made.parquet)
    ]
    assert scores[0] == scores[1]


def test_json_holds_everything_and_only_what_json_can_hold(run: Any, made: Any) -> None:
    found = evaluated(run, made, "--json")

    def refuse(word: str) -> None:
        raise AssertionError(word)

    document = json.loads(found.out, parse_constant=refuse)
    assert document["notice"] == BANNER
    assert set(document) == {"notice", "report", "headline", "trust", "doubt", "uses", "evaluation"}
    assert {column["name"] for column in document["evaluation"]["columns"]} == {"bmi", "age", "sex", "seen", "ill"}


def test_the_real_file_in_place_of_the_synthetic_one_is_noticed(run: Any, made: Any) -> None:
    words = "real rows were not given in their place"
    found = run("evaluate", made.csv, "-r", made.csv, "-s", made.schema, "--quick")
    assert words in found.out
    assert words not in evaluated(run, made).out


def test_why_nothing_was_predicted_is_said_without_a_page_too(run: Any, made: Any) -> None:
    few = made.put("few.csv", "\n".join(made.csv.read_text().splitlines()[:6]) + "\n")
    found = evaluated(run, made, "--test", few)
    assert found.code == 0
    assert "ill was not predicted: fewer than 10 test rows have a label." in found.out


def test_a_release_brings_its_own_schema(run: Any, made: Any) -> None:
    rows, release = made.path("drawn.csv"), made.path("release")
    assert run("evaluate", rows, "-r", made.csv, "--release", release, "--quick").code == 0
    found = run("evaluate", rows, "-r", made.csv, "--quick", "--json")
    assert (found.code, found.refusal["where"]) == (2, "schema")


def test_a_release_of_another_table_is_refused(run: Any, made: Any) -> None:
    other = made.put("other.yaml", made.schema.read_text().replace("bmi", "weight"))
    rows = made.path("drawn.csv")
    found = run("evaluate", rows, "-r", made.csv, "-s", other, "--release", made.path("release"), "--json")
    assert found.refusal["rule"] == "has other columns than the schema"


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [("bare.csv", "bmi,age\n1,2\n", "column 'sex'"), ("empty.csv", "bmi,age,sex,seen,ill\n", "empty.csv")],
)
def test_rows_that_cannot_be_read_are_refused_without_quoting_them(
    run: Any, made: Any, name: str, content: str, where: str
) -> None:
    found = run("evaluate", made.put(name, content), "-r", made.csv, "-s", made.schema, "--json")
    assert found.code == 1
    assert where in found.refusal["where"] + found.refusal["rule"]


def test_a_table_that_a_release_takes_is_evaluated_too(run: Any, made: Any) -> None:
    """A cell that is no number is missing, in a release and here, and is not quoted."""
    header, first, *rest = Path(made.csv).read_text().splitlines()
    cells = [
        "SECRET-77" if name == "bmi" else cell for name, cell in zip(header.split(","), first.split(","), strict=True)
    ]
    real = made.put("odd.csv", "\n".join([header, ",".join(cells), *rest]) + "\n")
    found = run("evaluate", made.path("drawn.csv"), "-r", real, "-s", made.schema, "--quick")
    assert found.code == 0
    assert "SECRET" not in found.out + found.err


@pytest.mark.parametrize("verb", ["evaluate", "report"])
def test_pages_overwrite_nothing_and_end_in_html(run: Any, made: Any, verb: str) -> None:
    taken = made.put("taken.html", "mine")
    arguments = (
        (made.path("drawn.csv"), "-r", made.csv, "-s", made.schema) if verb == "evaluate" else (made.path("release"),)
    )
    assert run(verb, *arguments, "-o", taken, "--json").refusal["rule"] == "exists already"
    assert run(verb, *arguments, "-o", made.path("page.pdf"), "--json").code == 2
    assert taken.read_text() == "mine"


def test_the_public_report_is_made_when_all_real_rows_are_gone(run: Any, made: Any) -> None:
    for path in (made.csv, made.parquet, made.schema, made.path("drawn.csv")):
        path.unlink()
    page = made.path("public.html")
    found = run("report", made.path("release"), "-o", page)
    assert found.code == 0
    assert "may be published" in found.out
    text = page.read_text()
    assert BANNER not in text
    assert "No real row was read" in text
    assert stat.S_IMODE(page.stat().st_mode) == 0o644


def test_the_public_report_opens_no_table_and_charges_no_ledger(
    run: Any, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a table was opened")

    monkeypatch.setattr("understudy.readers.open_source", refuse)
    spent = made.spent()
    assert run("report", made.path("release"), "-o", made.path("public.html")).code == 0
    assert made.spent() == spent


def test_the_public_report_takes_no_file_of_rows(run: Any, made: Any) -> None:
    public = made.path("public.html")
    for rows in ((made.csv,), ("--rows", made.csv), ("--reference", made.csv)):
        assert run("report", made.path("release"), *rows, "-o", public, "--json").code == 2
    assert run("report", made.path("release"), "-g", made.csv, "-o", public, "--json").code == 1
    assert not public.exists()


def test_a_stored_generator_is_used_if_it_belongs_to_the_release(run: Any, made: Any, quick: Any) -> None:
    model, release, other = (made.path(name) for name in ("model", "release", "other"))
    assert run("fit", release, "-o", model).code == 0
    found = run("report", release, "-g", model, "-o", made.path("a.html"), "--json").document
    assert 0.8 < found["share_inside_95"] <= 1
    assert run("release", made.csv, "-s", made.schema, "-e", 1, "-o", other, *quick).code == 0
    refused = run("report", other, "-g", model, "-o", made.path("b.html"), "--json")
    assert refused.refusal["rule"] == "was fitted to another release"


@pytest.mark.parametrize(("told", "changed"), [("[0, 120]", "[0, 999]"), ('"f"', '"SECRET"')])
def test_a_generator_with_another_schema_than_its_release_is_refused(
    run: Any, made: Any, told: str, changed: str
) -> None:
    model, release, public = (made.path(name) for name in ("model", "release", "public.html"))
    assert run("fit", release, "-o", model).code == 0
    document = json.loads((model / "generator.json").read_text())
    words = json.dumps(document["schema"]).replace("120.0", "120")
    assert told in words
    document["schema"] = json.loads(words.replace(told, changed))
    (model / "generator.json").write_text(json.dumps(document))
    found = run("report", release, "-g", model, "-o", public, "--json")
    assert found.refusal["rule"] == "was fitted to another release"
    assert not public.exists()


def test_real_rows_read_again_cost_no_budget_and_change_nothing(run: Any, made: Any) -> None:
    before, spent = made.files(), made.spent()
    assert evaluated(run, made).code == 0
    assert made.files() == before
    assert made.spent() == spent
    assert pq.read_table(made.parquet).num_rows == Path(made.csv).read_text().count("\n") - 1
