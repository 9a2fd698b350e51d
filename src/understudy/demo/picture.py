"""Real beside synthetic, column by column. It shows real rows: fine for a public table only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from understudy.errors import MissingExtraError
from understudy.schema import Column, Schema

REAL, SYNTHETIC = "#7a8794", "#0b6e4f"
NUM_BINS = 20


def draw_comparison(schema: Schema, real: Any, synthetic: Any, path: Path, *, epsilon: float) -> None:
    """Small multiples of every column's distribution, with its total variation distance."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError("matplotlib", "demo") from None
    across = min(5, len(schema.used))
    down = -(-len(schema.used) // across)
    figure = Figure(figsize=(2.6 * across, 2.2 * down + 0.7), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for axis in axes.flat[len(schema.used) :]:
        axis.axis("off")
    for axis, column in zip(axes.flat, schema.used, strict=False):
        names, shares = _shares(column, real[column.name], synthetic[column.name])
        places = np.arange(len(names))
        axis.bar(places, shares[0], width=0.9, color=REAL, alpha=0.55, label="real")
        axis.step(
            np.append(places - 0.5, places[-1] + 0.5),
            np.append(shares[1], shares[1][-1]),
            where="post",
            color=SYNTHETIC,
            linewidth=1.8,
            label="synthetic",
        )
        distance = 0.5 * np.abs(shares[0] - shares[1]).sum()
        axis.set_title(f"{column.name}  (distance {distance:.2f})", fontsize=9)
        axis.set_xticks(places[[0, -1]], [names[0], names[-1]], fontsize=8)
        axis.set_yticks([])
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes.flat[0].legend(fontsize=8, frameon=False)
    figure.suptitle(f"{schema.name}: real and synthetic rows at epsilon {epsilon:g}", fontsize=12)
    figure.savefig(path, dpi=110)


def _shares(column: Column, real: Any, synthetic: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Shares of the same bins or categories in both tables.  # (2, bins)"""
    if column.is_choice:
        counts = [
            np.asarray([np.sum(np.asarray(values) == category) for category in column.categories])
            for values in (real, synthetic)
        ]
        names = [str(category) for category in column.categories]
    else:
        low, high = column.low_high
        edges = np.linspace(low, high, NUM_BINS + 1)
        counts = [np.histogram(np.clip(values, low, high), edges)[0] for values in (real, synthetic)]
        names = [f"{edge:g}" for edge in edges[:-1]]
    shares = np.asarray(counts, dtype=float)
    return names, shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
