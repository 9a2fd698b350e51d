"""Positive definite kernels over the cells of a row: Gaussian, Laplace and Matérn, sums and products.

A kernel is an average of terms, and a term a product over some columns: a radial (or Laplace)
kernel of its numbers, times, for every choice, 1 where two rows agree and ``mismatch`` where they
do not. A null is one more value of a choice. So one term over all columns is a product kernel, and
one term per column a sum kernel. Every kernel here has k(x, x) = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_compat

from understudy.features.base import Array

SHAPES = ("gaussian", "laplace", "matern12", "matern32", "matern52")
"""Laplace is the product of one-dimensional exponentials, Matérn 1/2 the exponential of the
Euclidean distance; in one dimension they are the same."""

EXACT_BITS = 50
"""Bits of the largest squared distance on the grid: |x|^2 + |y|^2 - 2 x.y then stays below 2^53, exact in float64."""

FEW_NUMBERS = 8
"""Up to so many numbers, distances column by column are faster than a product of matrices."""

LEAST_MISMATCH = 2.0**-60
"""What stands for a mismatch of zero: far below any rounding, and its logarithm is finite."""


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


@dataclass(frozen=True, slots=True)
class Side:
    """One operand of a Gram matrix: what a term needs of one set of rows, computed once."""

    positions: Array  # (num_rows, numbers); for Laplace, over the length scales
    squares: Array  # (num_rows,)
    members: Array  # (num_rows, cells of the choices)
    listed: Array  # (num_rows,)


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

    def __call__(self, left: Array, right: Array) -> Array:
        """The cross-Gram matrix k(x_i, y_j).  # (left, right)"""
        return self.between(self.sides(left), self.sides(right))

    def between(self, left: tuple[Side, ...], right: tuple[Side, ...], *, single: bool = False) -> Array:
        """The cross-Gram matrix of precomputed operands; in single precision it takes a third of the time."""
        total: Any = None
        for term, one, other in zip(self.terms, left, right, strict=True):
            value = self._term(term, one, other, single=single)
            total = value if total is None else total + value
        return total / len(self.terms) if len(self.terms) > 1 else total

    def _side(self, xp: Any, cells: Array, term: Term) -> Side:
        parts = [cells[:, start:stop] for start, stop in term.spans] or [cells[:, :0]]
        members = xp.concat(parts, axis=1)
        numbers = xp.stack([cells[:, j] for j in term.numbers], axis=1) if term.numbers else cells[:, :0]
        scales = xp.asarray(list(term.length_scales), dtype=xp.float64)
        positions = numbers / scales
        if self.shape != "laplace":
            positions = xp.round(positions * term.grid)
        squares = xp.sum(positions * positions, axis=1)
        return Side(positions, squares, members, xp.sum(members * members, axis=1))

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
            total = _gaps(one, other, 0) ** 2
            for j in columns[1:]:
                total = total + _gaps(one, other, j) ** 2
        else:
            products = one.positions @ other.positions.T
            total = one.squares[:, None] + other.squares[None, :] - 2 * products
        if self.shape == "gaussian":
            return total * (0.5 / term.grid**2)
        return xp.sqrt(total) * (MATERN[self.shape][0] / term.grid)


def _gaps(one: Side, other: Side, number: int) -> Array:
    return one.positions[:, number][:, None] - other.positions[:, number][None, :]


def _differences(term: Term, one: Side, other: Side) -> Array:
    """-log of the mismatch for every choice in which two rows differ, half of it if one of them has
    no listed value. Memberships are 0 or 1, so sums and products are exact.
    """
    agreeing = one.members @ other.members.T
    apart = 0.5 * (one.listed[:, None] + other.listed[None, :]) - agreeing
    return apart * -math.log(max(term.mismatch, LEAST_MISMATCH))


MATERN: dict[str, tuple[float, Callable[[Array], Array] | None]] = {
    "matern12": (1.0, None),
    "matern32": (math.sqrt(3), lambda t: 1.0 + t),
    "matern52": (math.sqrt(5), lambda t: 1.0 + t + t * t / 3),
}
"""Matérn kernels of half-integer order p + 1/2 are exp(-t) times a polynomial of degree p in t = sqrt(2 p + 1) r
(Rasmussen & Williams 2006, eq. 4.16): the factor of r, and the polynomial unless it is 1."""
