"""Check a release from the release alone: sensitivity, noise, epsilon and every stated field.

What is checked is that the files are consistent: with one another, with this version's accounting, and with numbers
that have noise in them. That noise was drawn at random, and who made a release, cannot be seen in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.files import CERTIFICATE, is_file_of, names_in
from understudy.plan.descent import DescentPlan
from understudy.released.certificate import Price
from understudy.released.noise_tests import REFUSED_BELOW, NoiseTest, noise_tests
from understudy.released.product import Product
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
        return asdict(self)


def verify_release(directory: str | Path) -> Verification:
    """Recompute what the certificate states, compare every byte, and see whether numbers have noise in them.

    Raises:
        InputError: it names the first file that does not follow from the release, or the stage whose
            numbers do not look like sums with the stated noise.
    """
    release = load_release(directory)
    plan = release.plan
    found = _verified(release, plan, directory, what="release", spent=plan.own_epsilon)
    is_noisy = bool(dict(release.facts).get("is_private"))
    seen = _passed(noise_tests(release), where=f"release '{Path(directory)}'") if is_noisy else ()
    lengths = (plan.mechanism.length(sum(parts)) for parts in plan.mechanism_sensitivities)
    return replace(
        found,
        epsilon_alone=plan.own_epsilon(),
        mechanism=plan.mechanism.name,
        sensitivity=tuple(length / plan.lattice for length in lengths),
        checks=(*found.checks, *([NOISE] if any(test.is_able for test in seen) else [])),
        noise_tests=seen,
    )


def verify_trained(made: Product, descent: DescentPlan, directory: str | Path, *, what: str) -> Verification:
    """Compare a trained model's files with what follows from its plan, byte for byte.

    Raises:
        InputError: it names the first file that does not follow from the model.
    """

    def spent() -> float:
        return max(descent.epsilon(), descent.charged_epsilon())

    return _verified(made, descent, directory, what=what, spent=spent)


def _verified(
    made: Product, price: Price, directory: str | Path, *, what: str, spent: Callable[[], float]
) -> Verification:
    """Compare a product's files with those computed anew, and its cost with its budget."""
    folder = Path(directory)
    try:
        expected = made.files()
    except Exception:  # nothing can be said of what a damaged description stumbles over
        raise InputError(
            f"{what} '{folder}'",
            "is damaged: its certificate cannot be computed anew",
            f"Do not rely on this {what}; fetch it again from its owner",
        ) from None
    _check_files(folder, expected, dict(made.facts), what=what)
    if spent() > price.budget.epsilon:
        raise InputError(f"{what} '{folder}'", "spends more than its stated epsilon", "Do not rely on it")
    certificate = json.loads(expected[CERTIFICATE])
    stages = certificate["mechanism"]["stages"]
    return Verification(
        fingerprint=made.fingerprint,
        is_private=made.is_private,
        epsilon=price.epsilon(),
        epsilon_alone=price.epsilon(),
        delta=price.budget.delta,
        neighbours=price.neighbours.value,
        mechanism="gaussian",
        assumptions=tuple(each["name"] for each in certificate["assumptions"]),
        noise_std=tuple(stage["noise_std"] for stage in stages),
        sensitivity=tuple(stage["sensitivity"] for stage in stages),
        checks=tuple(sorted(expected)),
    )


def _check_files(folder: Path, expected: dict[str, bytes], facts: dict[str, Any], *, what: str) -> None:
    """Refuse a directory that does not hold these files, byte for byte, and no others."""
    found = names_in(folder)
    for name in sorted(set(expected) | found):
        if name in expected and name in found and is_file_of(folder / name, expected[name]):
            continue
        rule, remedy = f"does not follow from the {what}: it was changed or damaged", _remedy(facts)
        if what != "release":
            remedy = "Do not rely on it; fetch it again from its owner"
        elif name not in expected:
            rule, remedy = "does not belong to a release", "Remove it"
        elif name not in found:
            rule, remedy = "is missing", "Fetch the release again"
        raise InputError(f"file '{folder / name}'", rule, remedy)


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


def _remedy(facts: dict[str, Any]) -> str:
    """Wordings change between versions, so an old release is verified with its own."""
    made_with = (facts.get("software") or {}).get("understudy")
    if made_with != version("understudy"):
        return f"If it was made with understudy {made_with}, as it says, verify it with that version"
    return "Do not rely on this release; fetch it again from its owner"
