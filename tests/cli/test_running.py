from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from understudy.cli.running import reading_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("as_json", [False, True])
def test_speed_is_shown_to_nobody_but_a_person_at_a_terminal(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with reading_bar(as_json=as_json) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_a_person_sees_share_and_speed_while_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with reading_bar(as_json=False) as progress:
        assert progress is not None
        progress(None, 4000.0)
        progress(0.5, 200000.0)
    assert "200,000 rows/s" in terminal.getvalue()


def test_nothing_of_it_is_left_with_json(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal: Any = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with reading_bar(as_json=True) as progress:
        assert progress is None
    assert terminal.getvalue() == ""
