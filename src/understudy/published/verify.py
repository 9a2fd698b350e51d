"""Check a release from the release alone: sensitivity, noise, epsilon and every stated field."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.accounting import Neighbours
from understudy.errors import InputError
from understudy.published.assumptions import assumptions
from understudy.published.release import load_release


@dataclass(frozen=True)
class Verification:
    """What a release turns out to guarantee, computed anew."""

    fingerprint: str
    is_private: bool
    epsilon: float
    delta: float
    neighbours: str
    mechanism: str
    assumptions: tuple[str, ...]
    noise_std: tuple[float, ...]
    sensitivity: tuple[float, ...]
    checks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON output."""
        return dataclasses.asdict(self)


def verify_release(directory: str | Path) -> Verification:
    """Recompute what the certificate states and compare every byte.

    Raises:
        InputError: it names the first file that does not follow from the release.
    """
    folder = Path(directory)
    release = load_release(folder)
    try:
        expected = release.files()
    except Exception:  # nothing can be said of what a damaged description stumbles over
        raise InputError(
            f"release '{folder}'", "is damaged: its certificate cannot be computed anew",
            "Do not rely on this release; fetch it again from its owner",
        ) from None  # fmt: skip
    found = {path.name for path in folder.iterdir()}
    for name in sorted(set(expected) | found):
        if name not in expected:
            raise InputError(f"file '{folder / name}'", "does not belong to a release", "Remove it")
        if name not in found:
            raise InputError(f"file '{folder / name}'", "is missing", "Fetch the release again")
        if not _holds(folder / name, expected[name]):
            raise InputError(
                f"file '{folder / name}'",
                "does not follow from the release: it was changed or damaged",
                _remedy(dict(release.facts)),
            )
    plan = release.plan
    epsilon = plan.epsilon()
    if epsilon > plan.budget.epsilon:
        raise InputError(
            f"release '{folder}'", "spends more than its stated epsilon", "Do not rely on it"
        )
    return Verification(
        fingerprint=release.fingerprint,
        is_private=bool(dict(release.facts).get("is_private")),
        epsilon=epsilon,
        delta=plan.budget.delta,
        neighbours=Neighbours(plan.neighbours).value,
        mechanism=plan.mechanism.name,
        assumptions=tuple(each["name"] for each in assumptions(plan, dict(release.facts))),
        noise_std=tuple(noise / plan.lattice for noise in plan.noise_stds),
        sensitivity=tuple(
            plan.mechanism.length(sum(parts)) / plan.lattice
            for parts in plan.mechanism_sensitivities
        ),
        checks=tuple(sorted(expected)),
    )


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _remedy(facts: dict[str, Any]) -> str:
    """Wordings change between versions, so an old release is verified with its own."""
    made_with = (facts.get("software") or {}).get("understudy")
    if made_with != version("understudy"):
        return (
            f"If it was made with understudy {made_with}, as it says, verify it with that version"
        )
    return "Do not rely on this release; fetch it again from its owner"
