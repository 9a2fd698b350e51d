"""Laplace noise as it ships, against its exact mass function."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from receipts import unrecorded
from scipy.stats import chi2, dlaplace

from understudy.accounting.mechanisms import LAPLACE
from understudy.private.noise import LongNoise, NoiseSource, OpenDPNoise, SeededNoise

Integers = npt.NDArray[np.int64]
SCALES = [1, 2, 3, 10, 30, 1000, 2**40]
SOURCES: list[NoiseSource] = [OpenDPNoise(), LongNoise()]
of_every_source = pytest.mark.parametrize("source", SOURCES, ids=["OpenDP", "long"])
DRAWS, BINS = 40_000, 40
ALARM = 1e-6  # a true sampler fails once in a million runs


def noise_around(center: int, scale: int, count: int = DRAWS, *, source: NoiseSource = SOURCES[0]) -> Integers:
    return source.add_laplace_noise(np.full(count, center, dtype=np.int64), scale, unrecorded()) - center


def mass_up_to(edges: Integers, scale: float) -> npt.NDArray[np.float64]:
    """Exact: mass at z is proportional to exp(-|z| / scale)."""
    return np.asarray(dlaplace(1 / scale).cdf(edges), dtype=np.float64)


def fit(draws: Integers, scale: float) -> float:
    """Probability that a true sampler fits the mass function no better than these draws."""
    shares = np.arange(1, BINS) / BINS
    edges = np.unique(np.floor(dlaplace(1 / scale).ppf(shares)).astype(np.int64))
    masses = np.diff(np.concatenate([[0.0], mass_up_to(edges, scale), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, draws), minlength=len(masses))
    expected = masses * len(draws)
    assert expected.min() >= 20
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(masses) - 1))


def imitation(scale: float, seed: int = 0) -> Integers:
    """The difference of two geometric variables is a discrete Laplace one."""
    rng = np.random.default_rng(seed)
    stop = -np.expm1(-1 / scale)
    one, other = rng.geometric(stop, (2, DRAWS))
    return np.asarray(one - other, dtype=np.int64)


@of_every_source
@pytest.mark.parametrize("scale", SCALES)
def test_noise_has_the_exact_discrete_laplace_mass_function(scale: int, source: NoiseSource) -> None:
    centers = 0, 123_456_789_012
    parts = [noise_around(center, scale, DRAWS // 2, source=source) for center in centers]
    draws = np.concatenate(parts)
    assert fit(draws, scale) > ALARM
    neighbours = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(neighbours) < 6 / np.sqrt(len(draws)), "neighbouring coordinates are correlated"


@pytest.mark.parametrize("scale", SCALES)
def test_noise_has_the_stated_mean_and_deviation(scale: int) -> None:
    draws = noise_around(0, scale) / LAPLACE.deviation(scale)
    assert abs(draws.mean()) < 6 / np.sqrt(DRAWS)
    # Squares have variance 5 (6 and more for scales near 1).
    assert abs((draws**2).mean() - 1) < 6 * np.sqrt(7 / DRAWS)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [0.93, 1.07])
def test_a_scale_seven_percent_off_is_noticed(scale: int, factor: float) -> None:
    assert fit(imitation(scale), scale) > ALARM
    assert fit(imitation(factor * scale), scale) < ALARM


def test_two_calls_give_different_noise() -> None:
    one, other = noise_around(0, 2**30, 50), noise_around(0, 2**30, 50)
    assert (one != other).all()


@pytest.mark.parametrize("center", [0, -5, 2**61, -(2**61)])
def test_noise_lands_on_the_sum_it_was_given(center: int) -> None:
    assert np.abs(noise_around(center, 10, 100)).max() < 300


def test_seeded_noise_is_repeatable_and_has_the_scale() -> None:
    zeros = np.zeros(DRAWS, dtype=np.int64)
    one, other = (SeededNoise(3).add_laplace_noise(zeros, 1000, unrecorded()) for _ in range(2))
    assert np.array_equal(one, other)
    assert not SeededNoise(3).is_private
    assert abs(np.abs(one).mean() / 1000 - 1) < 6 / np.sqrt(DRAWS)
