"""Public rules that settle feature maps by earlier noisy stages, by the names that plans give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from understudy.features.embedding import Embedding
from understudy.rules.adaptive_bins import (
    CELLS,
    COARSE_PAIRS,
    COLUMNS,
    MARGINALS,
    ROWS,
    place_bars,
    place_bins,
    place_bins_by_rows,
)
from understudy.rules.clipping_norm import choose_clipping_norm, scale_by_histograms, split_classes
from understudy.rules.measurement import Measurement
from understudy.rules.pair_selection import select_marginals
from understudy.rules.pivots import choose_landmarks

Rule = Callable[[Measurement, Sequence[Measurement]], Embedding]
"""Settles a stage from all earlier ones. The first argument is the stage as planned, with its noise
and no vector yet; what comes out must have the sensitivity that was planned."""

RULES: dict[str, Rule] = {
    "scale-by-histograms": scale_by_histograms,
    "place-bars": place_bars,
    "place-cells": place_bins,
    "place-cells-by-rows": place_bins_by_rows,
    "choose-pairs": select_marginals,
    "choose-landmarks": choose_landmarks,
    "place-reach": choose_clipping_norm,
    "split-classes": split_classes,
}

SETTLED_BLOCKS = {
    "place-bars": (ROWS, COLUMNS),
    "place-cells": ("count", COLUMNS, CELLS),
    "place-cells-by-rows": ("count", COLUMNS, CELLS, COARSE_PAIRS),
    "choose-pairs": ("count", COLUMNS, CELLS, MARGINALS),
}
"""Blocks that the stages up to a rule's own must have: a plan without them is refused before anything is charged."""
