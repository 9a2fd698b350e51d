"""What a report's pictures show, as shares, bars and ticks; the templates place and draw them.

Only numbers and plain names come out of here, so that what a schema calls its categories is
escaped in one place, by the template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from understudy.arrays import Floats

# Numbers and names as a report spells them.

ELLIPSIS = "…"
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NAMED = 5
"""Of a longer list, so many are named."""


def decimal(value: float | None, places: int = 3) -> str:
    """A score; nothing where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("-") and not float(text) else text


def percent(share: float, places: int = 1) -> str:
    """A share out of a hundred, with a space that does not break."""
    return f"{decimal(100 * share, places)}\u00a0%"


def whole(number: float) -> str:
    """A count, in thousands."""
    return f"{number:,.0f}"


def short(number: float) -> str:
    """A number for the tick of an axis: at most about five characters."""
    size = abs(number)
    if size < 1e4:
        return f"{number:,.0f}" if size >= 1000 else f"{number:.3g}"
    factor, letter = next(pair for pair in UNITS if size >= pair[0])
    return f"{number / factor:.3g}{letter}"


def squeezed(name: str, length: int) -> str:
    """A name that fits and keeps its end, which is what tells columns of a wide table apart."""
    kept = (length - 1) // 3
    return name if len(name) <= length else name[: length - 1 - kept] + ELLIPSIS + name[-kept:]


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(number: int, noun: str) -> str:
    """``1 column``, ``3 columns``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_few(words: Sequence[str], noun: str = "") -> str:
    """The first words of a list, and how many more there are."""
    named, rest = ", ".join(words[:NAMED]), len(words) - NAMED
    if rest <= 0:
        return named
    return f"{named} and {counted(rest, f'more {noun}') if noun else f'{rest} more'}"


def out_of(part: int, total: int, noun: str) -> str:
    """``all 3 columns``, ``2 of 3 columns``."""
    return f"all {counted(total, noun)}" if part == total else f"{part} of {counted(total, noun)}"


WIDTH = 300.0
"""Of the axis of a histogram."""

MOST_BARS = 7  # categories of a bar chart; the others are one bar
MOST_TICKS = 5  # on an axis


@dataclass(frozen=True, slots=True)
class Series:
    """One column's shares twice over: what is compared with, and synthetic rows.

    ``doubt`` is how far the 95 % interval of the known noise reaches from each of ``given``; none
    means exact.
    """

    names: tuple[str, ...]
    ticks: tuple[str, ...]
    """At the edges of the bins, one more than these; or as many as bins, in their middles. None of a choice."""
    given: tuple[float, ...]
    synthetic: tuple[float, ...]
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A word on an axis."""

    place: float
    text: str
    anchor: str = "middle"


def axis_ticks(series: Series) -> tuple[Tick, ...]:
    """As many words below a histogram as have room, the first and the last among them."""
    words, last, step = series.ticks, len(series.ticks) - 1, WIDTH / len(series.given)
    if last < 1:
        return tuple(Tick(WIDTH / 2, word) for word in words)
    longest = max(map(len, words))
    room = max(1, min(MOST_TICKS - 1, int(WIDTH / (6.8 * (longest + 2))) - 1, last))
    picked = sorted({round(i * last / room) for i in range(room + 1)})
    if len(words) == len(series.given):
        return tuple(Tick((i + 0.5) * step, words[i]) for i in picked)
    return tuple(Tick(i * step, words[i], "start" if i == 0 else "end" if i == last else "middle") for i in picked)


@dataclass(frozen=True, slots=True)
class Bar:
    """One category: two bars, or one bar and a whisker; their ends in units of the longest."""

    name: str
    given: float
    synthetic: float
    low: float
    high: float
    text: str


def category_bars(series: Series) -> tuple[Bar, ...]:
    """A choice's largest categories by what is compared with; small ones share the last bar."""
    largest = [max(shares) for shares in zip(series.given, series.synthetic, strict=True)]
    order = sorted((i for i, share in enumerate(largest) if share > 0), key=lambda i: -largest[i])
    kept = order if len(order) <= MOST_BARS else order[: MOST_BARS - 1]
    rows = [(series.names[i], series.given[i], series.synthetic[i], series.doubt) for i in kept]
    rest = order[len(kept) :]
    if rest:
        given, synthetic = (math.fsum(side[i] for i in rest) for side in (series.given, series.synthetic))
        rows.append((f"{len(rest)} others", given, synthetic, series.doubt * math.sqrt(len(rest))))
    reach = max((max(given + doubt, drawn) for _, given, drawn, doubt in rows), default=1)

    def length(share: float) -> float:
        return min(max(share, 0.0) / (reach or 1.0), 1.0)

    return tuple(
        Bar(
            name,
            length(given),
            length(drawn),
            length(given - doubt),
            length(given + doubt),
            f"{decimal(100 * given, 1)} / {decimal(100 * drawn, 1)}",
        )
        for name, given, drawn, doubt in rows
    )


CLOSEST_TICKS = 44 / 330
"""Nearer than this share of the axis of a line chart, words would touch."""


@dataclass(frozen=True, slots=True)
class LineChart:
    """Points over a logarithmic axis, from 0 to 1 across, with levels to compare with and the grid of values."""

    points: tuple[tuple[float, int, float], ...]
    levels: dict[str, float]
    grid: tuple[float, ...]
    ticks: tuple[Tick, ...]


def line_chart(points: Sequence[tuple[int, float]], levels: dict[str, float]) -> LineChart:
    """A score against the number of rows; ``levels`` are drawn right across."""
    heights = [value for _, value in points] + list(levels.values())
    first, last = (math.log(max(points[end][0], 1)) for end in (0, -1))

    def across(rows: int) -> float:
        return (math.log(max(rows, 1)) - first) / (last - first) if last > first else 0.5

    ticks: list[Tick] = []
    for rows, _ in reversed(points):  # the last one matters most
        if not ticks or ticks[0].place - across(rows) > CLOSEST_TICKS:
            ticks.insert(0, Tick(across(rows), short(rows)))
    placed = tuple((across(rows), rows, value) for rows, value in points)
    return LineChart(placed, levels, tuple(round_steps(min(heights), max(heights))), tuple(ticks))


def round_steps(low: float, high: float) -> list[float]:
    """Three to seven round numbers that begin below and end above."""
    rough = max(high - low, 1e-3 * max(abs(high), 1e-3)) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
    first, last = math.floor(low / step - 0.1), math.ceil(high / step + 0.1)
    return [round(i * step, 12) for i in range(first, last + 1)]


# Heat maps: a matrix as one path for each shade, which stays small and follows the page's colours.

MOST_COLUMNS = 24  # columns of a heat map
HEAT_NAME_LENGTH = 13  # characters of a column beside a heat map
SHADES = 10  # of colour in a heat map: a path for each


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cells of one unit each, grouped by colour and shade."""

    names: tuple[str, ...]
    shades: tuple[tuple[str, int, str], ...]
    """A colour's name, how dark from 1 to 10, and the cells as a path."""


def heat_map(names: Sequence[str], matrix: Floats, *, darkest: float, above: str, below: str = "") -> HeatMap:
    """Values in the colours for those above and below 0 (blank without one), darkest at a size of ``darkest``."""
    found: dict[tuple[str, int], list[str]] = {}
    for (y, x), value in np.ndenumerate(matrix):
        colour = above if value > 0 else below
        if x == y or not colour or not math.isfinite(value):
            continue
        shade = min(SHADES, round(abs(value) / darkest * SHADES))
        if shade > 0:
            found.setdefault((colour, shade), []).append(f"M{x} {y}h1v1h-1z")
    return HeatMap(
        tuple(squeezed(name, HEAT_NAME_LENGTH) for name in names),
        tuple((*key, "".join(cells)) for key, cells in sorted(found.items())),
    )


# The templates of all reports. Every word that comes from a table or schema is escaped.


def render(template: str, values: dict[str, Any]) -> str:
    """A page as one piece of HTML that fetches nothing."""
    return str(environment().get_template(template).render(values))


def place(number: float) -> str:
    """A coordinate, to a tenth."""
    return f"{number:.1f}".removesuffix(".0")


@cache
def environment() -> Any:
    """The templates; numbers are spelt, and bars and ticks chosen, by filters."""
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("understudy.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (place, decimal, percent, whole, counted, listed, first_few, axis_ticks, category_bars)
    found.filters.update({function.__name__: function for function in filters})
    return found
