"""Quantiles: the parts that noise meets on its way to an interval."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.queries import Asker
from understudy.queries.quantiles import _allowed, rising

heights = st.lists(st.floats(-100, 100), min_size=1, max_size=12)


@given(heights)
def test_what_is_made_rising_rises_and_keeps_its_sum(given_heights):
    found = rising(np.array(given_heights))
    assert (np.diff(found) >= -1e-9).all()
    assert np.isclose(found.sum(), np.sum(given_heights), atol=1e-6)
    assert np.allclose(rising(found), found)


def test_a_rising_sequence_is_left_alone():
    assert rising(np.array([1.0, 2.0, 2.0, 5.0])).tolist() == [1, 2, 2, 5]
    assert rising(np.array([3.0, 1.0])).tolist() == [2, 2]


def test_a_cell_that_is_surely_too_low_rules_out_those_below_it():
    below = np.array([-3.0, -1.0, -9.0, -1.0, 2.0])
    found = _allowed(below, np.ones(5), 1, (2.0, 5.0))
    assert found.tolist() == [False, False, False, True, True]
    assert _allowed(-below[::-1], np.ones(5), -1, (2.0, 5.0)).tolist() == found[::-1].tolist()


def test_a_doubt_beyond_a_cell_needs_more_proof_than_one_of_its_own():
    found = _allowed(np.array([-1.0, -3.0, 0.0]), np.ones(3), 1, (2.0, 5.0))
    assert found.tolist() == [True, False, True]


def test_without_noise_in_the_sums_a_quantile_lies_in_the_middle_of_its_interval(world, silent):
    """For a number with many codes too, where finer tables are looked up where it may lie."""
    asker = Asker(silent)
    for level in (0.1, 0.5, 0.75):
        truth = np.quantile(world.rows["weight"], level, method="inverted_cdf")
        row = asker.ask(f"quantile(weight, {level})").only
        assert row.low <= truth <= row.high
        assert abs(row.estimate - truth) < 0.5
