"""Every numeric option with absurd numbers: the command answers or refuses, and never says more than that."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from understudy.cli.app import app

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
    signal.alarm(60)
    yield
    signal.alarm(0)


def assert_said(outcome: Any) -> None:
    """It worked, or was refused in one line."""
    assert outcome.code in (0, 1, 2), outcome
    if outcome.code:
        assert outcome.err.startswith("refused: "), outcome
        assert outcome.err.count("\n") == 1


PLANNING = numeric_options("plan")


def test_the_options_are_found() -> None:
    assert {"features", "steps", "epsilon", "gamma", "seed", "components"} <= {
        name for name, _, _ in PLANNING
    }


@pytest.mark.parametrize(("name", "option", "kind"), PLANNING, ids=lambda each: str(each))
def test_no_number_is_too_absurd_for_plan(
    run: Any, office: Any, name: str, option: str, kind: type
) -> None:
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
    outcome = run(
        "plan", "-s", office.schema, "-e", 1, "-m", "dp-merf", "--features", 100_000_000_000
    )
    assert outcome.code == 2
    assert "more than 67108864 numbers" in outcome.err


@pytest.mark.parametrize("verb", ["release", "synth", "classify", "append", "partial"])
def test_verbs_that_read_rows_refuse_absurd_numbers_before_they_spend(
    run: Any, office: Any, verb: str
) -> None:
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
