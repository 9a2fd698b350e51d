"""Public rules that settle feature maps by earlier noisy stages, by the names that plans give them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from understudy.features.embedding import Embedding
from understudy.rules.adaptive_bins import place_bins, place_bins_by_rows
from understudy.rules.clipping_norm import choose_clipping_norm, scale_by_histograms, split_classes
from understudy.rules.measurement import Measurement
from understudy.rules.pair_selection import select_pairs
from understudy.rules.pivots import choose_landmarks

Rule = Callable[[Measurement, Sequence[Measurement]], Embedding]
"""Settles a stage from all earlier ones. The first argument is the stage as planned, with its noise
and no vector yet; what comes out must have the sensitivity that was planned."""

RULES: dict[str, Rule] = {
    "scale-by-histograms": scale_by_histograms,
    "place-cells": place_bins,
    "place-cells-by-rows": place_bins_by_rows,
    "choose-pairs": select_pairs,
    "choose-landmarks": choose_landmarks,
    "place-reach": choose_clipping_norm,
    "split-classes": split_classes,
}
