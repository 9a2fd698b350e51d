"""Weights of bounded sum whose mean features are nearest to given ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, LossProgress

MANY_ROWS, MANY_STEPS, FEW_STEPS = 2048, 3000, 300
"""Up to so many rows steps are cheap and many; beyond, few."""

SMALLEST = 1e-10
POWERS, MARGIN = 30, 1.1


def project_to_l1_ball(weights: Floats, bound: float) -> Floats:
    """The nearest weights with an absolute sum of at most ``bound``."""
    sizes = np.abs(weights)
    if sizes.sum() <= bound:
        return weights
    ordered = np.sort(sizes)[::-1]
    excess = (np.cumsum(ordered) - bound) / np.arange(1, len(ordered) + 1)
    cut = excess[np.flatnonzero(ordered > excess)[-1]]
    found: Floats = np.sign(weights) * np.maximum(sizes - cut, 0.0)
    return found


def project_to_simplex(weights: Floats) -> Floats:
    """The nearest nonnegative weights of sum at most one."""
    return project_to_l1_ball(np.maximum(weights, 0.0), 1.0)


def nearest_in_l1_ball(
    features: Floats, target: Floats, bound: float, *, steps: int, progress: LossProgress | None = None
) -> Floats:
    """Minimise |features^T w - target| over weights with sum |w_m| <= bound (Theorem 11)."""
    return _descend(
        features,
        target,
        lambda weights: project_to_l1_ball(weights, bound),
        np.zeros(len(features)),
        steps=steps,
        progress=progress,
    )


def fit_nonnegative(features: npt.NDArray[Any], target: Floats, *, start: Floats | None = None) -> Floats:
    """Minimise |features^T w - target| over nonnegative weights of sum at most one."""
    first = project_to_simplex(np.zeros(len(features)) if start is None else start)
    if len(features) > MANY_ROWS:
        return _descend(features, target.astype(features.dtype), project_to_simplex, first, steps=FEW_STEPS)
    # All that matters of the features is their Gram matrix: a root of it is as good and smaller.
    exact = features.astype(np.float64)
    values, axes = np.linalg.eigh(exact @ exact.T)
    kept = values > SMALLEST * values[-1]
    root = axes[:, kept] * np.sqrt(values[kept])
    seen = (axes[:, kept].T @ (exact @ target)) / np.sqrt(values[kept])
    return _descend(root, seen, project_to_simplex, first, steps=MANY_STEPS)


def _descend(
    features: npt.NDArray[Any],
    target: npt.NDArray[Any],
    project: Callable[[Floats], Floats],
    start: Floats,
    *,
    steps: int,
    progress: LossProgress | None = None,
) -> Floats:
    """Accelerated projected gradients with restarts (Beck & Teboulle 2009; O'Donoghue & Candès 2015)."""
    step = 1 / max(_largest_square(features), 1e-300)
    weights = ahead = start
    momentum = 1.0
    for count in range(steps):
        slope = features @ (features.T @ ahead.astype(features.dtype) - target)
        moved = project(ahead - step * slope)
        if slope @ (moved - weights) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - weights)
        weights, momentum = moved, following
        if progress is not None and (count % 20 == 19 or count == steps - 1):
            gap = features.T @ weights - target
            progress(count + 1, steps, float(gap @ gap))
    return weights


def _largest_square(features: npt.NDArray[Any]) -> float:
    """An upper bound of the largest squared singular value, close to it."""
    vector = np.ones(len(features), dtype=features.dtype)
    for _ in range(POWERS):
        vector = features @ (features.T @ vector)
        size = float(np.linalg.norm(vector))
        if size == 0:
            return 0.0
        vector = vector / features.dtype.type(size)
    return MARGIN * size
