from __future__ import annotations

import io
import re
import sys
from typing import Any

import pytest

from understudy.cli.output import AS_JSON, reading_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("as_json", [False, True])
def test_progress_is_shown_to_nobody_but_a_person_at_a_terminal(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    AS_JSON.set(as_json)
    with reading_bar() as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_a_person_sees_time_and_no_number_of_rows_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows per second, times the seconds that are shown, would be the number of rows."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with reading_bar() as progress:
        assert progress is not None
        progress(None)
        progress(0.5)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "reading private rows" in shown
    assert set(re.findall(r"\d[\d:,.]*", shown)) <= {"0:00:00"}
    assert "rows/s" not in shown


@pytest.mark.usefixtures("with_json")
def test_nothing_of_it_is_left_with_json(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal: Any = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with reading_bar() as progress:
        assert progress is None
    assert terminal.getvalue() == ""
