from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import (
    GAUSSIAN,
    Budget,
    epsilon_of,
    lattice_noise_std,
    mu_squared_of_budget,
    spent_mu_squared,
)

sensitivities = st.one_of(st.integers(1, 100), st.integers(1, 2**52))
costs = st.fractions(min_value=Fraction(1, 10**9), max_value=400)


@settings(max_examples=300, deadline=None)
@given(square=sensitivities, cost=costs)
def test_whole_noise_never_costs_more_than_was_granted(square: int, cost: Fraction) -> None:
    std = lattice_noise_std(square, cost)
    assert std >= 3
    assert spent_mu_squared(square, std) <= cost


@settings(max_examples=300, deadline=None)
@given(square=sensitivities, cost=costs)
def test_one_unit_less_noise_would_cost_too_much(square: int, cost: Fraction) -> None:
    less = lattice_noise_std(square, cost) - 1
    assert less**2 <= 4 or spent_mu_squared(square, less) > cost


@pytest.mark.parametrize(
    ("square", "cost", "std"),
    [
        (12, Fraction(1), 4),  # 12 + 4 = 16 exactly
        (13, Fraction(1), 5),  # 17 is no square: round up
        (1, Fraction(1), 3),
        (2**48, Fraction(1), 2**24 + 1),
        (10**6, Fraction(1, 9), 3001),
    ],
)
def test_noise_pays_for_being_discrete_and_is_rounded_up(square: int, cost: Fraction, std: int) -> None:
    assert lattice_noise_std(square, cost) == std


@settings(max_examples=100, deadline=None)
@given(square=st.integers(2**60, 2**66), cost=st.fractions(Fraction(1, 2**48), Fraction(1, 2**36)))
def test_noise_past_the_digits_of_a_float_is_rounded_up_to_them(square: int, cost: Fraction) -> None:
    """OpenDP takes a deviation as a float, which must not make it smaller."""
    std = lattice_noise_std(square, cost)
    assert int(float(std)) == std
    assert spent_mu_squared(square, std) <= cost
    assert spent_mu_squared(square, std - std // 2**52 - 1) > cost


@pytest.mark.parametrize("std", [0, 1, 2])
def test_noise_too_small_for_the_gaussian_argument_is_refused(std: int) -> None:
    with pytest.raises(ValueError, match="noise this small"):
        spent_mu_squared(1, std)


def test_a_sum_that_no_row_can_move_costs_nothing() -> None:
    assert spent_mu_squared(0, lattice_noise_std(0, Fraction(1))) == 0
    assert epsilon_of([Fraction(0)], 1e-5) == 0.0


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.01, 20), parts=st.integers(1, 30))
def test_equal_shares_of_a_budget_add_up_to_it(epsilon: float, parts: int) -> None:
    whole = mu_squared_of_budget(Budget(epsilon))
    assert sum([whole / parts] * parts) == whole
    together = epsilon_of([whole / parts] * parts, 1e-5)
    assert together <= epsilon
    assert together == pytest.approx(epsilon, rel=1e-6)


def test_the_best_guess_is_a_coin_toss_without_a_release_and_certain_without_noise() -> None:
    assert GAUSSIAN.best_guess([]) == 0.5
    assert GAUSSIAN.best_guess([Fraction(4)]) == pytest.approx(0.8413447460685429, rel=1e-12)
    assert GAUSSIAN.best_guess([Fraction(10**4)]) == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
def test_odds_move_past_epsilon_more_often_than_delta_says(epsilon: float) -> None:
    """Not only single outcomes count, but any event whose odds move that far."""
    cost = mu_squared_of_budget(Budget(epsilon, 1e-5))
    found = GAUSSIAN.exceedance([cost], epsilon)
    mu = math.sqrt(cost)
    tail_of_loss = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    assert found > tail_of_loss > 1e-5
    threshold = mu - NormalDist().inv_cdf(found)
    ratio = found / NormalDist().cdf(-threshold)
    assert ratio == pytest.approx(math.exp(epsilon), rel=1e-6)
    assert GAUSSIAN.exceedance([], epsilon) == 0.0
