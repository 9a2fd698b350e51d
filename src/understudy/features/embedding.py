"""The embedding that a stage releases: weighted blocks of features, and the L1 or L2 sensitivity of their sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.codec import OMIT_DEFAULT
from understudy.errors import InputError
from understudy.features.base import FeatureMap, Norm, Sign
from understudy.features.combine import Tensors
from understudy.features.tables import Tables

FINEST_ROUNDING = 2**24
"""Integer norm at which features are rounded at most: squares of 24-bit integers add up exactly in float64."""

Map = TypeVar("Map", bound=FeatureMap)


@dataclass(frozen=True, slots=True)
class Block:
    """A feature map with a weight; ``per_label`` keeps one copy of its sum per label value.

    If ``with_unlisted``, rows whose label is none of its values have a copy too, the last one.

    The weight is the norm that a row may have in this block, of the kind that the noise is paid
    for by. It is at most 1, so that norms on the lattice stay exact (proofs/lattice.md).
    """

    name: str
    map: FeatureMap
    weight: float
    per_label: bool = False
    # Files from before there was Laplace noise name no norm, and earlier ones did not count unlisted labels.
    norm: Norm = field(default=Norm.L2, metadata=OMIT_DEFAULT)
    with_unlisted: bool = field(default=False, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise ValueError("a block's weight lies above 0 and is at most 1")

    def map_of(self, kind: type[Map]) -> Map:
        """The block's map, or the factor of its product, that is of a kind: for whoever planned the block.

        Raises:
            InputError: there is none, so that the plan is not what it says.
        """
        for found in (self.map, *self.map.components):
            if isinstance(found, kind):
                return found
        raise InputError("release", f"block '{self.name}' holds no {kind.__name__.lower()}", "Fetch it again")

    def radius(self, lattice: int) -> int:
        """The integer norm that the private side enforces on every row of this block."""
        return math.floor(self.weight * lattice)

    def reach(self, lattice: int) -> int:
        """What the block adds to the sensitivity: its squared radius for L2, its radius for L1."""
        radius = self.radius(lattice)
        return radius**2 if self.norm is Norm.L2 else radius

    @property
    def replace_factor(self) -> int:
        """Largest reach of the difference of two rows of one label, in reaches of one row."""
        factor = self.map.sign.replace_factor_squared
        return factor if self.norm is Norm.L2 else min(2, factor)

    @property
    def trust(self) -> float:
        """Precision (inverse variance) of the noise on a feature, up to a factor that all blocks share."""
        return (self.weight if self.norm is Norm.L2 else self.weight / self.map.l1_bound) ** 2

    def rounding(self, lattice: int) -> tuple[int, int]:
        """At which integer norm a row's features are rounded, and what the whole numbers are times.

        Squares must stay exact in float64, so a plain block of Euclidean norm is rounded at 24
        bits and multiplied up. A row adds one whole number to a cell of each of T tables.
        Products are rounded by ``half_radii``.
        """
        radius = self.radius(lattice)
        if isinstance(self.map, Tables):
            tables = len(self.map.subsets)
            if self.norm is Norm.L1:
                return radius // tables, 1
            return math.isqrt(radius**2 // tables), 1
        unit = max(1, lattice // FINEST_ROUNDING) if self.norm is Norm.L2 else 1
        return radius // unit, unit

    def half_radii(self, map_: Tensors, lattice: int) -> dict[tuple[int, ...], int]:
        """At which integer norm each half of a block of products is rounded.

        P products of halves of norm r have Euclidean norm sqrt(P) r^2 at most. L1 norms multiply,
        and halves of more features get more of it, in the same proportion as their own norms; their
        products must not add up to more than the radius.
        """
        radius = self.radius(lattice)
        halves = sorted({half for halves in map_.halves for half in halves})
        if self.norm is Norm.L2:
            common = math.isqrt(math.isqrt(radius**2 // len(map_.subsets)))
            return dict.fromkeys(halves, common)
        roots = {half: math.sqrt(map_.nonzeros_of(half)) for half in halves}
        unit = math.sqrt(radius / sum(roots[left] * roots[right] for left, right in map_.halves))
        while True:
            found = {half: math.floor(unit * root) for half, root in roots.items()}
            if sum(found[left] * found[right] for left, right in map_.halves) <= radius:
                return found
            unit *= 1 - 1e-9  # floats erred by a last digit

    def scales(self, lattice: int) -> npt.NDArray[np.float64]:
        """What each feature is multiplied by on its way to the lattice.  # (dim,)"""
        radius, unit = self.rounding(lattice)
        if isinstance(self.map, Tables):
            return np.full(self.map.dim, radius * math.sqrt(len(self.map.subsets)))
        if not isinstance(self.map, Tensors):
            kept = kept_radius(radius, self.map.dim, self.norm, self.map.most_nonzeros)
            return np.full(self.map.dim, float(kept * unit))
        map_, of_half = self.map, {}
        for half, own in self.half_radii(self.map, lattice).items():
            of_half[half] = kept_radius(own, map_.size_of(half), self.norm, map_.nonzeros_of(half))
        products = [float(of_half[left] * of_half[right]) for left, right in map_.halves]
        return np.repeat(products, map_.sizes) * math.sqrt(len(map_.subsets))


def kept_radius(radius: int, dim: int, norm: Norm = Norm.L2, nonzeros: int | None = None) -> int:
    """The norm that a unit feature vector is scaled to, so that rounding to integers leaves it inside the radius.

    A whole number, so that a feature of size one is not rounded at all. In an L1 ball a vector of
    k ``nonzeros`` has room for 1 / sqrt(k) of the radius, and rounding moves it by k / 2.
    """
    if norm is Norm.L2:  # rounding moves each coordinate by 1/2 at most, and the vector by sqrt(dim) / 2
        return max(0, math.floor(radius - (math.sqrt(dim) / 2 + 1)))
    count = dim if nonzeros is None else nonzeros
    return max(0, math.floor((radius - (count / 2 + 1)) / math.sqrt(count)))


@dataclass(frozen=True)
class Embedding:
    """Blocks in the order of the released vector; their sum over rows is a noisy mean embedding once divided by rows.

    ``label`` is the span of cells of a choice; blocks with ``per_label`` are multiplied by its
    one-hot membership, so a row touches one label's copy only. With ``separate`` the copies
    and the unlabelled blocks are charged as separate releases that a row might touch all of,
    as in the first version of DP-MERF: looser, kept for comparison.

    Guarantee:
        ``sensitivity`` bounds the change of the integer sum between neighbouring tables (its
        square, if norms are Euclidean), given only that every row of block b has integer norm at
        most ``b.radius(lattice)`` and the map's stated sign (proofs/sensitivity.md, laplace.md).
    """

    blocks: tuple[Block, ...]
    label: tuple[int, int] | None = None
    separate: bool = False

    def __post_init__(self) -> None:
        if len({block.name for block in self.blocks}) < len(self.blocks):
            raise ValueError("blocks need names of their own")
        if len({block.norm for block in self.blocks}) > 1:
            raise ValueError("the blocks of one vector have norms of one kind")

    @property
    def norm(self) -> Norm:
        """Which norm of a row its blocks bound."""
        return self.blocks[0].norm

    @property
    def num_labels(self) -> int:
        """Number of label values, or 1 without a label."""
        return self.label[1] - self.label[0] if self.label else 1

    def copies(self, block: Block) -> int:
        """How many times a block stands in the vector."""
        return self.num_labels + block.with_unlisted if block.per_label else 1

    @cached_property
    def dim(self) -> int:
        """Length of the released vector."""
        return sum(stop - start for start, stop in self.spans.values())

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """Where each block lies in the vector."""
        edges = accumulate((self.copies(block) * block.map.dim for block in self.blocks), initial=0)
        return dict(zip((block.name for block in self.blocks), pairwise(edges), strict=True))

    def block(self, name: str) -> Block:
        return {block.name: block for block in self.blocks}[name]

    def with_maps(self, kind: type[Map], change: Callable[[Map], FeatureMap]) -> Embedding:
        """The embedding with every map of a kind changed, in products too."""

        def changed(map_: FeatureMap) -> FeatureMap:
            return change(map_) if isinstance(map_, kind) else map_

        return replace(self, blocks=tuple(replace(b, map=b.map.rebuilt(changed)) for b in self.blocks))

    def with_map(self, name: str, map_: FeatureMap) -> Embedding:
        """The embedding with another map in one block."""
        return replace(self, blocks=tuple(replace(b, map=map_) if b.name == name else b for b in self.blocks))

    def rows_of(self, name: str, vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One block of a vector, a row per copy.  # (copies, block dim)"""
        start, stop = self.spans[name]
        return vector[start:stop].reshape(self.copies(self.block(name)), -1)

    def sensitivity(self, lattice: int, *, replace: bool) -> int:
        """L1 or squared L2 sensitivity of the integer sum: one row added or removed, or with ``replace`` replaced.

        A replaced row may keep its label or change it. If it changes, its two versions lie in different copies of a
        ``per_label`` block, orthogonal to one another, so that their squares (or L1 norms) add up.
        """
        reach = {block.name: block.reach(lattice) for block in self.blocks}
        if not replace:
            return sum(reach.values())
        same_label = sum(block.replace_factor * reach[block.name] for block in self.blocks)
        other_label = sum((2 if block.per_label else block.replace_factor) * reach[block.name] for block in self.blocks)
        return max(same_label, other_label) if self.label else same_label

    def mechanism_sensitivities(self, lattice: int, *, replace: bool) -> tuple[int, ...]:
        """Sensitivity of each release that is charged by itself, which add up: the vector is one release."""
        if not self.separate:
            return (self.sensitivity(lattice, replace=replace),)
        # One release per label value for the features, one for the counts (DP-MERF v1, Alg. 1); never less than
        # needed. ``dp_merf(separate_releases=True)`` compares with the paper so; no other plan is charged like this.
        counts = sum(b.reach(lattice) for b in self.blocks if b.map.sign is Sign.CONSTANT)
        features = [b for b in self.blocks if b.map.sign is not Sign.CONSTANT]
        per_class = sum((max(2, b.replace_factor) if replace else 1) * b.reach(lattice) for b in features)
        return ((2 if replace else 1) * counts, *([per_class] * self.num_labels))
