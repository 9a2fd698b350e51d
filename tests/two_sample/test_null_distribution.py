"""The null null against laws that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from understudy.accounting.mechanisms import GAUSSIAN, LAPLACE, Mechanism
from understudy.two_sample.null_distribution import Contrast, Lengths, Noise, NullDistribution, Pull, View, draw_null
from understudy.two_sample.statistic import detectable, holm, p_value


def whole(size: int) -> View:
    return View(("x",), csr_array(np.eye(size)))


def plain(noise: float, size: int, *, rows: object = None) -> Contrast:
    zeros = np.zeros(size)
    return Contrast(zeros, [Noise(zeros + noise)], zeros, Pull(zeros, 0.0), rows, [whole(size)])


def lengths(null: NullDistribution) -> Lengths:
    return null.lengths(np.arange(len(null.means)), np.ones(len(null.means)))


def test_noise_alone_gives_chi_squares() -> None:
    null = draw_null([plain(2.0, 5)], sampling=0.0, num_draws=20_000, rng=np.random.default_rng(0))
    assert stats.kstest(lengths(null).draws / 4, stats.chi2(5).cdf).pvalue > 1e-3
    assert null.spread[0] == pytest.approx(5 * 2.0**4, rel=0.05)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_add_their_own_covariance(is_sparse: bool) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3)) @ np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 2.0]])
    given = csr_array(rows) if is_sparse else rows
    contrasts = [plain(1.0, 3, rows=given)]
    null = draw_null(contrasts, sampling=7.0, num_draws=40_000, rng=rng)
    covariance = np.eye(3) + 7 * np.cov(rows.T)
    assert lengths(null).draws.mean() == pytest.approx(np.trace(covariance), rel=0.04)
    assert lengths(null).draws.var() == pytest.approx(2 * np.trace(covariance @ covariance), rel=0.1)
    assert lengths(null).inner.var() == pytest.approx(np.trace(covariance @ covariance), rel=0.1)
    assert null.selves[0] == pytest.approx((rows**2).sum(axis=1).mean())


def test_an_estimated_row_count_takes_its_direction_away() -> None:
    mean = np.array([0.6, 0.3, 0.1])
    pull = Pull(mean, float(mean @ mean))
    contrast = Contrast(5 * mean, [Noise(np.ones(3))], mean, pull, None, [whole(3)])
    null = draw_null([contrast], sampling=0.0, num_draws=20_000, rng=np.random.default_rng(2))
    assert stats.kstest(lengths(null).draws, stats.chi2(2).cdf).pvalue > 1e-3
    assert lengths(null).inner.var() == pytest.approx(2, rel=0.1)
    assert lengths(null).observed == pytest.approx(0.0, abs=1e-9)


def test_a_part_is_not_asked_for_the_row_count_of_another() -> None:
    """What differs in one part, and is taken for more rows there, leaves the other alone."""
    mean, ones = np.full(2, 0.5), np.ones(2)
    parts = [
        Contrast(apart, [Noise(ones)], mean, Pull(mean, 0.5), None, [whole(2)])
        for apart in (np.array([40.0, 0.0]), np.zeros(2))
    ]
    null = draw_null(parts, sampling=0.0, num_draws=200, rng=np.random.default_rng(8))
    alone, both = (null.lengths(np.array(views), np.ones(2)) for views in ([1], [0, 1]))
    assert alone.observed == 0
    assert both.observed == pytest.approx(30**2 + 10**2 + 2 * 10**2)


def test_a_count_that_is_far_noisier_moves_everything_together() -> None:
    pull, nothing = Pull(np.ones(1), 1.0), Pull(np.zeros(2), 0.0)
    count = Contrast(np.zeros(1), [Noise(np.array([50.0]))], np.ones(1), pull, None, [], is_count=True)
    mean = np.array([0.5, 0.5])
    cells = Contrast(np.zeros(2), [Noise(np.ones(2))], mean, nothing, None, [whole(2)])
    null = draw_null([count, cells], sampling=0.0, num_draws=20_000, rng=np.random.default_rng(3))
    assert lengths(null).draws.mean() == pytest.approx(2 + 50**2 * mean @ mean, rel=0.05)


def test_draws_come_in_chunks_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> float:
        null = draw_null([plain(1.0, 4)], sampling=0.0, num_draws=101, rng=np.random.default_rng(4))
        drawn = lengths(null).draws
        assert drawn.shape == (102,)
        assert (drawn > 0).all()
        return float(drawn.sum())

    whole = drawn()
    monkeypatch.setattr("understudy.two_sample.null_distribution.CHUNK_NUMBERS", 40)
    assert drawn() == pytest.approx(whole)


@pytest.mark.parametrize("mechanism", [GAUSSIAN, LAPLACE])
def test_noise_has_the_deviation_that_a_reading_states_and_its_law(mechanism: Mechanism) -> None:
    noise = Noise(np.array([0.5, 3.0]), mechanism)
    drawn = noise.draw(np.random.default_rng(5), 200_000)
    assert drawn.std(axis=0) == pytest.approx([0.5, 3.0], rel=0.02)
    assert stats.kurtosis(drawn, axis=0, fisher=False) == pytest.approx([mechanism.kurtosis] * 2, rel=0.08)


def test_the_noise_of_two_releases_adds_up() -> None:
    zeros, noise = np.zeros(2), [Noise(np.full(2, 3.0)), Noise(np.full(2, 4.0))]
    contrast = Contrast(zeros, noise, zeros, Pull(zeros, 0.0), None, [whole(2)])
    null = draw_null([contrast], sampling=0.0, num_draws=20_000, rng=np.random.default_rng(9))
    assert lengths(null).draws.mean() == pytest.approx(2 * 25, rel=0.05)


@pytest.mark.parametrize("p", [0.5, 0.05, 1e-3, 1e-5])
def test_a_p_value_is_that_of_a_sum_of_chi_squares(p: float) -> None:
    draws = np.random.default_rng(6).chisquare(12, 4000)
    found = p_value(float(stats.chi2(12).isf(p)), draws)
    assert math.log10(found) == pytest.approx(math.log10(p), abs=0.35)


def test_a_p_value_is_never_zero_while_draws_lie_beyond() -> None:
    draws = np.arange(1000.0)
    assert p_value(-1.0, draws) == 1.0
    assert p_value(950.0, draws) == pytest.approx(51 / 1001)
    assert 0 < p_value(1e3, draws) <= 20 / 1001


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_what_is_detectable_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(7)
    errors = rng.normal(size=(40_000, 10))
    draws, inner = (errors**2).sum(axis=1), (errors[0::2] * errors[1::2]).sum(axis=1)
    threshold = float(stats.chi2(10).isf(0.05))
    length = detectable(draws, inner, threshold)
    power = stats.ncx2(10, length**2).sf(threshold)
    assert power == pytest.approx(0.8, abs=0.02)
