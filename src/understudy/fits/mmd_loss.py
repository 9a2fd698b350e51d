"""The loss of a generator: how far its mean features are from the released ones, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from understudy.arrays import Integers
from understudy.features import Block, Buckets, FeatureMap, Fourier, Grid, Hermite, Lengths, OneHot, Sign, Tensors
from understudy.released import Release

# Smooth maps of single numbers from a table, so that training need not walk a recursion.

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


Piece = tuple[FeatureMap, Any, float]
"""A map with some of a block's features, where they lie in the block, and their scale here."""

SUBSETS_PER_STEP = 16


class Term:
    """One block of the loss: its targets, and the pieces of its map that steps take in turn.

    ``noise_floor`` is the loss that the known noise alone leaves a perfect fit, on average: whoever
    comes closer fits noise. (There is none if a step sees a sample or a piece, whose loss differs.)
    """

    def __init__(
        self,
        torch: Any,
        release: Release,
        block: Block,
        sizes: Integers,
        pieces: list[Piece],
        *,
        is_exact: bool,
        rng: np.random.Generator,
    ) -> None:
        counts = release.label_counts
        totals = counts[:, None] if block.per_label else counts.sum()
        targets = (release.sums(block.name) / totals).astype(np.float32)
        shares = counts / counts.sum() if block.per_label else np.ones(1)
        groups = sizes if block.per_label else sizes.sum(keepdims=True)
        losses = dict(release.plan.setting("loss_weights", {}))
        weight = losses.get(block.name, block.trust)
        averaging = np.repeat(np.eye(len(groups)), groups, axis=1) / groups[:, None]
        variances = (release.noise_std(block.name) / np.ravel(totals)) ** 2
        floor = float((weight * shares * variances).sum() * block.map.dim)
        self.noise_floor = floor if is_exact and len(pieces) == 1 else -math.inf
        self.sizes = groups.tolist()
        self.averaging = torch.from_numpy(averaging.astype(np.float32))  # (copies, num_rows)
        self.spare = torch.from_numpy((groups - 1).astype(np.float32))
        self.weights = torch.from_numpy((weight * shares).astype(np.float32))
        self.pieces = [
            (piece, torch.from_numpy(np.ascontiguousarray(targets[:, columns] * scale)))
            for piece, columns, scale in pieces
        ]
        self.turn = _turn(block.name, release.plan.setting("turns", ()))
        # Choices are expected features already; a little pull towards even ones does them good.
        self._has_spread = not is_exact and not isinstance(block.map, OneHot)
        self._rng = rng

    def has_turn(self, done: float) -> bool:
        """Whether the block counts at this point of the training."""
        return self.turn[0] <= done < self.turn[1]

    def loss(self, cells: Any) -> Any:
        """Squared distance of mean features, weighted like the released kernel.

        A mean over g rows has a squared norm that is too large by the rows' own spread, the mean
        squared norm less that of the mean, over g - 1. Left in, it would pull rows together.
        Components' expected features have no such spread.
        """
        map_, targets = self.pieces[self._rng.integers(len(self.pieces))]
        means, norms = self._means(map_, cells)  # (copies, features), (copies,)
        distances = ((means - targets) ** 2).sum(1)
        if self._has_spread:
            distances = distances - (norms - (means**2).sum(1)) / self.spare
        return (self.weights * distances).sum()

    def _means(self, map_: Any, cells: Any) -> tuple[Any, Any]:
        if isinstance(map_, Tensors | InterpolatedPairs):
            return map_.means(cells, self.sizes)
        features = map_(cells)
        return self.averaging @ features, self.averaging @ (features**2).sum(1)


def loss_terms(
    torch: Any,
    release: Release,
    sizes: Integers,
    *,
    convert: Callable[[FeatureMap], FeatureMap],
    features_per_step: int,
    subsets_per_step: int = SUBSETS_PER_STEP,
    rng: np.random.Generator,
    is_exact: bool = False,
) -> list[Term]:
    """The blocks that can be trained through: histograms and counts have no slope.

    ``sizes`` are the rows of each label value in a batch that is sorted by label; ``convert``
    gives a map in the form that training evaluates.
    """
    found = []
    for block in release.blocks:
        if block.map.sign is Sign.CONSTANT or isinstance(block.map, Grid | Lengths):
            continue
        pieces = [
            (convert(piece), columns, scale)
            for piece, columns, scale in _pieces(block.map, features_per_step, subsets_per_step)
        ]
        found.append(Term(torch, release, block, sizes, pieces, is_exact=is_exact, rng=rng))
    return found


def _turn(name: str, turns: Sequence[str]) -> tuple[float, float]:
    """The stretch of training in which a block counts: all of it, unless blocks take turns."""
    if name not in turns:
        return 0.0, math.inf
    place = list(turns).index(name)
    return place / len(turns), (place + 1) / len(turns)


def _pieces(map_: FeatureMap, size: int, num_subsets: int) -> list[Piece]:
    """A long map in pieces of about ``size`` features or ``num_subsets``.

    Random features and drawn subsets need no company: a step sees one piece of them. A batch of rows
    stands for all of them.
    """
    if isinstance(map_, Fourier) and map_.dim > size:
        step = size // 2
        starts = range(0, map_.dim // 2 - step + 1, step)
        cut = [map_.slice(start, start + step) for start in starts]
        return [(piece, columns, math.sqrt(map_.dim / piece.dim)) for piece, columns in cut]
    if isinstance(map_, Tensors) and isinstance(map_.factors[0], Buckets):
        batches, other = map_.factors  # of as many rows each, on average
        starts = range(0, map_.dim, other.dim)
        return [(other, slice(start, start + other.dim), batches.dim) for start in starts]
    if isinstance(map_, Tensors) and not map_.is_dense:
        count = math.ceil(len(map_.subsets) / num_subsets)
        edges = [len(map_.subsets) * i // count for i in range(count + 1)]
        return [map_.part(slice(start, stop)) for start, stop in pairwise(edges)]
    return [(map_, slice(None), 1.0)]
