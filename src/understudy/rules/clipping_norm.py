"""Rules of dp-spectrum: the norm that images are clipped to, and the planes that classes are split by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.arrays import Floats
from understudy.features.embedding import Embedding
from understudy.features.spectrum import Lengths, Sides, Spectrum
from understudy.rules.denoise import project_to_simplex
from understudy.rules.measurement import Measurement

LENGTHS = "lengths"
LOOK_MEANS = "look, means"
LOOK_SECONDS = "look, seconds"
"""Blocks: a noisy histogram of lengths, and a coarse first measurement of each class's moments."""

KEPT_SHARE = 0.85
"""Share of images that are not clipped: clipping a few costs less than noise in proportion to the longest."""


def choose_clipping_norm(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Clip images at a quantile of their length, as the noisy histogram of lengths shows it (a rule of ``RULES``)."""
    first = earlier[0]
    lengths = first.embedding.block(LENGTHS).map_of(Lengths)
    counts = first.sums(LENGTHS)[0]
    held = project_to_simplex(counts, max(float(counts.sum()), 1.0))
    place = int(np.searchsorted(np.cumsum(held), KEPT_SHARE * held.sum()))
    reach = float(lengths.edges[min(place, lengths.dim - 1)])
    return planned.embedding.with_maps(Spectrum, lambda map_: replace(map_, reach=reach))


def split_classes(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Put each class's planes through its noisy mean, across the directions in which it varies most.

    The reach is settled as without planes.
    """
    look = earlier[-1]
    spectrum = look.embedding.block(LOOK_MEANS).map_of(Spectrum)
    counts = np.maximum(earlier[0].sums("count")[:, 0], 1.0)
    means = look.sums(LOOK_MEANS) / counts[:, None]
    dim = means.shape[1]
    seconds = look.sums(LOOK_SECONDS).reshape(-1, dim, dim) / counts[:, None, None]

    def split(map_: Sides) -> Sides:
        normals, offsets = _planes(means, seconds, map_.num_planes)
        scaled = (normals / spectrum.reach).tolist()
        return replace(map_, normals=tuple(map(tuple, scaled)), offsets=tuple(offsets))

    return choose_clipping_norm(planned, earlier).with_maps(Sides, split)


def _planes(means: Floats, seconds: Floats, count: int) -> tuple[Floats, list[float]]:
    """Directions of most variance, and where the mean lies in them.  # (classes * count, dim)"""
    normals, offsets = [], []
    for mean, second in zip(means, seconds, strict=True):
        _, vectors = np.linalg.eigh((second + second.T) / 2 - np.outer(mean, mean))
        for direction in vectors.T[::-1][:count]:
            normals.append(direction)
            offsets.append(float(direction @ mean))
    return np.stack(normals), offsets
