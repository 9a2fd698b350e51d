from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from understudy.private.noise import OpenDPNoise, SeededNoise

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SCALES = [1, 2, 3, 10, 30, 1000, 2**40]
DRAWS = 40_000
FEWEST = 20  # expected draws in a bin
ALARM = 1e-9  # with seven scales, a true sampler fails once in a hundred million runs


def bin_edges_and_shares(std: float, draws: int) -> tuple[Integers, Floats]:
    """Upper edges of bins (the last is open) and the exact mass of each.

    Up to a thousand the mass function is summed over all integers within forty deviations;
    above, mass up to z is Phi((z + 1/2) / std) up to a relative error of 1 / std^2.
    """
    if std > 2000:
        edges = np.rint(ndtri(np.arange(1, 48) / 48) * std).astype(np.int64)
        cumulative = ndtr((edges + 0.5) / std)
    else:
        support = np.arange(-int(40 * std) - 40, int(40 * std) + 41)
        mass = np.exp(-(support.astype(float) ** 2) / (2 * std**2))
        total = np.cumsum(mass) / mass.sum()
        # Small scales are compared integer by integer, as far out as bins hold enough draws.
        wanted, chosen, last = FEWEST / draws if std < 15 else 1 / 48, [], 0.0
        for position, value in enumerate(total):
            if value - last >= wanted and 1 - value >= wanted:
                chosen.append(position)
                last = value
        edges, cumulative = support[chosen], total[chosen]
    return edges, np.diff(np.concatenate([[0.0], cumulative, [1.0]]))


def fit(draws: Integers, std: float) -> float:
    """Probability that a true sampler fits the mass function no better than these draws."""
    edges, shares = bin_edges_and_shares(std, len(draws))
    seen = np.bincount(np.searchsorted(edges, draws), minlength=len(shares))
    expected = shares * len(draws)
    assert expected.min() >= FEWEST
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(shares) - 1))


def noise_around(center: int, std: int, count: int = DRAWS) -> Integers:
    return OpenDPNoise().add_noise(np.full(count, center, dtype=np.int64), std) - center


def imitation(std: float, count: int = DRAWS, seed: int = 0) -> Integers:
    """A discrete Gaussian sampler of any deviation, from a generator with a seed."""
    rng = np.random.default_rng(seed)
    if std > 2000:
        return np.rint(rng.normal(0.0, std, count)).astype(np.int64)
    support = np.arange(-int(20 * std) - 20, int(20 * std) + 21)
    mass = np.exp(-(support.astype(float) ** 2) / (2 * std**2))
    return rng.choice(support, size=count, p=mass / mass.sum())


@pytest.mark.parametrize("std", SCALES)
def test_noise_has_the_exact_discrete_gaussian_mass_function(std: int) -> None:
    center = 123_456_789_012
    draws = np.concatenate(
        [noise_around(0, std, DRAWS // 2), noise_around(center, std, DRAWS // 2)]
    )
    assert fit(draws, std) > ALARM
    neighbours = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(neighbours) < 6 / np.sqrt(len(draws)), "neighbouring coordinates are correlated"


@pytest.mark.parametrize("std", SCALES)
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_deviation_five_percent_off_is_noticed(std: int, factor: float) -> None:
    assert fit(imitation(std), std) > ALARM
    assert fit(imitation(factor * std), std) < ALARM


@pytest.mark.parametrize("std", [10, 1000, 2**40])
def test_a_shift_by_a_tenth_of_a_deviation_is_noticed(std: int) -> None:
    assert fit(imitation(std) + round(0.1 * std), std) < ALARM


def test_two_calls_give_different_noise() -> None:
    one, other = noise_around(0, 2**30, 50), noise_around(0, 2**30, 50)
    assert (one != other).all()


def test_no_global_seed_reaches_the_noise() -> None:
    drawn = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002 (the attack)
        drawn.append(noise_around(0, 2**30, 50))
    assert (drawn[0] != drawn[1]).all()


PROCESSES = """
import os
import numpy as np
from understudy.private.noise import OpenDPNoise

def draw():
    return OpenDPNoise().add_noise(np.zeros(8, dtype=np.int64), 2**30).tolist()

draw()  # whatever a library sets up once, it has set up before the fork
for _ in range(2):
    if os.fork() == 0:
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw(), flush=True)
"""


def test_two_processes_give_different_noise_even_when_forked_from_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROCESSES], capture_output=True, text=True, check=True
    )
    lines = [*done.stdout.splitlines(), repr(noise_around(0, 2**30, 8).tolist())]
    assert len(lines) == len(set(lines)) == 4


@pytest.mark.parametrize("center", [0, -5, 2**61, -(2**61)])
def test_noise_lands_on_the_sum_it_was_given(center: int) -> None:
    assert np.abs(noise_around(center, 10, 100)).max() < 200


def test_only_noise_without_a_seed_calls_itself_private() -> None:
    assert OpenDPNoise().is_private
    assert not SeededNoise(0).is_private
    assert "tests only" in SeededNoise(0).name


def test_seeded_noise_is_repeatable() -> None:
    zeros = np.zeros(5, dtype=np.int64)
    one, other = (SeededNoise(3).add_noise(zeros, 1000) for _ in range(2))
    assert np.array_equal(one, other)
