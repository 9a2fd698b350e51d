"""Pure differential privacy from the command line: --delta 0, from plan to report."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_a_plan_without_a_delta_explains_its_noise(run: Any, office: Any) -> None:
    text = run("plan", "-s", office.schema, "-e", 1, "--delta", 0).out
    for words in ("without any delta (pure)", "discrete Laplace", "costs add up in epsilon"):
        assert words in text
    assert "mu squared" not in text
    found = run("plan", "-s", office.schema, "-e", 1, "--delta", 0, "--json").document
    assert (found["delta"], found["mechanism"]) == (0.0, "laplace")
    assert found["epsilon"] == pytest.approx(sum(found["costs"]))
    assert found["best_guess"] == pytest.approx(0.7311, abs=1e-4)
    for noise, sensitivity, cost in zip(found["noise_std"], found["sensitivity"], found["costs"], strict=True):
        assert 2**0.5 * sensitivity / noise == pytest.approx(cost, rel=1e-6)


def test_a_release_without_a_delta_goes_all_the_way(run: Any, office: Any, quick: Any) -> None:
    release, model, page = (office.path(name) for name in ("out", "model", "report.html"))
    made = run("release", office.csv, "-s", office.schema, "-e", 2, "--delta", 0, "-o", release, *quick)
    assert made.code == 0
    assert "without any delta (pure)" in made.out
    checked = run("verify", release, "--json").document
    assert (checked["delta"], checked["mechanism"]) == (0.0, "laplace")
    assert checked["epsilon"] <= 2.0
    assert "laplace noise" in run("verify", release).out
    stages = json.loads((release / "release.json").read_text())["stages"]
    assert all(set(stage) == {"name", "noise_scale", "l1_sensitivities"} for stage in stages)
    assert run("fit", release, "-o", model).code == 0
    assert run("report", release, "--generator", model, "-o", page).code == 0
    assert '<span class="keep">without any delta</span>' in page.read_text()
    assert "between -2.12 and 2.12" in page.read_text()


def test_a_pure_ledger_adds_up_epsilons_and_takes_no_gaussian_noise(run: Any, office: Any, quick: Any) -> None:
    file = office.path("pure.db")
    assert run("ledger", "init", file, "-e", 1.5, "--delta", 0).code == 0
    base = ("release", office.csv, "-s", office.schema, *quick, "--ledger", file, "--json")
    refused = run(*base, "-e", 0.1, "-o", office.path("no"))
    assert refused.code == 1
    assert "pure differential privacy" in refused.refusal["rule"]
    assert "--delta 0" in refused.refusal["remedy"]
    assert run(*base, "-e", 1, "--delta", 0, "-o", office.path("one")).code == 0
    assert run(*base, "-e", 0.6, "--delta", 0, "-o", office.path("two")).code == 3
    assert run(*base, "-e", 0.5, "--delta", 0, "-o", office.path("three")).code == 0
    shown = run("ledger", "show", file, "--json").document
    assert [row["epsilon"] for row in shown["rows"]] == pytest.approx([1.0, 0.5])
    assert shown["remaining"]["epsilon"] == pytest.approx(0.0, abs=1e-6)
    assert "epsilons add up" in run("ledger", "show", file).out


def test_a_gaussian_ledger_takes_a_pure_release_at_its_gaussian_cost(run: Any, office: Any, quick: Any) -> None:
    base = ("release", office.csv, "-s", office.schema, *quick, "--ledger", office.ledger, "--json")
    assert run(*base, "-e", 0.2, "--delta", 0, "-o", office.path("one")).code == 0
    (row,) = run("ledger", "show", office.ledger, "--json").document["rows"]
    assert 0.2 < row["epsilon"] < 1.2, "among Gaussian releases it counts as more than itself"
