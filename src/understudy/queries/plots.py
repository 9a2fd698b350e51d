"""A picture of an answer: bars or points with their intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from understudy.errors import MissingExtraError, UsageError
from understudy.queries.answers import Answer

INK, ACCENT, SOFT = "#1f2430", "#2f6fb0", "#c9d9ea"
MOST_ROWS = 60


def draw_answer(answer: Answer, path: Path) -> None:
    """Draw estimates with their intervals into a file.

    Raises:
        UsageError: there are too many rows to be read.
        MissingExtraError: matplotlib is not installed.
    """
    if len(answer.rows) > MOST_ROWS:
        raise UsageError("plot", f"would have {len(answer.rows)} bars", "Ask about fewer groups")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    rows = answer.rows
    figure = Figure(figsize=(7.2, 1.2 + 0.3 * max(3, len(rows))), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    height = np.arange(len(rows))[::-1]
    middle = np.array([row.estimate for row in rows])
    low, high = (np.array([getattr(row, end) for row in rows]) for end in ("low", "high"))
    if answer.aggregate in ("count", "histogram", "share", "sum"):
        axes.barh(height, middle, color=SOFT, height=0.7)
    axes.hlines(height, low, high, color=ACCENT, linewidth=2)
    axes.plot(middle, height, "o", color=INK, markersize=4)
    axes.set_yticks(height, [row.words or answer.query for row in rows])
    axes.set_xlabel(f"estimate and {100 * answer.level:g} % interval")
    axes.set_title(answer.query, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=150, format="png")
