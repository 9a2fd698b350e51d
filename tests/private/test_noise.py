from __future__ import annotations

import json
import random
import subprocess
import sys

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from receipts import unrecorded
from scipy.special import ndtr, ndtri
from scipy.stats import chi2

from understudy.private import noise
from understudy.private.noise import MOST_OPENDP_DRAWS, ExactNoise, LongNoise, NoiseSource, OpenDPNoise, SeededNoise
from understudy.private.spending import Receipt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SCALES = [1, 2, 3, 10, 30, 1000, 2**40]
SOURCES: list[NoiseSource] = [OpenDPNoise(), LongNoise()]
of_every_source = pytest.mark.parametrize("source", SOURCES, ids=["OpenDP", "long"])
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


def noise_around(center: int, std: int, count: int = DRAWS, *, source: NoiseSource = SOURCES[0]) -> Integers:
    return source.add_noise(np.full(count, center, dtype=np.int64), std, unrecorded()) - center


def imitation(std: float, count: int = DRAWS, seed: int = 0) -> Integers:
    """A discrete Gaussian sampler of any deviation, from a generator with a seed."""
    rng = np.random.default_rng(seed)
    if std > 2000:
        return np.rint(rng.normal(0.0, std, count)).astype(np.int64)
    support = np.arange(-int(20 * std) - 20, int(20 * std) + 21)
    mass = np.exp(-(support.astype(float) ** 2) / (2 * std**2))
    return rng.choice(support, size=count, p=mass / mass.sum())


@of_every_source
@pytest.mark.parametrize("std", SCALES)
def test_noise_has_the_exact_discrete_gaussian_mass_function(std: int, source: NoiseSource) -> None:
    center = 123_456_789_012
    draws = np.concatenate([noise_around(each, std, DRAWS // 2, source=source) for each in (0, center)])
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


@pytest.mark.parametrize("std", [1, 3, 1000, 2**40])
def test_choices_made_in_many_digits_have_the_same_mass_function(std: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "EXP_ERROR", 2.0)  # floats settle nothing any more
    assert fit(noise_around(0, std, 4000, source=LongNoise()), std) > ALARM


def test_floats_and_many_digits_agree_where_floats_are_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same first bits lead to the same choice, on both ways."""
    exponents = np.linspace(0.0, 30.0, 301)
    bits = np.random.default_rng(0).integers(0, 2**53, len(exponents))
    monkeypatch.setattr(noise, "_random_bits", lambda count, _: bits[:count])
    ratios = [(round(10 * x), 10) for x in exponents]
    by_floats = noise._bernoulli_exp(exponents, lambda i: ratios[i])
    monkeypatch.setattr(noise, "EXP_ERROR", 2.0)
    assert np.array_equal(by_floats, noise._bernoulli_exp(exponents, lambda i: ratios[i]))
    assert 0 < by_floats.sum() < len(bits)


def test_an_open_choice_is_settled_by_bits_that_are_drawn_anew() -> None:
    """The first 53 bits of exp(-1) leave it open whether U lies below it: chance decides."""
    with mpmath.workdps(50):
        bits = mpmath.exp(-1) * 2**53
        first_bits, share = int(mpmath.floor(bits)), float(mpmath.frac(bits))
    found = [noise._exact_bernoulli_exp(first_bits, (1, 1)) for _ in range(400)]
    assert abs(np.mean(found) - share) < 6 * np.sqrt(share * (1 - share) / 400)


def test_releases_draw_long_vectors_in_the_fast_way_and_short_ones_by_the_library() -> None:
    drawn = []

    class Watched:
        def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
            drawn.append(len(sums))
            return sums

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("understudy.private.noise.LongNoise", Watched)
        for count in (1, MOST_OPENDP_DRAWS, MOST_OPENDP_DRAWS + 1):
            ExactNoise().add_noise(np.zeros(count, dtype=np.int64), 10, unrecorded())
    assert drawn == [MOST_OPENDP_DRAWS + 1]


@of_every_source
def test_two_calls_give_different_noise(source: NoiseSource) -> None:
    one, other = (noise_around(0, 2**30, 50, source=source) for _ in range(2))
    assert (one != other).all()


@of_every_source
def test_no_global_seed_reaches_the_noise(source: NoiseSource) -> None:
    drawn = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002 (the attack)
        drawn.append(noise_around(0, 2**30, 50, source=source))
    assert (drawn[0] != drawn[1]).all()


PROCESSES = """
import os
import numpy as np
from understudy.private.noise import LongNoise, OpenDPNoise
from understudy.private.spending import Bill, charge

def draw():
    sources, paid = (LongNoise(), OpenDPNoise()), charge(Bill("none", "noise", None, 2, None), ledger=None, key=None)
    return [each.add_noise(np.zeros(8, dtype=np.int64), 2**30, paid).tolist() for each in sources]

draw()  # whatever a library sets up once, it has set up before the fork
for _ in range(2):
    if os.fork() == 0:
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw(), flush=True)
"""


def test_two_processes_give_different_noise_even_when_forked_from_one() -> None:
    done = subprocess.run([sys.executable, "-c", PROCESSES], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    numbers = [number for line in lines for drawn in json.loads(line) for number in drawn]
    assert len(set(numbers)) == len(numbers) == 3 * 16


@of_every_source
@pytest.mark.parametrize("center", [0, -5, 2**61, -(2**61)])
def test_noise_lands_on_the_sum_it_was_given(center: int, source: NoiseSource) -> None:
    assert np.abs(noise_around(center, 10, 100, source=source)).max() < 200


def test_only_noise_without_a_seed_calls_itself_private() -> None:
    assert all(source.is_private for source in (*SOURCES, ExactNoise()))
    assert not SeededNoise(0).is_private
    assert "tests only" in SeededNoise(0).name


def test_seeded_noise_is_repeatable() -> None:
    zeros = np.zeros(5, dtype=np.int64)
    one, other = (SeededNoise(3).add_noise(zeros, 1000, unrecorded()) for _ in range(2))
    assert np.array_equal(one, other)
