"""Products of feature maps over subsets of them: the map of a weighted sum of product kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.features.base import MAP_KINDS, Array, FeatureMap, Sign, map_from_dict

DENSE = 4
"""A Gram matrix of all columns is worth it while it holds at most so many times what is wanted."""


@dataclass(frozen=True)
class Tensors:
    """For each subset of ``factors``, all products of one feature of each, times its weight.

    The kernel is sum_S weight_S^2 prod_{j in S} k_j. Squared weights add up to at most 1 and
    every factor has norm at most 1, so sum_S weight_S^2 prod_{j in S} |phi_j|^2 <= 1.
    Features run through the subsets in order; within one, the last factor varies fastest.
    """

    factors: tuple[FeatureMap, ...]
    subsets: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.subsets) != len(self.weights) or not self.subsets:
            raise ValueError("every subset has a weight")
        if sum(weight**2 for weight in self.weights) > 1 + 1e-9:
            raise ValueError("squared weights add up to at most 1")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of features of each subset."""
        return tuple(math.prod(self.factors[j].dim for j in subset) for subset in self.subsets)

    @property
    def dim(self) -> int:
        """Features of all subsets."""
        return sum(self.sizes)

    @cached_property
    def sign(self) -> Sign:
        """Inner products multiply and add, so nonnegative factors give nonnegative products."""
        signs = {self.factors[j].sign for j in self._used}
        for sign in (Sign.SIGNED, Sign.NONNEGATIVE):
            if sign in signs:
                return sign
        return Sign.CONSTANT

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        single = self._single(cells)
        return xp.concat(
            [
                _tensor([single[j] for j in subset]) * weight
                for subset, weight in zip(self.subsets, self.weights, strict=True)
            ],
            axis=1,
        )

    def means(self, cells: Array, sizes: Sequence[int]) -> tuple[Array, Array]:
        """Mean features, and mean squared norm, of each of several groups of consecutive rows.

        No row's own products are ever formed: a group's mean is a matrix product of two halves.
        # (num_rows, width) -> (groups, dim), (groups,)
        """
        xp = array_api_compat.array_namespace(cells)
        single = self._single(cells)
        edges = list(pairwise([0, *accumulate(sizes)]))
        found, squares = [], self._squared_norms(single)
        for start, stop in edges:
            group = {j: features[start:stop, :] for j, features in single.items()}
            found.append(self._sum(xp, group) / (stop - start))
        norms = [xp.mean(squares[start:stop]) for start, stop in edges]
        return xp.stack(found), xp.stack(norms)

    def _sum(self, xp: Any, single: dict[int, Array]) -> Array:
        """Sum of the features over all rows.  # (dim,)"""
        if self.is_dense:
            stacked = xp.concat([single[j] for j in self._used], axis=1)
            gram = xp.reshape(stacked.T @ stacked, (-1,))
            places, scales = self._places
            return xp.take(gram, xp.asarray(places)) * xp.asarray(scales, dtype=gram.dtype)
        found = []
        for subset, weight in zip(self.subsets, self.weights, strict=True):
            half = (len(subset) + 1) // 2
            left = _tensor([single[j] for j in subset[:half]])
            right = _tensor([xp.ones_like(left[:, :1]), *(single[j] for j in subset[half:])])
            found.append(xp.reshape(left.T @ right, (-1,)) * weight)
        return xp.concat(found)

    def _squared_norms(self, single: dict[int, Array]) -> Array:
        """Squared norm of each row's features.  # (num_rows,)"""
        squares = {j: (features**2).sum(1) for j, features in single.items()}
        return sum(
            weight**2 * math.prod(squares[j] for j in subset)
            for subset, weight in zip(self.subsets, self.weights, strict=True)
        )

    def part(self, chosen: slice) -> tuple[Tensors, slice, float]:
        """A map with some of the subsets, where its features lie here, and their scale there.

        The part's squared weights add up to what all subsets' do.
        """
        start = sum(self.sizes[: chosen.start])
        stop = start + sum(self.sizes[chosen])
        whole, some = (math.hypot(*weights) for weights in (self.weights, self.weights[chosen]))
        scale = whole / some
        weights = tuple(weight * scale for weight in self.weights[chosen])
        return Tensors(self.factors, self.subsets[chosen], weights), slice(start, stop), scale

    @cached_property
    def _used(self) -> tuple[int, ...]:
        """Factors that some subset takes."""
        return tuple(sorted({j for subset in self.subsets for j in subset}))

    def _single(self, cells: Array) -> dict[int, Array]:
        """Features of every used factor."""
        return {j: self.factors[j](cells) for j in self._used}

    @cached_property
    def is_dense(self) -> bool:
        """Whether the subsets are pairs, and so many that one Gram matrix holds them all best."""
        stacked = sum(self.factors[j].dim for j in self._used)
        return all(len(s) == 2 for s in self.subsets) and stacked**2 <= DENSE * self.dim

    @cached_property
    def _places(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Where each feature lies in the flat Gram matrix of stacked factors, and its weight."""
        dims = [self.factors[j].dim for j in self._used]
        starts = dict(zip(self._used, np.cumsum([0, *dims[:-1]]).tolist(), strict=True))
        total = sum(dims)
        places = [
            (
                (starts[i] + np.arange(self.factors[i].dim))[:, None] * total
                + starts[j] + np.arange(self.factors[j].dim)
            ).ravel()
            for i, j in self.subsets
        ]  # fmt: skip
        return np.concatenate(places), np.repeat(self.weights, self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {
            "kind": "tensors",
            "factors": [factor.to_dict() for factor in self.factors],
            "subsets": [list(subset) for subset in self.subsets],
            "weights": list(self.weights),
        }


def product(*factors: FeatureMap) -> Tensors:
    """The map whose kernel is the product of the factors' kernels."""
    return Tensors(factors, (tuple(range(len(factors))),), (1.0,))


def _tensor(features: list[Array]) -> Array:
    """All products of one feature of each, row by row.  # [(num_rows, d_j)] -> (num_rows, prod d_j)"""
    xp = array_api_compat.array_namespace(features[0])
    found = features[0]
    for other in features[1:]:
        products = found[:, :, None] * other[:, None, :]
        found = xp.reshape(products, (found.shape[0], found.shape[1] * other.shape[1]))
    return found


MAP_KINDS["tensors"] = lambda document: Tensors(
    factors=tuple(map_from_dict(factor) for factor in document["factors"]),
    subsets=tuple(tuple(int(j) for j in subset) for subset in document["subsets"]),
    weights=tuple(float(weight) for weight in document["weights"]),
)
