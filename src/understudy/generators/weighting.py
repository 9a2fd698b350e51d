"""From noisy coordinates to weights on public points (Balog et al. 2018, Algorithm 1, lines 8 and 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, LossProgress
from understudy.errors import InputError
from understudy.features import KernelSums, Landmarks, Points
from understudy.features.pivots import COORDINATES, LOOK, seen_density
from understudy.generators.filtering import Filtered, filtered_mean
from understudy.generators.simplex import nearest_in_l1_ball
from understudy.generators.weighted import WeightedDatabase, weighted_database
from understudy.published import Release

LITTLE = 0.25
"""Share of the noise (in variance) that weights may put outside the span."""


@dataclass(frozen=True, slots=True)
class Weighting:
    """Public settings: which weights, and for bounded ones the bound and the steps of the search."""

    weights: str = "shrunk"
    bound: float = 1.0
    steps: int = 2000
    seed: int = 0


def weigh_points(release: Release, settings: Weighting, *, progress: LossProgress | None = None) -> WeightedDatabase:
    """Put weights on the public points of a release."""
    block = next(block for block in release.blocks if block.name == COORDINATES)
    map_ = block.map
    if not isinstance(map_, Landmarks):
        raise InputError("release", "has no coordinates of public points", "See balog-subspace")
    count = release.plan.num_rows or max(1.0, float(release.sums("count")[0, 0]))
    noisy = release.sums(COORDINATES)[0] / count
    noise = release.noise_std(COORDINATES) / count
    points, density = _candidates(release, map_)
    if settings.weights == "plain":
        points, weights = map_.spanning, map_.weights_of(noisy)
    else:
        features = map_.precise(points.cells)
        found = filtered_mean(noisy, noise, features, density / density.sum())
        if settings.weights == "bounded":
            weights = nearest_in_l1_ball(features, found.mean, settings.bound, steps=settings.steps, progress=progress)
        else:
            points, weights = _shrunk(map_, points, features, found, has_look=_has_look(release))
    if progress is not None and settings.weights != "bounded":
        progress(1, 1, float(noise**2 * len(noisy)))
    codes = points.codes(release.plan.layout)
    return weighted_database(release.plan.schema, codes, weights, release.plan.num_rows or round(count))


def _has_look(release: Release) -> bool:
    return any(block.name == LOOK for block in release.blocks)


def _candidates(release: Release, map_: Landmarks) -> tuple[Points, Floats]:
    """Points that may get weight, and how many rows are expected around each."""
    if not _has_look(release):
        return map_.points, np.ones(len(map_.points))
    look = release.reading_of(LOOK)
    source, seen = look.embedding.block(LOOK).map, seen_density(look)
    if not isinstance(source, KernelSums):
        raise InputError("release", "has a look of another kind", "Fetch it again")
    places = np.flatnonzero(seen)
    return source.points.take(places), seen[places]


def _shrunk(
    map_: Landmarks, points: Points, features: Floats, found: Filtered, *, has_look: bool
) -> tuple[Points, Floats]:
    """The weights of the estimated mean.

    Public points that are rows like the private ones are weighted anew, each by a smooth factor: as
    long as what that puts outside the span, where nothing was measured, is little beside the noise.
    Else, and for points that were looked for, the points that span the space get the weights.
    """
    if has_look:
        return map_.spanning, map_.weights_of(found.mean)
    lengths = (features**2).sum(axis=1) / map_.shortening**2
    outside = float(np.abs(found.weights - found.base) @ np.sqrt(np.maximum(1 - lengths, 0.0)))
    if outside**2 <= LITTLE * found.noise:
        return points, found.weights
    weights = found.base.copy()
    weights[list(map_.kept)] += map_.weights_of(found.move)
    return points, weights
