"""Features to integers, with a norm check that no floating-point trick gets past."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from understudy.features import Sign
from understudy.features.embedding import kept_radius

Floats = npt.NDArray[np.float64]


def to_lattice(features: Floats, radius: int, *, sign: Sign = Sign.SIGNED) -> Floats:
    """Scale features by ``radius``, round them, and enforce norm and sign in exact integers.

    Args:
        features: any floats; a promise of norm at most 1 is not relied on.  # (num_rows, dim)
        radius: the largest integer norm allowed, at most 2^24.
        sign: unless it is signed, negative features are taken as zero; if it is constant, all
            rows get the same vector whatever the features are.

    Returns:
        Whole numbers, stored as float64 because they and their sums stay below 2^53, where
        float64 arithmetic is integer arithmetic.  # (num_rows, dim)

    Guarantee:
        Every row has sum of squares at most ``radius``^2, no negative entry unless ``sign``
        allows it, and depends on that row alone: each step is element-wise or an exact integer
        sum (proofs/lattice.md).
    """
    dim = features.shape[1]
    target = kept_radius(radius, dim)
    if sign is Sign.CONSTANT:
        return np.full(features.shape, np.rint(target / math.sqrt(dim)))
    whole = np.clip(features, -1.0 if sign is Sign.SIGNED else 0.0, 1.0)
    whole *= target
    np.rint(whole, out=whole)
    squares = _sum_of_squares(whole)
    broken = ~(squares <= radius**2)  # true for NaN as well
    if broken.any():
        whole[broken] = _shrunk(whole[broken], radius)
    return whole


def _shrunk(whole: Floats, radius: int) -> Floats:
    """Rows that broke the promise, pulled inside the ball; rows with NaN become zero."""
    whole = np.where(np.isnan(whole).any(axis=1, keepdims=True), 0.0, whole)
    coarse = np.floor(np.abs(whole) / 16).astype(np.int64)  # squares of these sum below 2^63
    norm = 16 * (np.sqrt(np.einsum("ij,ij->i", coarse, coarse)) + math.sqrt(whole.shape[1]))
    whole = np.trunc(whole * (radius / np.maximum(norm, radius))[:, None])
    whole[~(_sum_of_squares(whole) <= radius**2)] = 0.0
    return whole


def _sum_of_squares(whole: Floats) -> Floats:
    # Exact, in any order, as long as the result is below 2^53; above it, it is still above
    # any radius squared (at most 2^48), which is all that is asked.
    squares: Floats = np.einsum("ij,ij->i", whole, whole)
    return squares
