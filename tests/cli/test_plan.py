"""A plan tells everything before data is opened, and needs none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_a_plan_states_noise_error_size_memory_and_cost(run: Any, office: Any) -> None:
    found = run("plan", "-s", office.schema, "-e", 1, "--rows", 5000, "--json").document
    assert found["epsilon"] == pytest.approx(1.0, abs=1e-6)
    assert found["epsilon"] <= 1.0
    assert (found["delta"], found["neighbours"], found["method"]) == (1e-5, "add-remove", "dp-anova")
    assert found["epsilon_replace_one"] > found["epsilon_add_remove"] == found["epsilon"]
    assert 0.5 < found["best_guess"] < 1
    assert found["planned_for_rows"] == 5000
    assert found["numbers_released"] == sum(b["features"] * b["copies"] for b in found["blocks"])
    assert found["release_bytes"] == 8 * found["numbers_released"]
    assert found["memory_bytes"] > found["release_bytes"]
    for noise, sensitivity, cost in zip(found["noise_std"], found["sensitivity"], found["mu_squared"], strict=True):
        assert (sensitivity / noise) ** 2 == pytest.approx(cost, rel=1e-6)


def test_a_plan_reads_no_data_and_writes_nothing(run: Any, office: Any) -> None:
    office.csv.unlink()
    office.parquet.unlink()
    before = office.files()
    assert run("plan", "-s", office.schema, "-e", 1).code == 0
    assert office.files() == before


def test_a_plan_for_people_names_the_odds_and_whether_rows_were_stated(run: Any, office: Any) -> None:
    text = run("plan", "-s", office.schema, "-e", 1).out
    for words in ("no data was opened", "best guess is right", "a guess; --rows states it", "mu squared"):
        assert words in text
    assert "as stated" in run("plan", "-s", office.schema, "-e", 1, "--rows", 99).out


def test_a_plan_for_images_names_their_size_and_not_every_pixel(run: Any, tmp_path: Path) -> None:
    schema = tmp_path / "digits.yaml"
    schema.write_text("image: {height: 8, width: 6}\n")
    text = run("plan", "-s", schema, "-e", 1).out
    assert "dp-spectrum on digits: images of 8 x 6 x 1; no data" in text
    schema.write_text(
        "image: {height: 8, width: 6}\ncolumns: [{name: label, kind: binary, role: label, categories: [0, 1]}]\n"
    )
    assert "images of 8 x 6 x 1 and 1 column(s);" in run("plan", "-s", schema, "-e", 1).out


def test_an_epsilon_that_protects_little_is_pointed_out(run: Any, office: Any) -> None:
    words = "An epsilon above 10 protects little"
    assert words in run("plan", "-s", office.schema, "-e", 11).out
    assert words not in run("plan", "-s", office.schema, "-e", 1).out


def test_the_same_options_make_the_same_plan_and_others_another(run: Any, office: Any) -> None:
    def name(*options: Any) -> str:
        return str(run("plan", "-s", office.schema, "--json", *options).document["plan"])

    base = ("-e", 1)
    plans = [
        name(*base),
        name("-e", 2),
        name(*base, "--delta", 1e-6),
        name(*base, "--seed", 1),
        name(*base, "--rows", 7),
        name(*base, "--labels", "balanced"),
        name(*base, "--labels", "none"),
        name(*base, "--steps", 9),
        name(*base, "--neighbours", "replace-one", "--rows", 7),
        name(*base, "--method", "dp-merf"),
        name(*base, "--method", "dp-hp"),
    ]
    assert name(*base) == name(*base, "--method", "dp-anova") == plans[0]
    assert len(set(plans)) == len(plans)


MERF = ("-e", 1, "-m", "dp-merf")


def test_every_option_of_dp_merf_makes_another_plan(run: Any, office: Any) -> None:
    def name(*options: Any) -> str:
        return str(run("plan", "-s", office.schema, *MERF, "--json", *options).document["plan"])

    base = ("--features", 50)
    plans = [
        name(*base),
        name(*base, "--length-scale", 0.3),
        name(*base, "--length-scale", "private"),
        name(*base, "--separate-releases"),
        name(*base, "--steps", 9),
        name(*base, "--seed", 1),
        name(*base, "--labels", "balanced"),
        name("--features", 52),
    ]
    assert name(*base) == plans[0]
    assert len(set(plans)) == len(plans)


def test_a_length_scale_that_is_paid_for_is_a_stage_of_its_own(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, *MERF, "--features", 50, "--json")
    assert len(run(*base).document["mu_squared"]) == 1
    found = run(*base, "--length-scale", "private").document
    assert len(found["noise_std"]) == 2
    assert found["epsilon"] <= 1.0


def test_a_plan_of_tables_says_what_it_measures_and_what_it_leaves_out(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, "-e", 1, "--json")
    many = run(*base, "--rows", 100_000).document
    assert many["error_bound_of_squared_mmd"] is None
    assert len(many["mu_squared"]) == 3
    assert sum(many["mu_squared"]) == pytest.approx(
        sum(run(*base[:-1], "-m", "dp-merf", "--json").document["mu_squared"]), rel=1e-5
    )
    names = [block["block"] for block in many["blocks"]]
    assert names == ["count", "columns", "values", "cells", "looks", "digits", "marginals", "last digits"]
    told = " ".join(run("plan", "-s", office.schema, "-e", 1, "--rows", 100_000).out.split())
    for sentence in many["explanation"]:
        assert f"chosen {sentence}" in told
    assert any("6 of 6 pairs" in sentence for sentence in many["explanation"])
    few = run(*base, "--rows", 60).document
    assert [block["block"] for block in few["blocks"]][-2:] == ["cells", "marginals"]
    assert any("no pairs of columns" in sentence for sentence in few["explanation"])
    unstated = run(*base).document
    assert unstated["blocks"][0]["block"] == "rows"
    assert len(unstated["mu_squared"]) == 4


def test_a_schema_without_numbers_has_a_plan_too(run: Any, office: Any) -> None:
    office.put("schema.yaml", "columns: [{name: sex, kind: categorical, categories: [f, m]}]")
    for method in ("auto", "dp-merf", "dp-hp"):
        base = ("plan", "-s", office.schema, "-e", 1, "-m", method)
        assert run(*base, "--json").document["error_bound_of_squared_mmd"] is None
        assert run(*base).code == 0


def test_a_plan_of_random_features_bounds_its_error(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, *MERF, "--rows", 5000)
    assert 0 < run(*base, "--json").document["error_bound_of_squared_mmd"] < 10
    assert "Error bound of the squared MMD" in run(*base).out


HP = ("-e", 1, "--rows", 5000, "-m", "dp-hp")


def test_a_plan_of_hermite_features_says_what_it_has_chosen(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, *HP, "--order", 30, "--product-order", 6)
    found = run(*base, "--products", 4, "--product-share", 0.25, "--json").document
    assert found["method"] == "dp-hp"
    assert found["epsilon"] == pytest.approx(1.0, abs=1e-6)
    assert found["epsilon"] <= 1.0
    assert found["error_bound_of_squared_mmd"] is None
    assert found["explanation"] == [
        "sum kernel: 3 numbers to order 30 (length scale 0.05 of a column's range)",
        "product kernel: 4 of 15 sets of 2 columns, numbers to order 6; 25 % of the budget",
    ]
    blocks = {block["block"]: block for block in found["blocks"]}
    assert list(blocks) == ["count", "numbers", "choices", "products"]
    assert blocks["numbers"]["features"] == 3 * 31
    assert found["numbers_released"] == sum(b["features"] * b["copies"] for b in found["blocks"])
    text = " ".join(run(*base, "--products", 4, "--product-share", 0.25).out.split())
    for sentence in found["explanation"]:
        assert f"chosen {sentence}" in text


def test_a_plan_of_random_features_explains_nothing_of_the_kind(run: Any, office: Any) -> None:
    found = run("plan", "-s", office.schema, *MERF, "--features", 50, "--json").document
    assert found["explanation"] == []


def test_fresh_products_are_stages_of_their_own_at_the_same_cost(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, *HP, "--products", 3, "--json")
    one, many = run(*base).document, run(*base, "--fresh-products").document
    assert len(one["mu_squared"]) == 1
    assert len(many["mu_squared"]) == 1 + 3
    assert sum(many["mu_squared"]) == pytest.approx(sum(one["mu_squared"]), rel=1e-5)
    assert many["epsilon"] <= 1.0


def test_every_option_of_dp_hp_makes_another_plan(run: Any, office: Any) -> None:
    def name(*options: Any) -> str:
        return str(run("plan", "-s", office.schema, *HP, "--json", *options).document["plan"])

    plans = [
        name("--products", 3),
        name("--products", 4),
        name("--products", 3, "--order", 7),
        name("--products", 3, "--product-order", 3),
        name("--products", 3, "--product-dim", 3),
        name("--products", 3, "--gamma", 0.5),
        name("--products", 3, "--product-share", 0.5),
        name("--products", 3, "--fresh-products"),
        name("--products", 3, "--preset", "covtype"),
        name("--products", 3, "--generator", "network"),
        name("--products", 3, "--length-scale", 0.3),
        name("--products", 3, "--steps", 9),
        name("--products", 3, "--seed", 1),
        name("--products", 3, "--labels", "none"),
    ]
    assert name("--products", 3) == plans[0]
    assert len(set(plans)) == len(plans)


def test_the_default_generator_can_be_named(run: Any, office: Any) -> None:
    base = ("plan", "-s", office.schema, *HP, "--json")
    named = run(*base, "--generator", "mixture").document["plan"]
    assert named == run(*base).document["plan"]


@pytest.mark.parametrize(
    ("method", "option", "where"),
    [
        ("dp-hp", ("--features", 50), "num features"),
        ("dp-hp", ("--separate-releases",), "separate releases"),
        ("dp-merf", ("--order", 5), "order"),
        ("dp-merf", ("--products", 5), "num products"),
        ("dp-merf", ("--fresh-products",), "fresh products"),
        ("dp-merf", ("--preset", "adult"), "preset"),
        ("dp-hp", ("--mini-batches", 3), "mini batches"),
        ("dp-merf", ("--gamma", 1), "gamma"),
        ("auto", ("--gamma", 1), "gamma"),
        ("auto", ("--features", 50), "num features"),
        ("auto", ("--length-scale", 0.3), "length scale"),
        ("dp-anova", ("--separate-releases",), "separate releases"),
        ("dp-anova", ("--generator", "network"), "generator"),
    ],
)
def test_an_option_of_another_method_is_refused(
    run: Any, office: Any, method: str, option: tuple[Any, ...], where: str
) -> None:
    ended = run("plan", "-s", office.schema, "-e", 1, "-m", method, *option, "--json")
    assert ended.code == 2
    named = "dp-anova" if method == "auto" else method
    assert ended.refusal["where"] == where
    assert ended.refusal["rule"] == f"is not an option of {named}"
    assert "labels" in ended.refusal["remedy"]
    assert where.replace(" ", "_") not in ended.refusal["remedy"]


@pytest.mark.parametrize(
    ("option", "where"),
    [
        (("--order", 301), "order"),
        (("--order", -1), "order"),
        (("--product-order", 999), "product order"),
        (("--product-dim", 1), "product dimension"),
        (("--products", -1), "products"),
        (("--gamma", 0), "gamma"),
        (("--gamma", "nan"), "gamma"),
        (("--product-share", 1), "product share"),
        (("--preset", "iris"), "preset"),
        (("--generator", "gan"), "generator"),
        (("--length-scale", "private"), "length scale"),
        (("--length-scale", 0), "length scale"),
    ],
)
def test_an_option_of_dp_hp_outside_its_rules_is_refused(
    run: Any, office: Any, option: tuple[Any, ...], where: str
) -> None:
    ended = run("plan", "-s", office.schema, *HP, *option, "--json")
    assert (ended.code, ended.refusal["where"]) == (2, where)
