"""The loss of DP-MEPF: a moving average of how far generated moments are from released ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.features import Block, Perceptual, Tensors
from understudy.published import Release

BETAS = (0.5, 0.999)


class Moments:
    """Mean features of a block: those that were released, and those of generated images.

    Args:
        torch: the library.
        release: holds the block.
        block: perceptual features, or products of them two by two.
        sizes: images of each class in a batch that is sorted by class.
    """

    def __init__(self, torch: Any, release: Release, block: Block, sizes: npt.NDArray[np.int64]) -> None:
        counts, sums = release.label_counts, release.sums(block.name)
        is_whole = len(sums) == 1
        totals = counts.sum() if is_whole else counts[:, None]
        self.map, self.has_products = _perceptual(block)
        if self.has_products:  # noise on both halves of a symmetric matrix, and less on their mean
            square = sums.reshape(len(sums), self.map.dim, self.map.dim)
            sums = ((square + square.transpose(0, 2, 1)) / 2).reshape(sums.shape)
        self.target = torch.from_numpy((sums / totals).astype(np.float32))
        groups = np.array([sizes.sum()]) if is_whole else sizes
        shares = counts / counts.sum()
        if is_whole:  # a batch has other shares than the table
            weights = np.repeat(shares / sizes, sizes)[None, :]
        else:
            weights = np.repeat(np.diag(1 / sizes), sizes, axis=1)
        self.averaging = torch.from_numpy(weights.astype(np.float32))  # (copies, num_rows)
        self.edges = list(pairwise([0, *accumulate(groups.tolist())]))
        self.shares = torch.from_numpy((np.ones(1) if is_whole else shares).astype(np.float32))
        self._torch = torch

    def means(self, layers: Mapping[str, Any]) -> Any:
        """Mean features of a batch of activations.  # (copies, dim)"""
        features = self.map.of_activations([layers[name] for name in self.map.layers])
        if not self.has_products:
            return self.averaging @ features
        found = [
            (features[start:stop] * weights[start:stop, None]).T @ features[start:stop]
            for (start, stop), weights in zip(self.edges, self.averaging, strict=True)
        ]
        return self._torch.stack(found).flatten(1)


class MovingAverage:
    """How far moments are off, remembered over steps (dos Santos et al. 2019).

    ``remembered`` is a parameter. A step moves it towards what the batch is off by, by one step of
    Adam on the squared difference; the generator's loss is its product with what the batch is off by,
    whose slope is that of the squared distance of a much larger batch. Numbers are in units of
    one over the root of their count, so that one rate fits blocks of any size.
    """

    def __init__(self, torch: Any, moments: Moments) -> None:
        self.moments = moments
        self.unit = math.sqrt(moments.target.shape[1])
        self.remembered = torch.zeros_like(moments.target, requires_grad=True)

    def off_by(self, layers: Mapping[str, Any]) -> Any:
        """Released less generated means, in units.  # (copies, dim)"""
        return self.unit * (self.moments.target - self.moments.means(layers))

    def remember(self, off: Any) -> None:
        """Set the slope of the mean squared difference to ``off``; the optimiser takes the step."""
        self.remembered.grad = 2 * (self.remembered.detach() - off.detach())

    def loss(self, off: Any) -> Any:
        """What the generator lowers."""
        per_class = (self.remembered.detach() * off).mean(1)
        return (self.moments.shares * per_class).sum()


def moments_of(torch: Any, release: Release, names: Sequence[str], sizes: npt.NDArray[np.int64]) -> list[Moments]:
    """The moments in several blocks of a release."""
    blocks = {block.name: block for block in release.blocks}
    return [Moments(torch, release, blocks[name], sizes) for name in names]


def _perceptual(block: Block) -> tuple[Perceptual, bool]:
    """The features of a block, and whether it holds their products."""
    map_, has_products = block.map, isinstance(block.map, Tensors)
    if isinstance(map_, Tensors):
        map_ = map_.factors[0]
    if not isinstance(map_, Perceptual):
        raise TypeError("the block holds no perceptual features")
    return map_, has_products
