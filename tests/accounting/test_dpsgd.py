from __future__ import annotations

import math
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from scipy.stats import norm

from understudy.accounting import dpsgd as module
from understudy.accounting.dpsgd import RATE_UNITS, DescentCost, calibrated_descent, exact_rate, slack_for
from understudy.accounting.mechanisms import NO_CHARGE, Budget, Charge, epsilon_of, mu_squared_of_budget
from understudy.errors import UsageError

RUNS = [(0.25, 7.0, 200), (1 / 64, 1.5, 900), (0.1, 2.5, 100), (1.0, 20.0, 100)]
over_runs = pytest.mark.parametrize(("rate", "multiplier", "steps"), RUNS)


def event(cost: DescentCost) -> dp_accounting.DpEvent:
    gaussian = dp_accounting.GaussianDpEvent(cost.noise_multiplier)
    sampled = dp_accounting.PoissonSampledDpEvent(cost.sampling_rate, gaussian)
    return dp_accounting.SelfComposedDpEvent(sampled, cost.steps)


def direct_epsilon(*events: dp_accounting.DpEvent, delta: float = 1e-5) -> float:
    accountant = pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-4)
    for each in events:
        accountant.compose(each)
    return float(accountant.get_epsilon(delta))


@over_runs
def test_epsilon_is_that_of_the_accountant_itself(rate: float, multiplier: float, steps: int) -> None:
    cost = DescentCost(exact_rate(rate), multiplier, steps)
    assert cost.epsilon(1e-5) == pytest.approx(direct_epsilon(event(cost)), rel=2e-3)


@over_runs
def test_a_bound_by_renyi_divergences_lies_above(rate: float, multiplier: float, steps: int) -> None:
    cost = DescentCost(exact_rate(rate), multiplier, steps)
    accountant = rdp.RdpAccountant(orders=range(2, 64))
    accountant.compose(event(cost))
    bound, found = float(accountant.get_epsilon(1e-5)), cost.epsilon(1e-5)
    assert found < bound < 1.4 * found


def test_a_descent_beside_gaussian_releases_is_composed_with_them() -> None:
    cost = DescentCost(0.125, 3.0, 150)
    beside = [Fraction(1, 100), Fraction(3, 100)]
    direct = direct_epsilon(event(cost), dp_accounting.GaussianDpEvent(1 / math.sqrt(0.04)))
    assert cost.epsilon(1e-5, beside=beside) == pytest.approx(direct, rel=2e-3)
    charges = [cost.charge(Fraction(1, 10**7)), *map(Charge, beside)]
    together = sum(charges, NO_CHARGE).epsilon(1e-5)
    assert direct < together < 1.02 * direct


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(("rate", "steps"), [(0.25, 100), (1 / 32, 300), (1.0, 60)])
def test_calibrated_noise_meets_the_budget_and_not_much_more(epsilon: float, rate: float, steps: int) -> None:
    budget = Budget(epsilon)
    beside = [mu_squared_of_budget(budget) / 20]
    cost = calibrated_descent(budget, sampling_rate=rate, steps=steps, beside=beside)
    charge = cost.charge(slack_for(budget, cost.sampling_rate))
    stated = sum([charge, *map(Charge, beside)], NO_CHARGE).epsilon(budget.delta)
    assert cost.epsilon(budget.delta, beside=beside) <= stated * (1 + 1e-6)
    assert 0.995 * epsilon < stated <= epsilon


def test_up_to_its_slack_a_descent_is_dominated_by_its_gaussian_everywhere() -> None:
    cost, slack = DescentCost(1 / 16, 1.25, 80), Fraction(1, 10**6)
    charge = cost.charge(slack)
    mu = math.sqrt(charge.mu_squared)
    step = pld.privacy_loss_distribution.from_gaussian_mechanism(
        cost.noise_multiplier, sampling_prob=cost.sampling_rate, value_discretization_interval=2e-4
    )
    whole = step.self_compose(cost.steps)
    epsilons = np.sort(np.random.default_rng(0).uniform(0, 12, 3000))
    found = np.asarray(whole.get_delta_for_epsilon(epsilons))
    gaussian = norm.cdf(mu / 2 - epsilons / mu) - np.exp(epsilons + norm.logcdf(-mu / 2 - epsilons / mu))
    allowed = float(slack) + (1 - float(slack)) * gaussian
    assert np.all(found <= allowed + 1e-12)
    assert np.max(found / allowed) > 0.97  # and no larger mu than needed


def test_a_descent_on_all_rows_is_a_gaussian_mechanism_without_slack() -> None:
    charge = DescentCost(1.0, 8.0, 48).charge(Fraction(0))
    assert charge == Charge(Fraction(3, 4), Fraction(0))
    assert slack_for(Budget(1.0), 1.0) == 0
    cost = calibrated_descent(Budget(1.0), sampling_rate=1.0, steps=48)
    assert epsilon_of([48 / Fraction(cost.noise_multiplier) ** 2], 1e-5) <= 1.0


def test_slacks_add_up_and_use_up_delta() -> None:
    one = Charge(Fraction(1, 16), Fraction(1, 10**6))
    assert sum([one, one], NO_CHARGE).epsilon(1e-5) == epsilon_of([Fraction(1, 8)], 8e-6)
    assert sum([one] * 11, NO_CHARGE).epsilon(1e-5) == math.inf


def test_rates_are_what_random_bits_can_meet() -> None:
    rate = exact_rate(0.1)
    assert (rate * RATE_UNITS) % 1 == 0
    assert rate == pytest.approx(0.1, abs=1e-9)
    assert exact_rate(1e-30) == 1 / RATE_UNITS
    with pytest.raises(UsageError, match="2\\^-32"):
        DescentCost(0.1, 1.0, 1)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5, math.nan])
def test_a_rate_that_is_no_chance_is_refused(rate: float) -> None:
    with pytest.raises(UsageError, match="sampling rate"):
        exact_rate(rate)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="delta"):
        calibrated_descent(Budget(1.0, 0), sampling_rate=0.5, steps=10)
    with pytest.raises(UsageError, match="delta"):
        calibrated_descent(Budget(1.0, 1e-12), sampling_rate=0.5, steps=10)
    beside = [mu_squared_of_budget(Budget(1.0))]
    with pytest.raises(UsageError, match="used up"):
        calibrated_descent(Budget(1.0), sampling_rate=0.5, steps=10, beside=beside)
    with pytest.raises(UsageError, match="steps"):
        DescentCost(0.5, 1.0, 0)
    with pytest.raises(UsageError, match="noise multiplier"):
        DescentCost(0.5, 0.0, 1)


@pytest.mark.parametrize(("steps", "mu"), [(10_000, 1.0), (100_000, 0.5)])
def test_what_transforms_lose_over_many_steps_is_allowed_for(steps: int, mu: float) -> None:
    # At a rate of 1 the curve is known exactly, so that what was lost can be seen.
    cost = DescentCost(1.0, math.sqrt(steps) / mu, steps)
    epsilons = mu * np.linspace(5, 8, 13)
    found = np.asarray(module._losses(cost, Fraction(0)).get_delta_for_epsilon(epsilons))
    exact = norm.cdf(mu / 2 - epsilons / mu) - np.exp(epsilons + norm.logcdf(-mu / 2 - epsilons / mu))
    assert np.all(found + module._rounding(cost) / 2 >= exact)


def test_a_delta_that_rounding_would_be_felt_in_is_refused() -> None:
    cost = DescentCost(exact_rate(0.01), 2.0, 20_000)
    with pytest.raises(UsageError, match="so many sampled steps"):
        cost.charge(Fraction(1e-12))
    assert cost.epsilon(1e-12) == math.inf
