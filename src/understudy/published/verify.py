"""Check a release from the release alone: sensitivity, noise, epsilon and every stated field."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from understudy.accounting import Neighbours
from understudy.errors import InputError
from understudy.published.release import load_release


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
    alone = plan.own_epsilon()
    if alone > plan.budget.epsilon:
        raise InputError(
            f"release '{folder}'", "spends more than its stated epsilon", "Do not rely on it"
        )
    return Verification(
        fingerprint=release.fingerprint,
        is_private=release.is_private,
        epsilon=plan.epsilon(),
        epsilon_alone=alone,
        delta=plan.budget.delta,
        neighbours=Neighbours(plan.neighbours).value,
        mechanism=plan.mechanism.name,
        noise_std=tuple(noise / plan.lattice for noise in plan.noise_stds),
        sensitivity=tuple(
            plan.mechanism.length(sum(parts)) / plan.lattice
            for parts in plan.mechanism_sensitivities
        ),
        checks=tuple(sorted(expected)),
    )


def check_files(folder: Path, expected: dict[str, bytes], *, what: str) -> None:
    """Refuse a directory that does not hold these files, byte for byte, and no others."""
    found = {path.name for path in folder.iterdir()}
    for name in sorted(set(expected) | found):
        is_both = name in expected and name in found
        if not (is_both and _holds(folder / name, expected[name])):
            raise InputError(
                f"file '{folder / name}'", f"does not follow from the {what}: it was changed or damaged",
                "Do not rely on it; fetch it again from its owner",
            )  # fmt: skip


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
