"""What help says of an option holds for every method: which ones take it, and with which values."""

from __future__ import annotations

import re
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import torch

from understudy.cli.options import build_plan
from understudy.cli.reference import write_reference
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
PANELS = {
    "DP-ANOVA": {"dp-anova"},
    "DP-MERF": {"dp-merf"},
    "DP-HP": {"dp-hp"},
    "DP-Spectrum": {"dp-spectrum"},
    "DP-MEPF": {"dp-mepf"},
    "Weighted database (balog-subspace, balog-features)": {"balog-subspace", "balog-features"},
}
"""Whom options are for that stand under the name of a method and say no more."""

Promise = tuple[Any, str, set[str] | None]
"""A value, words of help that offer it, and the methods that these words offer it to, if not to all."""

BALOG_1, BALOG_2 = {"balog-subspace"}, {"balog-features"}
ON_IMAGES = {"dp-merf on images", "dp-hp on images", "dp-spectrum", "dp-mepf"}
PROMISES: dict[str, list[Promise]] = {
    "delta": [(0.0, "0: pure, with Laplace noise (not for dp-merf-ae", None)],
    "neighbours": [
        ("add-remove", "add-remove", None),
        ("replace-one", "replace-one (row count public; not for dp-merf-ae)", None),
    ],
    "unit": [("row", "'row'", None), ("nr", "column of ids (not for dp-merf-ae", None)],
    "max_rows": [],
    "rows": [(50, "", None)],
    "labels": [(each, each, None) for each in ("auto", "none", "balanced", "imbalanced")],
    "length_scale": [("0.3", "A number", None), ("private", "dp-merf: or 'private'", {"dp-merf", "dp-merf on images"})],
    "steps": [(3, "", None)],
    "pairs": [(True, "", None), (False, "", None)],
    "values": [(True, "", None), (False, "", None)],
    "features": [(20, "", None)],
    "separate": [(True, "", None)],
    "mini_batches": [(2, "", None)],
    "descent_steps": [(3, "", None)],
    "order": [(9, "", None), (300, "at most 300", None)],
    "product_order": [(3, "", None)],
    "product_dim": [(2, "", None)],
    "products": [(0, "", None), (1, "", None)],
    "gamma": [(1.0, "", None)],
    "product_share": [(0.5, "", None)],
    "fresh": [(True, "", None)],
    "preset": [("adult", "'adult'", None), ("mnist", "", None)],
    "generator": [
        ("mixture", "mixture (dp-hp, its default)", {"dp-hp"}),
        ("network", "network (dp-merf, dp-hp)", {"dp-merf", "dp-hp"}),
        *((each, each, ON_IMAGES) for each in ("convolutional", "connected", "clouds", "residual")),
    ],
    "coefficients": [(5, "", None)],
    "tilt": [(1.0, "", None)],
    "components": [(each, str(each), None) for each in (1, 2, 4, 8, 16)],
    "basis": [("basis.npz", "Set of PUBLIC images", None)],
    "encoder": [],
    "layers": [("pixels", "pixels", None)],
    "activation": [("before", "before", None), ("after", "after", None)],
    "moments": [(1, "1: means", None), (2, "2 (default)", None)],
    "multiply": [("pixels", "Layer", None), ("none", "none", None)],
    "stopping": [(0.0, "0 keeps the last one", None), (0.01, "default: 0.01", None)],
    "public_points": [("points.csv", "", None)],
    "draw": [("uniform", "uniform (default)", None), ("gaussian", "gaussian", None)],
    "mean": [(["age=40"], "gaussian draws", None)],
    "deviation": [(["age=9"], "gaussian draws", None)],
    "candidates": [(60, "", None)],
    "points": [(20, "", None)],
    "kernel": [(each, each, None) for each in ("gaussian", "laplace", "matern12", "matern32", "matern52")],
    "join": [("product", "product (default)", None), ("sum", "sum", None)],
    "mismatch": [(0.2, "", None)],
    "look": [(True, "", None), (False, "", None)],
    "weights": [
        *(
            (each, "balog-subspace: shrunk (default), plain or bounded", BALOG_1)
            for each in ("shrunk", "plain", "bounded")
        ),
        *((each, "balog-features: free (default) or uniform", BALOG_2) for each in ("free", "uniform")),
    ],
    "bound": [(2.0, "bounded", None)],
    "horizon": [(2, "", None)],
    "seed": [(1, "", None)],
}
ALONGSIDE: dict[str, dict[str, Any]] = {
    "bound": {"weights": "bounded"},
    "mean": {"draw": "gaussian"},
    "deviation": {"draw": "gaussian"},
    **{option: {"candidates": 40} for option in ("kernel", "join", "look", "points")},
}
"""What a value needs beside it, as its help says, or to be planned in no time."""

FREE = {"schema", "epsilon", "method"}
HINTS = get_type_hints(build_plan, include_extras=True, localns={"Plan": Plan})
SUBJECTS = [*METHODS, *(f"{method} on images" for method in BOTH)]


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


def plan(folder: Path, subject: str, **options: Any) -> Plan:
    method, _, images = subject.partition(" on ")
    name = "images.yaml" if images or method in IMAGE_METHODS else "table.yaml"
    options |= {"encoder": encoder()} if method == "dp-mepf" else {}
    return build_plan(schema=folder / name, epsilon=1.0, method=method, **options)


def help_of(option: str) -> tuple[str, str]:
    """What help says of an option, and the panel that it stands in."""
    told = get_args(HINTS[option])[1]
    return told.help, str(told.rich_help_panel or "")


def offered(option: str) -> set[str]:
    """The methods that help offers an option to."""
    text, panel = help_of(option)
    named = re.search(r"(?:^|\. )For ([a-z, -]+)\.$", text)
    found = set(re.split(r", | and ", named[1])) if named else PANELS.get(panel, set(METHODS))
    assert found <= set(METHODS), text
    return found | {f"{method} on images" for method in BOTH if method in found}


def refused(text: str, words: str) -> set[str]:
    """Methods that help takes out where it offers a value."""
    near = text[text.index(words) : text.index(words) + len(words) + 1]
    return set(re.findall(r"not for ([a-z-]+)", near))


def test_every_option_of_a_plan_has_promises_here() -> None:
    assert set(PROMISES) == set(signature(build_plan).parameters) - FREE


@pytest.mark.parametrize("option", sorted(PROMISES))
def test_help_says_which_methods_take_an_option_and_with_what(option: str, folder: Path) -> None:
    text, _ = help_of(option)
    for value, words, some in PROMISES[option]:
        assert words in text
        is_file = option in ("basis", "public_points")
        given = folder / value if is_file else value
        is_usual = signature(build_plan).parameters[option].default == given
        wanted = set(some or offered(option)) - refused(text, words)
        for subject in SUBJECTS:
            if is_usual or (is_file and subject not in wanted):
                continue  # a file of images or of rows suits one of the two schemas
            taken = True
            try:
                plan(folder, subject, **{option: given}, **ALONGSIDE.get(option, {}))
            except UsageError:
                taken = False
            assert taken == (subject in wanted), (option, value, subject)


def test_a_method_that_trains_on_rows_says_why_delta_must_be_above_zero(folder: Path) -> None:
    with pytest.raises(UsageError, match="noisy descent has Gaussian noise"):
        plan(folder, "dp-merf-ae", delta=0.0)


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
