"""A comparison in words."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.comparing.results import Comparison, Difference, Question

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
