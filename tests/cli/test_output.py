"""How commands speak: names are shown as they are, and a pipe gets unbroken lines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from understudy.cli.output import emit, report, stage_bar, table, training_bar, verbatim, waiting
from understudy.errors import BudgetError, InputError


@pytest.mark.usefixtures("with_json")
def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"a": [1, None, math.nan], "b": Path("x")}, ["for people"])
    assert json.loads(capsys.readouterr().out) == {"a": [1, None, None], "b": "x"}


@pytest.mark.parametrize("name", ["[bold]", "[/bold]", "a[0]", "[", ":smile:", "\\[x]", "[link=x]"])
def test_square_brackets_and_colons_in_names_are_no_markup(capsys: pytest.CaptureFixture[str], name: str) -> None:
    emit({}, [f"[green]Made[/green] {verbatim(name)}."])
    assert capsys.readouterr().out == f"Made {name}.\n"


def test_long_lines_are_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/somewhere/" + "long/" * 60
    emit({}, [f"release {verbatim(path)}"])
    assert capsys.readouterr().out == f"release {path}\n"


def test_a_table_shows_its_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    emit({}, [table("[b]T", ["name", "n"], [["[/x]", "1"], ["y:dog:", "2"]])])
    found = capsys.readouterr().out
    for text in ("[b]T", "[/x]", "y:dog:"):
        assert text in found


def test_a_refusal_is_one_line_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(InputError("column 'x'", "it is odd", "Mend it")) == 1
    assert capsys.readouterr().err == "refused: column 'x': it is odd. Mend it.\n"


@pytest.mark.usefixtures("with_json")
def test_a_refusal_as_json_has_its_three_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(BudgetError("ledger", "it is full")) == 3
    found = json.loads(capsys.readouterr().err)
    assert found == {"error": {"where": "ledger", "rule": "it is full", "remedy": ""}}


def test_nothing_moves_on_a_screen_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("reading"), training_bar() as progress:
        assert progress is None
    with stage_bar() as stages:
        assert stages is None
    assert capsys.readouterr() == ("", "")


def test_a_bar_names_the_stage_on_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with stage_bar() as progress:
        assert progress is not None
        progress("models", 3, 12)
    said = capsys.readouterr()
    assert said.out == ""
    assert "models" in said.err
    assert "3/12" in said.err
