"""Accuracy against the number of synthetic rows that models learn from.

The point past which more rows teach nothing new is what the papers call the effective size of a
synthetic data set (DP-HP, Figure 3).
"""

from __future__ import annotations

import numpy as np

from understudy.evaluation.inputs import Examples
from understudy.evaluation.prediction import Outcome

SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
QUICK_SHARES = (0.01, 0.1)
FEWEST_ROWS = 50
PREFIX = "first "


def nested_parts(synthetic: Examples, *, shares: tuple[float, ...], seed: int) -> dict[str, Examples]:
    """Smaller and smaller parts of the rows, each inside the next; the whole is left out."""
    order = np.random.default_rng(seed).permutation(len(synthetic))
    sizes = sorted({round(share * len(synthetic)) for share in shares})
    return {f"{PREFIX}{size}": synthetic.take(order[:size]) for size in sizes if FEWEST_ROWS <= size < len(synthetic)}


def learning_curve(outcomes: list[Outcome], *, score: str, whole: str, num_rows: int) -> tuple[tuple[int, float], ...]:
    """Mean score over the models at every size, the whole synthetic set last."""
    found: dict[int, list[float]] = {}
    for outcome in outcomes:
        if outcome.training == whole:
            size = num_rows
        elif outcome.training.startswith(PREFIX):
            size = int(outcome.training.removeprefix(PREFIX))
        else:
            continue
        found.setdefault(size, []).append(outcome.scores[score])
    return tuple((size, float(np.mean(scores))) for size, scores in sorted(found.items()))
