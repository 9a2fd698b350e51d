"""Whole releases under the best attack there is: the likelihood ratio of everything that they publish.

Real releases of two neighbouring tables are made by the code that users call. All comparisons together fail by chance
less than once in a million runs.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audited import MECHANISMS, Audited, of_table
from likelihood_ratios import (
    Estimate,
    audited,
    canary_ratios,
    delta_seen,
    effect_size,
    gaussian_delta,
    mu_of_area,
    mu_of_spread,
)

from understudy.accounting.dpsgd import DescentCost
from understudy.arrays import Integers
from understudy.methods import METHODS
from understudy.private.noise import ExactNoise
from understudy.private.spending import Receipt

RISK = 1e-9
"""Of each comparison; there are fewer than 500."""

TRIALS = {"dp-anova": 15, "classifier": 40, "classifier, sampled": 40, "private encoder": 40}
FEW = 10
"""Runs on either table. ``benchmarks/audit.py`` makes more, and estimates mu."""


def test_every_method_is_audited() -> None:
    assert {name.split(",")[0] for name in MECHANISMS} >= set(METHODS)


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_run_contradicts_what_is_claimed(name: str) -> None:
    mechanism = MECHANISMS[name]()
    audit = audited(mechanism.run, TRIALS.get(name, FEW))
    assert mechanism.refutations(audit, risk=RISK) == []


LESS = {"second moments": 0.85}
"""Inputs of several coordinates have products that count once."""


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_row_moves_nearly_as_much_as_is_charged(name: str) -> None:
    """Otherwise the audit would be blind: the row that is attacked is as conspicuous as a row may be."""
    mechanism = MECHANISMS[name]()
    distances = np.asarray([mechanism.run(True).distances for _ in range(2)]).min(axis=0)
    for distance, (part, bound) in zip(distances, mechanism.bounds.items(), strict=True):
        assert distance > LESS.get(part, 0.99) * bound


class HalvedAt:
    """The noise of releases, half of it missing from one stage."""

    name, is_private = "half", False

    def __init__(self, stage: int, num_stages: int) -> None:
        self.stage, self.num_stages, self.asked = stage, num_stages, 0

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        place, self.asked = self.asked % self.num_stages, self.asked + 1
        return ExactNoise().add_noise(sums, noise_std // (2 if place == self.stage else 1), receipt)

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        raise AssertionError


def halved(stage: int) -> Audited:
    return of_table("dp-anova", pairs=True, noise=HalvedAt(stage, 3))


@pytest.mark.parametrize("stage", [0, 2])
def test_noise_that_is_missing_from_one_stage_is_found_there(stage: int) -> None:
    mechanism = halved(stage)
    found = mechanism.refutations(audited(mechanism.run, FEW), risk=RISK)
    name = list(mechanism.claimed)[stage]
    assert f"{name}: less noise than stated" in found
    assert all(each.startswith((f"{name}: ", "all: ")) for each in found)


# What is estimated, where the truth is known


def normal_runs(mu: float, count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(-(mu**2) / 2, mu, count), rng.normal(mu**2 / 2, mu, count)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_estimates_of_mu_cover_the_truth_as_often_as_they_say(mu: float) -> None:
    covered = np.zeros(3)
    for seed in range(200):
        runs = normal_runs(mu, 150, seed)
        residues = np.random.default_rng(seed).normal(size=100)
        for place, found in enumerate((effect_size(*runs), mu_of_area(*runs), mu_of_spread(mu, residues))):
            covered[place] += found.low <= mu <= found.high
    assert (abs(covered / 200 - 0.95) < 0.05).all()


def test_a_delta_that_is_seen_is_the_gaussian_one() -> None:
    runs = normal_runs(1.0, 40_000, 0)
    for epsilon in (0.0, 0.5, 1.0):
        found = delta_seen(*runs, epsilon, risk=1e-6)
        assert found.low <= gaussian_delta(1.0, epsilon) <= found.high


# Thousands of rows of few descents. What is published, the end of a descent, tells no more than its steps.

DESCENTS = 8
COSTS = {
    "all rows in each step": (DescentCost(1.0, 2.0, 4), 1.7),
    "half of the rows": (DescentCost(0.5, 1.0, 4), 2.0),
    "few rows": (DescentCost(2.0**-3, 0.6, 8), 2.0),
}
"""Descents that are attacked, and how many times too small noise is found by the attack."""

DELTAS = (0.3, 0.1, 0.03)


def seen(cost: DescentCost, runs: tuple[Any, Any]) -> dict[float, Estimate]:
    """The delta that an attack shows at the epsilon that is claimed for each delta."""
    return {delta: delta_seen(*runs, cost.epsilon(delta), risk=RISK) for delta in DELTAS}


@pytest.mark.parametrize("name", COSTS)
def test_likelihood_ratios_of_all_steps_lie_on_the_claimed_curve(name: str) -> None:
    cost, _ = COSTS[name]
    runs = canary_ratios(cost, descents=DESCENTS)
    for delta, found in seen(cost, runs).items():
        assert found.low <= delta, "more is seen than is claimed"
    assert seen(cost, runs)[0.3].high > 0.27, "less would be a blind attack"
    claimed = cost.charge(Fraction(1, 10**7)).mu_squared
    assert mu_of_area(*runs, risk=RISK).low ** 2 <= claimed


@pytest.mark.parametrize("name", COSTS)
def test_steps_with_too_little_noise_are_found(name: str) -> None:
    cost, factor = COSTS[name]
    weak = DescentCost(cost.sampling_rate, cost.noise_multiplier / factor, cost.steps)
    runs = canary_ratios(weak, descents=DESCENTS, stated=cost)
    assert any(found.low > delta for delta, found in seen(cost, runs).items())
