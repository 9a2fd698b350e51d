"""Public rules that settle feature maps by earlier noisy stages, by the names that plans give them."""

from __future__ import annotations

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
from understudy.rules.measurement import Rule
from understudy.rules.pair_selection import select_marginals
from understudy.rules.pivots import choose_landmarks
from understudy.rules.spikes import and_spikes

RULES: dict[str, Rule] = {
    "scale-by-histograms": scale_by_histograms,
    "place-bars": place_bars,
    "place-cells": and_spikes(place_bins),
    "place-cells-by-rows": and_spikes(place_bins_by_rows),
    "choose-pairs": and_spikes(select_marginals),
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
