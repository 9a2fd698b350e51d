"""Smooth maps of single numbers from a table, so that training need not walk a recursion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from understudy.features import FeatureMap, Hermite, Sign, Tensors

STEPS = 4096
"""Table entries over a column's range. A feature of length scale s is off by at most
1 / (8 (STEPS s)^2) of its size between entries: 1e-5 at s = 0.03."""


class Interpolated:
    """A Hermite map in torch, linear between the entries of a table of its exact values."""

    sign = Sign.SIGNED

    def __init__(self, torch: Any, map_: Hermite) -> None:
        self._map, self.dim = map_, map_.dim
        self.numbers = list(map_.numbers)
        scales, which = np.unique(map_.length_scales, return_inverse=True)
        self._table = torch.from_numpy(_table(map_, tuple(scales.tolist())))
        self._offsets = torch.from_numpy(which * (STEPS + 1))

    def __call__(self, cells: Any) -> Any:
        """Features of each row.  # (num_rows, dim)"""
        places = cells[:, self.numbers] * STEPS
        below = places.detach().floor().clamp(0, STEPS - 1)
        rest = (places - below)[:, :, None]
        entries = below.long() + self._offsets
        low, high = self._table[entries], self._table[entries + 1]
        return (low + rest * (high - low)).reshape(len(cells), self.dim)

    def to_dict(self) -> dict[str, Any]:
        """The description of the exact map."""
        return self._map.to_dict()


class InterpolatedPairs:
    """Products of many pairs of numbers that all have the same Hermite map, taken together.

    One look-up serves every number, and a batch of matrix products every pair.
    """

    sign = Sign.SIGNED

    def __init__(self, torch: Any, map_: Tensors) -> None:
        self._map, self.dim = map_, map_.dim
        used = sorted({j for pair in map_.subsets for j in pair})
        place = {j: i for i, j in enumerate(used)}
        single = [cast(Hermite, map_.factors[j]) for j in used]
        self._sides = [torch.tensor([place[pair[side]] for pair in map_.subsets]) for side in (0, 1)]
        numbers = [factor.numbers[0] for factor in single]
        self._features = Interpolated(torch, _over(single[0], numbers))
        self._tensor, self._shape = torch.from_numpy, (len(used), single[0].dim)

    def means(self, cells: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
        """As for ``Tensors``.  # (num_rows, width) -> (groups, dim), (groups,)"""
        root = math.sqrt(self._shape[0])  # of the mean of kernels that the look-up is for
        single = self._features(cells).reshape(len(cells), *self._shape) * root
        by_number = single.permute(1, 2, 0).contiguous()
        left, right = (by_number.index_select(0, side) for side in self._sides)
        squares = ((left**2).sum(1) * (right**2).sum(1)).mean(0)  # of (pairs, orders, num_rows)
        products = left[:, :, None] * right[:, None]  # (pairs, orders, orders, num_rows)
        share = np.repeat(np.eye(len(sizes)), sizes, axis=0) / np.asarray(sizes)
        averaging = self._tensor(share.astype(np.float32))  # (num_rows, groups)
        means = (products.flatten(0, 2) @ averaging).T / math.sqrt(len(left))
        return means, squares @ averaging

    def to_dict(self) -> dict[str, Any]:
        """The description of the exact map."""
        return self._map.to_dict()


def trainable(torch: Any, map_: FeatureMap) -> Any:
    """The map as training evaluates it."""
    if isinstance(map_, Hermite):
        return Interpolated(torch, map_)
    if isinstance(map_, Tensors) and _are_pairs_alike(map_):
        return InterpolatedPairs(torch, map_)
    if isinstance(map_, Tensors):
        return replace(map_, factors=tuple(trainable(torch, factor) for factor in map_.factors))
    return map_


def _are_pairs_alike(map_: Tensors) -> bool:
    """Whether products are of two single numbers each, with the same Hermite map for all."""
    used = [map_.factors[j] for pair in map_.subsets for j in pair]
    plain = {_over(f, [0]) for f in used if isinstance(f, Hermite) and len(f.numbers) == 1}
    all_plain = all(isinstance(f, Hermite) and len(f.numbers) == 1 for f in used)
    return all_plain and len(plain) == 1 and all(len(pair) == 2 for pair in map_.subsets)


def _over(map_: Hermite, numbers: list[int]) -> Hermite:
    """The same Hermite map of other numbers, each with the first one's length scale."""
    scales = map_.length_scales[:1] * len(numbers)
    return replace(map_, numbers=tuple(numbers), length_scales=scales)


def _table(map_: Hermite, scales: tuple[float, ...]) -> npt.NDArray[np.float32]:
    """Exact features at every entry, for each length scale.  # (scales * (STEPS + 1), order + 1)"""
    grid = np.linspace(0.0, 1.0, STEPS + 1)[:, None]
    single = [replace(map_, numbers=(0,), length_scales=(scale,))(grid) for scale in scales]
    return (np.concatenate(single) / math.sqrt(len(map_.numbers))).astype(np.float32)
