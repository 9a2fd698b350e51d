"""Weights of bounded absolute sum whose mean features are nearest to given ones."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from understudy.generators.descent import Progress

Floats = npt.NDArray[np.float64]


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


def nearest_in_l1_ball(
    features: Floats, target: Floats, bound: float, *, steps: int, progress: Progress | None = None
) -> Floats:
    """Minimise |features^T w - target| over weights with sum |w_m| <= bound (Theorem 11).

    Accelerated projected gradients with restarts (Beck & Teboulle 2009; O'Donoghue & Candès 2015).
    """
    step = 1 / max(float(np.linalg.norm(features, 2)) ** 2, 1e-300)
    weights = ahead = np.zeros(len(features))
    momentum = 1.0
    for count in range(steps):
        slope = features @ (features.T @ ahead - target)
        moved = project_to_l1_ball(ahead - step * slope, bound)
        if slope @ (moved - weights) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - weights)
        weights, momentum = moved, following
        if progress is not None and (count % 20 == 19 or count == steps - 1):
            gap = features.T @ weights - target
            progress(count + 1, steps, float(gap @ gap))
    return weights
