"""Queries on the command line."""

from __future__ import annotations

import pytest


@pytest.fixture
def release(office, run) -> str:
    assert run("release", office.parquet, "-s", office.schema, "-e", 30, "-o", office.path("rel")).code == 0
    return str(office.path("rel"))


def test_an_answer_has_estimate_error_and_interval(run, release):
    found = run("query", release, "count by sex", "share where ill = 'yes'")
    assert found.code == 0
    for words in ("count by sex", "estimate", "std. error", "95 % interval", "noisy tables", " .. "):
        assert words in found.out


def test_json_has_every_number_of_several_queries(run, release):
    document = run("query", release, "count by sex, ill", "mean(age)", "--json").document
    table, mean = document["answers"]
    assert table["rows"][0]["group"] == {"sex": "f", "ill": "no"}
    (row,) = mean["rows"]
    assert row["low"] < row["estimate"] < row["high"]
    assert mean["model_based"] is False


def test_without_a_query_it_lists_what_can_be_asked(run, release):
    found = run("query", release)
    for words in ("bmi", "10 to 80 or null", "2000-01-01 to 2030-12-31", "every value", "together"):
        assert words in found.out
    assert "count" in run("query", release, "--json").document["columns"][0]["can"]


def test_a_refusal_shows_the_query_and_points_at_the_word(run, release):
    found = run("query", release, "mean(aeg)")
    assert found.code == 2
    assert "Did you mean 'age'?" in found.err
    assert found.err.splitlines()[-2:] == ["  mean(aeg)", "       ^^^"]
    refusal = run("query", release, "mean(aeg)", "--json").refusal
    assert "no column" in refusal["rule"]


def test_clipped_counts_are_not_negative(run, release):
    queries = ("count by age", "count by ill")
    plain = run("query", release, *queries, "--json").document["answers"]
    clipped = run("query", release, *queries, "--clip", "--json").document["answers"]
    for before, after in zip(plain, clipped, strict=True):
        for one, other in zip(before["rows"], after["rows"], strict=True):
            assert other["estimate"] == max(0.0, one["estimate"])
            assert other["low"] == max(0.0, one["low"])


def test_a_picture_is_written_for_one_query(run, release, office):
    picture = office.path("groups.png")
    assert run("query", release, "count by sex", "--plot", picture).code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = run("query", release, "count by sex", "--plot", picture, "--json").refusal
    assert "exists already" in again["rule"]
    two = run("query", release, "count", "count", "--plot", office.path("b.png"), "--json")
    assert two.refusal["rule"] == "shows one query"


def test_a_generator_answers_what_tables_cannot(run, office):
    method = ("-e", 1, "-m", "dp-merf", "--features", 20, "--steps", 20)
    made, model = office.path("rel"), office.path("model")
    run("release", office.parquet, "-s", office.schema, "-o", made, *method)
    assert run("query", made, "mean(age)", "--json").refusal["rule"].startswith("this release holds")
    assert run("fit", made, "-o", model).code == 0
    (counts, mean) = run("query", made, "count by sex", "mean(age)", "-g", model, "--json").document["answers"]
    assert (counts["model_based"], mean["model_based"]) == (False, True)
    assert 0 <= mean["rows"][0]["estimate"] <= 120
    other = office.path("other")
    run("release", office.parquet, "-s", office.schema, "-o", other, *method)
    refusal = run("query", other, "mean(age)", "-g", model, "--json").refusal
    assert "another release" in refusal["rule"]
