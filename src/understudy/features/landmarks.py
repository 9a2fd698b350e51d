"""Kernels over the cells of a row, and landmark (Nyström) features: coordinates of rows in the span of public points'
kernels, and plain kernel values.

A kernel is an average of terms, and a term a product over some columns: a radial (or Laplace)
kernel of its numbers, times, for every choice, 1 where two rows agree and ``mismatch`` where they
do not. A null is one more value of a choice. So one term over all columns is a product kernel, and
one term per column a sum kernel. Every kernel here has k(x, x) = 1.

Balog, Tolstikhin & Schölkopf 2018, Algorithm 1: with k(z_1, .) .. k(z_r, .) independent, an
orthonormal basis of their span gives every row x the coordinates L^-1 (k(z_1, x) .. k(z_r, x)),
where L L^T is the Gram matrix of the points. They are those of the projection of k(x, .) onto the
span, so their norm is at most sqrt k(x, x) = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

import array_api_compat
import numpy as np
from scipy.linalg import cholesky, solve_triangular

from understudy.arrays import Floats
from understudy.features.base import MAP_KINDS, Array, FeatureMap, Sign
from understudy.features.points import Points

SHAPES = ("gaussian", "laplace", "matern12", "matern32", "matern52")
"""Laplace is the product of one-dimensional exponentials, Matérn 1/2 the exponential of the
Euclidean distance; in one dimension they are the same."""

EXACT_BITS = 50
"""Bits of the largest squared distance on the grid: |x|^2 + |y|^2 - 2 x.y then stays below 2^53, exact in float64."""

FEW_NUMBERS = 8
"""Up to so many numbers, distances column by column are faster than a product of matrices."""

LEAST_MISMATCH = 2.0**-60
"""What stands for a mismatch of zero: far below any rounding, and its logarithm is finite."""

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


@dataclass(frozen=True, slots=True)
class Term:
    """A product over columns: ``numbers`` are cells, with length scales in units of the columns'
    ranges; ``spans`` are the cells of choices.
    """

    numbers: tuple[int, ...]
    length_scales: tuple[float, ...]
    spans: tuple[tuple[int, int], ...] = ()
    mismatch: float = 0.0

    def __post_init__(self) -> None:
        if len(self.numbers) != len(self.length_scales) or not (self.numbers or self.spans):
            raise ValueError("a term has a column, and every number a length scale")
        if not all(scale > 0 for scale in self.length_scales) or not 0 <= self.mismatch < 1:
            raise ValueError("length scales are positive, and a mismatch lies below 1")

    @property
    def grid(self) -> float:
        """Steps per length scale at which positions are rounded, a power of two.

        Squared distances of positions in [0, 1] are then whole numbers below 2^52, so products of
        matrices give them exactly, whatever the blocking.
        """
        reach = sum(scale**-2.0 for scale in self.length_scales)
        return 2.0 ** math.floor((EXACT_BITS - math.log2(reach)) / 2) if self.numbers else 1.0


class Side(NamedTuple):
    """One operand of a Gram matrix: what a term needs of one set of rows, computed once."""

    positions: Array  # (num_rows, numbers); for Laplace, over the length scales
    members: Array  # (num_rows, cells of the choices)


@dataclass(frozen=True)
class Kernel:
    """k(x, y), the mean of its terms.

    Guarantee:
        k(x, x) = 1, and k(x, y) depends on the cells of x and y alone, bit for bit: whole numbers
        below 2^53 in matrix products, and element-wise functions (proofs/landmarks.md).
    """

    shape: str
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if self.shape not in SHAPES or not self.terms:
            raise ValueError("a kernel has a known shape and a term")

    def sides(self, cells: Array) -> tuple[Side, ...]:
        """Precompute one operand; worth keeping if it meets many others."""
        xp = array_api_compat.array_namespace(cells)
        return tuple(self._side(xp, xp.astype(cells, xp.float64), term) for term in self.terms)

    def __call__(self, left: Array, right: Array, *, single: bool = False) -> Array:
        """The cross-Gram matrix k(x_i, y_j).  # (left, right)"""
        return self.between(self.sides(left), self.sides(right), single=single)

    def between(self, left: tuple[Side, ...], right: tuple[Side, ...], *, single: bool = False) -> Array:
        """The cross-Gram matrix of precomputed operands; in single precision it takes a third of the time."""
        operands = zip(self.terms, left, right, strict=True)
        total = reduce(add, (self._term(term, one, other, single=single) for term, one, other in operands))
        return total / len(self.terms) if len(self.terms) > 1 else total

    def _side(self, xp: Any, cells: Array, term: Term) -> Side:
        parts = [cells[:, start:stop] for start, stop in term.spans] or [cells[:, :0]]
        members = xp.concat(parts, axis=1)
        numbers = xp.stack([cells[:, j] for j in term.numbers], axis=1) if term.numbers else cells[:, :0]
        scales = xp.asarray(list(term.length_scales), dtype=xp.float64)
        positions = numbers / scales
        if self.shape != "laplace":
            positions = xp.round(positions * term.grid)
        return Side(positions, members)

    def _term(self, term: Term, one: Side, other: Side, *, single: bool) -> Array:
        xp = array_api_compat.array_namespace(one.positions)
        parts = [self._distances(term, one, other)] if term.numbers else []
        parts += [_differences(term, one, other)] if term.spans else []
        parts = [xp.astype(part, xp.float32) for part in parts] if single else parts
        value = xp.exp(-(parts[0] if len(parts) == 1 else parts[0] + parts[1]))
        polynomial = MATERN.get(self.shape, (1.0, None))[1]
        return value * polynomial(parts[0]) if polynomial and term.numbers else value

    def _distances(self, term: Term, one: Side, other: Side) -> Array:
        """The exponent of the numbers' kernel: a distance or half a squared one."""
        xp = array_api_compat.array_namespace(one.positions)
        columns = range(len(term.numbers))
        if self.shape == "laplace":
            return sum(xp.abs(_gaps(one, other, j)) for j in columns)
        if len(term.numbers) <= FEW_NUMBERS:
            total = reduce(add, (_gaps(one, other, j) ** 2 for j in columns))
        else:
            products = one.positions @ other.positions.T
            total = _of_both(one.positions, other.positions) - 2 * products
        if self.shape == "gaussian":
            return total * (0.5 / term.grid**2)
        return xp.sqrt(total) * (MATERN[self.shape][0] / term.grid)


def _gaps(one: Side, other: Side, number: int) -> Array:
    return one.positions[:, number][:, None] - other.positions[:, number][None, :]


def _of_both(one: Array, other: Array) -> Array:
    """The sum of two rows' squared lengths.  # (left, right)"""
    return (one * one).sum(1)[:, None] + (other * other).sum(1)[None, :]


def _differences(term: Term, one: Side, other: Side) -> Array:
    """-log of the mismatch for every choice in which two rows differ, half of it if one of them has
    no listed value. Memberships are 0 or 1, so sums and products are exact.
    """
    agreeing = one.members @ other.members.T
    apart = 0.5 * _of_both(one.members, other.members) - agreeing
    return apart * -math.log(max(term.mismatch, LEAST_MISMATCH))


MATERN: dict[str, tuple[float, Callable[[Array], Array] | None]] = {
    "matern12": (1.0, None),
    "matern32": (math.sqrt(3), lambda t: 1.0 + t),
    "matern52": (math.sqrt(5), lambda t: 1.0 + t + t * t / 3),
}
"""Matérn kernels of half-integer order p + 1/2 are exp(-t) times a polynomial of degree p in t = sqrt(2 p + 1) r
(Rasmussen & Williams 2006, eq. 4.16): the factor of r, and the polynomial unless it is 1."""


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
    sign = Sign.SIGNED  # two rows' projections may point apart, even where the kernel is positive

    @property
    def dim(self) -> int:
        """One coordinate per point that spans the space."""
        return len(self.kept)

    @cached_property
    def spanning(self) -> Points:
        """The points that span the space."""
        return self.points.take(self.kept)

    @cached_property
    def _inverse(self) -> Floats:
        """L^-1, where L L^T is the Cholesky factorisation of the landmarks' Gram matrix."""
        gram = np.asarray(self.kernel(self.spanning.cells, self.spanning.cells))
        lower = cholesky(gram + JITTER * np.eye(len(gram)), lower=True)
        return np.asarray(np.tril(solve_triangular(lower, np.eye(len(gram)), lower=True)))

    @cached_property
    def shortening(self) -> float:
        """The factor that keeps norms at most 1 although kernel values are rounded.

        Rounding moves k(x) by ``rounding`` at most, and so coordinates by that times the spectral norm of L^-1.
        """
        rounding = math.sqrt(self.dim) * 2.0 ** -(KERNEL_BITS + 1)
        return 1 / (1 + 2 * rounding * float(np.linalg.norm(self._inverse, 2)))

    def precise(self, cells: Floats) -> Floats:
        """Coordinates of rows that need no protection, without rounding.  # (num_rows, dim)"""
        return np.asarray(self.kernel(cells, self.spanning.cells) @ self._inverse.T * self.shortening)

    def weights_of(self, coordinates: Floats) -> Floats:
        """Weights on the points that span the space, of the element with these coordinates."""
        return np.asarray(self._inverse.T @ coordinates / self.shortening)

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

    def __call__(self, cells: Array) -> Array:
        """Coordinates of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        whole = xp.round(self.kernel(cells, xp.asarray(self.spanning.cells)) * 2.0**KERNEL_BITS)
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
    sign = Sign.NONNEGATIVE  # kernel values are never negative

    @property
    def dim(self) -> int:
        """One value per point."""
        return len(self.points)

    def __call__(self, cells: Array) -> Array:
        """Scaled kernel values.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        return xp.astype(self.kernel(cells, xp.asarray(self.points.cells), single=True) / self.reach, cells.dtype)


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
