from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from understudy.rules.denoise import scale_to_total
from understudy.rules.tails import doubling_breaks, fit_tails

Floats = npt.NDArray[np.float64]
EDGES = np.arange(257) * 100
NOISE = 40.0


def bars_of(values: Floats, *, noise: float = NOISE, seed: int = 0) -> Floats:
    counts = np.histogram(values, bins=EDGES)[0]
    return np.asarray(counts + np.random.default_rng(seed).normal(0, noise, len(counts)))


def quantile(counts: Floats, part: float) -> float:
    below = np.append(0.0, np.cumsum(counts))
    return float(np.interp(part * below[-1], below, EDGES))


def denoised(counts: Floats, total: float, *, noise: float = NOISE) -> Floats:
    tails = fit_tails(EDGES, counts, np.full(len(counts), noise**2))
    return tails.put(scale_to_total(counts, total), total)


@pytest.mark.parametrize("shape", ["exponential", "pareto"])
def test_the_far_quantile_of_a_noisy_histogram_is_near_that_of_the_rows(shape: str) -> None:
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.exponential(800, 20_000) if shape == "exponential" else 1_500 * rng.pareto(3, 20_000)
        found = quantile(denoised(bars_of(values, seed=seed), 20_000), 0.999)
        errors.append(found / np.quantile(values, 0.999) - 1)
    assert np.median(np.abs(errors)) < 0.4
    assert max(errors) < 1.5


def test_beyond_a_sharp_end_there_are_hardly_any_rows() -> None:
    for seed in range(10):
        values = np.random.default_rng(seed).uniform(3_000, 8_500, 20_000)
        found = denoised(bars_of(values, seed=seed), 20_000)
        assert found.sum() == pytest.approx(20_000)
        assert found[90:].sum() + found[:25].sum() < 20


def test_a_value_that_repeats_stays_where_it_is_however_far() -> None:
    values = np.append(np.random.default_rng(0).uniform(0, 3_000, 19_000), np.full(1_000, 24_050.0))
    counts = bars_of(values)
    tails = fit_tails(EDGES, counts, np.full(256, NOISE**2))
    assert not tails.is_tail[240]
    assert tails.is_tail[[239, 241]].all()
    assert denoised(counts, 20_000)[240] == pytest.approx(1_000, abs=5 * NOISE)


@pytest.mark.parametrize("size", [1, 2, 3, 256])
@pytest.mark.parametrize("kind", ["zero", "negative", "huge", "one row", "infinite noise"])
def test_counts_without_any_sense_have_tails_that_are_finite_and_not_negative(size: int, kind: str) -> None:
    rng = np.random.default_rng(1)
    variance = 1e300 if kind == "infinite noise" else 1.0
    counts = {
        "zero": np.zeros(size),
        "negative": -rng.exponential(100, size),
        "huge": rng.normal(0, 1e12, size),
        "one row": np.eye(size)[0],
        "infinite noise": rng.normal(0, 1, size),
    }[kind]
    tails = fit_tails(EDGES[: size + 1], counts, np.full(size, variance))
    found = tails.put(scale_to_total(counts, 100.0), 100.0)
    for each in (tails.counts, found, tails.of_label(0.5, np.zeros(size)).counts):
        assert np.isfinite(each).all()
        assert each.min() >= 0


def test_tails_without_noise_are_nearly_the_counts() -> None:
    counts = np.array([5.0, 50.0, 20.0, 5.0, 1.0, 0.0])
    tails = fit_tails(np.arange(7), counts, np.zeros(6))
    assert tails.put(counts, 81.0) == pytest.approx(counts, abs=0.5)


def test_a_label_has_its_share_of_a_tail_unless_it_surely_has_another() -> None:
    counts = bars_of(np.random.default_rng(0).exponential(800, 20_000))
    tails = fit_tails(EDGES, counts, np.full(256, NOISE**2))
    upper = tails.sides[0]
    alike = tails.of_label(0.25, np.where(upper, 0.0, 30.0))
    assert alike.counts == pytest.approx(0.25 * tails.counts)
    none = tails.of_label(0.25, np.where(upper, -30.0, 0.0))
    assert none.counts[upper].sum() == 0
    assert not none.is_tail[upper].any()


def test_cells_begin_at_doubling_distances_in_the_tails() -> None:
    masses = 1.0 / (1 + np.arange(256)) ** 3
    breaks = np.flatnonzero(doubling_breaks(EDGES[:-1], masses, int(EDGES[-1])))
    assert len(breaks) > 4
    assert (breaks[1:] == 2 * breaks[:-1]).all()
    assert not doubling_breaks(EDGES[:-1], np.zeros(256), int(EDGES[-1])).any()


def test_counts_are_scaled_up_only_where_there_are_rows() -> None:
    assert np.array_equal(scale_to_total(np.array([6.0, -1.0, 0.0, 3.0]), 18.0), [12.0, 0.0, 0.0, 6.0])
    assert np.array_equal(scale_to_total(np.array([6.0, 2.0, -1.0]), 6.0), [5.0, 1.0, 0.0])
    assert scale_to_total(np.zeros(4), 8.0).sum() == 8


def test_where_nothing_stands_out_no_tail_is_called_thin() -> None:
    """617 columns of 2,500 rows at epsilon 1: with tails emptied, deviations were a quarter of the real ones."""
    edges, rng = np.arange(17), np.random.default_rng(0)
    counts = np.full(16, 150.0) + rng.normal(0, 160, 16)
    assert not fit_tails(edges, counts, np.full(16, 160.0**2)).is_tail.any()


def test_a_tail_that_noise_could_hide_falls_off_instead_of_running_to_the_bound() -> None:
    """800 rows near zero, and noise of 20 rows in each of 256 bars: as counted, the mean was eight times too large."""
    places, counted, found = (EDGES[:-1] + EDGES[1:]) / 2, [], []
    for seed in range(20):
        counts = bars_of(np.random.default_rng(seed).exponential(800, 800), noise=20.0, seed=seed)
        counted.append(float(np.average(places, weights=scale_to_total(counts, 800))))
        found.append(float(np.average(places, weights=denoised(counts, 800, noise=20.0))))
    assert np.median(found) < 0.5 * np.median(counted)
