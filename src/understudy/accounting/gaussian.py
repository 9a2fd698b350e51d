"""Exact accounting of the Gaussian mechanism, and its discrete twin on the integer lattice.

A release of sensitivity s with noise deviation d is mu-GDP with mu = s / d (Dong, Roth & Su
2022); several releases compose to the root of the sum of the mu squared, exactly. Epsilon and
delta belong to a mu by Balle & Wang 2018, Thm 8. Everything here errs towards more noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from understudy.accounting.budget import UNITS_PER_COST, Budget

# Scales of noise that survive being passed on as floats.

FLOAT_BITS = 53
"""A scale has at most so many binary digits, so that a float holds it exactly."""


def exact_as_float(scale: int) -> int:
    """The smallest whole number that is not below a scale and that a float holds exactly."""
    step = 1 << max(0, scale.bit_length() - FLOAT_BITS)
    return -(-scale // step) * step


DISCRETISATION = 4
"""N_Z(0, s^2) is post-processing of a continuous Gaussian of variance s^2 - 4 (proofs/noise.md)."""

SMALLEST_NOISE = 3
MARGIN = 1e-8
"""Relative excess of every epsilon, above the rounding of the library that computes it."""


def mu_squared_of_budget(budget: Budget) -> Fraction:
    """The largest mu^2 that meets a budget, rounded down to the whole units of a ledger."""
    import dp_accounting
    import numpy as np

    if budget.is_pure:
        raise ValueError("no Gaussian noise has a delta of 0")
    with np.errstate(divide="ignore"):  # at tiny epsilons it meets log 0 on its way
        sigma = float(dp_accounting.get_sigma_gaussian(budget.epsilon, budget.delta)) * (1 + 1e-8)
    # The root finder may stop a hair on the wrong side: step towards more noise.
    while _epsilon(sigma, budget.delta) > budget.epsilon:
        sigma *= 1 + 1e-7
    units = math.floor(UNITS_PER_COST / Fraction(sigma) ** 2)
    return Fraction(units, UNITS_PER_COST)


def lattice_noise_std(squared_sensitivity: int, mu_squared: Fraction) -> int:
    """The smallest whole deviation, exact as a float, whose release costs at most ``mu_squared``."""
    variance = Fraction(squared_sensitivity) / mu_squared + DISCRETISATION
    return exact_as_float(max(SMALLEST_NOISE, math.isqrt(math.ceil(variance) - 1) + 1))


def spent_mu_squared(squared_sensitivity: int, noise_std: int) -> Fraction:
    """What a release of integer sensitivity and whole noise deviation costs, exactly."""
    if squared_sensitivity == 0:
        return Fraction(0)
    if noise_std**2 <= DISCRETISATION:
        raise ValueError("noise this small has no Gaussian guarantee")
    return Fraction(squared_sensitivity, noise_std**2 - DISCRETISATION)


def epsilon_of(mu_squared: Iterable[Fraction], delta: float) -> float:
    """The epsilon at which releases of these costs, together, are (epsilon, delta)-private."""
    total = sum(mu_squared, Fraction(0))
    return 0.0 if total == 0 else _epsilon(1 / math.sqrt(total), delta)


def _epsilon(sigma: float, delta: float) -> float:
    import dp_accounting
    import numpy as np

    with np.errstate(divide="ignore"):
        return float(dp_accounting.get_epsilon_gaussian(sigma, delta)) * (1 + MARGIN)


def best_guess_probability(mu_squared: Iterable[Fraction]) -> float:
    """How often the best conceivable attacker is right about one person, from a coin toss.

    Phi(mu / 2): the largest accuracy of any test between two neighbouring tables.
    """
    mu = math.sqrt(sum(mu_squared, Fraction(0)))
    return 0.5 * math.erfc(-mu / 2 / math.sqrt(2))


def exceedance_probability(mu_squared: Iterable[Fraction], epsilon: float) -> float:
    """How often, at most, what anybody sees moves the odds about one person past e^epsilon.

    The largest P(E) over events E with P(E) >= e^epsilon Q(E), where P = N(mu, 1) and
    Q = N(0, 1) are the two tables' worst views: E is the tail y > t with Phi(mu - t) =
    e^epsilon Phi(-t). It covers views that merge outcomes, and so is larger than the tail of
    the privacy loss, which is larger than delta.
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    mu = math.sqrt(sum(mu_squared, Fraction(0)))
    if mu == 0:
        return 0.0
    edge = epsilon / mu + mu / 2  # where the likelihood ratio itself is e^epsilon
    threshold = brentq(lambda t: log_ndtr(mu - t) - log_ndtr(-t) - epsilon, edge - 40, edge)
    return math.exp(log_ndtr(mu - threshold))
