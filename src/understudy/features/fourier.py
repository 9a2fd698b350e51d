"""Random Fourier features of Gaussian kernels over the numbers of a row.

Rahimi & Recht 2007 in the cos/sin form, whose norm is exactly one (the offset-cosine form,
with norm up to sqrt 2, is what other implementations get wrong).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import array_api_compat
import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from understudy.features.base import MAP_KINDS, Array, Sign
from understudy.features.draws import uniforms
from understudy.features.exact import exact_weights


class Scales(NamedTuple):
    """One part of a kernel: Gaussians over ``size`` numbers at a time.

    Which numbers is drawn at public random for each frequency, and so is the length scale,
    log-uniformly between ``shortest`` and ``longest``. A plain Gaussian kernel has ``size``
    equal to the number of columns and both scales equal.
    """

    size: int
    shortest: float
    longest: float


@dataclass(frozen=True)
class Fourier:
    """phi(x) = sqrt(2/dim) [cos(2 pi F x), sin(2 pi F x)], with E phi(x).phi(x') = k(x, x').

    k is the average over ``parts``, over the draws of their columns S and scale l, of
    exp(-sum_{j in S} (x_j - x'_j)^2 / (2 (l length_scales_j)^2)), with x in units of each
    column's public range. Parts take frequencies in turn.

    Frequencies F (in turns) are rounded so that F x is exact (``exact_weights``).
    """

    numbers: tuple[int, ...]
    length_scales: tuple[float, ...]
    parts: tuple[Scales, ...]
    num_features: int
    seed: int
    _cache: dict[str, Array] = field(default_factory=dict, compare=False, repr=False)

    @property
    def dim(self) -> int:
        """Number of features: a cosine and a sine per frequency."""
        return self.num_features

    @property
    def sign(self) -> Sign:
        """Two rows' features may point in opposite directions."""
        return Sign.SIGNED

    @cached_property
    def frequencies(self) -> npt.NDArray[np.float64]:
        """F in turns per unit of position.  # (numbers, dim / 2)"""
        count, width = self.num_features // 2, len(self.numbers)
        draws = uniforms(self.seed, count * (2 * width + 1)).reshape(count, -1)
        part = np.asarray(self.parts)[np.arange(count) % len(self.parts)]  # (count, 3)
        size, shortest, longest = part.T
        scale = np.exp(np.log(shortest) + draws[:, -1] * np.log(longest / shortest))
        ranks = draws[:, width : 2 * width].argsort(axis=1).argsort(axis=1)
        touched = ranks < size[:, None]
        normals = ndtri(draws[:, :width]) * touched
        turns = (normals / (scale[:, None] * np.asarray(self.length_scales)) / (2 * math.pi)).T
        return exact_weights(turns)

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        first, last = self.numbers[0], self.numbers[-1]
        in_order = self.numbers == tuple(range(first, last + 1))
        picked = cells[:, first : last + 1] if in_order else cells[:, list(self.numbers)]
        turns = picked @ self._frequencies_like(xp, cells)
        # The phase is exact up to here; its angle in single precision is off by 2e-7 at most,
        # a public rounding that quarters the cost of cos and sin.
        angles = xp.astype((turns - xp.round(turns)) * (2 * math.pi), xp.float32)
        features = xp.concat([xp.cos(angles), xp.sin(angles)], axis=1)
        return xp.astype(features * math.sqrt(2 / self.num_features), cells.dtype)

    def slice(self, start: int, stop: int) -> tuple[Fourier, npt.NDArray[np.int64]]:
        """A map with some of the frequencies, of norm one, and where its features lie here."""
        size = 2 * (stop - start)
        part = Fourier(self.numbers, self.length_scales, self.parts, size, self.seed)
        part.__dict__["frequencies"] = np.ascontiguousarray(self.frequencies[:, start:stop])
        half = np.arange(start, stop)
        return part, np.concatenate([half, half + self.num_features // 2])

    def _frequencies_like(self, xp: Any, cells: Array) -> Array:
        key = f"{xp.__name__} {cells.dtype}"
        if key not in self._cache:
            self._cache[key] = xp.asarray(self.frequencies, dtype=cells.dtype)
        return self._cache[key]

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {
            "kind": "fourier",
            "numbers": list(self.numbers),
            "length_scales": list(self.length_scales),
            "parts": [list(part) for part in self.parts],
            "num_features": self.num_features,
            "seed": self.seed,
        }


def _from_dict(document: dict[str, Any]) -> Fourier:
    return Fourier(
        numbers=tuple(int(number) for number in document["numbers"]),
        length_scales=tuple(float(scale) for scale in document["length_scales"]),
        parts=tuple(Scales(int(s), float(low), float(high)) for s, low, high in document["parts"]),
        num_features=int(document["num_features"]),
        seed=int(document["seed"]),
    )


MAP_KINDS["fourier"] = _from_dict
