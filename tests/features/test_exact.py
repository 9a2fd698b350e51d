from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from understudy.features.exact import EXACT_BITS, FINEST_BITS, exact_weights, row_norms
from understudy.schema.columns import POSITION_BITS

Floats = npt.NDArray[np.float64]
sizes = st.one_of(st.floats(-1, 1), st.floats(-1e6, 1e6), st.floats(-1e12, 1e12))
tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=sizes)


def positions_for(weights: Floats, seed: int, count: int = 5) -> Floats:
    steps = np.random.default_rng(seed).integers(0, 2**POSITION_BITS + 1, (count, len(weights)))
    steps[0] = 2**POSITION_BITS  # every partial sum is largest here
    found: Floats = steps / 2.0**POSITION_BITS
    return found


@settings(max_examples=150, deadline=None)
@given(weights=tables, seed=st.integers(0, 2**32))
def test_every_partial_sum_in_any_order_is_exact(weights: Floats, seed: int) -> None:
    exact = exact_weights(weights)
    order = np.random.default_rng(seed).permutation(len(exact))
    for row in positions_for(exact, seed).tolist():
        for column in exact.T.tolist():
            rounded, whole = 0.0, Fraction(0)
            for j in order:
                rounded += row[j] * column[j]
                whole += Fraction(row[j]) * Fraction(column[j])
                assert Fraction(rounded) == whole


@settings(max_examples=80, deadline=None)
@given(weights=tables, seed=st.integers(0, 2**32))
def test_a_matrix_product_is_the_product_of_fractions(weights: Floats, seed: int) -> None:
    exact = exact_weights(weights)
    positions = positions_for(exact, seed)
    for row, found in zip(positions.tolist(), (positions @ exact).tolist(), strict=True):
        for column, value in zip(exact.T.tolist(), found, strict=True):
            terms = (Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True))
            assert Fraction(value) == sum(terms, Fraction(0))


@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e4, 1e9, 1e15])
def test_weights_of_any_magnitude_are_exact(magnitude: float) -> None:
    weights = exact_weights(magnitude * np.random.default_rng(1).normal(size=(24, 4)))
    for row in positions_for(weights, 2, count=20).tolist():
        for column in weights.T.tolist():
            rounded, whole = 0.0, Fraction(0)
            for position, weight in zip(row, column, strict=True):
                rounded += position * weight
                whole += Fraction(position) * Fraction(weight)
                assert Fraction(rounded) == whole


def test_plain_weights_are_not_exact() -> None:
    """What the tests above would not notice, if weights were left as they are."""
    weights = np.random.default_rng(0).normal(size=(6, 4))
    positions = positions_for(weights, 0)
    off = [
        Fraction(float(row @ column))
        != sum((Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)), Fraction(0))
        for row in positions
        for column in weights.T
    ]
    assert any(off)


@settings(max_examples=150, deadline=None)
@given(weights=tables)
def test_weights_move_by_half_a_unit_at_most_and_fit_the_exact_range(weights: Floats) -> None:
    exact = exact_weights(weights)
    reach = max(1.0, float(np.abs(weights).sum(axis=0).max()))
    # A power of two above the reach leaves 52 - 16 bits for it; small weights stop at 24 bits.
    unit = max(2.0**-FINEST_BITS, (reach + 1) * 2.0 ** (1 + POSITION_BITS - EXACT_BITS))
    assert np.abs(exact - weights).max() <= unit / 2
    assert np.array_equal(exact_weights(exact), exact)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.25, 2.0**-24])
def test_weights_that_are_on_the_grid_stay(value: float) -> None:
    weights = np.full((3, 2), value)
    assert np.array_equal(exact_weights(weights), weights)


def test_no_weights_at_all_are_no_error() -> None:
    assert exact_weights(np.empty((2, 0))).shape == (2, 0)


def test_weights_come_back_contiguous_whatever_their_order_was() -> None:
    found = exact_weights(np.asfortranarray(np.random.default_rng(0).normal(size=(3, 5))))
    assert found.flags.c_contiguous


@pytest.mark.parametrize("dim", [1, 7, 9001, 20_000])
def test_the_norm_of_a_row_has_the_same_bits_in_any_block(dim: int) -> None:
    rows = np.random.default_rng(0).normal(size=(40, dim))
    together = row_norms(rows)
    assert together == pytest.approx(np.linalg.norm(rows, axis=1), rel=1e-5)
    for place in range(len(rows)):
        assert row_norms(rows[place : place + 1])[0] == together[place]
        assert row_norms(rows[place:])[0] == together[place]


def test_norms_of_strange_rows() -> None:
    strange = [[0.0, 0.0], [1e-310, 0.0], [1e150, 1e150], [np.nan, 1.0], [np.inf, 1.0]]
    zero, tiny, huge, *broken = row_norms(np.array(strange))
    assert zero == 0
    assert tiny < 1e-200
    assert huge == pytest.approx(math.sqrt(2) * 1e150)
    assert np.isnan(broken).all()
