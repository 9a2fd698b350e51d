"""What a comparison found, as plain values that words, pictures and JSON are made of."""

from __future__ import annotations

from collections.abc import Sequence
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


# A comparison in words.

MOST_NAMED = 5


def describe(found: Comparison) -> list[str]:
    """What was found, what could have been found, and what was looked at."""
    return [*_verdict(found), _power(found), _scope(found)]


def _verdict(found: Comparison) -> list[str]:
    p, asks_for_rows = chance(found.p_value), found.question is Question.SAME_ROWS
    if not found.differs:
        may = "be the same rows" if asks_for_rows else "come from one population"
        return [f"No difference can be seen ({p}): both sides may well {may}."]
    both = "are the same rows" if asks_for_rows else "come from one population"
    cause = "Privacy noise alone gives" if asks_for_rows else "Privacy noise and chance alone give"
    first = (
        f"They differ ({p}): it is not believable that both sides {both}. "
        f"{cause} a distance of about {found.by_chance:.2g}; it is {found.distance:.2g}, "
        f"or {found.effect:.2g} without what they add."
    )
    return [first, _where(found)]


def _where(found: Comparison) -> str:
    columns, together = (_clear(each, found.level) for each in (found.columns, found.together))
    if columns:
        return f"The columns that differ most: {_named(columns)}."
    if together:
        return f"No single column stands out; how columns go together does: {_named(together)}."
    return "No single column stands out: the difference is spread over many."


def _clear(differences: Sequence[Difference], level: float) -> list[Difference]:
    return [each for each in differences if each.adjusted <= level]


def _named(differences: Sequence[Difference]) -> str:
    words = [
        f"{' with '.join(each.columns) or 'several numbers'} ({chance(each.adjusted)})"
        for each in differences[:MOST_NAMED]
    ]
    more = len(differences) - MOST_NAMED
    return ", ".join(words) + (f" and {more} more" if more > 0 else "")


def _power(found: Comparison) -> str:
    words = f"A true distance of {found.detectable:.2g} is noticed in four of five such comparisons"
    if found.detectable_share is not None:
        share = 100 * found.detectable_share
        words += f", as much as if {share:.2g} % of the rows were replaced by copies of one row"
    return f"{words}; smaller ones mostly go unnoticed."


def _scope(found: Comparison) -> str:
    words = "Compared: " + ", ".join(found.compared)
    if found.left_out:
        words += "; not comparable: " + ", ".join(found.left_out)
    return f"{words}. P-values of columns are corrected for their number (Holm)."


def chance(p: float) -> str:
    """A p-value for people."""
    return f"p = {p:.2g}" if p >= 1e-6 else "p < 0.000001"
