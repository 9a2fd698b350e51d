"""A comparison as a picture: the null law with the observed distance, and the largest differences."""

from __future__ import annotations

import io
from typing import Any

from understudy.errors import MissingExtraError
from understudy.two_sample.results import Comparison, Difference, chance

CHANCE = "#b8c4ce"
FOUND = "#b3392f"
QUIET = "#0b6e4f"
MOST_BARS = 12
LONGEST_NAME = 34


def draw_comparison(found: Comparison, *, title: str) -> bytes:
    """A PNG of both."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    bars = _bars(found)
    figure = Figure(figsize=(11, max(3.8, 1.6 + 0.3 * len(bars))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    _draw_law(left, found)
    _draw_bars(right, bars, found.level)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=12)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return content.getvalue()


def _draw_law(axis: Any, found: Comparison) -> None:
    colour = FOUND if found.differs else QUIET
    axis.hist(found.draws, bins=40, density=True, color=CHANCE, label="if nothing differs")
    axis.axvline(
        found.threshold,
        color="#4d5a66",
        linestyle="--",
        linewidth=1.2,
        label=f"exceeded by chance in {100 * found.level:g} %",
    )
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
    clear = [each for each in found.together if each.adjusted <= found.level]
    is_alone = any(each.adjusted <= found.level for each in found.columns)
    chosen = list(found.columns) if is_alone or not clear else clear
    return sorted(chosen or found.together, key=_ratio, reverse=True)[:MOST_BARS]


def _ratio(difference: Difference) -> float:
    """A distance as a multiple of what chance seldom exceeds, so that columns can be compared."""
    return difference.distance / difference.threshold


def _draw_bars(axis: Any, bars: list[Difference], level: float) -> None:
    places = range(len(bars))[::-1]
    ratios = [_ratio(each) for each in bars]
    colours = [FOUND if each.adjusted <= level else QUIET for each in bars]
    axis.barh(places, ratios, color=colours, height=0.62)
    axis.axvline(1.0, color="#4d5a66", linestyle="--", linewidth=1.2)
    for place, ratio, each in zip(places, ratios, bars, strict=True):
        axis.text(
            ratio + 0.02 * max(ratios),
            place,
            chance(each.adjusted),
            va="center",
            fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    axis.set_yticks(places, [_name(each) for each in bars], fontsize=9)
    axis.set_xlim(0, 1.35 * max(1.0, *ratios))
    axis.set_xlabel("distance, in multiples of what chance seldom exceeds")
    axis.set_title("by column (p-values corrected for their number)", fontsize=11)


def _name(difference: Difference) -> str:
    name = " × ".join(difference.columns) or "several numbers"
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
