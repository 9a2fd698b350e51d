"""Random Fourier features of a Gaussian kernel with one length scale per number.

Rahimi & Recht 2007 in the cos/sin form, whose norm is exactly one (the offset-cosine form,
with norm up to sqrt 2, is what other implementations get wrong).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from understudy.features.base import MAP_KINDS, Array, Sign
from understudy.schema.layout import POSITION_BITS

EXACT_BITS = 52
FINEST_FREQUENCY_BITS = 24


@dataclass(frozen=True)
class Fourier:
    """phi(x) = sqrt(2/dim) [cos(2 pi F x), sin(2 pi F x)], with E phi(x).phi(x') = k(x, x').

    The kernel is the average over ``length_scales`` of Gaussian kernels
    exp(-sum_j (x_j - x'_j)^2 / (2 l_j^2)): each scale has its own share of the frequencies.
    One entry of ``length_scales`` holds one l per number, in units of the number's public range.

    Frequencies F (in turns) are rounded to multiples of 2^-frequency_bits. Positions are
    multiples of 2^-16, so F x is a sum of products of integers below 2^53: exact in float64,
    whatever the blocking, order or padding of the matrix product (proofs/lattice.md).
    """

    numbers: tuple[int, ...]
    length_scales: tuple[tuple[float, ...], ...]
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
        count = self.num_features // 2
        # Raw bits of PCG64 are the same in every NumPy; its normal variates need not be.
        bits = np.random.PCG64(self.seed).random_raw(count * len(self.numbers))
        uniforms = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        normals = ndtri(uniforms).reshape(count, len(self.numbers))
        scales = np.asarray(self.length_scales)[np.arange(count) % len(self.length_scales)]
        turns = (normals / scales / (2 * math.pi)).T
        reach = float(np.abs(turns).sum(axis=0).max(initial=1.0))
        bits_left = min(FINEST_FREQUENCY_BITS, EXACT_BITS - POSITION_BITS - math.ceil(math.log2(reach + 1)))
        return np.ascontiguousarray(np.rint(turns * 2.0**bits_left) / 2.0**bits_left)

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        picked = cells[:, self.numbers[0] : self.numbers[-1] + 1] if self._contiguous else cells[:, list(self.numbers)]
        turns = picked @ self._frequencies_like(xp, cells)
        # The phase is exact up to here; its angle in single precision is off by 2e-7 at most,
        # a public rounding that quarters the cost of cos and sin.
        angles = xp.astype((turns - xp.round(turns)) * (2 * math.pi), xp.float32)
        return xp.concat([xp.cos(angles), xp.sin(angles)], axis=1) * math.sqrt(2 / self.num_features)

    def slice(self, start: int, stop: int) -> tuple[Fourier, npt.NDArray[np.int64]]:
        """A map with some of the frequencies, scaled to norm one, and where its features lie here."""
        part = Fourier(self.numbers, self.length_scales, 2 * (stop - start), self.seed)
        part.__dict__["frequencies"] = np.ascontiguousarray(self.frequencies[:, start:stop])
        half = np.arange(start, stop)
        return part, np.concatenate([half, half + self.num_features // 2])

    @property
    def _contiguous(self) -> bool:
        return self.numbers == tuple(range(self.numbers[0], self.numbers[-1] + 1))

    def _frequencies_like(self, xp: Any, cells: Array) -> Array:
        key = f"{xp.__name__} {cells.dtype}"
        if key not in self._cache:
            self._cache[key] = xp.asarray(self.frequencies, dtype=cells.dtype)
        return self._cache[key]

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {
            "kind": "fourier", "numbers": list(self.numbers), "num_features": self.num_features,
            "length_scales": [list(scales) for scales in self.length_scales], "seed": self.seed,
        }  # fmt: skip


MAP_KINDS["fourier"] = lambda document: Fourier(
    numbers=tuple(int(number) for number in document["numbers"]),
    length_scales=tuple(tuple(float(scale) for scale in scales) for scales in document["length_scales"]),
    num_features=int(document["num_features"]), seed=int(document["seed"]),
)  # fmt: skip
