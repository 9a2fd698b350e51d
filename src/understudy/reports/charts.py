"""Where the marks of a report's pictures lie; the templates draw them.

Only numbers and plain names come out of here, so that what a schema calls its categories is
escaped in one place, by the template.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from understudy.evaluation.metrics import Matrix

# Numbers and names as a report spells them.

ELLIPSIS = "…"
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


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


def clipped(name: str, length: int) -> str:
    """A name that fits; the whole of it stands in a table."""
    return name if len(name) <= length else name[: length - 1] + ELLIPSIS


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


WIDTH = 300.0
HEIGHT = 146.0
TOP = 14.0
BOTTOM = 18.0
MOST_BARS = 7
NAME_LENGTH = 13
BAR_LEFT = 98.0
BAR_RIGHT = 222.0
LINE = 20.0
MOST_TICKS = 5


@dataclass(frozen=True, slots=True)
class Series:
    """One column's shares twice over: what is compared with, and synthetic rows.

    ``doubt`` is how far the 95 % interval of the known noise reaches from each of ``given``; none
    means exact.
    """

    names: tuple[str, ...]
    ticks: tuple[str, ...]
    """At the edges of the bins, one more than these; or as many as bins, in their middles."""
    given: tuple[float, ...]
    synthetic: tuple[float, ...]
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A word on an axis."""

    place: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bars (or dots with whiskers) of what is compared with, and a stepped line over them."""

    bars: str
    dots: tuple[tuple[float, float], ...]
    whiskers: str
    line: str
    ticks: tuple[Tick, ...]
    top: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One category: two bars, or one bar and a whisker."""

    name: str
    y: float
    given: float
    synthetic: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class Categories:
    """The largest categories one below the other, the others together."""

    bars: tuple[Bar, ...]


def histogram(series: Series) -> Histogram:
    """A number's bins side by side, each as wide as the next."""
    reach = max(max(series.given) + series.doubt, max(series.synthetic), 1e-9)
    step = WIDTH / len(series.given)
    floor = HEIGHT - BOTTOM

    def height(share: float) -> float:
        return floor - (floor - TOP) * min(max(share, 0.0), reach) / reach

    tops = [height(share) for share in series.given]
    is_noisy = series.doubt > 0
    middles = [(i + 0.5) * step for i in range(len(tops))]
    return Histogram(
        bars="" if is_noisy else outline(tops, step, floor, is_closed=True),
        dots=tuple(zip(middles, tops, strict=True)) if is_noisy else (),
        whiskers="".join(
            f"M{place(x)} {place(height(share - series.doubt))}V{place(height(share + series.doubt))}"
            for x, share in zip(middles, series.given, strict=True)
        )
        if is_noisy
        else "",
        line=outline([height(share) for share in series.synthetic], step, floor, is_closed=False),
        ticks=_ticks(series.ticks, step, is_at_edges=len(series.ticks) > len(tops)),
        top=percent(reach),
    )


def outline(tops: Sequence[float], step: float, floor: float, *, is_closed: bool) -> str:
    """A stepped path over bins of equal width."""
    moves = [f"M0 {place(floor)}V{place(tops[0])}" if is_closed else f"M0 {place(tops[0])}"]
    for i, top in enumerate(tops):
        moves.append(f"V{place(top)}H{place((i + 1) * step)}")
    return "".join(moves) + (f"V{place(floor)}Z" if is_closed else "")


def _ticks(words: Sequence[str], step: float, *, is_at_edges: bool) -> tuple[Tick, ...]:
    """As many words as have room, the first and the last among them."""
    last = len(words) - 1
    if last < 1:
        return tuple(Tick(WIDTH / 2, word) for word in words)
    longest = max(map(len, words))
    room = max(1, min(MOST_TICKS - 1, int(WIDTH / (6.8 * (longest + 2))) - 1, last))
    picked = sorted({round(i * last / room) for i in range(room + 1)})
    if not is_at_edges:
        return tuple(Tick((i + 0.5) * step, words[i]) for i in picked)
    return tuple(Tick(i * step, words[i], "start" if i == 0 else "end" if i == last else "middle") for i in picked)


def categories(series: Series) -> Categories:
    """A choice's largest categories by what is compared with; small ones share the last bar."""
    largest = [max(shares) for shares in zip(series.given, series.synthetic, strict=True)]
    order = sorted((i for i, share in enumerate(largest) if share > 0), key=lambda i: -largest[i])
    kept = order if len(order) <= MOST_BARS else order[: MOST_BARS - 1]
    rows = [(series.names[i], series.given[i], series.synthetic[i], series.doubt) for i in kept]
    rest = order[len(kept) :]
    if rest:
        given = math.fsum(series.given[i] for i in rest)
        synthetic = math.fsum(series.synthetic[i] for i in rest)
        doubt = series.doubt * math.sqrt(len(rest))
        rows.append((f"{len(rest)} others", given, synthetic, doubt))
    reach = max((max(given + doubt, drawn) for _, given, drawn, doubt in rows), default=1)

    def length(share: float) -> float:
        return (BAR_RIGHT - BAR_LEFT) * min(max(share, 0.0) / (reach or 1.0), 1.0)

    return Categories(
        tuple(
            Bar(
                name=clipped(name, NAME_LENGTH),
                y=4 + i * LINE,
                given=length(given),
                synthetic=length(synthetic),
                low=BAR_LEFT + length(given - doubt),
                high=BAR_LEFT + length(given + doubt),
                text=f"{decimal(100 * given, 1)} / {decimal(100 * synthetic, 1)}",
            )
            for i, (name, given, synthetic, doubt) in enumerate(rows)
        )
    )


@dataclass(frozen=True, slots=True)
class LineChart:
    """Points joined by a line over a logarithmic axis, with levels to compare with."""

    points: tuple[tuple[float, float, str], ...]
    line: str
    levels: tuple[tuple[str, float], ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


LINE_WIDTH = 420.0
LINE_HEIGHT = 200.0
LINE_LEFT = 44.0
LINE_TOP = 12.0


def line_chart(points: Sequence[tuple[int, float]], levels: dict[str, float | None]) -> LineChart:
    """A score against the number of rows; ``levels`` are drawn right across."""
    kept = {name: level for name, level in levels.items() if level is not None}
    heights = [value for _, value in points] + list(kept.values())
    grid = round_steps(min(heights), max(heights))
    low, high = grid[0], grid[-1]
    first, last = (math.log(max(points[end][0], 1)) for end in (0, -1))
    floor, right = LINE_HEIGHT - 26, LINE_WIDTH - 18

    def across(rows: int) -> float:
        share = (math.log(max(rows, 1)) - first) / (last - first) if last > first else 0.5
        return LINE_LEFT + 14 + share * (right - LINE_LEFT - 28)

    def up(value: float) -> float:
        return floor - (value - low) / (high - low) * (floor - LINE_TOP)

    placed = [(across(rows), up(value), f"{rows:,}: {value:.3f}") for rows, value in points]
    return LineChart(
        points=tuple(placed),
        line="M" + "L".join(f"{place(x)} {place(y)}" for x, y, _ in placed),
        levels=tuple((name, up(level)) for name, level in kept.items()),
        across=_spread(tuple(Tick(across(rows), short(rows)) for rows, _ in points)),
        up=tuple(Tick(up(value), f"{value:.4g}", "end") for value in grid),
    )


def round_steps(low: float, high: float) -> list[float]:
    """Three to seven round numbers that begin below and end above."""
    rough = max(high - low, 1e-3 * max(abs(high), 1e-3)) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
    first, last = math.floor(low / step - 0.1), math.ceil(high / step + 0.1)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _spread(ticks: tuple[Tick, ...]) -> tuple[Tick, ...]:
    """Ticks without those that would touch the one before."""
    kept: list[Tick] = []
    for tick in reversed(ticks):  # the last one matters most
        if not kept or kept[-1].place - tick.place > 44:
            kept.append(tick)
    return tuple(reversed(kept))


def place(number: float) -> str:
    """A coordinate, to a tenth."""
    return f"{number:.1f}".removesuffix(".0")


# Heat maps: a matrix as one path for each shade, which stays small and follows the page's colours.

MOST_COLUMNS = 24
HEAT_NAME_LENGTH = 13
SHADES = 10
LARGEST_DIFFERENCE = 0.3
"""A difference of associations from which on the shade is the darkest."""

LARGEST_RESIDUAL = 3.0


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cells of one unit each, grouped by colour and shade."""

    names: tuple[str, ...]
    shades: tuple[tuple[str, int, str], ...]
    """A colour's name, how dark from 1 to 10, and the cells as a path."""

    @property
    def size(self) -> int:
        """Cells along a side."""
        return len(self.names)

    @property
    def room(self) -> float:
        """What the longest name takes beside and below the cells, of a picture 300 wide."""
        return 8 + 6.6 * max((len(name) for name in self.names), default=0)


def association_map(names: Sequence[str], matrix: Matrix) -> HeatMap:
    """Values from 0 to 1."""
    return _draw(names, matrix, lambda value: ("level", value * SHADES))


def difference_map(names: Sequence[str], real: Matrix, synthetic: Matrix) -> HeatMap:
    """Synthetic less real: ties that were lost, and ties that were made up."""
    apart = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(real, synthetic, strict=True)]
    return _draw(
        names, apart, lambda value: ("lost" if value < 0 else "made", abs(value) / LARGEST_DIFFERENCE * SHADES)
    )


def residual_map(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> HeatMap:
    """Sizes of standardised residuals: noise alone gives 1, which stays blank."""
    return _draw(names, matrix, lambda value: ("lost", (value - 1) / (LARGEST_RESIDUAL - 1) * SHADES))


def _draw(
    names: Sequence[str], matrix: Sequence[Sequence[float]], shade_of: Callable[[float], tuple[str, float]]
) -> HeatMap:
    found: dict[tuple[str, int], list[str]] = {}
    for y, row in enumerate(matrix):
        for x, value in enumerate(row):
            if x == y or not math.isfinite(value):
                continue
            colour, depth = shade_of(value)
            shade = min(SHADES, round(depth))
            if shade > 0:
                found.setdefault((colour, shade), []).append(f"M{x} {y}h1v1h-1z")
    return HeatMap(
        tuple(squeezed(name, HEAT_NAME_LENGTH) for name in names),
        tuple((*key, "".join(cells)) for key, cells in sorted(found.items())),
    )


def most_different(real: Matrix, synthetic: Matrix) -> list[int]:
    """Columns that fit a heat map: those whose ties differ most, in their own order."""
    sums = [
        math.fsum(abs(b - a) for a, b in zip(*rows, strict=True) if math.isfinite(b - a))
        for rows in zip(real, synthetic, strict=True)
    ]
    return sorted(sorted(range(len(sums)), key=lambda i: -sums[i])[:MOST_COLUMNS])


def chosen(matrix: Matrix, columns: Sequence[int]) -> Matrix:
    """The part of a matrix that concerns some columns."""
    return tuple(tuple(matrix[i][j] for j in columns) for i in columns)


# The templates of both reports. Every word that comes from a table or schema is escaped.


def render(template: str, values: dict[str, Any]) -> str:
    """A page as one piece of HTML that fetches nothing."""
    return str(_environment().get_template(template).render(values))


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("understudy.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(place=place, decimal=decimal, percent=percent, whole=whole)
    return environment
