from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from understudy.rules.denoise import (
    centred,
    haar_threshold,
    james_stein,
    project_to_simplex,
    runs_that_stand_out,
    shrink_levels,
)

Floats = npt.NDArray[np.float64]
some_counts = arrays(np.float64, st.integers(1, 6), elements=st.floats(-1e6, 1e6))
totals = st.floats(0.01, 1e6)


# The nearest counts that are not negative


def project_by_hand(counts: Floats, total: float) -> list[float]:
    """Of all choices of which counts stay above zero, the one that ends nearest; in fractions."""
    exact = [Fraction(count) for count in counts.tolist()]
    found = []
    for size in range(1, len(exact) + 1):
        for chosen in itertools.combinations(range(len(exact)), size):
            excess = (sum(exact[i] for i in chosen) - Fraction(total)) / size
            point = [exact[i] - excess if i in chosen else Fraction(0) for i in range(len(exact))]
            if min(point) >= 0:
                found.append(point)
    nearest = min(found, key=lambda p: sum((x - y) ** 2 for x, y in zip(p, exact, strict=True)))
    return [float(x) for x in nearest]


@settings(max_examples=200, deadline=None)
@given(counts=some_counts, total=totals)
def test_no_counts_of_that_sum_are_nearer(counts: Floats, total: float) -> None:
    found, by_hand = project_to_simplex(counts, total), project_by_hand(counts, total)
    scale = max(total, float(np.abs(counts).max()))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, abs=1e-9 * scale)
    assert np.abs(found - by_hand).max() <= 1e-8 * scale


@settings(max_examples=50, deadline=None)
@given(counts=some_counts, total=st.sampled_from([0.0, -1.0, -1e9]))
def test_a_sum_of_nothing_is_nothing(counts: Floats, total: float) -> None:
    assert not project_to_simplex(counts, total).any()


def test_a_total_that_is_nothing_but_rounding_leaves_nothing():
    counts = np.array([0.4, 0.1, -0.5])
    assert not project_to_simplex(counts, 1e-18).any()


def test_counts_that_need_no_change_are_not_changed() -> None:
    counts = np.array([3.0, 0.0, 5.0, 2.0])
    assert np.array_equal(project_to_simplex(counts, 10.0), counts)


def test_order_and_ties_are_kept() -> None:
    found = project_to_simplex(np.array([4.0, -3.0, 1.0, 4.0, -3.0]), 5.0)
    assert found.tolist() == [2.5, 0.0, 0.0, 2.5, 0.0]


# Smoothing along a column


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 100, 257])
def test_without_noise_nothing_is_smoothed(size: int) -> None:
    counts = np.random.default_rng(size).normal(0, 100, size)
    assert haar_threshold(counts, 0.0) == pytest.approx(counts, abs=1e-9)


@pytest.mark.parametrize("place", [0, 1, 77, 200, 256])
def test_a_value_of_many_deviations_keeps_its_count_to_itself(place: int) -> None:
    rng = np.random.default_rng(place)
    counts = rng.normal(50, 10, 257)
    counts[place] = 100 * 10.0
    found = haar_threshold(counts, 10.0)
    assert found[place] == pytest.approx(counts[place], rel=1e-12)
    far = np.abs(np.arange(257) - place) > 2
    assert found[far].max() < 200, "nothing of it is spread"


@pytest.mark.parametrize("size", [64, 100, 256, 1000])
def test_where_nothing_stands_out_counts_are_level(size: int) -> None:
    rng = np.random.default_rng(size)
    left = []
    for _ in range(50):
        found = haar_threshold(rng.normal(0, 1, size), 1.0)
        left.append(float((found**2).mean()))
    assert np.mean(left) < 0.15, "of a variance of 1"
    assert np.median(left) < 0.05


@pytest.mark.parametrize("size", [3, 5, 100, 129, 258])
@pytest.mark.parametrize("noise", [10.0, 60.0, 1000.0])
def test_level_counts_stay_level_to_the_end_whatever_their_number(size: int, noise: float) -> None:
    found = haar_threshold(np.full(size, 100.0), noise)
    assert found == pytest.approx(np.full(size, 100.0))


def test_a_step_between_two_halves_is_kept_and_both_sides_are_level() -> None:
    rng = np.random.default_rng(0)
    steps = np.repeat([0.0, 40.0], 64)
    found = haar_threshold(steps + rng.normal(0, 5, 128), 5.0)
    assert np.abs(found - steps).mean() < 2.0, "noise has a mean size of 4"


def test_the_limit_can_be_given_in_deviations() -> None:
    counts = np.zeros(16)
    counts[5] = 3.0
    assert haar_threshold(counts, 1.0, deviations=2.8)[5] == pytest.approx(3.0)
    assert haar_threshold(counts, 1.0, deviations=2.9)[5] == pytest.approx(3 / 16)


def test_values_that_repeat_stand_out_whatever_their_neighbours_in_the_wavelets() -> None:
    """Haar's difference of two neighbours has the noise of both; a peak need not pay for it."""
    found = []
    for seed in range(40):
        counts = np.random.default_rng(seed).normal(0, 1, 4096)
        counts[[1700, 1703, 2001]] += 5.5
        level = haar_threshold(counts, 1.0)
        found.append(level[[1700, 1703, 2001]] > 3)
        assert (np.delete(level, [1700, 1703, 2001]) > 2).sum() <= 1, "noise makes no peaks"
    assert np.mean(found) > 0.75


# Shrinking


def test_differences_that_are_noise_are_taken_away_and_large_ones_stay() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0, 2, 2000)
    values[7] = 50.0
    found = james_stein(values, 2.0)
    assert found[7] == 50.0
    assert np.abs(np.delete(found, 7)).mean() < 0.4
    strong = rng.normal(0, 20, 2000)
    kept = james_stein(strong, 2.0)
    assert np.abs(kept - strong).mean() < 0.5


def test_two_values_are_not_shrunk_and_more_are_by_what_james_and_stein_say() -> None:
    assert james_stein(np.array([1.0, -2.0]), 3.0).tolist() == [1.0, -2.0]
    values = np.array([3.0, -4.0, 5.0, 1.0])
    assert james_stein(values, 2.0) == pytest.approx((1 - 2 * 4 / 51) * values)


@settings(max_examples=100, deadline=None)
@given(values=some_counts, noise=st.floats(0, 1e5))
def test_shrinking_never_enlarges_or_turns_a_sign(values: Floats, noise: float) -> None:
    found = james_stein(values, noise)
    assert (found * np.sign(values) >= 0).all()
    assert (np.abs(found) <= np.abs(values)).all()


@pytest.mark.parametrize("size", [1, 2, 5, 64, 100])
def test_shrinking_by_levels_keeps_what_has_no_noise_and_levels_what_is_all_noise(size: int) -> None:
    values = np.random.default_rng(size).normal(0, 3, size)
    assert shrink_levels(values, 0.0) == pytest.approx(values, abs=1e-9)
    assert (shrink_levels(values, 3.0) ** 2).sum() <= (values**2).sum() * (1 + 1e-9)


# Interaction


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (80, 83), (13, 20)])
def test_a_run_that_stands_out_by_its_sum_is_found_wherever_it_begins(start: int, stop: int) -> None:
    """No cell of it does: three deviations each."""
    overlaps = []
    for seed in range(20):
        counts = np.random.default_rng(seed).normal(0, 1, 83)
        counts[start:stop] += 3.0
        found = runs_that_stand_out(counts, 1.0, float)
        overlaps.append(found[start:stop].sum() / (3 * (stop - start)))
        assert np.abs(np.delete(found, range(max(0, start - 3), min(83, stop + 3)))).sum() < 12
    assert np.mean(overlaps) == pytest.approx(1.0, abs=0.2)


def test_noise_alone_has_hardly_any_runs_and_counts_without_noise_no_need_of_them() -> None:
    noise = np.random.default_rng(0).normal(0, 1, (200, 60))
    assert np.mean([runs_that_stand_out(each, 1.0, float).any() for each in noise]) < 0.12
    assert not runs_that_stand_out(np.arange(9.0), 0.0, float).any()
    for size in (0, 1, 2):
        assert len(runs_that_stand_out(np.full(size, 100.0), 1.0, float)) == size


def test_what_margins_explain_has_no_interaction() -> None:
    rows, columns = np.array([1.0, 5.0, 2.0]), np.array([0.5, 3.0, 7.0, 1.0])
    assert np.abs(centred(rows[:, None] + columns)).max() < 1e-12


def test_a_centred_table_has_no_margins_and_is_the_nearest_such() -> None:
    table = np.random.default_rng(2).normal(size=(2, 4, 5))
    found = centred(table)
    assert np.abs(found.sum(axis=-1)).max() < 1e-12
    assert np.abs(found.sum(axis=-2)).max() < 1e-12
    assert np.abs(centred(found) - found).max() < 1e-12
    assert math.isclose(float((found * (table - found)).sum()), 0.0, abs_tol=1e-12)
