"""Do the planted bugs of tests/mutants still fit the code? Prints those that do not; exit 1 if any.

A planted bug fits if its file exists, its text occurs there exactly once, its replacement differs,
and the test that must notice is still defined where it is said to be.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "understudy"
TESTS = ROOT / "tests"


def misfits() -> list[str]:
    """One line for each planted bug that does not fit."""
    mutants = runpy.run_path(str(TESTS / "mutants" / "planted.py"))["MUTANTS"]
    found = []
    for name, mutant in mutants.items():
        file = SOURCE / mutant.file
        if not file.is_file():
            found.append(f"{name}: no file {mutant.file}")
        elif (times := file.read_text().count(mutant.text)) != 1:
            found.append(f"{name}: {times} times in {mutant.file}: {mutant.text!r}")
        elif mutant.text == mutant.instead:
            found.append(f"{name}: the replacement changes nothing")
        path, _, test = mutant.test.partition("::")
        function = test.partition("[")[0]
        if not (TESTS / path).is_file():
            found.append(f"{name}: no test file {path}")
        elif f"def {function}(" not in (TESTS / path).read_text():
            found.append(f"{name}: no test {function} in {path}")
    return found


if __name__ == "__main__":
    wrong = misfits()
    print("\n".join(wrong) if wrong else "All planted bugs fit.")
    sys.exit(bool(wrong))
