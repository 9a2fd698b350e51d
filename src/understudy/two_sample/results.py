"""What a comparison found: as plain values and JSON, in words, and as a chart of the null distribution."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from understudy.arrays import Floats
from understudy.errors import MissingExtraError


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
    """Distances drawn from the null distribution."""

    @property
    def differs(self) -> bool:
        """Whether the hypothesis is rejected."""
        return self.p_value <= self.level

    def to_dict(self) -> dict[str, Any]:
        """Everything but the draws, for JSON."""
        plain = {name: value for name, value in asdict(self).items() if name != "draws"}
        return plain | {"question": self.question.value, "differs": self.differs}


MOST_NAMED = 5  # columns that a sentence names


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


CHANCE = "#b8c4ce"
FOUND = "#b3392f"
QUIET = "#0b6e4f"
LIMIT: dict[str, Any] = {"color": "#4d5a66", "linestyle": "--", "linewidth": 1.2}
MOST_BARS = 12  # parts in the picture
LONGEST_NAME = 34  # characters of a part beside its bar


def draw_comparison(found: Comparison, *, title: str) -> bytes:
    """A PNG of both."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    bars = _bars(found)
    figure = Figure(figsize=(11, max(3.8, 1.6 + 0.3 * len(bars))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    _draw_null(left, found)
    _draw_bars(right, bars, found.level)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=12)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()


def _draw_null(axis: Any, found: Comparison) -> None:
    colour = FOUND if found.differs else QUIET
    axis.hist(found.draws, bins=40, density=True, color=CHANCE, label="if nothing differs")
    axis.axvline(found.threshold, **LIMIT, label=f"exceeded by chance in {100 * found.level:g} %")
    axis.axvline(found.distance, color=colour, linewidth=2.2, label="observed")
    axis.set_xlim(0, 1.06 * max(found.distance, found.draws.max()))
    axis.locator_params(axis="x", nbins=6)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("distance between the mean embeddings (MMD)")
    words = "differ" if found.differs else "no difference seen"
    axis.set_title(f"{words}: {chance(found.p_value)}", fontsize=11, color=colour)
    axis.legend(fontsize=8, frameon=False)


def _bars(found: Comparison) -> list[Difference]:
    """The columns that stand out most; sets of columns if no column does and a set is clear."""
    columns, together = (_clear(each, found.level) for each in (found.columns, found.together))
    chosen = found.columns if columns or not together else together
    return sorted(chosen or found.together, key=_ratio, reverse=True)[:MOST_BARS]


def _ratio(difference: Difference) -> float:
    """A distance as a multiple of what chance seldom exceeds, so that columns can be compared."""
    return difference.distance / difference.threshold


def _draw_bars(axis: Any, bars: list[Difference], level: float) -> None:
    places = range(len(bars))[::-1]
    ratios = [_ratio(each) for each in bars]
    colours = [FOUND if each.adjusted <= level else QUIET for each in bars]
    drawn = axis.barh(places, ratios, color=colours, height=0.62)
    axis.axvline(1.0, **LIMIT)
    white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    axis.bar_label(drawn, [chance(each.adjusted) for each in bars], padding=5, fontsize=8, bbox=white)
    axis.set_yticks(places, [_name(each) for each in bars], fontsize=9)
    axis.set_xlim(0, 1.35 * max(1.0, *ratios))
    axis.set_xlabel("distance, in multiples of what chance seldom exceeds")
    axis.set_title("by column (p-values corrected for their number)", fontsize=11)


def _name(difference: Difference) -> str:
    name = " × ".join(difference.columns) or "several numbers"
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
