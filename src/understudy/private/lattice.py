"""Rounding of feature vectors to the integer lattice, with their norm clipped in exact integer arithmetic.

Sensitivity is then a bound on integers: no floating-point rounding can exceed it (Mironov 2012; proofs/lattice.md).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats
from understudy.features import Norm, Sign
from understudy.features.embedding import kept_radius


def to_lattice(
    features: Floats, radius: int, *, sign: Sign = Sign.SIGNED, norm: Norm = Norm.L2, nonzeros: int | None = None
) -> Floats:
    """Scale features by ``radius``, round them, and enforce norm and sign in exact integers.

    Args:
        features: any floats; a promise of norm at most 1 is not relied on.  # (num_rows, dim)
        radius: the largest integer norm allowed, at most 2^24 (L1: at most 2^32).
        sign: unless it is signed, negative features are taken as zero; if it is constant, all
            rows get the same vector whatever the features are.
        norm: which norm of a row is held to the radius.
        nonzeros: features of an honest row that are not zero, for L1; by default all.

    Returns:
        Whole numbers, stored as float64 because they and their sums stay below 2^53, where
        float64 arithmetic is integer arithmetic.  # (num_rows, dim)

    Guarantee:
        Every row has a norm of at most ``radius``, no negative entry unless ``sign``
        allows it, and depends on that row alone: each step is element-wise or an exact integer
        sum (proofs/lattice.md).
    """
    dim = features.shape[1]
    target = kept_radius(radius, dim, norm, nonzeros)
    if sign is Sign.CONSTANT:
        return inside(np.full(features.shape, np.rint(target / math.sqrt(dim))), radius, norm)
    whole = np.clip(features, -1.0 if sign is Sign.SIGNED else 0.0, 1.0)
    whole *= target
    np.rint(whole, out=whole)
    return inside(whole, radius, norm)


def inside(whole: Floats, radius: int, norm: Norm) -> Floats:
    """Whole numbers with every row's norm at most ``radius``; rows that are longer are pulled in."""
    broken = ~_is_inside(whole, radius, norm)
    if broken.any():
        whole[broken] = _shrunk(whole[broken], radius, norm)
    return whole


def _shrunk(whole: Floats, radius: int, norm: Norm) -> Floats:
    """Rows that broke the promise, pulled inside the ball; rows with NaN become zero."""
    whole = np.where(np.isnan(whole).any(axis=1, keepdims=True), 0.0, whole)
    if norm is Norm.L1:
        length = np.maximum(np.abs(whole).sum(axis=1) * (1 + 1e-9), 1.0)
    else:
        coarse = np.floor(np.abs(whole) / 16).astype(np.int64)  # squares of these sum below 2^63
        length = 16 * (np.sqrt(np.einsum("ij,ij->i", coarse, coarse)) + math.sqrt(whole.shape[1]))
    whole = np.trunc(whole * (radius / np.maximum(length, radius))[:, None])
    whole[~_is_inside(whole, radius, norm)] = 0.0
    return whole


def _is_inside(whole: Floats, radius: int, norm: Norm) -> npt.NDArray[np.bool_]:
    """Whether the norm of each row is at most the radius; never for NaN.

    Exact, in any order, as long as sums are below 2^53; above it, they are still above
    any radius (L1: at most 2^32) or its square (at most 2^48), which is all that is asked.
    """
    if norm is Norm.L1:
        return np.asarray(np.abs(whole).sum(axis=1) <= radius)
    return np.asarray(np.einsum("ij,ij->i", whole, whole) <= radius**2)
