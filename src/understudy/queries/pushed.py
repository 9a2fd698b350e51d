"""Functions of a random variable: weights of an embedding carry over to the points f(x).

If sum_i w_i k(x_i, .) estimates the kernel mean embedding of X, then sum_i w_i k'(f(x_i), .)
estimates that of f(X), for continuous f and without any independence (Simon-Gabriel, Scibior,
Tolstikhin and Schoelkopf 2016, Theorem 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats

Kernel = Callable[[Floats, Floats], Floats]
"""Points and points to the matrix of their kernel values.  # (a, dim), (b, dim) -> (a, b)"""


@dataclass(frozen=True, eq=False)
class PushedForward:
    """Weighted points that stand for the distribution of f(X)."""

    points: Floats  # (count,) or (count, dim)
    weights: Floats  # (count,), of sum one

    @property
    def mean(self) -> Floats:
        """The expectation of f(X)."""
        return np.asarray(self.weights @ self.points)

    def then(self, function: Callable[[Floats], Floats]) -> PushedForward:
        """The distribution of g(f(X))."""
        return PushedForward(np.asarray(function(self.points), dtype=np.float64), self.weights)

    def embedding(self, kernel: Kernel, at: Floats) -> Floats:
        """The embedding of f(X), evaluated at points.  # (count, dim) -> (count,)"""
        return np.asarray(kernel(_rows(at), _rows(self.points)) @ self.weights)

    def distance(self, other: PushedForward, kernel: Kernel) -> float:
        """The maximum mean discrepancy between two distributions."""
        points = np.concatenate([_rows(self.points), _rows(other.points)])
        weights = np.concatenate([self.weights, -other.weights])
        return float(np.sqrt(max(0.0, weights @ kernel(points, points) @ weights)))


def gaussian(length_scale: float) -> Kernel:
    """The Gaussian kernel exp(-|x - y|^2 / (2 length_scale^2))."""

    def kernel(left: Floats, right: Floats) -> Floats:
        apart = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.exp(-apart / (2 * length_scale**2)))

    return kernel


def _rows(points: Floats) -> Floats:
    return points[:, None] if points.ndim == 1 else points
