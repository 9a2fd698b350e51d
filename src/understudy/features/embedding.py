"""A weighted sum of blocks: what one row contributes to the released vector, and its size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import InputError
from understudy.features.base import FeatureMap, Sign, map_from_dict
from understudy.features.combine import Tensors
from understudy.features.tables import Tables

FINEST_ROUNDING = 2**24


@dataclass(frozen=True, slots=True)
class Block:
    """A feature map with a weight; ``per_label`` keeps one copy of its sum per label value.

    The weight is at most 1, so that squared norms on the lattice stay exact (proofs/lattice.md).
    """

    name: str
    map: FeatureMap
    weight: float
    per_label: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise ValueError("a block's weight lies above 0 and is at most 1")

    def radius(self, lattice: int) -> int:
        """The integer norm that the private side enforces on every row of this block."""
        return math.floor(self.weight * lattice)

    def rounding(self, lattice: int) -> tuple[int, int]:
        """At which integer norm a row's features are rounded, and what the whole numbers are times.

        Squares must stay exact in float64, so a plain block is rounded at 24 bits and multiplied
        up. A block of products rounds both halves of each: P products of norms r^2 at most have
        norm sqrt(P) r^2 <= radius. A row adds one whole number to a cell of each of T tables.
        """
        radius = self.radius(lattice)
        if isinstance(self.map, Tables):
            return math.isqrt(radius**2 // len(self.map.subsets)), 1
        if isinstance(self.map, Tensors):
            return math.isqrt(math.isqrt(radius**2 // len(self.map.subsets))), 1
        unit = max(1, lattice // FINEST_ROUNDING)
        return radius // unit, unit

    def scales(self, lattice: int) -> npt.NDArray[np.float64]:
        """What each feature is multiplied by on its way to the lattice.  # (dim,)"""
        radius, unit = self.rounding(lattice)
        if isinstance(self.map, Tables):
            return np.full(self.map.dim, radius * math.sqrt(len(self.map.subsets)))
        if not isinstance(self.map, Tensors):
            return np.full(self.map.dim, float(kept_radius(radius, self.map.dim) * unit))
        map_ = self.map
        of_half = {
            half: kept_radius(radius, map_.size_of(half))
            for halves in map_.halves
            for half in halves
        }
        products = [float(of_half[left] * of_half[right]) for left, right in map_.halves]
        return np.repeat(products, map_.sizes) * math.sqrt(len(map_.subsets))


def kept_radius(radius: int, dim: int) -> int:
    """What a feature vector of norm one is scaled to, so that it stays inside when rounded.

    A whole number, so that a feature of size one is not rounded at all.
    """
    return max(0, math.floor(radius - (math.sqrt(dim) / 2 + 1)))


@dataclass(frozen=True)
class Embedding:
    """Blocks in the order of the released vector.

    ``label`` is the span of cells of a choice; blocks with ``per_label`` are multiplied by its
    one-hot membership, so a row touches one label's copy only. With ``separate`` the copies
    and the unlabelled blocks are charged as separate releases that a row might touch all of,
    as in the first version of DP-MERF: looser, kept for comparison.

    Guarantee:
        ``squared_sensitivity`` bounds the squared Euclidean change of the integer sum between
        neighbouring tables, given only that every row of block b has integer norm at most
        ``b.radius(lattice)`` and the map's stated sign (proofs/sensitivity.md).
    """

    blocks: tuple[Block, ...]
    label: tuple[int, int] | None = None
    separate: bool = False

    def __post_init__(self) -> None:
        if len({block.name for block in self.blocks}) < len(self.blocks):
            raise ValueError("blocks need names of their own")

    @property
    def num_labels(self) -> int:
        """Number of label values, or 1 without a label."""
        return self.label[1] - self.label[0] if self.label else 1

    def copies(self, block: Block) -> int:
        """How many times a block stands in the vector."""
        return self.num_labels if block.per_label else 1

    @cached_property
    def dim(self) -> int:
        """Length of the released vector."""
        return sum(self.copies(block) * block.map.dim for block in self.blocks)

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """Where each block lies in the vector."""
        start, found = 0, {}
        for block in self.blocks:
            stop = start + self.copies(block) * block.map.dim
            found[block.name] = (start, stop)
            start = stop
        return found

    def block(self, name: str) -> Block:
        """The block with that name."""
        return {block.name: block for block in self.blocks}[name]

    def rows_of(self, name: str, vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One block of a vector, a row per copy.  # (copies, block dim)"""
        start, stop = self.spans[name]
        return vector[start:stop].reshape(self.copies(self.block(name)), -1)

    def squared_sensitivity(self, lattice: int, *, replace: bool) -> int:
        """Largest squared change of the integer sum when one row is added, removed or replaced."""
        return sum(self.mechanism_sensitivities(lattice, replace=replace))

    def mechanism_sensitivities(self, lattice: int, *, replace: bool) -> tuple[int, ...]:
        """Squared sensitivity of each separately charged release (one, unless ``separate``)."""
        square = {block.name: block.radius(lattice) ** 2 for block in self.blocks}
        if self.separate:
            return self._separate_sensitivities(square, replace=replace)
        if not replace:
            return (sum(square.values()),)
        same_label = sum(
            block.map.sign.replace_factor_squared * square[block.name] for block in self.blocks
        )
        other_label = sum(
            (2 if block.per_label else block.map.sign.replace_factor_squared) * square[block.name]
            for block in self.blocks
        )
        return (max(same_label, other_label) if self.label else same_label,)

    def _separate_sensitivities(self, square: dict[str, int], *, replace: bool) -> tuple[int, ...]:
        """One release per label value for the features, one for the counts (DP-MERF v1, Alg. 1)."""
        counts = sum(square[b.name] for b in self.blocks if b.map.sign is Sign.CONSTANT)
        features = [b for b in self.blocks if b.map.sign is not Sign.CONSTANT]
        per_class = sum(
            (max(2, b.map.sign.replace_factor_squared) if replace else 1) * square[b.name]
            for b in features
        )
        return ((2 if replace else 1) * counts, *([per_class] * self.num_labels))

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {
            "label": list(self.label) if self.label else None,
            "separate": self.separate,
            "blocks": [
                {
                    "name": b.name,
                    "weight": b.weight,
                    "per_label": b.per_label,
                    "map": b.map.to_dict(),
                }
                for b in self.blocks
            ],
        }


def embedding_from_dict(document: dict[str, Any]) -> Embedding:
    """Build an embedding from its public description."""
    try:
        return Embedding(
            blocks=tuple(
                Block(
                    str(b["name"]),
                    map_from_dict(b["map"]),
                    float(b["weight"]),
                    bool(b["per_label"]),
                )
                for b in document["blocks"]
            ),
            label=(int(document["label"][0]), int(document["label"][1]))
            if document["label"]
            else None,
            separate=bool(document["separate"]),
        )
    except (KeyError, TypeError, ValueError, IndexError):
        pass
    raise InputError("embedding", "its description is damaged", "Fetch the release again")
