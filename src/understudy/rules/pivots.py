"""Which of many public points to keep: a pivoted Cholesky factorisation that minds where rows are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.features.embedding import Embedding
from understudy.features.landmarks import Kernel, KernelSums, Landmarks, times_gram
from understudy.features.points import Points
from understudy.rules.measurement import Measurement

LOOK = "look"
COORDINATES = "coordinates"
"""Names of the blocks: noisy kernel sums at all points, and coordinates in the span of those kept."""

TOLERANCE = 1e-9
"""A point whose kernel lies so close to the span (squared distance) adds nothing but noise."""

NEGLIGIBLE = 1e-3
NEGLIGIBLE_WHERE_SEEN = 5.0
"""How far from the span other points may lie (mean squared distance, over the variance of all noise).
Given points are few, and rows lie further off than they do. Points where rows were seen stand for
them, and the mean of rows keeps a fiftieth of their mean squared distance (measured on mixtures)."""

CLEAR = 2.0
"""Standard deviations of noise above which a look has seen rows."""


def pivot_points(kernel: Kernel, points: Points, density: Floats, *, most: int) -> tuple[Integers, Floats]:
    """Points in the order in which they bring most of what the span lacks, where density is high.

    Args:
        kernel: its Gram matrix is factorised.
        points: the candidates.
        density: how much a point stands for; candidates with none are left out.  # (points,)
        most: how many points to pick at most.

    Returns:
        Their places, and after each the mean squared distance of a candidate (by density) to the
        span. It ends early once all candidates lie in it.
    """
    places = np.flatnonzero(density > 0)
    cells, share = points.cells[places], density[places] / density[places].sum()
    most = min(most, len(places))
    factor = np.zeros((len(places), most))
    residual = np.ones(len(places))
    sides = kernel.sides(cells)
    picked: list[int] = []
    left: list[float] = []
    for step in range(most):
        best = int(np.where(residual > TOLERANCE, residual * share, -1.0).argmax())
        if residual[best] <= TOLERANCE:
            break
        column = np.asarray(kernel.between(sides, kernel.sides(cells[best : best + 1])))[:, 0]
        column = column - factor[:, :step] @ factor[best, :step]
        factor[:, step] = column / math.sqrt(residual[best])
        residual = np.maximum(residual - factor[:, step] ** 2, 0.0)
        residual[best] = 0.0
        picked.append(best)
        left.append(float(share @ residual))
    return places[picked], np.asarray(left)


def enough_points(left: Floats, noise_of_mean: float, *, seen: bool) -> int:
    """How many pivots the noise deserves: what they leave out is then a small part of it."""
    counts = np.arange(1, len(left) + 1)
    share = NEGLIGIBLE_WHERE_SEEN if seen else NEGLIGIBLE
    small = left <= share * noise_of_mean**2 * counts
    return int(counts[small][0]) if small.any() else len(left)


def public_density(kernel: Kernel, points: Points) -> Floats:
    """How many points there are around each: where public points crowd, rows are expected."""
    return times_gram(kernel, points, np.ones(len(points)))[0]


def seen_density(look: Measurement) -> Floats:
    """Where a noisy look has seen rows: zero where noise explains what is there.

    A point counts by what stands out of the noise at itself, and by what stands out around it: an
    average over its neighbours has less noise.
    """
    map_ = look.embedding.block(LOOK).map_of(KernelSums)
    kernel, points = map_.kernel, map_.points
    sums, noise = look.sums(LOOK)[0], look.noise_of_sum(LOOK)
    images, squares = times_gram(kernel, points, np.stack([np.ones(len(sums)), sums], axis=1))
    crowd = images[:, 0]
    around, spread = images[:, 1] / crowd, np.sqrt(squares) / crowd
    seen = np.maximum(sums - CLEAR * noise, 0.0) + np.maximum(around - CLEAR * noise * spread, 0.0)
    return seen if seen.any() else crowd


def spanned_by(kernel: Kernel, points: Points) -> Landmarks:
    """Coordinates in the span of all the points."""
    return Landmarks(kernel, points, tuple(range(len(points))))


def choose_landmarks(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Keep the points where a noisy look has seen rows, as many as the noise of the next vector
    deserves and at most as many as were planned.
    """
    look = next(measurement for measurement in earlier if measurement.has(LOOK))
    block = planned.embedding.block(COORDINATES)
    source = look.embedding.block(LOOK).map_of(KernelSums)
    num_rows = max(1.0, float(look.sums("count")[0, 0]))
    places, left = pivot_points(source.kernel, source.points, seen_density(look), most=block.map.dim)
    noise = planned.noise_of_sum(COORDINATES) / num_rows
    kept = places[: enough_points(left, noise, seen=True)]
    return planned.embedding.with_map(COORDINATES, spanned_by(source.kernel, source.points.take(kept)))
