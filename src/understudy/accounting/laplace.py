"""Pure differential privacy by Laplace noise on the integer lattice.

An integer sum that one row can move by D, in the sum of absolute values, with discrete Laplace
noise of scale b on every coordinate is epsilon-differentially private with epsilon = D / b, and
delta is zero: no event has a chance to break the bound. Epsilons add up (proofs/laplace.md).
Everything is exact in fractions, or errs towards more noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from understudy.accounting.budget import UNITS_PER_COST, Budget
from understudy.accounting.gaussian import exact_as_float

MARGIN = 1e-9
"""Relative excess of a converted cost, far above the rounding of its computation."""


SMALL_EPSILON = 1e-3


def epsilon_of_budget(budget: Budget) -> Fraction:
    """The epsilon of a pure budget, rounded down to the whole units of a ledger."""
    if not budget.is_pure:
        raise ValueError("a budget with a delta above 0 is for Gaussian noise")
    units = math.floor(Fraction(budget.epsilon) * UNITS_PER_COST)
    return Fraction(units, UNITS_PER_COST)


def lattice_noise_scale(sensitivity: int, epsilon: Fraction) -> int:
    """The smallest whole scale, exact as a float, whose release costs at most ``epsilon``."""
    return exact_as_float(max(1, math.ceil(sensitivity / epsilon)))


def spent_epsilon(sensitivity: int, scale: int) -> Fraction:
    """What a release of integer L1 sensitivity and whole scale costs, exactly."""
    if scale < 1:
        raise ValueError("without noise there is no guarantee")
    return Fraction(sensitivity, scale)


def total_epsilon(costs: Iterable[Fraction]) -> float:
    """The epsilon of releases of these costs, together; never below it."""
    total = sum(costs, Fraction(0))
    found = float(total)
    return found if found >= total else math.nextafter(found, math.inf)


def laplace_std(scale: int) -> float:
    """Standard deviation of discrete Laplace noise: sqrt(2) scales, a hair less if they are small."""
    return 1 / (math.sqrt(2) * math.sinh(1 / (2 * scale)))


def laplace_deviations(normal: float) -> float:
    """As many deviations of a Laplace law as leave the tails that ``normal`` of a normal law leave.

    1.96 become 2.12, and 4 become 6.8: rare values are larger. Sums of several noises lie between.
    """
    return -math.log(math.erfc(normal / math.sqrt(2))) / math.sqrt(2)


def best_guess_of_epsilon(epsilon: float) -> float:
    """How often the best conceivable attacker is right about one person, from a coin toss."""
    return 1 / (1 + math.exp(-epsilon))


def mu_squared_of_epsilon(epsilon: float) -> Fraction:
    """The mu^2 for which everything that is epsilon-private is mu-GDP; rounded up.

    mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)): the Gaussian trade-off curve through the corner of
    the pure one, and by convexity below it everywhere (proofs/laplace.md).
    """
    from scipy.special import ndtri_exp

    if epsilon < SMALL_EPSILON:  # the tangent at zero, which lies above and does not cancel
        return Fraction(math.sqrt(math.pi / 2) * epsilon * (1 + MARGIN)) ** 2
    # Phi(-mu / 2) = 1 / (1 + e^epsilon), whose logarithm is exact where itself would vanish.
    corner = -epsilon - math.log1p(math.exp(-epsilon))
    mu = -2 * float(ndtri_exp(corner))
    return Fraction(mu * (1 + MARGIN)) ** 2
