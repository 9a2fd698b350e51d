"""A row's batch, by a public draw from its own numbers: batches that no other row has a say in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.features.base import MAP_KINDS, Array, CountTable, FeatureGroup, FeatureMap, OwnPlaces, Sign
from understudy.features.exact import exact_weights
from understudy.features.points import uniforms
from understudy.schema import Layout

SPREAD = 64.0
"""Weights reach this far, so that a step of one number turns the draw around."""


@MAP_KINDS.register("buckets")
@dataclass(frozen=True)
class Buckets(FeatureMap):
    """One-hot: which of ``count`` batches a row is in, namely the fraction of a random sum of its numbers.

    Were batches dealt out by the rows' order, one row more could move all others to other batches.
    """

    numbers: tuple[int, ...]
    count: int
    seed: int
    is_differentiable = False
    words = "rows in each batch"

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 2**16:
            raise ValueError("there are 1 to 65,536 batches")

    @property
    def dim(self) -> int:
        """Number of batches."""
        return self.count

    @property
    def sign(self) -> Sign:
        """Counts are never negative."""
        return Sign.NONNEGATIVE

    @property
    def most_nonzeros(self) -> int:
        """A row is in one batch."""
        return 1

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The rows of each batch."""
        return (CountTable((OwnPlaces("buckets", self.count),), 0, 1.0),)

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """All numbers together decide on the batch."""
        return (FeatureGroup(tuple(layout.numbers[number] for number in self.numbers), np.arange(self.dim)),)

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """Weights of the numbers, rounded so that sums are exact.  # (numbers, 1)"""
        draws = uniforms(self.seed, len(self.numbers))[:, None]
        return exact_weights((2 * draws - 1) * SPREAD)

    def __call__(self, cells: Array) -> Array:
        """Memberships.  # (num_rows, count)"""
        xp = array_api_compat.array_namespace(cells)
        sums = xp.astype(cells[:, list(self.numbers)], xp.float64) @ xp.asarray(self.weights)
        batch = xp.floor((sums - xp.floor(sums)) * self.count)
        return xp.astype(batch == xp.arange(self.count, dtype=xp.float64), cells.dtype)
