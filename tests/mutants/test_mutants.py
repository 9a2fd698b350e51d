"""Planted bugs: each must turn the suite red, or the suite proves nothing.

A mutant is one change of text in a copy of the package. The text must occur exactly once, so a
mutant that no longer fits the code fails here instead of passing for the wrong reason.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from planted import MUTANTS, Mutant

import understudy

pytestmark = pytest.mark.slow
SOURCE = Path(understudy.__file__).parent
TESTS = Path(__file__).parents[1]
CHOSEN = sorted({mutant.test for mutant in MUTANTS.values()})
Verdict = Callable[[list[str]], int]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, compiled; files that change afterwards are known by their hash."""
    copy = tmp_path_factory.mktemp("mutants") / "understudy"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(copy, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return copy


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("fork_server.py")],
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"},
        cwd=TESTS.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.communicate()


@pytest.fixture
def verdict(server: subprocess.Popen[str], package: Path, tmp_path: Path) -> Verdict:
    """How pytest ends on the copy as it is: 0 all passed, 1 some failed, else it could not run."""

    def ask(tests: list[str]) -> int:
        output = tmp_path / "output.txt"
        paths = [str(TESTS / test) for test in tests]
        wish = {"source": str(package.parent), "tests": paths, "output": str(output)}
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(wish) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        sys.stdout.write(output.read_text())  # pytest shows it if the verdict is wrong
        return code

    return ask


@contextmanager
def planted(package: Path, mutant: Mutant) -> Iterator[None]:
    file = package / mutant.file
    before = file.read_text()
    assert before.count(mutant.text) == 1, f"'{mutant.text}' no longer fits the code"
    file.write_text(before.replace(mutant.text, mutant.instead))
    try:
        yield
    finally:
        file.write_text(before)


@pytest.mark.parametrize("file", sorted({test.partition("::")[0] for test in CHOSEN}))
def test_the_chosen_tests_pass_on_an_unchanged_copy(file: str, verdict: Verdict) -> None:
    chosen = [test for test in CHOSEN if test.partition("::")[0] == file]
    assert verdict(chosen) == pytest.ExitCode.OK


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_turns_the_suite_red(name: str, verdict: Verdict, package: Path) -> None:
    with planted(package, MUTANTS[name]):
        assert verdict([MUTANTS[name].test]) == pytest.ExitCode.TESTS_FAILED
