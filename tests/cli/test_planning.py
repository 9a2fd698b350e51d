"""A plan tells everything before data is opened, and needs none."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_plan_states_noise_error_size_memory_and_cost(run: Any, office: Any) -> None:
    found = run("plan", "-s", office.schema, "-e", 1, "--rows", 5000, "--json").document
    assert found["epsilon"] == pytest.approx(1.0, abs=1e-6)
    assert found["epsilon"] <= 1.0
    assert (found["delta"], found["neighbours"], found["method"]) == (1e-5, "add-remove", "dp-merf")
    assert found["epsilon_replace_one"] > found["epsilon_add_remove"] == found["epsilon"]
    assert 0.5 < found["best_guess"] < 1
    assert found["planned_for_rows"] == 5000
    assert found["numbers_released"] == sum(b["features"] * b["copies"] for b in found["blocks"])
    assert found["release_bytes"] == 8 * found["numbers_released"]
    assert found["memory_bytes"] > found["release_bytes"]
    for noise, sensitivity, cost in zip(
        found["noise_std"], found["sensitivity"], found["mu_squared"], strict=True
    ):
        assert (sensitivity / noise) ** 2 == pytest.approx(cost, rel=1e-6)


def test_a_plan_reads_no_data_and_writes_nothing(run: Any, office: Any) -> None:
    office.csv.unlink()
    office.parquet.unlink()
    before = office.files()
    assert run("plan", "-s", office.schema, "-e", 1).code == 0
    assert office.files() == before


def test_a_plan_for_people_names_the_odds_and_whether_rows_were_stated(
    run: Any, office: Any
) -> None:
    text = run("plan", "-s", office.schema, "-e", 1, "--features", 50).out
    for words in (
        "no data was opened",
        "best guess is right",
        "a guess; --rows states it",
        "mu squared",
    ):
        assert words in text
    assert "as stated" in run("plan", "-s", office.schema, "-e", 1, "--rows", 99).out


def test_an_epsilon_that_protects_little_is_pointed_out(run: Any, office: Any) -> None:
    words = "An epsilon above 10 protects little"
    assert words in run("plan", "-s", office.schema, "-e", 11, "--features", 50).out
    assert words not in run("plan", "-s", office.schema, "-e", 1, "--features", 50).out


def test_the_same_options_make_the_same_plan_and_others_another(run: Any, office: Any) -> None:
    def name(*options: Any) -> str:
        return str(run("plan", "-s", office.schema, "--json", *options).document["plan"])

    base = ("-e", 1, "--features", 50)
    plans = [
        name(*base),
        name("-e", 2, "--features", 50),
        name(*base, "--delta", 1e-6),
        name(*base, "--seed", 1),
        name(*base, "--rows", 7),
        name(*base, "--labels", "balanced"),
        name(*base, "--length-scale", 0.3),
        name(*base, "--length-scale", "private"),
        name(*base, "--separate-releases"),
        name(*base, "--steps", 9),
        name(*base, "--neighbours", "replace-one", "--rows", 7),
        name("-e", 1, "--features", 52),
    ]
    assert name(*base) == plans[0]
    assert len(set(plans)) == len(plans)


def test_a_length_scale_that_is_paid_for_is_a_stage_of_its_own(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, "-e", 1, "--features", 50, "--json")
    assert len(run(*base).document["mu_squared"]) == 1
    found = run(*base, "--length-scale", "private").document
    assert len(found["noise_std"]) == 2
    assert found["epsilon"] <= 1.0


def test_a_schema_without_numbers_has_a_plan_too(run: Any, office: Any) -> None:
    office.put("schema.yaml", "columns: [{name: sex, kind: categorical, categories: [f, m]}]")
    found = run("plan", "-s", office.schema, "-e", 1, "--json").document
    assert found["error_bound_of_squared_mmd"] is None
    assert run("plan", "-s", office.schema, "-e", 1).code == 0
