"""Discrete Gaussian and discrete Laplace noise on integers, from the operating system's randomness, without a seed.

Long vectors are drawn at once by the rejection sampler of Canonne, Kamath & Steinke 2020: discrete Laplace proposals,
of which a Bernoulli(exp(-x)) trial keeps those that make a discrete Gaussian. Every random choice in it is whether a
uniform U lies below exp(-x) for a rational x. Floats settle that where the error bound allows; the others, about one in
2^38, are settled with as many digits and random bits as it takes. No choice ever depends on a rounding.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from understudy.arrays import Integers, Truths
from understudy.private.spending import Receipt, redeem

Ratio = tuple[int, int]

UNIFORM_BITS = 53
"""Leading bits of a uniform that are drawn first: as many as a float64 holds exactly."""

EXP_ERROR = 2.0**-40
"""How far a float exp(-x) is trusted: thousands of times its error (proofs/noise.md)."""


class LongNoise:
    """Exact discrete samples of ours, for vectors so long that drawing one by one takes seconds.

    Guarantee:
        Each coordinate gets independent noise with mass at z proportional to
        exp(-z^2 / (2 noise_std^2)), or to exp(-|z| / scale), if the operating system's bytes are
        uniform (proofs/noise.md). There is no seed.
    """

    name = "Understudy's exact sampler, operating-system randomness"
    is_private = True

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        """Sums plus Gaussian noise; the plan sees to it that they stay far inside int64."""
        redeem(receipt)
        return sums + _rejection_sample(lambda count: _gaussian(count, noise_std), len(sums))

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        redeem(receipt)
        return sums + _rejection_sample(lambda count: _laplace(count, scale), len(sums))


def _rejection_sample(draw: Callable[[int], Integers], count: int) -> Integers:
    """As many draws as wanted, of a sampler that rejects some of its proposals."""
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        found = np.concatenate([found, draw(2 * (count - len(found)) + 16)])
    return found[:count]


def _gaussian(tries: int, deviation: int) -> Integers:
    """Discrete Gaussian draws: Laplace proposals, accepted with chance exp(-(|z| - s)^2 / (2 s^2)) for deviation s."""
    proposed = _laplace(tries, deviation)
    sizes = np.abs(proposed)
    kept = _bernoulli_exp(
        ((sizes - deviation) / deviation) ** 2 / 2, lambda i: ((int(sizes[i]) - deviation) ** 2, 2 * deviation**2)
    )
    return proposed[kept]


def _laplace(tries: int, scale: int) -> Integers:
    """Discrete Laplace draws: a geometric number of scales, a remainder r with chance exp(-r / scale), and a sign."""
    rest = _rejection_sample(lambda count: _uniform(count, scale), tries)
    rest = rest[_bernoulli_exp(rest / scale, lambda i: (int(rest[i]), scale))]
    sizes = rest + scale * _geometric(len(rest))
    is_negative = _random_bits(len(rest), 1) > 0
    once = (sizes > 0) | ~is_negative  # zero is there once, not with both signs
    return np.where(is_negative, -sizes, sizes)[once]


def _uniform(tries: int, limit: int) -> Integers:
    """Uniform integers from 0 to ``limit`` - 1."""
    drawn = _random_bits(tries, (limit - 1).bit_length())
    return drawn[drawn < limit]


def _geometric(count: int) -> Integers:
    """Geometric draws: successes of probability 1 / e before the first failure."""
    heads = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while len(going):
        going = going[_bernoulli_exp(np.ones(len(going)), lambda _: (1, 1))]
        heads[going] += 1
    return heads


def _random_bits(count: int, bits: int) -> Integers:
    """Uniform integers of so many bits, at most 63."""
    drawn = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return (drawn & np.uint64((1 << bits) - 1)).astype(np.int64)


def _bernoulli_exp(exponents: npt.NDArray[np.float64], exact: Callable[[int], Ratio]) -> Truths:
    """Bernoulli(exp(-x)) for each x: whether a fresh uniform U lies below exp(-x); ``exact`` gives x as a ratio."""
    drawn = _random_bits(len(exponents), UNIFORM_BITS)
    apart = drawn * 2.0**-UNIFORM_BITS - np.exp(-exponents)  # U lies at most 2^-53 above what was drawn
    below = apart < 0
    for i in np.flatnonzero(np.abs(apart) < EXP_ERROR):
        below[i] = _exact_bernoulli_exp(int(drawn[i]), exact(int(i)))
    return below


def _exact_bernoulli_exp(drawn: int, exponent: Ratio) -> bool:
    """The same for one U of which the first bits are known: more are drawn until there is no doubt."""
    bits = UNIFORM_BITS
    while True:
        drawn, bits = (drawn << 64) | int.from_bytes(os.urandom(8)), bits + 64
        digits = bits  # more than three times as fine as the bits
        with localcontext() as context:
            context.prec = digits
            power = (-Decimal(exponent[0]) / Decimal(exponent[1])).exp()
            error = Decimal(10) ** (12 - digits)  # of the quotient and of exp, many times over
            low, high = (power - error) * 2**bits, (power + error) * 2**bits
            if drawn + 1 <= low:
                return True
            if drawn >= high:
                return False


MOST_OPENDP_DRAWS = 4096
"""Numbers that OpenDP draws; it takes 30 microseconds for each."""


class NoiseSource(Protocol):
    """Where noise comes from. Every draw of a vector asks for the receipt that pays for it."""

    name: str
    is_private: bool

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        """Sums plus independent Gaussian noise of that deviation on every coordinate."""

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        """Sums plus independent Laplace noise of that scale on every coordinate."""


class OpenDPNoise:
    """Exact discrete samples by OpenDP, from the operating system's randomness.

    Guarantee:
        Each coordinate gets independent noise with mass at z proportional to
        exp(-z^2 / (2 noise_std^2)), or to exp(-|z| / scale) (Canonne, Kamath & Steinke 2020). There
        is no seed. Scales are whole and floats hold them exactly (proofs/noise.md).
    """

    name = "OpenDP, operating-system randomness"
    is_private = True

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        redeem(receipt)
        return _opendp_noise("gaussian", sums, scale=float(noise_std))

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        redeem(receipt)
        return _opendp_noise("laplace", sums, scale=float(scale))


def _opendp_noise(law: Literal["gaussian", "laplace"], sums: Integers, *, scale: float) -> Integers:
    """Sums plus noise; addition saturates at the ends of int64, which no plan comes near."""
    # One by one: OpenDP's prelude loads scikit-learn and pandas where they are installed.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    make, metric = {
        "gaussian": (measurements.make_gaussian, metrics.l2_distance(T="f64")),
        "laplace": (measurements.make_laplace, metrics.l1_distance(T="i64")),
    }[law]
    mechanism = make(domains.vector_domain(domains.atom_domain(T="i64")), metric, scale=scale)
    return np.asarray(mechanism(sums.tolist()), dtype=np.int64)


class ExactNoise:
    """What releases are made with: OpenDP, and for long vectors a sampler of ours, 40 times faster."""

    name = f"{OpenDPNoise.name}; vectors above {MOST_OPENDP_DRAWS} numbers: {LongNoise.name}"
    is_private = True

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        return _source_for(sums).add_noise(sums, noise_std, receipt)

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        return _source_for(sums).add_laplace_noise(sums, scale, receipt)


def _source_for(sums: Integers) -> NoiseSource:
    return OpenDPNoise() if len(sums) <= MOST_OPENDP_DRAWS else LongNoise()


class SeededNoise:
    """Repeatable noise for tests. A release made with it is not private and says so."""

    name = "seeded pseudo-random numbers, for tests only"
    is_private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        redeem(receipt)
        return sums + np.rint(self._rng.normal(0.0, noise_std, len(sums))).astype(np.int64)

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        redeem(receipt)
        return sums + np.rint(self._rng.laplace(0.0, scale, len(sums))).astype(np.int64)
