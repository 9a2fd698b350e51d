"""Planted bugs: each must turn the suite red, or the suite proves nothing.

A mutant is one change of text in a copy of the package. The text must occur exactly once, so a
mutant that no longer fits the code fails here instead of passing for the wrong reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from planted import MUTANTS, Mutant

import understudy

pytestmark = pytest.mark.slow
SOURCE = Path(understudy.__file__).parent
TESTS = Path(__file__).parents[1]
# One process imports what costs time, but not the package, and forks a child for every copy.
RUN = """
import json, os, sys, traceback
import dp_accounting, hypothesis, jinja2, mpmath, numpy, opendp.prelude, pyarrow, pytest
import pyarrow.compute, safetensors.numpy, scipy.stats, torch, yaml

# A failing example need not be made small: that it fails is all that is asked.
found = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
hypothesis.settings.register_profile("any failure", phases=found, database=None)
hypothesis.settings.load_profile("any failure")

def run(source, tests):
    sys.path.insert(0, source)
    os.environ["PYTHONPATH"] = source
    import understudy
    assert understudy.__file__.startswith(source), "the copy is not the one under test"
    plain = ["-x", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return pytest.main([*plain, *tests])

verdicts = {}
for name, (source, tests) in json.load(sys.stdin).items():
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = int(run(source, tests))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    verdicts[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(verdicts))
"""
UNCHANGED = "an unchanged copy"


def copied(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, folder / "understudy", ignore=ignored)
    return folder


def mutated(folder: Path, mutant: Mutant) -> Path:
    file = copied(folder) / "understudy" / mutant.file
    before = file.read_text()
    assert before.count(mutant.text) == 1, f"'{mutant.text}' no longer fits the code"
    file.write_text(before.replace(mutant.text, mutant.instead))
    return folder


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How pytest ended on each copy: 0 all passed, 1 some failed, else it could not run."""
    folder = tmp_path_factory.mktemp("mutants")
    all_tests = sorted({mutant.test for mutant in MUTANTS.values()})
    work = {UNCHANGED: (copied(folder / "unchanged"), all_tests)}
    for number, (name, mutant) in enumerate(MUTANTS.items()):
        work[name] = (mutated(folder / str(number), mutant), [mutant.test])
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(
            {name: (str(s), [str(TESTS / t) for t in tests]) for name, (s, tests) in work.items()}
        ),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"},
        cwd=TESTS.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    sys.stdout.write(done.stdout)  # pytest shows it if a verdict is wrong
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_chosen_tests_pass_on_an_unchanged_copy(verdicts: dict[str, int]) -> None:
    assert verdicts[UNCHANGED] == pytest.ExitCode.OK


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_turns_the_suite_red(verdicts: dict[str, int], name: str) -> None:
    assert verdicts[name] == pytest.ExitCode.TESTS_FAILED
