"""Numbers that everything rests on, from Balle & Wang 2018, Thm 8, at 50 digits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import pytest
from dp_accounting import DpEvent, GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from understudy.accounting.mechanisms import (
    GAUSSIAN,
    UNITS_PER_COST,
    Budget,
    Neighbours,
    epsilon_of,
    lattice_noise_std,
    mu_squared_of_budget,
    spent_mu_squared,
)
from understudy.features import Block, Embedding, Fourier, Grid, Scales
from understudy.plan.plan import LATTICE, Plan, Stage
from understudy.schema import load_schema

EPSILONS = [1e-4, 0.01, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3]
grid = pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)), ids=str)


def real(value: Fraction) -> mp.mpf:
    return mp.mpf(value.numerator) / value.denominator


def exact_delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@grid
def test_a_budget_is_met_and_hardly_more_than_met(epsilon: float, delta: float) -> None:
    with mp.workdps(50):
        granted = mu_squared_of_budget(Budget(epsilon, delta))
        assert exact_delta(mp.sqrt(real(granted)), mp.mpf(epsilon)) <= mp.mpf(delta)
        more = mp.sqrt(real(granted + Fraction(1, UNITS_PER_COST)))  # a ledger's unit
        assert exact_delta(more * (1 + mp.mpf("1e-6")), mp.mpf(epsilon)) > mp.mpf(delta)


@grid
def test_the_stated_epsilon_is_the_exact_one(epsilon: float, delta: float) -> None:
    mu_squared = mu_squared_of_budget(Budget(epsilon, delta)) / 2
    stated = epsilon_of([mu_squared], delta)
    with mp.workdps(50):
        mu = mp.sqrt(real(mu_squared))
        assert exact_delta(mu, mp.mpf(stated)) <= mp.mpf(delta)
        if stated > 0:
            assert exact_delta(mu, mp.mpf(stated * (1 - 4e-8))) > mp.mpf(delta)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.2, "16.304"), (1.0, "3.7306"), (10.0, "0.4999")])
def test_noise_at_delta_1e_5_is_as_published(epsilon: float, sigma: str) -> None:
    found = 1 / math.sqrt(mu_squared_of_budget(Budget(epsilon, 1e-5)))
    digits = len(sigma.split(".")[1])
    assert f"{found:.{digits}f}" == sigma


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("square", [1, 7, LATTICE**2, 6 * LATTICE**2])
def test_lattice_noise_keeps_the_budget_at_fifty_digits(epsilon: float, square: int) -> None:
    std = lattice_noise_std(square, mu_squared_of_budget(Budget(epsilon, 1e-5)))
    with mp.workdps(50):
        # The discrete Gaussian is post-processing of a continuous one of variance std^2 - 4.
        mu = mp.sqrt(mp.mpf(square) / (mp.mpf(std) ** 2 - 4))
        assert exact_delta(mu, mp.mpf(epsilon)) <= mp.mpf("1e-5")
        assert spent_mu_squared(square, std) == Fraction(square, std**2 - 4)


@pytest.mark.parametrize("std", [3, 5, 40])
@pytest.mark.parametrize("shift", [1, 2, 7])
def test_the_discrete_gaussian_spends_no_more_than_its_stated_cost(std: int, shift: int) -> None:
    """Hockey-stick divergence of the exact mass functions, summed at 50 digits."""
    mu_squared = spent_mu_squared(shift**2, std)
    with mp.workdps(50):
        support = range(-40 * std, 40 * std + shift + 1)
        mass = {z: mp.exp(-(mp.mpf(z) ** 2) / (2 * std**2)) for z in range(-41 * std - 8, 41 * std)}
        total = mp.fsum(mass.values())
        for delta in (1e-3, 1e-6):
            bound = mp.exp(mp.mpf(epsilon_of([mu_squared], delta)))
            excess = mp.fsum(
                max(mp.mpf(0), mass.get(z, mp.mpf(0)) - bound * mass.get(z - shift, mp.mpf(0))) for z in support
            )
            assert excess / total <= mp.mpf(delta)


@pytest.mark.parametrize(
    ("event", "mu_squared"),
    [
        (GaussianDpEvent(3.7306), Fraction(1) / Fraction("3.7306") ** 2),
        (SelfComposedDpEvent(GaussianDpEvent(20.0), 16), Fraction(16, 400)),
    ],
    ids=["one release", "sixteen releases"],
)
def test_the_pld_accountant_gives_the_same_epsilon(event: DpEvent, mu_squared: Fraction) -> None:
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(event)
    assert accountant.get_epsilon(1e-5) == pytest.approx(epsilon_of([mu_squared], 1e-5), rel=1e-3)


def test_the_largest_event_that_moves_odds_past_epsilon_is_exact() -> None:
    mu_squared = mu_squared_of_budget(Budget(1.0))
    with mp.workdps(50):
        mu = mp.sqrt(real(mu_squared))
        edge = mp.findroot(lambda t: mp.ncdf(mu - t) - mp.e * mp.ncdf(-t), 3.5)
        exact = mp.ncdf(mu - edge)
    assert GAUSSIAN.exceedance([mu_squared], 1.0) == pytest.approx(float(exact), rel=1e-9)


def test_the_stages_of_a_plan_compose_to_its_epsilon() -> None:
    schema = load_schema({"columns": [{"name": "x", "kind": "continuous", "bounds": [0, 1]}], "name": "t"})
    first = Embedding((Block("histograms", Grid((0,), 8), 1.0),))
    second = Embedding((Block("numbers", Fourier((0,), (0.1,), (Scales(1, 1, 1),), 6, 0), 0.7),), separate=True)
    plan = Plan(
        schema=schema,
        method="two",
        budget=Budget(1.0),
        neighbours=Neighbours.ADD_REMOVE,
        stages=(Stage("a", first, 0.25), Stage("b", second, 0.75)),
    )
    total = mu_squared_of_budget(Budget(1.0))
    costs = plan.cost()
    assert len(costs) == 3, "one mechanism, then a count and an embedding of one class"
    assert costs[0] == pytest.approx(float(total) / 4, rel=1e-6)
    assert sum(costs) == pytest.approx(float(total), rel=1e-6)
    assert 1 - 1e-6 < plan.epsilon() <= 1.0
    with mp.workdps(50):
        assert exact_delta(mp.sqrt(real(sum(costs, Fraction(0)))), mp.mpf(1)) <= mp.mpf("1e-5")
