"""What length of an image is reached to: the rule that reads a noisy histogram of lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.features.base import FeatureMap
from understudy.features.combine import Tensors
from understudy.features.embedding import Embedding
from understudy.features.spectrum import Lengths, Spectrum
from understudy.measurement import Measurement
from understudy.rules.denoise import project_to_simplex

LENGTHS = "lengths"
REACHED_SHARE = 0.85
"""The share of images that are not cut."""


def choose_clipping_norm(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Cut as few images as noise is worth: a rule that reads the noisy histogram of lengths."""
    first = earlier[0]
    lengths = first.embedding.block(LENGTHS).map
    if not isinstance(lengths, Lengths):
        raise TypeError("the earlier stage has no histogram of lengths")
    counts = first.sums(LENGTHS)[0]
    held = project_to_simplex(counts, max(float(counts.sum()), 1.0))
    place = int(np.searchsorted(np.cumsum(held), REACHED_SHARE * held.sum()))
    reach = float(lengths.edges[min(place, lengths.dim - 1)])

    def settled(map_: FeatureMap) -> FeatureMap:
        if isinstance(map_, Tensors):
            return replace(map_, factors=tuple(settled(factor) for factor in map_.factors))
        return replace(map_, reach=reach) if isinstance(map_, Spectrum) else map_

    blocks = tuple(replace(each, map=settled(each.map)) for each in planned.embedding.blocks)
    return replace(planned.embedding, blocks=blocks)
