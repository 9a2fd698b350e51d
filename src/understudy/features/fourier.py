"""Random Fourier features of Gaussian kernels, and of scale mixtures of them, over the numbers of a row.

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

from understudy.features.base import MAP_KINDS, Array, FeatureGroup, FeatureMap, Piece, Sign, constant_like
from understudy.features.exact import PHASE_BITS, cosines_and_sines, phases_of
from understudy.features.points import uniforms
from understudy.schema import Layout
from understudy.schema.columns import POSITION_BITS

LAST_POSITION = 1 - 2.0**-POSITION_BITS
"""Positions above it are taken as it, so that a position has 16 bits."""

STEP_BITS = 15
"""A frequency is a whole number of steps for each column, with as many bits and a sign."""

FREQUENCY_BANDS = (0.75, 1.5, 3.0, 6.0, 12.0)
"""Turns per range of a column at which features are taken apart by how fine a structure they see."""

SLACK = 2.0**-22
"""Bound on how far sqrt(cos^2 + sin^2), of the polynomials in single precision, exceeds one; features are shortened
by as much, so that the norm bound holds (proofs/lattice.md)."""


class Scales(NamedTuple):
    """One part of a scale mixture of Gaussian kernels: Gaussians over ``size`` numbers at a time.

    Which numbers is drawn at public random for each frequency, and so is the length scale,
    log-uniformly between ``shortest`` and ``longest``. A plain Gaussian kernel has ``size``
    equal to the number of columns and both scales equal.
    """

    size: int
    shortest: float
    longest: float


@MAP_KINDS.register("fourier")
@dataclass(frozen=True)
class Fourier(FeatureMap):
    """phi(x) = sqrt(2/dim) [cos(2 pi F x), sin(2 pi F x)], with E phi(x).phi(x') = k(x, x').

    k is the average over ``parts``, over the draws of their columns S and scale l, of
    exp(-sum_{j in S} (x_j - x'_j)^2 / (2 (l length_scales_j)^2)), with x in units of each
    column's public range. Parts take frequencies in turn.

    Frequencies F (in turns) are rounded to 16 bits, the largest of each deciding on their unit, so that F x is exact,
    and a whole number of 2^-32 turns, for x on the grid of positions. Rounded at random, so to speak, they are still
    as good a draw: the kernel is multiplied by 1 - 1e-4 at most, where it is not zero already.
    """

    numbers: tuple[int, ...]
    length_scales: tuple[float, ...]
    parts: tuple[Scales, ...]
    num_features: int
    seed: int
    cache: dict[str, Array] = field(default_factory=dict, init=False, compare=False, repr=False)
    words = "waves over the numbers (random Fourier features)"
    sign = Sign.SIGNED  # two rows' features may point in opposite directions

    def __post_init__(self) -> None:
        if self.num_features < 2 or self.num_features % 2:
            raise ValueError("a frequency has a cosine and a sine")
        scales = [*self.length_scales, *(scale for part in self.parts for scale in part[1:])]
        if not all(0 < scale < math.inf for scale in scales):
            raise ValueError("length scales are positive and finite")

    @property
    def dim(self) -> int:
        """A cosine and a sine per frequency."""
        return self.num_features

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
        steps, bits = _in_steps(turns)
        return np.ascontiguousarray(steps * 2.0**-bits)

    @property
    def steps(self) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """F as whole numbers, and by how many bits their products with positions are shifted up to phases.

        # (numbers, dim / 2), (dim / 2,)
        """
        steps, bits = _in_steps(self.frequencies)
        return steps.astype(np.int16), PHASE_BITS - POSITION_BITS - bits

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        turns = self._turns(xp, cells)
        # Phases are exact for rows; single precision from here on is a public rounding of 3e-7 at most.
        if array_api_compat.is_numpy_namespace(xp):
            waves = cosines_and_sines(phases_of(turns))
        else:  # generators are trained through angles, which have gradients
            angles = xp.astype((turns - xp.round(turns)) * (2 * math.pi), xp.float32)
            waves = xp.cos(angles), xp.sin(angles)
        return xp.astype(xp.concat(waves, axis=1) * math.sqrt(2 / self.num_features), cells.dtype)

    def whole(self, cells: Array, target: int) -> npt.NDArray[np.float64]:
        """The features times ``target``, below 2^24, cut to whole numbers in single precision.

        # (num_rows, width) -> (num_rows, dim)
        """
        waves = cosines_and_sines(phases_of(self._turns(np, cells)))
        found: npt.NDArray[np.float32] = np.concatenate(waves, axis=1)
        found *= self.amplitude(target)
        return np.trunc(found, out=found).astype(np.float64)

    def amplitude(self, target: int) -> np.float32:
        """What ``whole`` multiplies cosines and sines by."""
        return np.float32(target * math.sqrt(2 / self.num_features) * (1 - SLACK))

    def _turns(self, xp: Any, cells: Array) -> Array:
        """Phases in turns; exact for positions of rows.  # (num_rows, dim / 2)"""
        first, last = self.numbers[0], self.numbers[-1]
        in_order = self.numbers == tuple(range(first, last + 1))
        picked = cells[:, first : last + 1] if in_order else cells[:, list(self.numbers)]
        return xp.clip(picked, max=LAST_POSITION) @ constant_like(cells, self.frequencies, self.cache)

    def slice(self, start: int, stop: int) -> tuple[Fourier, npt.NDArray[np.int64]]:
        """A map with some of the frequencies, of norm one, and where its features lie here."""
        size = 2 * (stop - start)
        part = Fourier(self.numbers, self.length_scales, self.parts, size, self.seed)
        part.__dict__["frequencies"] = np.ascontiguousarray(self.frequencies[:, start:stop])
        half = np.arange(start, stop)
        return part, np.concatenate([half, half + self.num_features // 2])

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """Frequencies of one column by that column, all others together, in bands from slow to fast."""
        turns = self.frequencies  # (numbers, count)
        touched = turns != 0
        speeds = np.digitize(np.sqrt((turns**2).sum(axis=0)), FREQUENCY_BANDS)
        own = np.where(touched.sum(axis=0) == 1, touched.argmax(axis=0), -1)
        found = []
        for which in np.unique(own):
            chosen = np.flatnonzero(own == which)
            numbers = self.numbers if which < 0 else (self.numbers[which],)
            features = np.concatenate([chosen, chosen + self.dim // 2])
            scale, bands = math.sqrt(self.dim / len(features)), np.tile(speeds[chosen], 2)
            columns = tuple(dict.fromkeys(layout.column_at(n) for n in numbers))  # weights of choices are turns too
            found.append(FeatureGroup(columns, features, scale, bands=bands))
        return tuple(found)

    def pieces(self, num_features: int, num_subsets: int) -> list[Piece]:
        """Runs of frequencies, which are drawn independently: any of them estimates the same kernel."""
        if self.dim <= num_features:
            return [(self, slice(None), 1.0)]
        step = num_features // 2
        cut = [self.slice(start, start + step) for start in range(0, self.dim // 2 - step + 1, step)]
        return [(piece, features, math.sqrt(self.dim / piece.dim)) for piece, features in cut]


def _in_steps(turns: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Frequencies as whole numbers below 2^15 of steps of 2^-bits turns each; done again it changes nothing.

    Steps are 2^-16 turns at the finest. Frequencies beyond 2^15 turns, which positions cannot show, are cut.
    # (numbers, count) -> (numbers, count), (count,)
    """
    largest = 2**STEP_BITS - 1
    kept = np.clip(turns, -largest, largest)
    reach = np.maximum(np.abs(kept).max(axis=0, initial=0.0), 2.0**-POSITION_BITS)
    bits = np.frexp(largest / reach)[1].astype(np.int64) - 1
    bits = np.minimum(bits, PHASE_BITS - POSITION_BITS)
    return np.rint(kept * 2.0**bits), bits
