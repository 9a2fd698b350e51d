"""Where a class of images is split: the rule that reads a first, coarse look at its moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.arrays import Floats
from understudy.features.base import FeatureMap
from understudy.features.combine import Tensors
from understudy.features.embedding import Embedding
from understudy.features.spectrum import Sides, Spectrum
from understudy.measurement import Measurement
from understudy.rules.clipping_norm import choose_clipping_norm

LOOK_MEANS = "look, means"
LOOK_SECONDS = "look, seconds"


def split_classes(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Put each class's planes through its noisy mean, across the directions in which it varies most.

    The reach is settled as without planes.
    """
    look = earlier[-1]
    spectrum = look.embedding.block(LOOK_MEANS).map
    if not isinstance(spectrum, Spectrum):
        raise TypeError("the earlier stage has not looked at a spectrum")
    counts = np.maximum(earlier[0].sums("count")[:, 0], 1.0)
    means = look.sums(LOOK_MEANS) / counts[:, None]
    dim = means.shape[1]
    seconds = look.sums(LOOK_SECONDS).reshape(-1, dim, dim) / counts[:, None, None]

    def settled(map_: FeatureMap) -> FeatureMap:
        if isinstance(map_, Tensors):
            return replace(map_, factors=tuple(settled(factor) for factor in map_.factors))
        if not isinstance(map_, Sides):
            return map_
        normals, offsets = _planes(means, seconds, map_.num_planes)
        scaled = (normals / spectrum.reach).tolist()
        return replace(map_, normals=tuple(map(tuple, scaled)), offsets=tuple(offsets))

    embedding = choose_clipping_norm(planned, earlier)
    blocks = tuple(replace(each, map=settled(each.map)) for each in embedding.blocks)
    return replace(embedding, blocks=blocks)


def _planes(means: Floats, seconds: Floats, count: int) -> tuple[Floats, list[float]]:
    """Directions of most variance, and where the mean lies in them.  # (classes * count, dim)"""
    normals, offsets = [], []
    for mean, second in zip(means, seconds, strict=True):
        _, vectors = np.linalg.eigh((second + second.T) / 2 - np.outer(mean, mean))
        for direction in vectors.T[::-1][:count]:
            normals.append(direction)
            offsets.append(float(direction @ mean))
    return np.stack(normals), offsets
