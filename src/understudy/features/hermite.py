"""Hermite polynomial features of Gaussian kernels (DP-HP): ordered, so that a few of them carry most of a column.

Mehler's formula writes the Gaussian kernel as a power series in rho whose terms are products of
Hermite functions (Vinaroz et al. 2022, eq. 5). Two parameters name the same kernel:

    length scale s:  k(x, y) = exp(-(x - y)^2 / (2 s^2))
    rho:             k(x, y) = exp(-(x - y)^2 rho / (1 - rho^2))

so 1 / (2 s^2) = rho / (1 - rho^2), the paper's own relation with its l called s here. Solved for
rho, -s^2 + sqrt(s^4 + 1) loses all digits for large s; 1 / (s^2 + sqrt(s^4 + 1)) is the same
number and loses none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.features.base import MAP_KINDS, Array, FeatureGroup, FeatureMap, Sign
from understudy.features.combine import tensor
from understudy.features.exact import exact_weights
from understudy.schema import Layout

HIGHEST_ORDER = 300
"""The orders that proofs/hermite.md is about."""

SEED_EXPONENT = 700.0
"""Where the exponential of order 0 is about to underflow, every feature up to order 300 is
below 1e-100 (proofs/hermite.md), so points further out are moved in to there."""


def rho_of_length_scale(length_scale: float) -> float:
    """The rho of the Gaussian kernel with this length scale, in the units of x."""
    square = length_scale**2
    return 1 / (square + math.sqrt(square**2 + 1))


def mehler_features(points: Array, rho: Sequence[float], order: int) -> Array:
    """phi_0(x) .. phi_order(x) of every point: phi(x) . phi(y) tends to exp(-(x-y)^2 rho/(1-rho^2)).

    phi_c(x) = (1 - rho^2)^(1/4) (rho / 2)^(c/2) / sqrt(c!) H_c(x) exp(-x^2 rho / (1 + rho)), by
    the recursion of the paper's App. E, which never forms H_c or c!.

    Args:
        points: x, in double precision.  # (num_rows, columns)
        rho: of each column, above 0 and below 1.
        order: the highest order, at most 300.

    Returns:
        Features with norm at most 1 for every point and column.  # (num_rows, columns, order + 1)
    """
    xp = array_api_compat.array_namespace(points)
    ratio = np.asarray(rho, dtype=np.float64)
    reach = xp.asarray(np.sqrt(SEED_EXPONENT * (1 + ratio) / ratio), dtype=points.dtype)
    inside = xp.clip(points, -reach, reach)
    decay = xp.asarray(ratio, dtype=points.dtype)
    first = (1 - decay**2) ** 0.25 * xp.exp(-(inside**2) * (decay / (1 + decay)))
    slope = inside * xp.sqrt(2 * decay)
    found = [first, slope * first][: order + 1]
    for c in range(1, order):
        # H_{c+1} = 2 x H_c - 2 c H_{c-1}, with the normalisation of phi folded in.
        rise, fall = 1 / math.sqrt(c + 1), math.sqrt(c / (c + 1))
        found.append(slope * found[c] * rise - decay * found[c - 1] * fall)
    return xp.stack(found, axis=2)


@MAP_KINDS.register("hermite")
@dataclass(frozen=True)
class Hermite(FeatureMap):
    """Hermite features of several numbers, each with a Gaussian kernel of its own (sum kernel).

    A position in [0, 1] is first mapped to the public centred range x in [-half_range,
    half_range], for the features are centred at 0. ``length_scales`` are in units of each
    column's public range, so s = 2 half_range length_scale in units of x. ``half_range`` leaves
    the kernel as it is and says only how its features are spread over the orders; see
    ``best_half_range``. With k numbers the kernel is their mean, and features carry 1 / sqrt(k).
    """

    numbers: tuple[int, ...]
    length_scales: tuple[float, ...]
    order: int
    half_range: float
    words = "Hermite functions of the numbers"
    sign = Sign.SIGNED  # features of odd order change sign, and cut-off kernels can be negative

    def __post_init__(self) -> None:
        if not 0 <= self.order <= HIGHEST_ORDER:
            raise ValueError("the order lies between 0 and 300")
        if len(self.numbers) != len(self.length_scales) or not self.half_range > 0:
            raise ValueError("every number has a length scale, and the range is not empty")

    @property
    def dim(self) -> int:
        """Orders 0 to ``order`` of every number."""
        return len(self.numbers) * (self.order + 1)

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """The orders of each number; twice the order sees twice as fine a structure."""
        orders, scale = np.arange(self.order + 1), math.sqrt(len(self.numbers))
        bands = np.floor(np.log2(np.maximum(orders, 1))).astype(np.int64)
        return tuple(
            FeatureGroup((layout.numbers[number],), i * len(orders) + orders, scale, bands=bands)
            for i, number in enumerate(self.numbers)
        )

    @cached_property
    def rho(self) -> tuple[float, ...]:
        """The rho of each number's kernel."""
        return tuple(rho_of_length_scale(2 * self.half_range * s) for s in self.length_scales)

    def __call__(self, cells: Array) -> Array:
        """Features of each row, by number and then by order.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        positions = xp.astype(cells[:, list(self.numbers)], xp.float64)
        points = (2 * positions - 1) * self.half_range
        features = mehler_features(points, self.rho, self.order) / math.sqrt(len(self.numbers))
        return xp.astype(xp.reshape(features, (cells.shape[0], self.dim)), cells.dtype)


def best_half_range(length_scale: float) -> float:
    """The range over which the fewest orders carry a kernel of this length scale.

    Orders up to C cover a disc of radius sqrt(2 C) in the plane of x and frequency. The column
    needs |x| <= R and frequencies up to about 3 / s with s = 2 R length_scale; the disc around
    that rectangle is smallest for R^2 = 3 / (2 length_scale), and then C is about 1.5 / length_scale.
    """
    return math.sqrt(1.5 / length_scale)


@MAP_KINDS.register("mahalanobis")
@dataclass(frozen=True)
class Mahalanobis(FeatureMap):
    """Generalised Hermite features: k(x, y) = exp(-(x - y) A (x - y)^T) over several numbers.

    The paper's Prop. C.3: the kernel is a product of one-dimensional ones in z = sqrt(c) A^(1/2) x,
    c = (1 - rho^2) / rho, rho = 1 / alpha, so its features are the tensor product of Mehler
    features of every z_i. (Its eq. 61 omits the factor 2^k of the norm of H_k and starts at
    order 1; Mehler's formula needs orders from 0.) Here x are positions less 1/2. ``matrix`` is A,
    symmetric and positive definite, in units of the columns' public ranges.
    """

    numbers: tuple[int, ...]
    matrix: tuple[tuple[float, ...], ...]
    order: int
    rho: float = 1 / 3
    words = "Hermite functions of the numbers, rescaled"
    sign = Sign.SIGNED  # as for ``Hermite``

    def __post_init__(self) -> None:
        if not 0 <= self.order <= HIGHEST_ORDER:
            raise ValueError("the order lies between 0 and 300")
        values = np.asarray(self.matrix)
        if values.shape != (len(self.numbers),) * 2 or not 0 < self.rho < 1:
            raise ValueError("the matrix fits the numbers, and rho lies between 0 and 1")
        if not np.array_equal(values, values.T) or np.linalg.eigvalsh(values).min() <= 0:
            raise ValueError("the matrix is symmetric and positive definite")

    @property
    def dim(self) -> int:
        """All products of an order of each number."""
        return math.prod([self.order + 1] * len(self.numbers))

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """Every feature is of all numbers."""
        return (FeatureGroup(tuple(layout.numbers[number] for number in self.numbers), np.arange(self.dim)),)

    @cached_property
    def stretch(self) -> npt.NDArray[np.float64]:
        """sqrt(c) A^(1/2), rounded so that products with positions are exact."""
        values, vectors = np.linalg.eigh(np.asarray(self.matrix))
        root = (vectors * np.sqrt(values)) @ vectors.T
        return exact_weights(math.sqrt((1 - self.rho**2) / self.rho) * root)

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        centred = xp.astype(cells[:, list(self.numbers)], xp.float64) - 0.5
        points = centred @ xp.asarray(self.stretch, dtype=xp.float64)
        single = mehler_features(points, (self.rho,) * len(self.numbers), self.order)
        return xp.astype(tensor([single[:, i, :] for i in range(len(self.numbers))]), cells.dtype)
