"""Weighted databases on the command line: public points in, rows with weights out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

SUBSPACE = ("--method", "balog-subspace")


@pytest.fixture
def public(office: Any) -> str:
    path = str(office.path("public.parquet"))
    office.write(40, path)
    return path


def released(run: Any, office: Any, *words: object) -> Path:
    made = office.path("release")
    done = run("release", office.csv, "-s", office.schema, "-e", 1, "-o", made, *SUBSPACE, *words)
    assert done.code == 0, done.err
    model = office.path("model")
    assert f"understudy export {model}" in run("fit", made, "-o", model).out
    return Path(model)


def test_public_rows_come_back_with_weights(run: Any, office: Any, public: str) -> None:
    model = released(run, office, "--public-points", public)
    output = office.path("weighted.parquet")
    told = run("export", model, "-o", output, "--json").document
    rows = pq.read_table(output)
    assert rows.column_names == ["bmi", "age", "sex", "seen", "ill", "weight"]
    assert rows.num_rows == told["num_rows"] <= 40
    assert sum(rows["weight"].to_pylist()) == pytest.approx(told["sum_of_weights"], abs=1e-12)
    ages = pq.read_table(public)["age"].to_pylist()
    assert set(rows["age"].to_pylist()) <= set(ages)


def test_weights_are_the_same_in_a_csv_file_and_in_words(run: Any, office: Any, public: str) -> None:
    model = released(run, office, "--public-points", public)
    outputs = [office.path("weighted.parquet"), office.path("weighted.csv")]
    for output in outputs:
        assert run("export", model, "-o", output).code == 0
    exact = pq.read_table(outputs[0])["weight"].to_pylist()
    assert pyarrow.csv.read_csv(outputs[1])["weight"].to_pylist() == exact
    assert "positive ones to" in run("export", model, "-o", office.path("again.csv")).out


def test_an_export_says_how_many_points_break_rules_and_samples_hold_none(run: Any, office: Any, public: str) -> None:
    office.put("schema.yaml", office.schema.read_text() + "rules:\n- age >= 20\n")
    model = released(run, office, "--public-points", public)
    output, drawn = office.path("weighted.parquet"), office.path("drawn.parquet")
    told = run("export", model, "-o", output, "--json").document
    young = sum(age < 20 for age in pq.read_table(output)["age"].to_pylist())
    assert told["points_that_break_rules"] == young > 0
    assert f"{young} of the points break one" in run("export", model, "-o", office.path("x.csv")).out
    assert run("sample", model, "-n", 50, "-o", drawn).code == 0
    assert min(pq.read_table(drawn)["age"].to_pylist()) >= 20


def test_queries_sum_the_weights_of_all_points(run: Any, office: Any, public: str) -> None:
    """Not those of rows drawn by positive weights, which are another distribution."""
    model = released(run, office, "--public-points", public, "--weights", "plain")
    output = office.path("weighted.parquet")
    run("export", model, "-o", output)
    rows = pq.read_table(output).to_pylist()
    assert min(row["weight"] for row in rows) < 0
    queries = ("mean(age)", "share where sex = 'f' and ill = 'yes'", "sum(age)", "count where age < 40")
    found = run("query", office.path("release"), "count", *queries, "-g", model, "--json").document
    count, *answers = found["answers"]
    number = count["rows"][0]["estimate"]
    wanted = [
        sum(row["weight"] * row["age"] for row in rows),
        sum(row["weight"] for row in rows if row["sex"] == "f" and row["ill"] == "yes"),
        number * sum(row["weight"] * row["age"] for row in rows),
        number * sum(row["weight"] for row in rows if row["age"] < 40),
    ]
    assert [each["rows"][0]["estimate"] for each in answers] == pytest.approx(wanted)
    assert all("noise in the weights" in each["notes"][0] for each in answers)
    refused = run("query", office.path("release"), "mean(age)", "-g", model, "--population", "--json")
    assert refused.refusal["where"] == "population"


@pytest.mark.parametrize("verb", ["release", "synth"])
def test_the_private_table_is_refused_as_public_points(run: Any, office: Any, verb: str) -> None:
    """Every one of its rows would be published."""
    made, link = office.path("made.csv"), Path(office.path("link.csv"))
    link.symlink_to(office.csv)
    for points in (office.csv, link):
        words = ("-s", office.schema, "-e", 1, "-o", made, *SUBSPACE, "--public-points", points)
        done = run(verb, office.csv, *words)
        assert done.code == 2
        assert "the private table itself" in done.err
        assert not Path(made).exists()


def test_rows_can_be_sampled_too(run: Any, office: Any, public: str) -> None:
    model = released(run, office, "--public-points", public, "--weights", "bounded")
    output = office.path("drawn.csv")
    assert run("sample", model, "-o", output, "-n", 30).code == 0
    assert pyarrow.csv.read_csv(output).num_rows == 30


def test_every_option_reaches_the_plan(run: Any, office: Any) -> None:
    words = [
        "--kernel",
        "matern32",
        "--join",
        "sum",
        "--mismatch",
        0.2,
        "--candidates",
        60,
        "--points",
        20,
        "--look",
        "--weights",
        "bounded",
        "--bound",
        2,
        "--length-scale",
        0.3,
    ]
    plan = run("plan", "-s", office.schema, "-e", 1, *SUBSPACE, *words, "--json").document
    assert "matern32 kernel, mean of 5, length scale 0.3, mismatch 0.2" in plan["explanation"][0]
    assert "a noisy look at 60 public points" in plan["explanation"][1]
    assert "at most 2" in plan["explanation"][2]
    assert {block["block"] for block in plan["blocks"]} == {"count", "look", "coordinates"}
    assert plan["blocks"][-1]["features"] <= 20


def test_rows_that_move_are_planned_by_name(run: Any, office: Any) -> None:
    words = ["--method", "balog-features", "--features", 50, "--points", 9, "--weights", "uniform"]
    plan = run("plan", "-s", office.schema, "-e", 1, *words, "--json").document
    assert plan["explanation"][1].startswith("50 random features")
    assert plan["explanation"][2] == "9 rows with equal weights"


def test_draws_are_declared_by_column(run: Any, office: Any) -> None:
    draws = ["--draw", "gaussian", "--mean", "age=40", "--deviation", "age=5"]
    refused = run("plan", "-s", office.schema, "-e", 1, *SUBSPACE, *draws, "--json")
    assert refused.code == 2  # a column of dates has no mean
    assert "holds dates" in refused.err


@pytest.mark.parametrize("word", ["age", "age=old", "=3"])
def test_a_mean_that_is_no_number_is_refused(run: Any, office: Any, word: str) -> None:
    refused = run("plan", "-s", office.schema, "-e", 1, *SUBSPACE, "--mean", word, "--json")
    assert refused.code == 2
    assert "COLUMN=VALUE" in refused.err


def test_a_generator_without_weights_is_refused(run: Any, office: Any, quick: Any) -> None:
    made, model = office.path("other"), office.path("other-model")
    assert run("release", office.csv, "-s", office.schema, "-e", 1, "-o", made, *quick).code == 0
    assert run("fit", made, "-o", model).code == 0
    refused = run("export", model, "-o", office.path("no.csv"), "--json")
    assert refused.code == 2
    assert "balog-subspace" in refused.refusal["remedy"]


def test_an_option_of_another_method_is_refused(run: Any, office: Any) -> None:
    refused = run("plan", "-s", office.schema, "-e", 1, "--kernel", "laplace", "--json")
    assert refused.code == 2
    assert "is not an option of dp-anova" in refused.refusal["rule"]
