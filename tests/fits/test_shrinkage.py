"""Estimates that do not believe noise: nothing comes of noise alone, and signal comes back nearer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from understudy.features import Cells
from understudy.fits.shrinkage import expected_counts, positive_counts, shrunk
from understudy.rules.denoise import centred

Floats = npt.NDArray[np.float64]
SHAPES = [(2, 2), (3, 8), (8, 3), (12, 12), (32, 20)]


def interaction(shape: tuple[int, int], rank: int, seed: int = 0) -> Floats:
    """A table of low rank whose rows and columns add up to nothing, of norm one."""
    rng = np.random.default_rng(seed)
    rows, columns = (rng.standard_normal((size, rank)) for size in shape)
    found = centred(rows @ columns.T)
    return np.asarray(found / np.linalg.norm(found))


def noisy(table: Floats, noise: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return centred(table + noise * rng.standard_normal(table.shape))


@pytest.mark.parametrize("shape", SHAPES)
def test_next_to_nothing_is_left_of_noise_alone(shape: tuple[int, int]):
    kept = sum((shrunk(noisy(np.zeros(shape), 1.0, seed), 1.0) ** 2).sum() for seed in range(200))
    given = sum((noisy(np.zeros(shape), 1.0, seed) ** 2).sum() for seed in range(200))
    # One number alone cannot be told from noise: a 2 by 2 table has one interaction.
    assert kept < (0.2 if shape == (2, 2) else 0.04) * given


@pytest.mark.parametrize(("shape", "rank"), [((3, 8), 1), ((8, 3), 1), ((12, 12), 1), ((12, 12), 3), ((32, 20), 2)])
def test_a_strong_signal_is_kept_and_comes_back_nearer_than_it_was_seen(shape: tuple[int, int], rank: int):
    signal = 40 * interaction(shape, rank)
    seen = [noisy(signal, 1.0, seed) for seed in range(50)]
    found = [shrunk(table, 1.0) for table in seen]
    before = np.mean([((table - signal) ** 2).sum() for table in seen])
    after = np.mean([((table - signal) ** 2).sum() for table in found])
    assert after < before
    if rank <= 0.2 * min(shape):
        assert after < 0.6 * before
    assert np.mean([(table * signal).sum() for table in found]) == pytest.approx(1600, rel=0.1)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_without_noise_to_speak_of_is_left_as_it_is(shape: tuple[int, int]):
    table = interaction(shape, min(shape) - 1)
    np.testing.assert_allclose(shrunk(table, 1e-9), table, atol=1e-6)


@pytest.mark.parametrize("size", [3.0, 6.0, 10.0, 20.0, 40.0])
def test_shrinking_never_costs_more_than_believing_the_table_or_nothing(size: float):
    signal = size * interaction((10, 14), 1)
    seen = [noisy(signal, 1.0, seed) for seed in range(100)]
    after = np.mean([((shrunk(table, 1.0) - signal) ** 2).sum() for table in seen])
    believed = np.mean([((table - signal) ** 2).sum() for table in seen])
    assert after <= min(believed, 1.1 * size**2)


def test_what_is_shrunk_still_adds_up_to_nothing_along_rows_and_columns():
    found = shrunk(noisy(30 * interaction((7, 9), 2), 1.0, 1), 1.0)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9)


# Counts that are not negative.

counts = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30).map(np.asarray)


@given(counts=counts, noise=st.floats(1e-3, 1e4), total=st.floats(1e-3, 1e6))
@settings(deadline=None)
def test_expected_counts_are_positive_and_add_up_to_the_total(counts: Floats, noise: float, total: float):
    found = expected_counts(counts, noise, total)
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert found.sum() == pytest.approx(total)


def test_counts_are_what_they_are_if_the_noise_is_tiny():
    counts = np.array([0.5, 3.0, 70.0, 1200.0])
    np.testing.assert_allclose(expected_counts(counts, 1e-6, counts.sum()), counts, rtol=1e-5)


def test_the_larger_count_is_expected_to_be_the_larger():
    seen = np.linspace(-400, 400, 801)
    found = expected_counts(seen, 10.0, 30_000.0)
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("count", [-30.0, -5.0, 0.0, 4.0, 25.0])
def test_expected_counts_are_posterior_means_by_quadrature(count: float):
    noise, mean = 6.0, 20.0
    others = 2 * mean - count  # two cells of that mean, so that the scale is known

    def posterior(seen: float) -> float:
        def weight(x: float) -> float:
            return float(np.exp(-x / mean) * norm.pdf(seen, x, noise))

        ends = (0.0, max(seen, 0.0) + 12 * noise)
        return quad(lambda x: x * weight(x), *ends)[0] / quad(weight, *ends)[0]

    exact = np.array([posterior(count), posterior(others)])
    found = expected_counts(np.array([count, others]), noise, 2 * mean)
    np.testing.assert_allclose(found, exact * 2 * mean / exact.sum(), rtol=1e-6)


def test_a_rare_category_below_zero_is_rare_and_not_impossible_but_a_number_may_be():
    seen = np.array([-20.0, 900.0, 120.0])
    choice, number = (Cells(0, 3, is_ordered=is_ordered) for is_ordered in (False, True))
    assert 0 < positive_counts(choice, seen, 10.0, 1000.0)[0] < 10
    np.testing.assert_allclose(positive_counts(number, seen, 10.0, 1000.0), [0, 890, 110])
