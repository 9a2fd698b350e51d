"""Pure differential privacy by the numbers, checked against exact sums and 50 digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import (
    GAUSSIAN,
    LAPLACE,
    UNITS_PER_COST,
    Budget,
    mechanism_for,
    mu_squared_of_budget,
    mu_squared_of_epsilon,
)

sensitivities = st.one_of(st.integers(1, 100), st.integers(1, 2**40))
epsilons = st.fractions(min_value=Fraction(1, 10**9), max_value=200)


@settings(max_examples=300, deadline=None)
@given(sensitivity=sensitivities, epsilon=epsilons)
def test_a_whole_scale_never_costs_more_than_was_granted(sensitivity: int, epsilon: Fraction) -> None:
    scale = LAPLACE.noise_scale(sensitivity, epsilon)
    assert scale >= 1
    assert LAPLACE.cost(sensitivity, scale) <= epsilon
    assert int(float(scale)) == scale, "the sampler is given a float"


@settings(max_examples=300, deadline=None)
@given(sensitivity=sensitivities, epsilon=epsilons)
def test_the_next_smaller_scale_would_cost_too_much(sensitivity: int, epsilon: Fraction) -> None:
    scale = LAPLACE.noise_scale(sensitivity, epsilon)
    less = min(scale - 1, int(math.nextafter(float(scale), 0)))
    assert less < 1 or LAPLACE.cost(sensitivity, less) > epsilon


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "scale"),
    [
        (12, Fraction(1), 12),
        (12, Fraction(5), 3),
        (1, Fraction(2), 1),
        (2**32, Fraction(1, 3), 3 * 2**32),
        (0, Fraction(1), 1),
        (2**54 + 1, Fraction(1), 2**54 + 4),
    ],
)
def test_scales_are_sensitivity_over_epsilon_rounded_up(sensitivity: int, epsilon: Fraction, scale: int) -> None:
    assert LAPLACE.noise_scale(sensitivity, epsilon) == scale


def test_no_noise_has_no_cost_to_state() -> None:
    with pytest.raises(ValueError, match="without noise"):
        LAPLACE.cost(1, 0)


@pytest.mark.parametrize("scale", [1, 2, 7])
@pytest.mark.parametrize("shift", [1, 3, 10])
def test_the_worst_odds_of_exact_mass_functions_are_the_stated_epsilon(scale: int, shift: int) -> None:
    with mp.workdps(50):
        mass = {z: mp.exp(-mp.mpf(abs(z)) / scale) for z in range(-200, 201)}
        worst = max(mp.log(mass[z - shift] / mass[z]) for z in range(-100, 101))
        stated = LAPLACE.cost(shift, scale)
        assert mp.almosteq(worst, mp.mpf(stated.numerator) / stated.denominator, 1e-40)


@pytest.mark.parametrize("scale", [1, 2, 3, 10, 100])
def test_the_deviation_is_that_of_the_exact_mass_function(scale: int) -> None:
    with mp.workdps(50):
        support = range(-100 * scale, 100 * scale + 1)
        mass = {z: mp.exp(-mp.mpf(abs(z)) / scale) for z in support}
        variance = mp.fsum(z**2 * m for z, m in mass.items()) / mp.fsum(mass.values())
        assert LAPLACE.deviation(scale) == pytest.approx(float(mp.sqrt(variance)), rel=1e-12)
    assert LAPLACE.deviation(2**40) == pytest.approx(math.sqrt(2) * 2**40, rel=1e-12)


@pytest.mark.parametrize("normal", [0.5, 1.96, 3.0, 6.0])
def test_deviations_leave_the_tails_of_the_normal_law(normal: float) -> None:
    found = LAPLACE.deviations(normal)
    assert 2 * (1 - LAPLACE.below(found)) == pytest.approx(2 * GAUSSIAN.below(-normal), rel=1e-6)
    assert LAPLACE.below(-found) == pytest.approx(1 - LAPLACE.below(found), rel=1e-6)
    assert GAUSSIAN.deviations(normal) == normal


# Pure differential privacy among Gaussian costs

EVERY_EPSILON = [1e-6, 1e-4, 9.99e-4, 1.001e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 40.0, 100.0, 200.0]


@pytest.mark.parametrize("epsilon", EVERY_EPSILON)
def test_the_converted_mu_is_the_smallest_up_to_rounding(epsilon: float) -> None:
    with mp.workdps(60):
        found = mu_squared_of_epsilon(epsilon)
        mu = mp.sqrt(mp.mpf(found.numerator) / found.denominator)
        corner = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        assert mp.ncdf(-mu / 2) <= corner
        # The tangent, taken for tiny epsilons, is higher by a hair of epsilon squared.
        assert mp.ncdf(-mu / 2 * (1 - mp.mpf("3e-7"))) > corner


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
def test_every_attack_that_pure_privacy_allows_is_allowed_by_the_converted_mu(epsilon: float) -> None:
    """Trade-off curves: at each rate of false alarms, the least rate of misses."""
    with mp.workdps(50):
        found = mu_squared_of_epsilon(epsilon)
        mu = mp.sqrt(mp.mpf(found.numerator) / found.denominator)
        grow = mp.exp(mp.mpf(epsilon))
        for step in range(1, 400):
            quantile = mp.mpf(step - 200) / 20  # of false alarms, from -10 to 10
            alarms = mp.ncdf(quantile)
            pure = max(mp.mpf(0), 1 - grow * alarms, (1 - alarms) / grow)
            assert mp.ncdf(-quantile - mu) <= pure


def test_nothing_costs_nothing_and_the_sum_is_converted_once() -> None:
    assert mu_squared_of_epsilon(0.0) == 0
    parts = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    (together,) = LAPLACE.mu_squared(parts)
    assert together == mu_squared_of_epsilon(1.0)
    assert GAUSSIAN.mu_squared(parts) == tuple(parts)


# Budgets


@settings(max_examples=100, deadline=None)
@given(epsilon=st.floats(1e-4, 100))
def test_a_pure_budget_is_its_epsilon_in_whole_units_rounded_down(epsilon: float) -> None:
    granted = LAPLACE.total(Budget(epsilon, 0))
    assert granted <= Fraction(epsilon) < granted + Fraction(1, UNITS_PER_COST)
    assert granted.denominator <= UNITS_PER_COST
    assert LAPLACE.epsilon([granted / 3] * 3) <= epsilon


@settings(max_examples=100, deadline=None)
@given(costs=st.lists(epsilons, max_size=6))
def test_a_total_is_never_stated_below_what_it_is(costs: list[Fraction]) -> None:
    stated = Fraction(LAPLACE.epsilon(costs))
    assert sum(costs) <= stated <= sum(costs) * (1 + Fraction(1, 2**51))


def test_delta_alone_decides_on_the_mechanism() -> None:
    assert mechanism_for(Budget(1.0)) is GAUSSIAN
    assert mechanism_for(Budget(1.0, 1e-15)) is GAUSSIAN
    assert mechanism_for(Budget(1.0, 0)) is LAPLACE
    assert Budget(1.0, 0) == Budget(1.0, -0.0)
    assert repr(Budget(1.0, -0.0).delta) == "0.0"


def test_each_mechanism_refuses_the_other_s_budget() -> None:
    with pytest.raises(ValueError, match="delta of 0"):
        mu_squared_of_budget(Budget(1.0, 0))
    with pytest.raises(ValueError, match="above 0"):
        LAPLACE.total(Budget(1.0))


def test_the_best_guess_and_the_odds_of_pure_privacy() -> None:
    assert LAPLACE.best_guess([]) == 0.5
    assert LAPLACE.best_guess([Fraction(1)]) == pytest.approx(math.e / (1 + math.e), rel=1e-15)
    assert LAPLACE.exceedance([Fraction(1)], 1.0) == 0.0
    assert LAPLACE.exceedance([Fraction(1)], 0.999) == 1.0
