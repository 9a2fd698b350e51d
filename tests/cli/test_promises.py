"""What ``methods show`` says of an option holds: which methods take it, and with which values."""

from __future__ import annotations

import re
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_reference import write_reference

from understudy.cli.methods import describe_options, description_of
from understudy.cli.options import Planning, all_method_options, build_plan, options_of
from understudy.errors import UsageError
from understudy.methods import IMAGE_METHODS, METHODS
from understudy.networks.public import Intake, network_of_module
from understudy.plan.plan import Plan

TABLE = """\
rows: 100
columns:
- {name: bmi, kind: continuous, bounds: [10, 80], nullable: true}
- {name: age, kind: integer, bounds: [0, 120]}
- {name: ill, kind: binary, role: label, categories: [no, yes]}
"""
IMAGES = """\
rows: 100
image: {height: 3, width: 2}
columns:
- {name: label, kind: categorical, role: label, categories: [0, 1]}
"""
BOTH = ("dp-merf", "dp-hp")
SUBJECTS = [*METHODS, *(f"{method} on images" for method in BOTH)]

Promise = tuple[Any, str]
"""A value, and words of help that offer it: a method takes the value if, and only if, its help has the words."""

PROMISES: dict[str, list[Promise]] = {
    "labels": [(each, each) for each in ("none", "balanced", "imbalanced")],
    "length_scale": [("0.3", "number"), ("private", "'private'")],
    "steps": [(3, "")],
    "pairs": [(True, ""), (False, "")],
    "values": [(True, ""), (False, "")],
    "features": [(20, "")],
    "separate_releases": [(True, "")],
    "mini_batches": [(2, "")],
    "descent_steps": [(3, "")],
    "order": [(9, ""), (300, "at most 300")],
    "product_order": [(3, "")],
    "product_dim": [(2, "")],
    "products": [(0, ""), (1, "")],
    "gamma": [(1.0, "")],
    "product_share": [(0.5, "")],
    "fresh_products": [(True, "")],
    "preset": [("adult", "'adult'"), ("mnist", "")],
    "generator": [
        (each, each) for each in ("mixture", "network", "spectral", "convolutional", "connected", "clouds", "residual")
    ],
    "coefficients": [(5, "")],
    "tilt": [(1.0, "")],
    "components": [(each, str(each)) for each in (1, 2, 4, 8, 16)],
    "basis": [("basis.npz", "Set of PUBLIC images")],
    "encoder": [],
    "layers": [("pixels", "pixels")],
    "activation": [("before", "before"), ("after", "after")],
    "moments": [(1, "1: means"), (2, "2 (default)")],
    "multiply": [("pixels", "Layer"), ("none", "none")],
    "stopping": [(0.0, "0 keeps the last one"), (0.01, "default: 0.01")],
    "public_points": [("points.csv", "")],
    "draw": [("uniform", "uniform (default)"), ("gaussian", "gaussian")],
    "mean": [(["age=40"], "gaussian draws")],
    "deviation": [(["age=9"], "gaussian draws")],
    "candidates": [(60, "")],
    "points": [(20, "")],
    "kernel": [(each, each) for each in ("gaussian", "laplace", "matern12", "matern32", "matern52")],
    "join": [("product", "product (default)"), ("sum", "sum")],
    "mismatch": [(0.2, "")],
    "look": [(True, ""), (False, "")],
    "weights": [(each, each) for each in ("shrunk", "plain", "bounded", "free", "uniform")],
    "bound": [(2.0, "bounded")],
}
ALONGSIDE: dict[str, dict[str, Any]] = {
    "bound": {"weights": "bounded"},
    "mean": {"draw": "gaussian"},
    "deviation": {"draw": "gaussian"},
    **{option: {"candidates": 40} for option in ("kernel", "join", "look", "points")},
}
"""What a value needs beside it, as its help says, or to be planned in no time."""

COMMON: dict[str, list[Promise]] = {
    "delta": [(0.0, "delta above 0")],
    "neighbours": [("replace-one", "add-remove")],
    "unit": [("row", ""), ("nr", "rows as units")],
    "rows": [(50, "")],
    "horizon": [(2, "")],
    "seed": [(1, "")],
}
"""Options of every method, each with the words of a method that does not take the value."""

FREE = {"schema", "epsilon", "method", "max_rows"}


@cache
def encoder() -> Any:
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU())
    return network_of_module(module, name="tiny", intake=Intake(), layers=("pixels", "0"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("promises")
    (made / "table.yaml").write_text(TABLE)
    (made / "images.yaml").write_text(IMAGES)
    (made / "points.csv").write_text("bmi,age,ill\n" + "".join(f"{20 + i},{i},no\n" for i in range(30)))
    images = np.random.default_rng(0).integers(0, 256, (30, 3, 2), dtype=np.uint8)
    np.savez_compressed(made / "basis.npz", x=images)
    return made


def plan(folder: Path, subject: str, options: dict[str, Any], **common: Any) -> Plan:
    method, _, images = subject.partition(" on ")
    name = "images.yaml" if images or method in IMAGE_METHODS else "table.yaml"
    options = options | ({"encoder": encoder()} if method == "dp-mepf" else {})
    return build_plan(Planning(schema=folder / name, epsilon=1.0, method=method, **common), options)


def is_taken(folder: Path, subject: str, options: dict[str, Any], **common: Any) -> bool:
    try:
        plan(folder, subject, options, **common)
    except UsageError:
        return False
    return True


def help_of(option: str, subject: str) -> str | None:
    """What help says of an option of a method, for a table or for images; None if it has none."""
    method, _, images = subject.partition(" on ")
    known = options_of(METHODS[method]).get(option)
    if known is None:
        return None
    tables, sign, pictures = known.option.help.partition("Images: ")
    return (pictures if images else tables) if sign else tables


def test_every_option_has_promises_here() -> None:
    assert set(PROMISES) == set(all_method_options())
    assert set(COMMON) == set(signature(Planning).parameters) - FREE


def test_methods_that_share_an_option_agree_on_what_it_takes() -> None:
    known = all_method_options()
    for method in METHODS.values():
        for name, each in options_of(method).items():
            first = known[name]
            assert (each.argument, each.flag, each.takes, each.default) == (
                first.argument,
                first.flag,
                first.takes,
                first.default,
            )
            assert (each.option.least, each.option.most) == (first.option.least, first.option.most)
            assert each.option.read == first.option.read


@pytest.mark.parametrize("option", sorted(PROMISES))
def test_help_says_which_methods_take_an_option_and_with_what(option: str, folder: Path) -> None:
    for value, words in PROMISES[option]:
        is_file = option in ("basis", "public_points")
        given = folder / value if is_file else value
        for subject in SUBJECTS:
            text = help_of(option, subject)
            offers = text is not None and words in text
            if is_file and not offers:
                continue  # a file of images or of rows suits one of the two schemas
            taken = is_taken(folder, subject, {option: given, **ALONGSIDE.get(option, {})})
            assert taken == offers, (option, value, subject)


@pytest.mark.parametrize("method", METHODS)
def test_a_listed_value_is_offered_in_words_and_another_one_is_refused(method: str, folder: Path) -> None:
    for name, each in options_of(METHODS[method]).items():
        assert all(value in each.option.help for value in each.values), name
        if each.values:
            assert not is_taken(folder, method, {name: "lilac"}), name


@pytest.mark.parametrize("option", sorted(COMMON))
def test_options_of_every_method_are_taken_but_where_a_method_says_otherwise(option: str, folder: Path) -> None:
    for value, words in COMMON[option]:
        for subject in SUBJECTS:
            excepts = bool(words) and words in " ".join(description_of(METHODS[subject.partition(" on ")[0]]).split())
            assert is_taken(folder, subject, {}, **{option: value}) != excepts, (option, value, subject)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_shows_all_its_options(method: str, run: Any) -> None:
    shown = run("methods", "show", method, "--json").document
    assert shown["options"] == describe_options(method)
    assert {each["flag"] for each in shown["options"]} == {each.flag for each in options_of(METHODS[method]).values()}
    text = run("methods", "show", method).out
    assert all(each["flag"] in text and each["help"] in text for each in shown["options"])
    assert f"\n{method} " in "\n" + run("methods").out


def test_an_unknown_method_is_refused_with_a_list(run: Any) -> None:
    refusal = run("methods", "show", "dp-none", "--json").refusal
    assert refusal["where"] == "method"
    assert all(method in refusal["remedy"] for method in METHODS)


@pytest.mark.parametrize("verb", ["plan", "release", "synth"])
def test_help_of_a_verb_is_short_and_leaves_options_of_methods_to_methods(
    verb: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = run(verb, "--help").out
    assert "understudy methods show" in text
    assert not [each.flag for each in all_method_options().values() if f" {each.flag} " in text]
    assert len(text.splitlines()) <= 45


def test_a_method_that_trains_on_rows_says_why_delta_must_be_above_zero(folder: Path) -> None:
    with pytest.raises(UsageError, match="noisy descent has Gaussian noise"):
        plan(folder, "dp-merf-ae", {}, delta=0.0)


@pytest.mark.parametrize("verb", ["classify", "encoder private"])
def test_verbs_that_train_on_rows_do_not_offer_a_delta_of_zero(verb: str) -> None:
    page = write_reference().split(f"## understudy {verb}\n")[1].split("\n## ")[0]
    (told,) = re.findall(r"`--delta` \| ([^|]*)\|", page)
    assert "above 0, far below 1 / rows" in told
    assert "Laplace" not in told


def test_classify_refuses_a_delta_of_zero(run: Any, office: Any) -> None:
    words = ("-s", office.schema, "-e", 1, "--delta", 0, "-o", office.path("model"), "--json")
    refusal = run("classify", office.parquet, *words).refusal
    assert (refusal["where"], refusal["rule"]) == ("delta", "must be above 0: noisy descent has Gaussian noise")
