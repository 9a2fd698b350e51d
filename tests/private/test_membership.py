"""A membership attack on trained maps: it must not do better than the certificate allows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, norm

from understudy.accounting.descent import DescentCost, charge_of_descent
from understudy.classifier.maps import MapShape
from understudy.private.descent.linear import IntegerRows, integer_inputs, train_maps
from understudy.private.descent.steps import Steps

CANARIES, ALARM = 2000, 1e-7
SLACK = Fraction(1, 10**7)
COSTS = {
    "one step on all rows": (DescentCost(1.0, 1.0, 1), 2.4),
    "sampled": (DescentCost(0.5, 2.0, 4), 8.0),
}
"""Descents that are attacked, and how many times too small noise is found by the attack."""

over_costs = pytest.mark.parametrize("name", COSTS)


def canary_scores(cost: DescentCost) -> tuple[np.ndarray, np.ndarray]:
    """How far maps have moved along canaries that were there, and along ones that were not.

    A canary is a row with a coordinate of its own, where no other row has a weight, and a gradient as long as
    may be. So one training on thousands of them is thousands of independent attacks.
    """
    shape = MapShape(num_features=2 * CANARIES, num_classes=2)
    inputs = integer_inputs(np.eye(CANARIES, 2 * CANARIES))
    rows = IntegerRows(inputs, np.ones(CANARIES, np.int64))
    maps = train_maps(rows, shape, cost=cost, clip=0.1, expected_rows=1.0, steps=Steps(0.01))
    moved = maps.weights[0, 1] - maps.weights[0, 0]
    return moved[:CANARIES], moved[CANARIES:]


def lower_mu(there: np.ndarray, gone: np.ndarray) -> float:
    """A lower bound on mu from the best threshold on half of the runs, tested on the other half."""
    half = CANARIES // 2
    edges = np.quantile(np.concatenate([there[:half], gone[:half]]), np.linspace(0.02, 0.98, 49))
    seen = [(there[:half] > e).mean() - (gone[:half] > e).mean() for e in edges]
    edge = edges[int(np.argmax(seen))]
    hits, alarms = int((there[half:] > edge).sum()), int((gone[half:] > edge).sum())
    low = beta.ppf(ALARM / 2, hits, half - hits + 1) if hits else 0.0
    high = beta.ppf(1 - ALARM / 2, alarms + 1, half - alarms) if alarms < half else 1.0
    return float(norm.ppf(low) - norm.ppf(high))


def claimed_mu(cost: DescentCost) -> float:
    return math.sqrt(charge_of_descent(cost, SLACK).mu_squared)


@over_costs
def test_the_best_known_attack_stays_below_the_claim(name: str) -> None:
    """Fails by chance less than once in ten million runs."""
    cost, _ = COSTS[name]
    assert lower_mu(*canary_scores(cost)) <= claimed_mu(cost)


@over_costs
def test_the_attack_would_find_noise_that_is_too_small(name: str) -> None:
    cost, factor = COSTS[name]
    weak = DescentCost(cost.sampling_rate, cost.noise_multiplier / factor, cost.steps)
    assert lower_mu(*canary_scores(weak)) > claimed_mu(cost)
