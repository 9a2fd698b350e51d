"""On which sides of planes an image lies: the kinds of images that a class is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt

from understudy.features.base import MAP_KINDS, Array, Sign
from understudy.features.exact import exact_weights
from understudy.features.spectrum import Weighted, weighted_from_dict


@dataclass(frozen=True)
class Sides:
    """One-hot: which of 2^s parts of its class an image is in, by s planes that each class has to itself.

    A plane holds the images whose ``weighted`` coefficients, times its ``normals``, add up to its
    ``offsets``. Planes of a class are next to one another.
    """

    weighted: Weighted
    classes: tuple[int, int] | None
    normals: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]

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
    def sign(self) -> Sign:
        """Counts are never negative."""
        return Sign.NONNEGATIVE

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

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {
            "kind": "sides",
            "weighted": self.weighted.to_dict(),
            "offsets": list(self.offsets),
            "classes": list(self.classes) if self.classes else None,
            "normals": [list(normal) for normal in self.normals],
        }


def _load(document: dict[str, Any]) -> Sides:
    span = document["classes"]
    return Sides(
        weighted=weighted_from_dict(document["weighted"]),
        classes=(int(span[0]), int(span[1])) if span else None,
        normals=tuple(tuple(float(x) for x in normal) for normal in document["normals"]),
        offsets=tuple(float(offset) for offset in document["offsets"]),
    )


MAP_KINDS["sides"] = _load
