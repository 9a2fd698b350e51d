"""The two ways to make a sum private, as plans see them: Gaussian noise, or Laplace noise.

Which one a plan uses follows from its budget alone: a delta of zero needs Laplace noise, and
above zero Gaussian noise is never much worse and, for long vectors, far better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Literal, Protocol

from understudy.accounting import gaussian, laplace
from understudy.accounting.budget import Budget
from understudy.errors import UsageError


class Mechanism(Protocol):
    """Noise on an integer sum, and what it costs.

    Costs and sensitivities are in the mechanism's own additive units: mu squared and squared
    Euclidean norms for Gaussian noise, epsilon and L1 norms for Laplace noise.
    """

    name: Literal["gaussian", "laplace"]
    norm: Literal["l1", "l2"]
    cost_name: str
    kurtosis: float

    def total(self, budget: Budget) -> Fraction:
        """What may be spent under a budget, rounded down to units of a ledger."""

    def noise_scale(self, sensitivity: int, cost: Fraction) -> int:
        """The smallest whole scale of noise that costs at most ``cost``."""

    def cost(self, sensitivity: int, scale: int) -> Fraction:
        """What noise of a scale costs, exactly."""

    def deviation(self, scale: int) -> float:
        """Standard deviation of noise of a scale."""

    def deviations(self, normal: float) -> float:
        """As many deviations as leave the tails that ``normal`` of a normal law leave."""

    def below(self, deviations: float) -> float:
        """The chance that noise lies below so many deviations."""

    def length(self, sensitivity: int) -> float:
        """A sensitivity as the norm that it is."""

    def epsilon(self, costs: Iterable[Fraction], delta: float) -> float:
        """The epsilon of releases of these costs together."""

    def best_guess(self, costs: Iterable[Fraction]) -> float:
        """How often the best attacker is right about one person, from a coin toss."""

    def exceedance(self, costs: Iterable[Fraction], epsilon: float) -> float:
        """How often, at most, odds about one person move past e^epsilon."""

    def mu_squared(self, costs: Iterable[Fraction]) -> tuple[Fraction, ...]:
        """What releases of these costs are charged where Gaussian costs are counted."""


class GaussianMechanism:
    """Discrete Gaussian noise: mu squared adds up."""

    name: Literal["gaussian", "laplace"] = "gaussian"
    norm: Literal["l1", "l2"] = "l2"
    cost_name = "mu squared"
    kurtosis = 3.0

    def total(self, budget: Budget) -> Fraction:
        """The budget's mu squared."""
        return gaussian.mu_squared_of_budget(budget)

    def noise_scale(self, sensitivity: int, cost: Fraction) -> int:
        """A whole deviation."""
        return gaussian.lattice_noise_std(sensitivity, cost)

    def cost(self, sensitivity: int, scale: int) -> Fraction:
        """Mu squared."""
        return gaussian.spent_mu_squared(sensitivity, scale)

    def deviation(self, scale: int) -> float:
        """The scale itself."""
        return scale

    def deviations(self, normal: float) -> float:
        """The same."""
        return normal

    def below(self, deviations: float) -> float:
        """Phi."""
        return 0.5 * math.erfc(-deviations / math.sqrt(2))

    def length(self, sensitivity: int) -> float:
        """Sensitivities are squares."""
        return float(sensitivity**0.5)

    def epsilon(self, costs: Iterable[Fraction], delta: float) -> float:
        """At a delta."""
        return gaussian.epsilon_of(costs, delta)

    def best_guess(self, costs: Iterable[Fraction]) -> float:
        """Phi(mu / 2)."""
        return gaussian.best_guess_probability(costs)

    def exceedance(self, costs: Iterable[Fraction], epsilon: float) -> float:
        """Above delta."""
        return gaussian.exceedance_probability(costs, epsilon)

    def mu_squared(self, costs: Iterable[Fraction]) -> tuple[Fraction, ...]:
        """The costs themselves."""
        return tuple(costs)


class LaplaceMechanism:
    """Discrete Laplace noise: epsilon adds up, and delta is zero."""

    name: Literal["gaussian", "laplace"] = "laplace"
    norm: Literal["l1", "l2"] = "l1"
    cost_name = "epsilon"
    kurtosis = 6.0

    def total(self, budget: Budget) -> Fraction:
        """The budget's epsilon."""
        return laplace.epsilon_of_budget(budget)

    def noise_scale(self, sensitivity: int, cost: Fraction) -> int:
        """A whole scale."""
        return laplace.lattice_noise_scale(sensitivity, cost)

    def cost(self, sensitivity: int, scale: int) -> Fraction:
        """Epsilon."""
        return laplace.spent_epsilon(sensitivity, scale)

    def deviation(self, scale: int) -> float:
        """About sqrt(2) scales."""
        return laplace.laplace_std(scale)

    def deviations(self, normal: float) -> float:
        """More: its tails are heavier."""
        return laplace.laplace_deviations(normal)

    def below(self, deviations: float) -> float:
        """Exponential on either side."""
        tail = 0.5 * math.exp(-math.sqrt(2) * abs(deviations))
        return tail if deviations < 0 else 1 - tail

    def length(self, sensitivity: int) -> float:
        """Sensitivities are norms."""
        return float(sensitivity)

    def epsilon(self, costs: Iterable[Fraction], delta: float) -> float:
        """Their sum, whatever the delta."""
        return laplace.total_epsilon(costs)

    def best_guess(self, costs: Iterable[Fraction]) -> float:
        """e^epsilon / (1 + e^epsilon)."""
        return laplace.best_guess_of_epsilon(laplace.total_epsilon(costs))

    def exceedance(self, costs: Iterable[Fraction], epsilon: float) -> float:
        """Never."""
        return 0.0 if laplace.total_epsilon(costs) <= epsilon else 1.0

    def mu_squared(self, costs: Iterable[Fraction]) -> tuple[Fraction, ...]:
        """One cost for all of them: the sum is converted, not its parts, which costs less."""
        return (laplace.mu_squared_of_epsilon(laplace.total_epsilon(costs)),)


GAUSSIAN = GaussianMechanism()
LAPLACE = LaplaceMechanism()


def mechanism_for(budget: Budget) -> Mechanism:
    """The mechanism that meets a budget."""
    return LAPLACE if budget.is_pure else GAUSSIAN


# A budget that must last for several releases of a table that grows.

STEP = 1e-7
MOST_RELEASES = 10**6


def share_of(budget: Budget, releases: int) -> Budget:
    """The budget of each of so many releases that, together, meet a budget.

    Guarantee:
        ``releases`` times what the mechanism may spend under the share is at most what it may spend under
        the whole, in exact units of a ledger: a ledger with the whole as its cap takes them all.
    """
    if not 1 <= releases <= MOST_RELEASES:
        raise UsageError("horizon", f"must lie between 1 and {MOST_RELEASES:,} releases")
    if releases == 1:
        return budget
    mechanism = mechanism_for(budget)
    part = mechanism.total(budget) / releases
    epsilon = mechanism.epsilon([part], budget.delta)
    while mechanism.total(share := Budget(epsilon, budget.delta)) > part:
        epsilon *= 1 - STEP
    return share
