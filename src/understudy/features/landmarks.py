"""Landmark (Nyström) features: coordinates of rows in the span of public points' kernels, and plain kernel values.

Balog, Tolstikhin & Schölkopf 2018, Algorithm 1: with k(z_1, .) .. k(z_r, .) independent, an
orthonormal basis of their span gives every row x the coordinates L^-1 (k(z_1, x) .. k(z_r, x)),
where L L^T is the Gram matrix of the points. They are those of the projection of k(x, .) onto the
span, so their norm is at most sqrt k(x, x) = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import array_api_compat
import numpy as np
from scipy.linalg import cholesky, solve_triangular

from understudy.arrays import Floats
from understudy.features.base import MAP_KINDS, Array, FeatureMap, Sign
from understudy.features.kernels import Kernel, Side
from understudy.features.points import Points

KERNEL_BITS = 26
"""Bits of a kernel value; those of weights that a product of 52 bits has left are as many."""

JITTER = 1e-13
"""Added to the Gram matrix's diagonal, so that rounding does not stop the Cholesky factorisation."""

TRIANGLE_STEP = 96
"""Columns of a triangular matrix that are multiplied at a time: what lies beyond the diagonal is skipped."""

MOST_POWERS = 12
"""Power iterations for the bound on a Gram matrix's largest eigenvalue."""

GRAM_ENTRIES = 2**28
"""Kernel values that those iterations may compute in all."""


class _KernelAt:
    """Kernel values k(x, z_j) of rows at fixed points, whose side of the Gram matrix is computed once."""

    def __init__(self, kernel: Kernel, points: Points, *, single: bool = False) -> None:
        self._kernel, self._points, self._single = kernel, points, single
        self._ready: dict[str, tuple[Side, ...]] = {}

    def __call__(self, cells: Array) -> Array:
        xp = array_api_compat.array_namespace(cells)
        if xp.__name__ not in self._ready:
            self._ready[xp.__name__] = self._kernel.sides(xp.asarray(self._points.cells))
        there = self._ready[xp.__name__]
        return self._kernel.between(self._kernel.sides(cells), there, single=self._single)


@MAP_KINDS.register("landmarks")
@dataclass(frozen=True)
class Landmarks(FeatureMap):
    """Nyström features L^-1 k(z, x): coordinates of a row's kernel in the span of the kernels of landmarks.

    ``kept`` are the places of the points that span the space; the others are public points that go
    along, for weights to be put on.

    Guarantee:
        As for ``FeatureMap``. Kernel values are rounded to 26 bits and L^-1 to two matrices of
        whole numbers, so that both products are exact in any order; what rounding could add to the
        norm is taken off in advance (proofs/landmarks.md).
    """

    kernel: Kernel
    points: Points
    kept: tuple[int, ...]
    words = "coordinates in the span of public points"

    @property
    def dim(self) -> int:
        """One coordinate per point that spans the space."""
        return len(self.kept)

    @cached_property
    def spanning(self) -> Points:
        """The points that span the space."""
        return self.points.take(self.kept)

    @property
    def sign(self) -> Sign:
        """Two rows' projections may point apart, even where the kernel is positive."""
        return Sign.SIGNED

    @cached_property
    def _inverse(self) -> Floats:
        """L^-1, where L L^T is the Cholesky factorisation of the landmarks' Gram matrix."""
        gram = np.asarray(self.kernel(self.spanning.cells, self.spanning.cells))
        lower = cholesky(gram + JITTER * np.eye(len(gram)), lower=True)
        found: Floats = np.tril(solve_triangular(lower, np.eye(len(gram)), lower=True))
        return found

    @cached_property
    def shortening(self) -> float:
        """The factor that keeps norms at most 1 although kernel values are rounded.

        Rounding moves k(x) by ``rounding`` at most, and so coordinates by that times the spectral norm of L^-1.
        """
        rounding = math.sqrt(self.dim) * 2.0 ** -(KERNEL_BITS + 1)
        return 1 / (1 + 2 * rounding * float(np.linalg.norm(self._inverse, 2)))

    def precise(self, cells: Floats) -> Floats:
        """Coordinates of rows that need no protection, without rounding.  # (num_rows, dim)"""
        found: Floats = np.asarray(self._kernel_at(cells)) @ self._inverse.T * self.shortening
        return found

    def weights_of(self, coordinates: Floats) -> Floats:
        """Weights on the points that span the space, of the element with these coordinates."""
        found: Floats = self._inverse.T @ coordinates / self.shortening
        return found

    @cached_property
    def _whole_parts(self) -> tuple[tuple[Floats, float], tuple[Floats, float]]:
        """The inverse, transposed, as a coarse and a fine matrix of whole numbers and their units.

        A column's absolute entries sum to 2^26 at most, kernel values are at most 2^26.
        """
        weights = self._inverse.T * self.shortening
        coarse_unit = 2.0 ** (KERNEL_BITS - 1 - _bits(np.abs(weights).sum(axis=0).max()))
        coarse = np.rint(weights * coarse_unit)
        rest = weights - coarse / coarse_unit
        fine_unit = 2.0 ** (KERNEL_BITS - 1 - _bits(np.abs(rest).sum(axis=0).max() + 2.0**-900))
        fine = np.rint(rest * min(fine_unit, 2.0**80))
        return (coarse, coarse_unit), (fine, min(fine_unit, 2.0**80))

    @cached_property
    def _kernel_at(self) -> _KernelAt:
        return _KernelAt(self.kernel, self.spanning)

    def __call__(self, cells: Array) -> Array:
        """Coordinates of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        whole = xp.round(self._kernel_at(cells) * 2.0**KERNEL_BITS)
        (coarse, coarse_unit), (fine, fine_unit) = self._whole_parts
        found = []
        for start in range(0, self.dim, TRIANGLE_STEP):  # of a triangle, half is zero
            stop = min(start + TRIANGLE_STEP, self.dim)
            used, own = whole[:, :stop], (slice(None, stop), slice(start, stop))
            # Both products are exact and so are their scalings; one addition rounds, entry by entry.
            first = (used @ xp.asarray(coarse[own])) * (2.0**-KERNEL_BITS / coarse_unit)
            second = (used @ xp.asarray(fine[own])) * (2.0**-KERNEL_BITS / fine_unit)
            found.append(first + second)
        return xp.astype(xp.concat(found, axis=1), cells.dtype)


@MAP_KINDS.register("kernel-sums")
@dataclass(frozen=True)
class KernelSums(FeatureMap):
    """A row's kernel values at many points, over ``reach``: sums are the mean embedding evaluated at the points.

    k(x)^T K^-1 k(x) <= k(x, x) = 1 for the Gram matrix K, so |k(x)|^2 is at most K's largest
    eigenvalue; ``reach`` is the root of an upper bound of that. No product of matrices is needed,
    so there may be many points; in exchange noise is ``reach`` times that of ``Landmarks``.
    """

    kernel: Kernel
    points: Points
    reach: float
    words = "kernel values at public points"

    @property
    def dim(self) -> int:
        """One value per point."""
        return len(self.points)

    @property
    def sign(self) -> Sign:
        """Kernel values are never negative."""
        return Sign.NONNEGATIVE

    @cached_property
    def _kernel_at(self) -> _KernelAt:
        return _KernelAt(self.kernel, self.points, single=True)

    def __call__(self, cells: Array) -> Array:
        """Scaled kernel values.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        return xp.astype(self._kernel_at(cells) / self.reach, cells.dtype)


def kernel_sums(kernel: Kernel, points: Points) -> KernelSums:
    """Kernel values at points, with a proved bound on their norm by power iteration.

    For a matrix K without negative entries and any positive v, the largest eigenvalue is at most
    max_i (K v)_i / v_i (Collatz-Wielandt), and powers of K bring the two together.
    """
    vector = np.ones(len(points))
    steps = max(2, min(MOST_POWERS, GRAM_ENTRIES // len(points) ** 2))
    for _ in range(steps):
        image, _ = times_gram(kernel, points, vector)
        bound = float((image / vector).max())
        vector = np.maximum(image / image.max(), 1e-6)
    return KernelSums(kernel, points, math.sqrt(bound) * (1 + 1e-6))


def times_gram(kernel: Kernel, points: Points, vectors: Floats) -> tuple[Floats, Floats]:
    """The Gram matrix times vectors, and the sums of its squared rows; a block of rows at a time."""
    sides = kernel.sides(points.cells)
    step = max(1, 2**20 // len(points))
    images, squares = [], []
    for start in range(0, len(points), step):
        block = kernel.sides(points.cells[start : start + step])
        gram = np.asarray(kernel.between(block, sides, single=True), dtype=np.float64)
        images.append(gram @ vectors)
        squares.append(np.einsum("ij,ij->i", gram, gram))
    return np.concatenate(images), np.concatenate(squares)


def _bits(value: float) -> int:
    """The exponent of the smallest power of two that is not below a value."""
    return math.ceil(math.log2(value))
