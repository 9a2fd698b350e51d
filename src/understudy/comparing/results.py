"""What a comparison found, as plain values that words, pictures and JSON are made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from understudy.arrays import Floats


class Question(StrEnum):
    """What is asked of two tables."""

    SAME_POPULATION = "same population"
    SAME_ROWS = "same rows"


@dataclass(frozen=True)
class Difference:
    """What some columns say by themselves: their part of the distance, and what chance stays below."""

    columns: tuple[str, ...]
    distance: float
    threshold: float
    p_value: float
    adjusted: float
    """The p-value, corrected for how many columns, or sets of columns, there are (Holm)."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The outcome of a test, in distances of a kernel that is 1 at most.

    ``distance`` is the square root of the statistic, ``by_chance`` its root mean square if nothing differs,
    ``threshold`` what it must exceed; ``effect`` is the distance without what chance adds, and
    ``detectable`` the effect that is found in four of five comparisons. ``detectable_share`` says it in
    rows: as much as if this share of them were replaced by copies of one row.
    """

    question: Question
    level: float
    p_value: float
    distance: float
    by_chance: float
    threshold: float
    effect: float
    detectable: float
    detectable_share: float | None
    rows: tuple[float, float]
    columns: tuple[Difference, ...]
    together: tuple[Difference, ...]
    compared: tuple[str, ...]
    left_out: tuple[str, ...]
    draws: Floats
    """Distances drawn from the null law."""

    @property
    def differs(self) -> bool:
        """Whether the hypothesis is rejected."""
        return self.p_value <= self.level

    def to_dict(self) -> dict[str, Any]:
        """Everything but the draws, for JSON."""
        plain = {name: value for name, value in asdict(self).items() if name != "draws"}
        return plain | {"question": self.question.value, "differs": self.differs}
