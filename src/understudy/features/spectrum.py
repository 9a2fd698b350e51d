"""Features of images by their DCT or PCA coefficients: weighted and norm-clipped, norms in bins, sides of planes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.codec import FLAT, OMIT_DEFAULT
from understudy.features.base import MAP_KINDS, Array, CountTable, FeatureMap, OwnPlaces, Sign, constant_like
from understudy.features.exact import exact_weights
from understudy.features.image_bases import UNIT, Cosines, Principal
from understudy.schema.images import ImageShape

Basis = Cosines | Principal
NUM_BINS = 64
"""Bins of the histogram of lengths, on a logarithmic scale."""

OCTAVES = 12
"""How many times length doubles over the histogram."""

UNIT_BITS = 20
"""Coefficients are rounded to 2^-20 of the unit of length before they are squared."""

FAR = 2.0
"""Coefficients are clipped to two units, so that as whole numbers they are 2^21 at most."""

MOST_COEFFICIENTS = 2048
"""Sums of so many squares of 2^21 are 2^53: exact in float64, whatever the order."""

ROOM = 1 + 2.0**-15
"""Lengths of rounded coefficients may be too short by this factor at most."""


@dataclass(frozen=True)
class Weighted:
    """The lowest coefficients of the first columns, times frequency to the power ``tilt``.

    They are cosine coefficients, or those of principal directions of public images.

    Low frequencies of images are large and high ones small. Noise is the same on all, so weights
    that grow with frequency spread it more evenly over what there is to see.
    """

    shape: ImageShape
    count: int
    tilt: float
    principal: Principal | None = field(default=None, metadata=OMIT_DEFAULT)
    cache: dict[str, Array] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        most = len(self.principal.spread) if self.principal else self.shape.num_pixels
        if not 1 <= self.count <= min(most, MOST_COEFFICIENTS):
            raise ValueError("there are not so many coefficients")
        if self.principal is not None and self.principal.shape != self.shape:
            raise ValueError("the basis is of other images")

    @cached_property
    def basis(self) -> Basis:
        """What images are expanded in."""
        return self.principal or Cosines(self.shape)

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """What each coefficient is times.  # (count,)"""
        return self.basis.frequencies[: self.count] ** self.tilt

    @cached_property
    def matrix(self) -> npt.NDArray[np.float64]:
        """From pixels to weighted coefficients, rounded so that products are exact."""
        return exact_weights(self.basis.matrix(self.count) * self.weights)

    @property
    def longest(self) -> float:
        """No image is longer; rounded directions have a margin."""
        margin = 1 + len(self.principal.spread) / UNIT if self.principal else 1.0
        largest = float(self.basis.frequencies[self.count - 1] ** self.tilt)
        return math.sqrt(self.shape.num_pixels) * largest * margin

    def __call__(self, cells: Array) -> Array:
        """Weighted coefficients.  # (num_rows, count)"""
        return cells[:, : self.shape.num_pixels] @ constant_like(cells, self.matrix, self.cache)

    def squares(self, values: Array, unit: float) -> Array:
        """Squared lengths in units of ``unit``, the same whatever rows stand around.  # (num_rows,)

        Sums of squares of whole numbers are exact; a coefficient beyond two units counts as two.
        """
        xp = array_api_compat.array_namespace(values)
        scale = 2.0**UNIT_BITS
        whole = xp.round(xp.clip(values / unit, -FAR, FAR) * scale)
        return xp.sum(whole**2, axis=1) / scale**2


@MAP_KINDS.register("spectrum")
@dataclass(frozen=True)
class Spectrum(FeatureMap):
    """Weighted coefficients over the clipping norm ``reach``: longer vectors are scaled down to norm 1."""

    weighted: Weighted = field(metadata=FLAT)
    reach: float
    words = "low frequencies of images"
    sign = Sign.SIGNED  # waves have troughs

    def __post_init__(self) -> None:
        if not self.reach > 0:
            raise ValueError("the reach is above zero")

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return self.weighted.count

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        values = self.weighted(cells)
        longer = xp.sqrt(xp.clip(self.weighted.squares(values, self.reach), 1.0, None))
        return xp.clip(values / self.reach, -FAR, FAR) / (longer * ROOM)[:, None]


@MAP_KINDS.register("lengths")
@dataclass(frozen=True)
class Lengths(FeatureMap):
    """Which of several bins an image's weighted length is in; each is longer by a constant factor."""

    weighted: Weighted = field(metadata=FLAT)
    dim = NUM_BINS
    is_differentiable = False
    words = "images of each length"
    sign = Sign.NONNEGATIVE  # counts are never negative

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The histogram of lengths."""
        return CountTable.in_turn([(OwnPlaces("lengths", NUM_BINS),)])

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """Upper edges, the last of which no image passes.  # (NUM_BINS,)"""
        steps = np.arange(1 - NUM_BINS, 1) * (OCTAVES / NUM_BINS)
        return np.asarray(self.weighted.longest * 2.0**steps)

    def __call__(self, cells: Array) -> Array:
        """Memberships.  # (num_rows, NUM_BINS)"""
        xp = array_api_compat.array_namespace(cells)
        unit = self.weighted.longest
        squares = self.weighted.squares(self.weighted(cells), unit)
        edges = xp.asarray((self.edges[:-1] / unit) ** 2, dtype=cells.dtype)
        bins = xp.sum(xp.astype(squares[:, None] > edges[None, :], cells.dtype), axis=1)
        return xp.astype(bins[:, None] == xp.arange(NUM_BINS, dtype=cells.dtype), cells.dtype)


@MAP_KINDS.register("sides")
@dataclass(frozen=True)
class Sides(FeatureMap):
    """One-hot of 2^s parts of a class, cut by s hyperplanes of its own: a mixture's components within the class.

    A plane holds the images whose ``weighted`` coefficients, times its ``normals``, add up to its
    ``offsets``. Planes of a class are next to one another.
    """

    weighted: Weighted
    classes: tuple[int, int] | None
    normals: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]
    is_differentiable = False
    words = "images in each part of a class"
    sign = Sign.NONNEGATIVE  # counts are never negative

    def __post_init__(self) -> None:
        if len(self.normals) != len(self.offsets) or len(self.normals) % self.num_classes:
            raise ValueError("every plane has an offset, and every class as many planes")
        sizes = {len(normal) for normal in self.normals}
        if not 1 <= self.num_planes <= 4 or sizes != {self.weighted.count}:
            raise ValueError("a class has one to four planes, each of all coefficients")

    @property
    def num_classes(self) -> int:
        """Classes, or 1 without any."""
        return self.classes[1] - self.classes[0] if self.classes else 1

    @property
    def num_planes(self) -> int:
        """Planes of a class."""
        return len(self.normals) // self.num_classes

    @property
    def dim(self) -> int:
        """Parts of a class."""
        return int(2**self.num_planes)

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The images of each part."""
        return CountTable.in_turn([(OwnPlaces("sides", self.dim),)])

    @cached_property
    def weights(self) -> npt.NDArray[np.float64]:
        """What pixels are times, rounded so that sums are exact.  # (num_pixels, planes)"""
        return exact_weights(self.weighted.matrix @ np.asarray(self.normals).T)

    def __call__(self, cells: Array) -> Array:
        """Memberships.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        exact = xp.astype(cells, xp.float64)
        heights = exact[:, : self.weighted.shape.num_pixels] @ xp.asarray(self.weights)
        above = xp.astype(heights > xp.asarray(self.offsets, dtype=xp.float64), xp.float64)
        above = xp.reshape(above, (-1, self.num_classes, self.num_planes))
        if self.classes is not None:
            above = above * exact[:, self.classes[0] : self.classes[1], None]
        sides = xp.astype(xp.sum(above, axis=1) > 0.5, xp.float64)
        places = sides @ xp.asarray(2.0 ** np.arange(self.num_planes))
        return xp.astype(places[:, None] == xp.arange(self.dim, dtype=xp.float64), cells.dtype)
