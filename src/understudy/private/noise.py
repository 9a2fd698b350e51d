"""Discrete Gaussian and Laplace noise on integers, from a source without a seed."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.private.long_noise import LongNoise

Integers = npt.NDArray[np.int64]

LONGEST = 4096
"""Numbers that OpenDP draws; it takes 30 microseconds for each."""


class NoiseSource(Protocol):
    """Where noise comes from."""

    name: str
    is_private: bool

    def add_noise(self, sums: Integers, noise_std: int) -> Integers:
        """Sums plus independent Gaussian noise of that deviation on every coordinate."""

    def add_laplace_noise(self, sums: Integers, scale: int) -> Integers:
        """Sums plus independent Laplace noise of that scale on every coordinate."""


class OpenDPNoise:
    """Exact discrete samples by OpenDP, from the operating system's randomness.

    Guarantee:
        Each coordinate gets independent noise with mass at z proportional to
        exp(-z^2 / (2 noise_std^2)), or to exp(-|z| / scale) (Canonne, Kamath & Steinke 2020). There
        is no seed. Scales are whole and floats hold them exactly.
    """

    name = "OpenDP, operating-system randomness"
    is_private = True

    def add_noise(self, sums: Integers, noise_std: int) -> Integers:
        """Sums plus noise; addition saturates at the ends of int64, which no plan comes near."""
        # One by one: OpenDP's prelude loads scikit-learn and pandas where they are installed.
        from opendp import domains, measurements, metrics, mod

        mod.enable_features("contrib")
        vectors = domains.vector_domain(domains.atom_domain(T="i64"))
        space = vectors, metrics.l2_distance(T="f64")
        mechanism = measurements.make_gaussian(*space, scale=float(noise_std))
        return np.asarray(mechanism(sums.tolist()), dtype=np.int64)

    def add_laplace_noise(self, sums: Integers, scale: int) -> Integers:
        """The same with Laplace noise."""
        from opendp import domains, measurements, metrics, mod

        mod.enable_features("contrib")
        vectors = domains.vector_domain(domains.atom_domain(T="i64"))
        space = vectors, metrics.l1_distance(T="i64")
        laplace = measurements.make_laplace(*space, scale=float(scale))
        return np.asarray(laplace(sums.tolist()), dtype=np.int64)


class ExactNoise:
    """What releases are made with: OpenDP, and for long vectors a sampler of ours, 40 times faster."""

    name = f"{OpenDPNoise.name}; vectors above {LONGEST} numbers: {LongNoise.name}"
    is_private = True

    def add_noise(self, sums: Integers, noise_std: int) -> Integers:
        """Sums plus exact discrete Gaussian noise."""
        return _source_for(sums).add_noise(sums, noise_std)

    def add_laplace_noise(self, sums: Integers, scale: int) -> Integers:
        """Sums plus exact discrete Laplace noise."""
        return _source_for(sums).add_laplace_noise(sums, scale)


def _source_for(sums: Integers) -> NoiseSource:
    return OpenDPNoise() if len(sums) <= LONGEST else LongNoise()


class SeededNoise:
    """Repeatable noise for tests. A release made with it is not private and says so."""

    name = "seeded pseudo-random numbers, for tests only"
    is_private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def add_noise(self, sums: Integers, noise_std: int) -> Integers:
        """Sums plus rounded pseudo-random Gaussian noise."""
        return sums + np.rint(self._rng.normal(0.0, noise_std, len(sums))).astype(np.int64)

    def add_laplace_noise(self, sums: Integers, scale: int) -> Integers:
        """Sums plus rounded pseudo-random Laplace noise."""
        return sums + np.rint(self._rng.laplace(0.0, scale, len(sums))).astype(np.int64)
