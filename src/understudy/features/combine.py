"""Tensor products of feature maps: the map of a product kernel, and of a mean of product kernels over subsets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.features.base import MAP_KINDS, Array, CountTable, FeatureGroup, FeatureMap, Piece, Sign
from understudy.features.grid import Buckets
from understudy.schema import Layout

DENSE = 32
"""Pairs are summed by one matrix product of all columns while that has at most so many times the entries needed:
one large product is faster than many small ones, until most of it is thrown away."""


@MAP_KINDS.register("tensors")
@dataclass(frozen=True)
class Tensors(FeatureMap):
    """For each subset of ``factors``, the tensor product of their features; every subset has the same weight.

    The kernel is the mean over subsets S of prod_{j in S} k_j. With P subsets features carry
    1 / sqrt(P), and as every factor has norm at most 1, so have they. Features run through the
    subsets in order; within one, the last factor varies fastest.

    A subset is split into two ``halves``. The products of a subset are those of its halves'
    features, so sums over rows are matrix products, and no row's own products need be formed.
    """

    factors: tuple[FeatureMap, ...]
    subsets: tuple[tuple[int, ...], ...]
    words = "products over sets of columns"

    def __post_init__(self) -> None:
        if not self.subsets or any(len(subset) < 2 for subset in self.subsets):
            raise ValueError("a product has two factors or more")
        if not all(0 <= j < len(self.factors) for subset in self.subsets for j in subset):
            raise ValueError("a subset takes factors that there are")
        if any(factor.reads_codes for factor in self.factors):
            raise ValueError("factors of a product read cells, and this one reads codes")

    @cached_property
    def halves(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """The first and the second half of every subset."""
        cuts = [(subset, (len(subset) + 1) // 2) for subset in self.subsets]
        return tuple((subset[:cut], subset[cut:]) for subset, cut in cuts)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of features of each subset."""
        return tuple(self.size_of(subset) for subset in self.subsets)

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where the features of each subset lie."""
        return tuple(pairwise(accumulate(self.sizes, initial=0)))

    def size_of(self, part: tuple[int, ...]) -> int:
        """Number of products of these factors' features."""
        return math.prod(self.factors[j].dim for j in part)

    @property
    def dim(self) -> int:
        """Features of all subsets."""
        return sum(self.sizes)

    @cached_property
    def sign(self) -> Sign:
        """Inner products multiply and add, so nonnegative factors give nonnegative products."""
        return self.sign_of(self._used)

    def sign_of(self, part: tuple[int, ...]) -> Sign:
        """What is known of inner products of these factors' products."""
        return max((self.factors[j].sign for j in part), key=lambda sign: sign.replace_factor_squared)

    @property
    def components(self) -> tuple[FeatureMap, ...]:
        """The maps whose features are multiplied."""
        return self.factors

    def rebuilt(self, change: Callable[[FeatureMap], FeatureMap]) -> Tensors:
        """Products of changed factors."""
        return replace(self, factors=tuple(factor.rebuilt(change) for factor in self.factors))

    @property
    def gram_size(self) -> int:
        """One matrix of all factors' features, where that is least work."""
        return self.size_of_stack**2 if self.is_dense else 0

    @property
    def is_differentiable(self) -> bool:
        """As far as its factors are."""
        return any(self.factors[j].is_differentiable for j in self._used)

    def nonzeros_of(self, part: tuple[int, ...]) -> int:
        """The largest number of products of these factors that are not zero in one row."""
        return math.prod(self.factors[j].most_nonzeros for j in part)

    @cached_property
    def most_nonzeros(self) -> int:
        """Those of all subsets together."""
        return sum(self.nonzeros_of(subset) for subset in self.subsets)

    @property
    def l1_bound(self) -> float:
        """Of P subsets each has a norm of 1 / sqrt(P) at most, and its own number of features."""
        return sum(math.sqrt(self.nonzeros_of(subset)) for subset in self.subsets) / math.sqrt(len(self.subsets))

    @cached_property
    def count_tables(self) -> tuple[CountTable, ...]:
        """Products of memberships are tables too, if every factor is one table."""
        found, root = [], math.sqrt(len(self.subsets))
        for subset, (start, _) in zip(self.subsets, self.spans, strict=True):
            tables = [self.factors[j].count_tables for j in subset]
            if all(len(own) == 1 and own[0].size == self.factors[j].dim for j, own in zip(subset, tables, strict=True)):
                axes = tuple(axis for (table,) in tables for axis in table.axes)
                found.append(CountTable(axes, start, root * math.prod(table.scale for (table,) in tables)))
        return tuple(found)

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """Every subset's products by themselves."""
        found = []
        for place, subset in enumerate(self.subsets):
            own = [group.columns for j in subset for group in self.factors[j].groups(layout)]
            columns = None
            if None not in own:
                columns = tuple(dict.fromkeys(name for names in own for name in names or ()))
            only, features, scale = self.part(slice(place, place + 1))
            found.append(FeatureGroup(columns, np.arange(features.start, features.stop), scale, map=only))
        return tuple(found)

    @cached_property
    def row_width(self) -> int:
        """Rows are summed by the features of halves; no row's own products are formed."""
        return sum(self.size_of(half) for half in {half for halves in self.halves for half in halves})

    def sums(self, codes: Integers, cells: Floats, slots: Integers, copies: int) -> Floats:
        """Sums over rows of tensor products, as matrix products of the halves."""
        found = np.zeros((copies, self.dim))
        for copy in np.unique(slots[slots < copies]):
            rows = cells[slots == copy]
            means, _ = self.means(rows, [len(rows)])
            found[copy] = np.asarray(means)[0] * len(rows)
        return found

    def pieces(self, num_features: int, num_subsets: int) -> list[Piece]:
        """Mini-batches of subsets; of products with ``Buckets``, the other factor for each bucket."""
        if isinstance(self.factors[0], Buckets):
            batches, other = self.factors  # of as many rows each, on average
            starts = range(0, self.dim, other.dim)
            return [(other, slice(start, start + other.dim), batches.dim) for start in starts]
        if self.is_dense:
            return [(self, slice(None), 1.0)]
        count = math.ceil(len(self.subsets) / num_subsets)
        edges = [len(self.subsets) * i // count for i in range(count + 1)]
        return [self.part(slice(start, stop)) for start, stop in pairwise(edges)]

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        single = self.single(cells)
        found = [tensor([single[j] for j in subset]) for subset in self.subsets]
        return xp.concat(found, axis=1) / math.sqrt(len(self.subsets))

    def single(self, cells: Array) -> dict[int, Array]:
        """Features of every factor that some subset takes."""
        return {j: self.factors[j](cells) for j in self._used}

    @cached_property
    def is_dense(self) -> bool:
        """Whether the subsets are pairs, and so many that one Gram matrix holds them all best."""
        stacked = self.size_of_stack
        return all(len(s) == 2 for s in self.subsets) and stacked**2 <= DENSE * self.dim

    @cached_property
    def size_of_stack(self) -> int:
        """Number of features of all used factors, side by side."""
        return sum(self.factors[j].dim for j in self._used)

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """Where each feature lies in the flat Gram matrix of the used factors, side by side."""
        edges = pairwise(accumulate((self.factors[j].dim for j in self._used), initial=0))
        rows = {j: np.arange(start, stop) for j, (start, stop) in zip(self._used, edges, strict=True)}
        products = [rows[i][:, None] * self.size_of_stack + rows[j] for i, j in self.subsets]
        return np.concatenate([each.ravel() for each in products])

    def means(self, cells: Array, sizes: Sequence[int]) -> tuple[Array, Array]:
        """Mean embedding, and mean squared norm of features, of each of several groups of consecutive rows.

        # (num_rows, width) -> (groups, dim), (groups,)
        """
        xp = array_api_compat.array_namespace(cells)
        single = self.single(cells)
        edges = list(pairwise([0, *accumulate(sizes)]))
        found, squares = [], self._squared_norms(single)
        for start, stop in edges:
            group = {j: features[start:stop, :] for j, features in single.items()}
            scale = (stop - start) * math.sqrt(len(self.subsets))
            found.append(self._sum(xp, group) / scale)
        norms = [xp.mean(squares[start:stop]) for start, stop in edges]
        return xp.stack(found), xp.stack(norms)

    def _sum(self, xp: Any, single: dict[int, Array]) -> Array:
        """Sum of all products over all rows.  # (dim,)"""
        if self.is_dense:
            stacked = xp.concat([single[j] for j in self._used], axis=1)
            gram = xp.reshape(stacked.T @ stacked, (-1,))
            return xp.take(gram, xp.asarray(self.places))
        found = []
        for halves in self.halves:
            left, right = (tensor([single[j] for j in half]) for half in halves)
            found.append(xp.reshape(left.T @ right, (-1,)))
        return xp.concat(found)

    def _squared_norms(self, single: dict[int, Array]) -> Array:
        """Squared norm of each row's features.  # (num_rows,)"""
        squares = {j: (features**2).sum(1) for j, features in single.items()}
        products = [math.prod(squares[j] for j in subset) for subset in self.subsets]
        return sum(products) / len(self.subsets)

    def part(self, chosen: slice) -> tuple[Tensors, slice, float]:
        """A map with some of the subsets, where its features lie here, and their scale there."""
        some, spans = Tensors(self.factors, self.subsets[chosen]), self.spans[chosen]
        return some, slice(spans[0][0], spans[-1][1]), math.sqrt(len(self.subsets) / len(some.subsets))

    def apart(self) -> list[Tensors]:
        """A map of its own for every subset."""
        return [Tensors(self.factors, (subset,)) for subset in self.subsets]

    @cached_property
    def _used(self) -> tuple[int, ...]:
        return tuple(sorted({j for subset in self.subsets for j in subset}))


def product(*factors: FeatureMap) -> Tensors:
    """The map whose kernel is the product of the factors' kernels."""
    return Tensors(factors, (tuple(range(len(factors))),))


def tensor(features: list[Array]) -> Array:
    """Row-wise Kronecker (Khatri-Rao) product.  # [(num_rows, d_j)] -> (num_rows, prod d_j)"""
    found = features[0]
    for other in features[1:]:
        products = found[:, :, None] * other[:, None, :]
        found = products.reshape(found.shape[0], found.shape[1] * other.shape[1])
    return found
