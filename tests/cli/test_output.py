"""How commands speak: names are shown as they are, and a pipe gets unbroken lines."""

from __future__ import annotations

import json

import pytest

from understudy.cli.output import emit, report_refusal, stage_bar, table, training_bar, verbatim, waiting
from understudy.errors import BudgetError, InputError


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"a": [1, None]}, ["for people"], as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": [1, None]}


@pytest.mark.parametrize("name", ["[bold]", "[/bold]", "a[0]", "[", ":smile:", "\\[x]", "[link=x]"])
def test_square_brackets_and_colons_in_names_are_no_markup(capsys: pytest.CaptureFixture[str], name: str) -> None:
    emit({}, [f"[green]Made[/green] {verbatim(name)}."], as_json=False)
    assert capsys.readouterr().out == f"Made {name}.\n"


def test_long_lines_are_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/somewhere/" + "long/" * 60
    emit({}, [f"release {verbatim(path)}"], as_json=False)
    assert capsys.readouterr().out == f"release {path}\n"


def test_a_table_shows_its_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    emit({}, [table("[b]T", ["name", "n"], [["[/x]", "1"], ["y:dog:", "2"]])], as_json=False)
    found = capsys.readouterr().out
    for text in ("[b]T", "[/x]", "y:dog:"):
        assert text in found


def test_a_refusal_is_one_line_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_refusal(InputError("column 'x'", "it is odd", "Mend it"), as_json=False) == 1
    assert capsys.readouterr().err == "refused: column 'x': it is odd. Mend it.\n"


def test_a_refusal_as_json_has_its_three_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_refusal(BudgetError("ledger", "it is full"), as_json=True) == 3
    found = json.loads(capsys.readouterr().err)
    assert found == {"error": {"where": "ledger", "rule": "it is full", "remedy": ""}}


def test_nothing_moves_on_a_screen_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("reading", as_json=False), training_bar(as_json=False) as progress:
        assert progress is None
    with stage_bar(as_json=False) as stages:
        assert stages is None
    assert capsys.readouterr() == ("", "")


def test_a_bar_names_the_stage_on_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with stage_bar(as_json=False) as progress:
        assert progress is not None
        progress("models", 3, 12)
    said = capsys.readouterr()
    assert said.out == ""
    assert "models" in said.err
    assert "3/12" in said.err
