"""Rules of single numbers and planes: length scales (dp-merf), clipping norm and class splits (dp-spectrum)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.arrays import Floats
from understudy.features.embedding import Embedding
from understudy.features.fourier import Fourier
from understudy.features.grid import Grid
from understudy.features.spectrum import Lengths, Sides, Spectrum
from understudy.rules.denoise import project_to_simplex
from understudy.rules.measurement import Measurement

HISTOGRAMS = "histograms"
LENGTHS = "lengths"
LOOK_MEANS = "look, means"
LOOK_SECONDS = "look, seconds"
"""Blocks: noisy histograms of numbers and of lengths, and a coarse first measurement of each class's moments."""

KEPT_SHARE = 0.85
"""Share of images that are not clipped: clipping a few costs less than noise in proportion to the longest."""


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
        return replace(map_, length_scales=scales)

    return target.with_maps(Fourier, rescaled)


def spreads(counts: Floats) -> Floats:
    """Standard deviation of the position in each noisy histogram, at least one bin wide."""
    kept = np.maximum(counts, 0.0) + 1e-9
    shares = kept / kept.sum(axis=1, keepdims=True)
    middles = (np.arange(counts.shape[1]) + 0.5) / counts.shape[1]
    means = shares @ middles
    variances = shares @ middles**2 - means**2
    return np.asarray(np.sqrt(np.maximum(variances, 1.0 / counts.shape[1] ** 2)))


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
