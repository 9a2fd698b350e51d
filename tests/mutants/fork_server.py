"""A process that imports what costs time, but not the package, and forks a child for every run.

Reads one JSON object a line: the folder of a copy of the package, tests, and a file for what they
print. Answers with the exit code of pytest: 0 all passed, 1 some failed, else it could not run.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback

import hypothesis
import pytest

SHARED = (
    "dp_accounting",
    "jinja2",
    "mpmath",
    "numpy",
    "opendp.prelude",
    "pyarrow.compute",
    "safetensors.numpy",
    "scipy.stats",
    "torch",
    "typer.testing",
    "yaml",
)
# A failing example need not be made small: that it fails is all that is asked.
PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
# The same examples in every run: a planted bug is found always or never.
PLAIN = ("-x", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0")


def run(source: str, tests: list[str], output: str) -> int:
    """In a child: pytest on the copy of the package in `source`."""
    printed = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(printed, sys.stdout.fileno())
    os.dup2(printed, sys.stderr.fileno())
    sys.path.insert(0, source)
    os.environ["PYTHONPATH"] = source
    understudy = importlib.import_module("understudy")
    assert str(understudy.__file__).startswith(source), "the copy is not the one under test"
    return int(pytest.main([*PLAIN, *tests]))


def main() -> None:
    """Fork, wait and answer until standard input ends."""
    for name in SHARED:
        importlib.import_module(name)
    assert "understudy" not in sys.modules, "children would run the package itself, not its copy"
    hypothesis.settings.register_profile("any failure", phases=PHASES, database=None)
    hypothesis.settings.load_profile("any failure")
    gc.collect()
    gc.freeze()  # what is imported stays: children need not look through it at every collection
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = run(**json.loads(line))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
