"""Check a release from the release alone: sensitivity, noise, epsilon and every stated field.

What is checked is that the files are consistent: with one another, with this version's accounting, and with numbers
that have noise in them. That noise was drawn at random, and who made a release, cannot be seen in it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.accounting import Neighbours
from understudy.errors import InputError
from understudy.files import is_file_of, names_in
from understudy.released.assumptions import assumptions
from understudy.released.noise_tests import REFUSED_BELOW, NoiseTest, noise_tests
from understudy.released.release import load_release

NOISE = "noise"
"""How the tests of noise are called among the checks, if numbers without noise would have been refused."""

MEANING = (
    "the files are consistent with one another and with this version's accounting; they cannot show that noise "
    "was really drawn, from rows that are what they are said to be, or who made them"
)
"""What a verification says, and what it does not."""


@dataclass(frozen=True)
class Verification:
    """What a release turns out to guarantee, computed anew.

    ``epsilon`` counts what was learnt from the same rows before, ``epsilon_alone`` does not.
    """

    fingerprint: str
    is_private: bool
    epsilon: float
    epsilon_alone: float
    delta: float
    neighbours: str
    mechanism: str
    assumptions: tuple[str, ...]
    noise_std: tuple[float, ...]
    sensitivity: tuple[float, ...]
    checks: tuple[str, ...]
    noise_tests: tuple[NoiseTest, ...] = ()
    meaning: str = MEANING

    @property
    def untested(self) -> tuple[str, ...]:
        """The stages whose numbers would look the same without noise."""
        able = {test.stage for test in self.noise_tests if test.is_able}
        return tuple(dict.fromkeys(t.stage for t in self.noise_tests if t.stage not in able))

    def to_dict(self) -> dict[str, Any]:
        """For JSON output."""
        return dataclasses.asdict(self)


def verify_release(directory: str | Path) -> Verification:
    """Recompute what the certificate states, compare every byte, and see whether numbers have noise in them.

    Raises:
        InputError: it names the first file that does not follow from the release, or the stage whose
            numbers do not look like sums with the stated noise.
    """
    folder = Path(directory)
    release = load_release(folder)
    try:
        expected = release.files()
    except Exception:  # nothing can be said of what a damaged description stumbles over
        raise InputError(
            f"release '{folder}'",
            "is damaged: its certificate cannot be computed anew",
            "Do not rely on this release; fetch it again from its owner",
        ) from None
    found = names_in(folder)
    for name in sorted(set(expected) | found):
        if name not in expected:
            raise InputError(f"file '{folder / name}'", "does not belong to a release", "Remove it")
        if name not in found:
            raise InputError(f"file '{folder / name}'", "is missing", "Fetch the release again")
        if not is_file_of(folder / name, expected[name]):
            raise InputError(
                f"file '{folder / name}'",
                "does not follow from the release: it was changed or damaged",
                _remedy(dict(release.facts)),
            )
    plan = release.plan
    alone = plan.own_epsilon()
    if alone > plan.budget.epsilon:
        raise InputError(f"release '{folder}'", "spends more than its stated epsilon", "Do not rely on it")
    is_private = bool(dict(release.facts).get("is_private"))
    tests = _passed(noise_tests(release), where=f"release '{folder}'") if is_private else ()
    return Verification(
        fingerprint=release.fingerprint,
        is_private=release.is_private,
        epsilon=plan.epsilon(),
        epsilon_alone=alone,
        delta=plan.budget.delta,
        neighbours=Neighbours(plan.neighbours).value,
        mechanism=plan.mechanism.name,
        assumptions=tuple(each["name"] for each in assumptions(plan, dict(release.facts))),
        noise_std=tuple(noise / plan.lattice for noise in plan.noise_stds),
        sensitivity=tuple(plan.mechanism.length(sum(parts)) / plan.lattice for parts in plan.mechanism_sensitivities),
        checks=(*sorted(expected), *([NOISE] if any(test.is_able for test in tests) else [])),
        noise_tests=tests,
    )


def _passed(tests: tuple[NoiseTest, ...], *, where: str) -> tuple[NoiseTest, ...]:
    """The tests, unless one of them says that the stated noise is not there."""
    worst = min(tests, key=lambda test: test.chance)
    if worst.chance * len(tests) < REFUSED_BELOW:
        raise InputError(
            where,
            f"the numbers of stage '{worst.stage}' do not have the noise that it states: by the test of their "
            f"{worst.test}, noise would look like that less than once in a thousand million times",
            "Do not publish it and do not rely on it; ask its owner how the noise was drawn",
        )
    return tests


def check_files(folder: Path, expected: dict[str, bytes], *, what: str) -> None:
    """Refuse a directory that does not hold these files, byte for byte, and no others."""
    found = names_in(folder)
    for name in sorted(set(expected) | found):
        is_both = name in expected and name in found
        if not (is_both and is_file_of(folder / name, expected[name])):
            raise InputError(
                f"file '{folder / name}'",
                f"does not follow from the {what}: it was changed or damaged",
                "Do not rely on it; fetch it again from its owner",
            )


def _remedy(facts: dict[str, Any]) -> str:
    """Wordings change between versions, so an old release is verified with its own."""
    made_with = (facts.get("software") or {}).get("understudy")
    if made_with != version("understudy"):
        return f"If it was made with understudy {made_with}, as it says, verify it with that version"
    return "Do not rely on this release; fetch it again from its owner"
