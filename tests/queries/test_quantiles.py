"""Quantiles: the parts that noise meets on its way to an interval."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.queries import Asker
from understudy.queries.estimates import _allowed, _crossing


def test_a_cell_that_is_surely_too_low_rules_out_those_below_it():
    below = np.array([-3.0, -1.0, -9.0, -1.0, 2.0])
    found = _allowed(below, np.ones(5), 1, (2.0, 5.0))
    assert found.tolist() == [False, False, False, True, True]
    assert _allowed(-below[::-1], np.ones(5), -1, (2.0, 5.0)).tolist() == found[::-1].tolist()


def test_a_doubt_beyond_a_cell_needs_more_proof_than_one_of_its_own():
    found = _allowed(np.array([-1.0, -3.0, 0.0]), np.ones(3), 1, (2.0, 5.0))
    assert found.tolist() == [True, False, True]


def test_counts_that_fall_by_noise_are_made_monotone_before_they_cross_the_level():
    """Neighbours that fall are averaged: -1, 1, -3, 5 rise as -1, -1, -1, 5, and reach zero a sixth into the last."""
    lows, highs = np.array([0.0, 10.0, 20.0, 30.0]), np.array([10.0, 20.0, 30.0, 40.0])
    value, cell = _crossing(np.array([-1.0, 1.0, -3.0, 5.0]), lows, highs)
    assert cell == 3
    assert value == pytest.approx(30 + 10 / 6)
    assert _crossing(np.array([-4.0, -2.0, -2.0, -1.0]), lows, highs)[1] == 3
    assert _crossing(np.array([-2.0, 2.0, 2.0, 5.0]), lows, highs) == (15.0, 1)


def test_without_noise_in_the_sums_a_quantile_lies_in_the_middle_of_its_interval(world, silent):
    """For a number with many codes too, where finer tables are looked up where it may lie."""
    asker = Asker(silent)
    for level in (0.1, 0.5, 0.75):
        truth = np.quantile(world.rows["weight"], level, method="inverted_cdf")
        row = asker.ask(f"quantile(weight, {level})").only
        assert row.low <= truth <= row.high
        assert abs(row.estimate - truth) < 0.5
