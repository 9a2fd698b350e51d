"""Every script starts, says where it wants its data, and is on the page."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if "__main__" in path.read_text()]
WITH_DATA = [path for path in SCRIPTS if "add_data_argument(parser)" in path.read_text()]


def start(script: Path, *words: str) -> int | str | None:
    """Run it in this process, which has loaded what costs time, and return its exit code."""
    before = sys.argv
    sys.argv = [str(script), *words]
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = before
    return ended.value.code


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_how_it_is_used(script: Path, capsys: pytest.CaptureFixture[str]):
    assert start(script, "--help") == 0
    assert script.name in capsys.readouterr().out


@pytest.mark.parametrize("script", WITH_DATA, ids=lambda path: path.stem)
def test_a_script_that_reads_tables_asks_for_their_folder(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("UNDERSTUDY_DATA", raising=False)
    assert start(script) == 2
    assert "--data" in capsys.readouterr().err


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_is_on_the_page(script: Path):
    assert f"`{script.name}" in (FOLDER / "README.md").read_text()


def test_the_folder_may_come_from_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A folder without tables: the papers' counts stand alone."""
    monkeypatch.setenv("UNDERSTUDY_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["paper_datasets.py"])
    runpy.run_path(str(FOLDER / "paper_datasets.py"), run_name="__main__")
    assert "002,1,adult,rows,,22561" in capsys.readouterr().out
