"""What noisy gradient descent (DP-SGD, Abadi et al. 2016) costs: many Gaussian steps, each on a Poisson sample of rows.

A step looks at every row with the same chance, independently, and adds Gaussian noise to the sum of clipped
gradients. Steps are composed numerically, by convolving privacy loss distributions with the fast Fourier transform
(Koskela, Jälkö & Honkela 2020; Doroshenko et al. 2022, whose pessimistic rounding in dp_accounting is never below
the truth). Rows that are not looked at are protected by that alone, so a sampled descent is *almost* a Gaussian
mechanism of a small mu: up to a tiny chance, its ``slack``, it is dominated by one (proofs/descent.md). In these terms
it adds up with Gaussian releases (Dong, Roth & Su 2022), and ledgers count it. A descent that looks at all rows in
every step is a Gaussian mechanism, without slack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from understudy.accounting.mechanisms import (
    GRID,
    ROUNDING,
    UNITS_PER_COST,
    Budget,
    Charge,
    epsilon_of,
    gaussian_delta,
    mu_squared_of_budget,
)
from understudy.errors import UsageError

RATE_UNITS = 2**32
"""Chances of sampling are whole multiples of one over this, so that random bits meet them exactly."""

MULTIPLIER_UNITS = 4096
"""Noise multipliers are whole multiples of one over this, rounded up."""

LARGEST_MULTIPLIER = 2.0**20
"""Bound on noise multipliers; far below it there is nothing left to learn from."""

MOST_STEPS = 10**6
"""Steps of a noisy descent; each reads rows and has noise of its own."""

CALIBRATION_TOLERANCE = 1e-3
"""A calibrated descent spends the budget up to this part of its mu; a closer search would hardly be felt."""

MOST_SECANTS = 12
"""Secant steps of the calibration, each of which composes all steps anew."""

SLACK_SHARE = 0.01
"""Part of delta that a sampled descent may use up as slack."""

SMALLEST_DELTA = 1e-10
"""Below it, rounding inside the accountant would be felt in the slack."""

FINEST_INTERVAL = 1e-5
COARSEST_INTERVAL = 5e-3
"""Between these lies the interval that privacy losses are rounded up to: a finer one needs more memory, a coarser
one states more than is spent."""

ROUNDING_OF_A_STEP = 5e-16
"""How much each composed step adds to the absolute error of a computed delta: a Fourier transform's relative error
grows with the power that it is raised to."""


@dataclass(frozen=True, slots=True)
class DescentCost:
    """Parameters of DP-SGD that its cost depends on: sampling rate, noise over clipping norm, and number of steps."""

    sampling_rate: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 < self.sampling_rate <= 1 or self.sampling_rate * RATE_UNITS % 1 != 0:
            raise UsageError(
                "sampling rate", "must lie between 0 and 1, in whole multiples of 2^-32", "Take it from exact_rate"
            )
        if not 0 < self.noise_multiplier <= LARGEST_MULTIPLIER:
            raise UsageError("noise multiplier", "must be above 0 and at most 2^20")
        if not 1 <= self.steps <= MOST_STEPS:
            raise UsageError("steps", f"must lie between 1 and {MOST_STEPS:,}")

    @property
    def is_sampled(self) -> bool:
        """Whether steps are on Poisson subsamples, and not on all rows."""
        return self.sampling_rate < 1

    def charge(self, slack: Fraction) -> Charge:
        """The smallest Gaussian mechanism that dominates the descent up to ``slack``; rounded up.

        The curve delta(epsilon) of the descent falls, and so does the Gaussian one. So it is enough to
        compare, from 0 to where the descent's is below the slack, its value at the left end of each small
        interval with the Gaussian one at the right end (proofs/descent.md).
        """
        if not self.is_sampled:
            return Charge(Fraction(self.steps) / Fraction(self.noise_multiplier) ** 2)
        return Charge(_dominating_mu_squared(self, float(slack)), slack)

    def epsilon(self, delta: float, *, beside: Iterable[Fraction] = ()) -> float:
        """The epsilon of the descent and Gaussian releases together, by privacy loss distributions."""
        others = sum(beside, Fraction(0))
        if not self.is_sampled:
            return epsilon_of([self.charge(Fraction(0)).mu_squared, others], delta)
        surely = delta - _rounding(self)
        if surely <= 0:
            return math.inf
        return float(_losses(self, others).get_epsilon_for_delta(surely))


def exact_rate(rate: float) -> float:
    """The nearest chance of sampling, at most 1, that random bits meet exactly."""
    if not 0 < rate <= 1:
        raise UsageError("sampling rate", "must be above 0 and at most 1")
    return max(1, round(rate * RATE_UNITS)) / RATE_UNITS


def calibrated_descent(
    budget: Budget, *, sampling_rate: float, steps: int, beside: Iterable[Fraction] = ()
) -> DescentCost:
    """The descent with the least noise that meets a budget, together with Gaussian releases.

    Args:
        budget: epsilon and delta of everything together.
        sampling_rate: chance of a row in a step; rounded to ``exact_rate``.
        steps: how many.
        beside: mu squared of the Gaussian releases beside it.

    Guarantee:
        The charge of the descent, and with it the descent and the releases beside it in any order,
        are (epsilon, delta)-private between tables that differ by one row more or less. The noise
        depends on these numbers alone (proofs/descent.md).
    """
    first = DescentCost(exact_rate(sampling_rate), 1.0, steps)
    slack = slack_for(budget, first.sampling_rate)
    left = mu_squared_of_budget(budget.without(slack)) - sum(beside, Fraction(0))
    if left <= 0:
        raise UsageError("budget", "is used up by the releases beside the descent")

    if not first.is_sampled:
        return replace(first, noise_multiplier=_whole_units(math.sqrt(steps / left) * (1 + 1e-12)))

    def excess(multiplier: float) -> float:
        """How far the charge is above what may be spent, as a logarithm of mu."""
        spent = replace(first, noise_multiplier=multiplier).charge(slack).mu_squared
        return math.log(spent / left) / 2

    # The search starts where mu^2 is about q^2 T (e^(1 / nm^2) - 1), as for many steps (Dong, Roth & Su 2022).
    guess = 1 / math.sqrt(math.log1p(float(left) / (first.sampling_rate**2 * steps)))
    return replace(first, noise_multiplier=_least_multiplier(excess, guess))


def slack_for(budget: Budget, sampling_rate: float) -> Fraction:
    """The slack of a descent under a budget: a public part of its delta, none if nothing is sampled."""
    if budget.is_pure:
        raise UsageError("delta", "must be above 0: noisy descent has Gaussian noise", "1e-5 is common")
    if sampling_rate == 1:
        return Fraction(0)
    if budget.delta < SMALLEST_DELTA:
        raise UsageError(
            "delta",
            f"must be at least {SMALLEST_DELTA:g} where rows are sampled",
            "Use a sampling rate of 1 for a smaller one",
        )
    return Fraction(budget.delta * SLACK_SHARE)


@lru_cache(maxsize=256)
def _dominating_mu_squared(cost: DescentCost, slack: float) -> Fraction:
    rounding = _rounding(cost)
    if rounding > slack / 2:
        raise UsageError(
            "delta",
            "is too small to be accounted for with so many sampled steps",
            "Take fewer steps, a larger delta, or a sampling rate of 1",
        )
    curve = _losses(cost, Fraction(0))
    reach = float(curve.get_epsilon_for_delta(slack - rounding))
    if not math.isfinite(reach):
        raise UsageError("noise multiplier", "is too small to be accounted for", "Add more noise")
    grid = np.linspace(0.0, reach, GRID)
    found = np.asarray(curve.get_delta_for_epsilon(grid)) + rounding

    def dominates(mu: float) -> bool:
        allowed = slack + (1 - slack) * (gaussian_delta(mu, grid[1:]) - ROUNDING)
        return bool(np.all(found[:-1] <= allowed))

    low, high = 0.0, math.sqrt(cost.steps) / cost.noise_multiplier * 1.01 + 1e-6
    while not dominates(high):  # without sampling it would be dominated up to the grid's coarseness
        high *= 1.1
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if dominates(middle) else (middle, high)
    return Fraction(math.ceil(Fraction(high) ** 2 * UNITS_PER_COST), UNITS_PER_COST)


def epsilon_of_replacement(epsilon_at: Callable[[float], float], delta: float) -> float:
    """The epsilon if a row is replaced, which is removed and then added (Dwork & Roth 2014, Thm 2.2).

    ``epsilon_at`` is that of a row which is added or removed, at a delta. Twice in a row, (epsilon, d) is
    (2 epsilon, (1 + e^epsilon) d).
    """
    part = delta / 4
    for _ in range(60):
        epsilon = epsilon_at(part)
        if part * (1 + math.exp(min(epsilon, 700.0))) <= delta:
            return 2 * epsilon
        part /= 2
    return math.inf


@lru_cache(maxsize=64)
def _losses(cost: DescentCost, mu_squared: Fraction) -> Any:
    """Privacy loss distribution of a descent composed with a Gaussian mechanism."""
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    rounded = partial(from_gaussian_mechanism, value_discretization_interval=_interval(cost))
    if mu_squared:
        return _losses(cost, Fraction(0)).compose(rounded(1 / math.sqrt(mu_squared)))
    return rounded(cost.noise_multiplier, sampling_prob=cost.sampling_rate).self_compose(cost.steps)


def _rounding(cost: DescentCost) -> float:
    """How far a computed delta of a descent may be below the one that was meant."""
    return ROUNDING + ROUNDING_OF_A_STEP * cost.steps


def _interval(cost: DescentCost) -> float:
    """Discretisation of privacy losses: a small part of one step's and of the total deviation."""
    step = cost.sampling_rate / cost.noise_multiplier
    return min(COARSEST_INTERVAL, max(FINEST_INTERVAL, min(step / 10, step * math.sqrt(cost.steps) / 500)))


def _least_multiplier(excess: Callable[[float], float], guess: float) -> float:
    """The least multiplier, up to a small part, that has no excess; by secants on logarithms."""
    slope, multiplier = -1.0, _whole_units(guess)
    over = excess(multiplier)
    for _ in range(MOST_SECANTS):
        if -CALIBRATION_TOLERANCE < over <= 0:
            break
        # Aim a little past zero: a multiplier that is met is wanted, not one that is missed by a hair.
        following = _whole_units(multiplier * math.exp(-(over + CALIBRATION_TOLERANCE / 2) / slope))
        if following == multiplier:
            break
        found = excess(following)
        slope = min(-0.5, (found - over) / math.log(following / multiplier))
        multiplier, over = following, found
    while over > 0:
        multiplier = _whole_units(multiplier * (1 + CALIBRATION_TOLERANCE))
        over = excess(multiplier)
    return multiplier


def _whole_units(multiplier: float) -> float:
    if multiplier > LARGEST_MULTIPLIER:
        raise UsageError("budget", "is too small for so many steps", "Take fewer steps")
    return math.ceil(multiplier * MULTIPLIER_UNITS) / MULTIPLIER_UNITS
