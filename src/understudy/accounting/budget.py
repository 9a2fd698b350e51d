"""The (epsilon, delta) budget, and the neighbouring relation (add-remove or replace-one) that it is stated for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from understudy.errors import UsageError

UNITS_PER_COST = 2**40
"""Ledgers count mu squared, or epsilon, in these units, and so do budgets: a plan then never outgrows
its own budget."""


class Neighbours(StrEnum):
    """The neighbouring relation: which two tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    """One row is added or removed; the row count is private."""

    REPLACE_ONE = "replace-one"
    """One row is replaced by any other; the row count is public."""


def neighbours_by_name(name: str) -> Neighbours:
    """The neighbouring relation of that exact name, or a refusal."""
    try:
        return Neighbours(name)
    except ValueError:
        pass
    raise UsageError("neighbours", f"'{name}' is unknown", "Use add-remove or replace-one")


@dataclass(frozen=True, slots=True)
class Budget:
    """An (epsilon, delta) guarantee to be met; a delta of 0 asks for pure differential privacy."""

    epsilon: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            if not isinstance(getattr(self, name), int | float):
                raise UsageError(name, "must be a number")
        if self.delta == 0:  # one way to write it, in files and fingerprints
            object.__setattr__(self, "delta", 0.0)
        if not math.isfinite(self.epsilon) or not 1e-4 <= self.epsilon <= 100:
            raise UsageError(
                "epsilon",
                "must be a finite number above 0 (between 0.0001 and 100)",
                "Common choices lie between 0.1 and 10",
            )
        if self.delta != 0 and not 1e-15 <= self.delta <= 0.1:
            raise UsageError(
                "delta",
                "must be 0, or lie between 1e-15 and 0.1",
                "It should be far below one over the number of rows, for example 1e-5; "
                "0 asks for pure differential privacy, with more noise",
            )

    @property
    def is_pure(self) -> bool:
        """Whether this is pure differential privacy (delta = 0)."""
        return self.delta == 0
