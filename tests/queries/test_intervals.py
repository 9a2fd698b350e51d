"""Intervals: the quantiles they rest on, and Fieller's ratios."""

from __future__ import annotations

import math

import numpy as np
import pytest

from understudy.accounting.mechanisms import GAUSSIAN, LAPLACE, critical
from understudy.queries.estimates import crossing, ratio_interval


def test_the_normal_factor_is_the_one_in_every_textbook():
    assert critical(GAUSSIAN, 0.95) == pytest.approx(1.959964, abs=1e-6)
    assert critical(GAUSSIAN, 0.99) == pytest.approx(2.575829, abs=1e-6)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_weighted_sums_of_laplace_noise_stay_within_its_factor(level: float):
    """Seeded draws; six standard errors of the share above the nominal level are allowed."""
    rng = np.random.default_rng(0)
    draws = rng.laplace(size=(400_000, 6)) / math.sqrt(2)
    room = 6 * math.sqrt(level * (1 - level) / len(draws))
    factor = critical(LAPLACE, level)
    for weights in (np.eye(6)[0], np.ones(6), [1, 1, 0, 0, 0, 0], [1, 0.5, 0.2, 0.1, 0, 0], [3, 1, 1, 1, 1, 1]):
        sums = draws @ np.asarray(weights, dtype=float) / np.linalg.norm(weights)
        assert (np.abs(sums) <= factor).mean() >= level - room
    assert factor >= critical(GAUSSIAN, level)


def test_a_ratio_with_a_sure_denominator_has_the_plain_interval():
    found = ratio_interval(30.0, 10.0, (4.0, 0.0, 0.0), 2.0)
    assert found == pytest.approx((3 - 0.4, 3 + 0.4))


def test_the_ends_of_a_ratio_are_where_the_difference_is_just_noise():
    top, bottom, (a, b, c), factor = 50.0, 20.0, (9.0, 2.0, 4.0), 1.96
    ends = ratio_interval(top, bottom, (a, b, c), factor)
    assert ends is not None
    for end in ends:
        difference = top - end * bottom
        assert abs(difference) == pytest.approx(factor * math.sqrt(a - 2 * end * b + end**2 * c))


def test_a_denominator_that_may_be_zero_leaves_the_ratio_open():
    assert ratio_interval(5.0, 3.0, (1.0, 0.0, 4.0), 2.0) is None
    assert ratio_interval(5.0, -3.0, (1.0, 0.0, 0.1), 2.0) is None


def test_a_crossing_outside_is_at_the_nearer_end():
    assert crossing(lambda x: 2 - x, 0.0, 5.0) == pytest.approx(2)
    assert crossing(lambda x: 9 - x, 0.0, 5.0) == 5.0
    assert crossing(lambda x: -1 - x, 0.0, 5.0) == 0.0
