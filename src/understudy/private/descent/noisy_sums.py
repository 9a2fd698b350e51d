"""The exact sum of clipped integer gradients, with noise: all that leaves a step."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from understudy.accounting import lattice_noise_std
from understudy.arrays import Floats, Integers
from understudy.private.noise import NoiseSource


def noisy_sum(sums: Integers, *, radius: int, noise_multiplier: float, noise: NoiseSource) -> Floats:
    """A sum of integer vectors inside a radius plus discrete Gaussian noise, in units of the radius.

    Guarantee:
        If one row more or less moves ``sums`` by an integer vector of norm at most ``radius``, this is
        post-processing of a Gaussian mechanism whose noise is ``noise_multiplier`` sensitivities
        (proofs/descent.md). The noise depends on public numbers alone.
    """
    whole = lattice_noise_std(radius**2, 1 / Fraction(noise_multiplier) ** 2)
    return np.asarray(noise.add_noise(sums.ravel(), whole), dtype=np.float64) / radius
