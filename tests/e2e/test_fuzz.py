"""A few hundred fuzzed inputs of every kind: no traceback, no cell, nothing spent on failure.

`benchmarks/fuzz.py` runs as many as one likes; the ten thousand of the page are its first ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import fuzz
import pytest

from understudy.errors import InputError

CASES = 240
PARTS = 6


@pytest.fixture(scope="module")
def world() -> Iterator[fuzz.World]:
    with fuzz.made_world() as made:
        yield made


@pytest.mark.parametrize("part", range(PARTS))
def test_fuzzed_inputs_are_read_or_refused_and_nothing_leaks(world: fuzz.World, part: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(part, CASES, PARTS):
        kind, found = fuzz.run_case(world, 1, number)
        assert found.violations == [], f"--seed 1 --only {number} ({kind})"
        outcomes[found.outcome.split()[0]] += 1
    assert outcomes["succeeded"] >= 2, "cases that cannot succeed show little"
    assert outcomes["refused"] >= 2


def found_in(world: fuzz.World, act: Callable[[fuzz.Case], Any], count: int = 25) -> str:
    """The violations of cases of one kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fuzz, "KINDS", {"planted": (act, 1)})
        return " ".join(str(fuzz.run_case(world, 2, n)[1].violations) for n in range(count))


def test_the_fuzzer_sees_a_seal_that_is_open(world: fuzz.World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.private.spending.sealed", lambda step: step())
    monkeypatch.setattr("understudy.readers.sources.shielded", lambda step, explain: step())
    found = found_in(world, fuzz.case_of_objects)
    assert "left the library" in found
    assert "error holds a secret cell" in found


def test_the_fuzzer_sees_a_charge_without_a_release_and_files_that_are_left(
    world: fuzz.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(*_: Any, directory: Any, **__: Any) -> None:
        directory.mkdir()
        raise InputError("disk", f"{fuzz.ROWS} rows do not fit")

    monkeypatch.setattr("understudy.private.spending.publish", publish)
    found = found_in(world, fuzz.case_of_file)
    for words in ("the ledger was charged", "files were left", "the number of rows"):
        assert words in found


def test_the_fuzzer_sees_an_error_of_the_program_that_nobody_foresaw(
    world: fuzz.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_: Any) -> None:
        raise RuntimeError(fuzz.SECRET)

    monkeypatch.setattr("understudy.schema.load_schema", surprise)
    assert "internal error: RuntimeError" in found_in(world, fuzz.case_of_flags)
