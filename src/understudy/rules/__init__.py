"""Feature maps that are settled by an earlier noisy release: public rules, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from understudy.features.embedding import Embedding
from understudy.features.fourier import Fourier
from understudy.features.grid import Grid
from understudy.rules.adaptive_bins import place_bins
from understudy.rules.clipping_norm import choose_clipping_norm, split_classes
from understudy.rules.measurement import Measurement
from understudy.rules.pair_selection import select_pairs
from understudy.rules.pivots import choose_landmarks

Rule = Callable[[Measurement, Sequence[Measurement]], Embedding]
"""Settles a stage from all earlier ones. The first argument is the stage as planned, with its noise
and no vector yet; what comes out must have the sensitivity that was planned."""

HISTOGRAMS = "histograms"


def scale_by_histograms(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Set each Fourier length scale from the spread that a noisy histogram shows.

    Scales are meant for a uniform column, whose standard deviation is 1 / sqrt(12); a column
    of another deviation gets them in proportion.
    """
    target, first = planned.embedding, earlier[-1]
    grid = first.embedding.block(HISTOGRAMS).map_of(Grid)
    counts = first.sums(HISTOGRAMS).reshape(len(grid.numbers), grid.num_bins)
    factor = dict(zip(grid.numbers, spreads(counts) * math.sqrt(12), strict=True))

    def rescaled(map_: Fourier) -> Fourier:
        own = zip(map_.length_scales, map_.numbers, strict=True)
        scales = tuple(scale * factor.get(number, 1.0) for scale, number in own)
        return replace(map_, length_scales=scales, cache={})

    return target.with_maps(Fourier, rescaled)


def spreads(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Standard deviation of the position in each noisy histogram, at least one bin wide."""
    kept = np.maximum(counts, 0.0) + 1e-9
    shares = kept / kept.sum(axis=1, keepdims=True)
    middles = (np.arange(counts.shape[1]) + 0.5) / counts.shape[1]
    means = shares @ middles
    variances = shares @ middles**2 - means**2
    found: npt.NDArray[np.float64] = np.sqrt(np.maximum(variances, 1.0 / counts.shape[1] ** 2))
    return found


RULES: dict[str, Rule] = {
    "scale-by-histograms": scale_by_histograms,
    "place-cells": place_bins,
    "choose-pairs": select_pairs,
    "choose-landmarks": choose_landmarks,
    "place-reach": choose_clipping_norm,
    "split-classes": split_classes,
}
