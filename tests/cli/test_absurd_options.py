"""Every numeric option with absurd numbers: the command answers or refuses, and never says more than that."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import typer

from understudy.accounting.mechanisms import Budget
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.cli.app import app
from understudy.generators import save_generator
from understudy.methods import balog_subspace, fit_release
from understudy.private.dpsgd.classifier import train_classifier
from understudy.private.release import release_table
from understudy.schema.table import parse_yaml

from .conftest import SCHEMA, small_table

HUGE = ("100000000000", "1" + "0" * 400)
ODD = ("nan", "inf", "1e308", "5e-324", "-1")
IMAGES = "image: {height: 4, width: 4}\ncolumns: [{name: y, kind: binary, role: label, categories: [0, 1]}]\n"
METHODS = ("dp-anova", "dp-merf", "dp-hp", "balog-subspace", "balog-features", "dp-spectrum")
OF_ANY_METHOD = {"epsilon", "delta", "rows", "max_rows", "horizon", "seed", "parties", "steps"}
SLOW = {"descent_steps"}
"""It belongs to dp-merf-ae alone, whose plans take seconds."""


def numeric_options(*names: str) -> list[tuple[str, str, type]]:
    """The option strings of a command that take a number, by name."""
    command: Any = typer.main.get_command(app)
    for name in names:
        command = command.commands[name]
    return [
        (each.name, max(each.opts, key=len), each.type_descriptor.annotation)
        for each in command.params
        if each.param_type_name == "option" and each.type_descriptor.annotation in (int, float)
    ]


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """A command that goes on for ever is a failure, not a hang."""
    signal.setitimer(signal.ITIMER_PROF, 60)  # CPU seconds: the machine may be busy with other things
    signal.alarm(600)
    yield
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_PROF, 0)


def assert_said(outcome: Any) -> None:
    """It worked, or was refused in one line."""
    assert outcome.code in (0, 1, 2), outcome
    if outcome.code:
        assert outcome.err.startswith("refused: "), outcome
        assert outcome.err.count("\n") == 1


PLANNING = numeric_options("plan")


def test_the_options_are_found() -> None:
    assert {"features", "steps", "epsilon", "gamma", "seed", "components"} <= {name for name, _, _ in PLANNING}


@pytest.mark.parametrize(("name", "option", "kind"), PLANNING, ids=lambda each: str(each))
def test_no_number_is_too_absurd_for_plan(run: Any, office: Any, name: str, option: str, kind: type) -> None:
    images = office.put("images.yaml", IMAGES)
    for method in METHODS if name not in OF_ANY_METHOD else METHODS[:1]:
        schema = images if method == "dp-spectrum" else office.schema
        base = ("plan", "-s", schema, "-e", 1, "-m", method)
        for value in (*HUGE, *(ODD if kind is float else ())):
            outcome = run(*base, f"{option}={value}")
            assert_said(outcome)
            if "is not an option of" in outcome.err or name in SLOW:
                break


def test_features_without_end_are_refused_with_the_limit(run: Any, office: Any) -> None:
    outcome = run("plan", "-s", office.schema, "-e", 1, "-m", "dp-merf", "--features", 100_000_000_000)
    assert outcome.code == 2
    assert "more than 67108864 numbers" in outcome.err


@pytest.mark.parametrize("verb", ["release", "synth", "classify", "append", "partial"])
def test_verbs_that_read_rows_refuse_absurd_numbers_before_they_spend(run: Any, office: Any, verb: str) -> None:
    before = office.spent()
    planned = {name for name, _, _ in PLANNING} - {"epsilon", "rows", "max_rows", "horizon"}
    for name, option, kind in numeric_options(verb):
        if verb != "classify" and name in planned:
            continue
        for value in (*HUGE[1:], *(ODD[:3] if kind is float else ())):
            out = office.path(f"{verb}{name}{value[:9]}{len(value)}")
            base = {
                "release": (office.csv, "-s", office.schema, "-e", 1, "-o", out),
                "synth": (office.csv, "-s", office.schema, "-e", 1, "-o", f"{out}.csv"),
                "classify": (office.csv, "-s", office.schema, "-e", 1, "-o", out),
                "append": (out, office.csv, "-o", f"{out}2"),
                "partial": (office.csv, "-r", out, "--party", "a", "-o", f"{out}2"),
            }[verb]
            ledger = ("--ledger", office.ledger) if verb != "partial" else ()
            outcome = run(verb, *base, *ledger, f"{option}={value}")
            assert_said(outcome)
            assert outcome.code in (1, 2), (option, value)
    assert office.spent() == before


@pytest.mark.parametrize("count", ["1000000000000000000", "1" + "0" * 30])
def test_rows_without_end_are_not_drawn(run: Any, office: Any, count: str) -> None:
    quick = ("-m", "balog-subspace", "--candidates", 30)
    release, generator = office.path("release"), office.path("generator")
    assert run("release", office.csv, "-s", office.schema, "-e", 1, *quick, "-o", release).code == 0
    assert run("fit", release, "-o", generator).code == 0
    outcome = run("sample", generator, "-n", count, "-o", office.path("drawn.csv"))
    assert_said(outcome)
    assert outcome.code == 2
    assert "must be at most" in outcome.err


OTHERS = {
    ("evaluate",): ("rows.csv", "-r", "rows.csv", "-s", "schema.yaml", "--quick"),
    ("encoder", "train"): ("images.npz", "-o", "network", "--depths", "2", "--strides", "1"),
    ("encoder", "private"): ("images.npz", "-s", "images.yaml", "-e", 1, "-o", "network"),
    ("grid",): ("images.npz", "-s", "images.yaml", "-o", "grid.png"),
    ("query",): ("release", "count"),
    ("explain",): ("classifier", "-o", "page.html", "--rows", "rows.csv"),
    ("compare",): ("release", "rows.csv"),
    ("report",): ("release", "-o", "page.html", "-g", "generator"),
    ("sample",): ("generator", "-o", "drawn.csv"),
    ("ledger", "init"): ("other.db", "-e", 1),
    ("demo",): ("-o", "demo"),
}
"""What verbs need beside a number: files of the office, made once."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, a generator, a classifier and images."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "schema.yaml").write_text(SCHEMA)
    (folder / "images.yaml").write_text(IMAGES)
    pa.csv.write_csv(small_table(), folder / "rows.csv")
    pixels = np.arange(320, dtype=np.uint8).reshape(20, 4, 4)
    np.savez(folder / "images.npz", x=pixels, y=np.arange(20) % 2)
    schema = parse_yaml(SCHEMA, name="t")
    plan = balog_subspace(schema, Budget(1.0), num_candidates=20)
    release = release_table(small_table(), plan, directory=folder / "release")
    save_generator(fit_release(release), folder / "generator", release=release.fingerprint)
    training = Training(steps=1, look=0.0)
    descent = ClassifierPlan(schema, Budget(1.0), training, 60)
    train_classifier(small_table(), descent, directory=folder / "classifier")
    return folder


@pytest.mark.parametrize("verb", OTHERS, ids=" ".join)
def test_no_number_is_too_absurd_for_other_verbs(
    run: Any, made: Path, verb: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    before = set(made.rglob("*"))
    for name, option, kind in numeric_options(*verb):
        odd = [value for value in ODD if value != "5e-324"]  # a level or reserve like any other
        for value in (*HUGE, *(odd if kind is float else odd[-1:])):
            if value == HUGE[0] and name == "seed":
                continue  # a seed like any other
            outcome = run(*verb, *OTHERS[verb], f"{option}={value}")
            assert_said(outcome)
            is_any_seed = (*verb, name) == ("compare", "seed") and value in HUGE
            assert outcome.code in (1, 2) or is_any_seed, (option, value)
    assert set(made.rglob("*")) == before
