"""Answers: a table of estimates with their errors, and where they come from."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import MissingExtraError, UsageError
from understudy.schema.columns import EPOCH

LEVEL = 0.95
"""How often intervals hold unless it is said otherwise."""

MICROSECONDS_PER_DAY = 86_400e6  # days are what people take differences of dates in
CLIPPED = "moved inside the bounds, as asked: no longer unbiased"


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number of an answer.

    ``std_error`` is the deviation of the noise alone (of a quantile: its interval's half over the
    normal factor); ``low`` and ``high`` bound the data set's own
    value at the answer's level. ``is_exact`` says that cells express the question exactly, so that
    noise is all that separates estimate and truth.
    """

    group: tuple[tuple[str, str], ...]
    estimate: float
    std_error: float
    low: float
    high: float
    is_exact: bool = True

    @property
    def plus_minus(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2

    def changed(self, change: Callable[[float], float]) -> Estimate:
        """The same with its estimate and the ends of its interval changed alike."""
        return replace(self, estimate=change(self.estimate), low=change(self.low), high=change(self.high))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a release says of a query.

    ``unit`` is ``date`` where numbers are days since 1970. ``bounds`` are between what, whatever the
    rows, the truth must lie. ``is_model`` marks answers that rest on a
    fitted generator or on assumptions, whose intervals cover only what is known.
    """

    query: str
    aggregate: str
    rows: tuple[Estimate, ...]
    source: str
    level: float = LEVEL
    unit: str = ""
    is_model: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    notes: tuple[str, ...] = ()

    @property
    def only(self) -> Estimate:
        """The one estimate of a query without groups."""
        if len(self.rows) != 1:
            raise ValueError("the answer has several rows")
        return self.rows[0]

    @property
    def is_exact(self) -> bool:
        """Whether noise is all that separates every estimate from the truth."""
        return not self.is_model and all(row.is_exact for row in self.rows)

    def clipped(self) -> Answer:
        """The same with estimates and intervals inside public ``bounds``; no longer unbiased."""
        least, most = self.bounds
        rows = tuple(row.changed(lambda value: min(max(value, least), most)) for row in self.rows)
        return replace(self, rows=rows, notes=(*self.notes, CLIPPED))

    def in_days(self) -> Answer:
        """Moments, given in microseconds, in days since 1970, which a float holds to the second."""

        def days(value: float) -> float:
            return value / MICROSECONDS_PER_DAY

        rows = tuple(replace(row.changed(days), std_error=days(row.std_error)) for row in self.rows)
        return replace(self, rows=rows, bounds=(days(self.bounds[0]), days(self.bounds[1])), unit="date")

    def shown(self, number: float) -> str:
        """A number in words."""
        if self.unit != "date":
            return plain(number)
        try:
            moment = EPOCH + dt.timedelta(days=number)
        except OverflowError:
            return f"{number:,.1f} days since 1970"
        return moment.date().isoformat()

    def shown_width(self, width: float) -> str:
        """A deviation in words."""
        return f"{plain(width)} days" if self.unit == "date" else plain(width)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a number that is not known is null."""
        rows = [
            {name: _finite(value) for name, value in asdict(row).items()}
            | {"group": dict(row.group), "plus_minus": _finite(row.plus_minus)}
            for row in self.rows
        ]
        return {
            "query": self.query,
            "aggregate": self.aggregate,
            "level": self.level,
            "unit": self.unit,
            "exact": self.is_exact,
            "model_based": self.is_model,
            "source": self.source,
            "notes": list(self.notes),
            "rows": rows,
        }

    def to_table(self) -> pa.Table:
        """As an Arrow table: a column for each grouping, then the numbers."""
        rows = [asdict(row) for row in self.rows]
        return pa.Table.from_pylist([dict(row.pop("group")) | row for row in rows])


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(number: float) -> str:
    """A number with about four figures, thousands parted."""
    if not math.isfinite(number):
        return "unknown"
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 100 else f"{number:.4g}"


# A picture of an answer: bars or points with their intervals.

INK = "#1f2430"
ACCENT = "#2f6fb0"
SOFT = "#c9d9ea"
MOST_ROWS = 60  # groups that a picture has room for


def draw_answer(answer: Answer, path: Path) -> None:
    """Draw estimates with their intervals into a file.

    Raises:
        UsageError: there are too many rows to be read.
        MissingExtraError: matplotlib is not installed.
    """
    if len(answer.rows) > MOST_ROWS:
        raise UsageError("plot", f"would have {len(answer.rows)} bars", "Ask about fewer groups")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    rows = answer.rows
    figure = Figure(figsize=(7.2, 1.2 + 0.3 * max(3, len(rows))), layout="constrained")
    axes = figure.add_subplot()
    height = np.arange(len(rows))[::-1]
    middle = np.array([row.estimate for row in rows])
    low, high = (np.array([getattr(row, end) for row in rows]) for end in ("low", "high"))
    if answer.aggregate in ("count", "histogram", "share", "sum"):
        axes.barh(height, middle, color=SOFT, height=0.7)
    axes.hlines(height, low, high, color=ACCENT, linewidth=2)
    axes.plot(middle, height, "o", color=INK, markersize=4)
    axes.set_yticks(height, [", ".join(value for _, value in row.group) or answer.query for row in rows])
    axes.set_xlabel(f"estimate and {100 * answer.level:g} % interval")
    axes.set_title(answer.query, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=150, format="png")
