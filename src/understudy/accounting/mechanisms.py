"""Budgets, and the additive-noise mechanisms on integer sums that meet them: discrete Gaussian (mu-GDP) and discrete
Laplace (pure DP).

Which one a plan uses follows from its budget alone: a delta of zero needs Laplace noise, and above zero Gaussian
noise is never much worse and, for long vectors, far better.

Gaussian: a release of sensitivity s with noise deviation d is mu-GDP with mu = s / d, and several releases compose to
the root of the sum of the mu squared, exactly (Dong, Roth & Su 2022, Cor. 3.3). Epsilon and delta belong to a mu by the
analytic Gaussian mechanism (Balle & Wang 2018, Thm 8). Noise is discrete, on the integer lattice (Canonne, Kamath &
Steinke 2020; proofs/noise.md).

Laplace: an integer sum that one row can move by D, in the sum of absolute values, with discrete Laplace noise of scale
b on every coordinate is epsilon-differentially private with epsilon = D / b, and delta is zero: no event has a chance
to break the bound. Epsilons add up (proofs/laplace.md).

Everything is exact in fractions, or errs towards more noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal

import numpy as np

from understudy.arrays import Floats
from understudy.errors import UsageError

UNITS_PER_COST = 2**40
"""Ledgers count mu squared, or epsilon, in these units, and so do budgets: a plan then never outgrows
its own budget."""


class Neighbours(StrEnum):
    """The neighbouring relation: which two tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    """One row is added or removed; the row count is private."""

    REPLACE_ONE = "replace-one"
    """One row is replaced by any other; the row count is public."""


def neighbours_by_name(name: str) -> Neighbours:
    """The neighbouring relation of that exact name, or a refusal."""
    try:
        return Neighbours(name)
    except ValueError:
        pass
    raise UsageError("neighbours", f"'{name}' is unknown", "Use add-remove or replace-one")


@dataclass(frozen=True, slots=True)
class Budget:
    """An (epsilon, delta) guarantee to be met; a delta of 0 asks for pure differential privacy."""

    epsilon: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            if not isinstance(getattr(self, name), int | float):
                raise UsageError(name, "must be a number")
        if self.delta == 0:  # one way to write it, in files and fingerprints
            object.__setattr__(self, "delta", 0.0)
        if not math.isfinite(self.epsilon) or not 1e-4 <= self.epsilon <= 100:
            raise UsageError(
                "epsilon",
                "must be a finite number above 0 (between 0.0001 and 100)",
                "Common choices lie between 0.1 and 10",
            )
        if self.delta != 0 and not 1e-15 <= self.delta <= 0.1:
            raise UsageError(
                "delta",
                "must be 0, or lie between 1e-15 and 0.1",
                "It should be far below one over the number of rows, for example 1e-5; "
                "0 asks for pure differential privacy, with more noise",
            )

    @property
    def is_pure(self) -> bool:
        """Whether this is pure differential privacy (delta = 0)."""
        return self.delta == 0

    def without(self, slack: Fraction) -> Budget:
        """The budget that is left once a chance ``slack`` of delta is used up."""
        return Budget(self.epsilon, float(Fraction(self.delta) - slack))


FLOAT_BITS = 53
"""A scale of noise has at most so many binary digits, so that it survives being passed on as a float."""

DISCRETISATION = 4
"""N_Z(0, s^2) is post-processing of a continuous Gaussian of variance s^2 - 4 (proofs/noise.md)."""

SMALLEST_NOISE = 3
"""The smallest whole deviation whose variance exceeds that."""

EPSILON_MARGIN = 1e-8
"""Relative excess of every epsilon, above the rounding of the library that computes it."""

MU_MARGIN = 1e-9
"""Relative excess of a converted cost, far above the rounding of its computation."""

SMALL_EPSILON = 1e-3
"""Below it, the tangent at zero is used, since differences of logarithms would cancel."""


def exact_as_float(scale: int) -> int:
    """The smallest whole number that is not below a scale and that a float holds exactly."""
    step = 1 << max(0, scale.bit_length() - FLOAT_BITS)
    return -(-scale // step) * step


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
        return float(dp_accounting.get_epsilon_gaussian(sigma, delta)) * (1 + EPSILON_MARGIN)


def mu_squared_of_epsilon(epsilon: float) -> Fraction:
    """The mu^2 for which everything that is epsilon-private is mu-GDP; rounded up.

    mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)): the Gaussian trade-off curve through the corner of
    the pure one, and by convexity below it everywhere (proofs/laplace.md).
    """
    from scipy.special import ndtri_exp

    if epsilon < SMALL_EPSILON:  # the tangent at zero, which lies above and does not cancel
        return Fraction(math.sqrt(math.pi / 2) * epsilon * (1 + MU_MARGIN)) ** 2
    # Phi(-mu / 2) = 1 / (1 + e^epsilon), whose logarithm is exact where itself would vanish.
    corner = -epsilon - math.log1p(math.exp(-epsilon))
    mu = -2 * float(ndtri_exp(corner))
    return Fraction(mu * (1 + MU_MARGIN)) ** 2


class GaussianMechanism:
    """Discrete Gaussian noise on an integer sum: sensitivities are squared Euclidean norms, costs are mu squared."""

    name: Literal["gaussian", "laplace"] = "gaussian"
    norm: Literal["l1", "l2"] = "l2"
    cost_name = "mu squared"
    kurtosis = 3.0

    total = staticmethod(mu_squared_of_budget)
    noise_scale = staticmethod(lattice_noise_std)
    cost = staticmethod(spent_mu_squared)
    epsilon = staticmethod(epsilon_of)

    def deviation(self, scale: int) -> float:
        """Standard deviation of noise of a scale, which is the scale."""
        return scale

    def deviations(self, normal: float) -> float:
        """As many deviations as leave the tails that ``normal`` of a normal law leave."""
        return normal

    def below(self, deviations: float) -> float:
        """The chance that noise lies below so many deviations: Phi, the normal distribution function."""
        return 0.5 * math.erfc(-deviations / math.sqrt(2))

    def length(self, sensitivity: int) -> float:
        """A sensitivity as the norm that it is."""
        return float(sensitivity**0.5)

    def best_guess(self, costs: Iterable[Fraction]) -> float:
        """How often the best conceivable attacker is right about one person, from a coin toss.

        Phi(mu / 2): the largest accuracy of any test between two neighbouring tables.
        """
        return self.below(math.sqrt(sum(costs, Fraction(0))) / 2)

    def exceedance(self, costs: Iterable[Fraction], epsilon: float) -> float:
        """How often, at most, what anybody sees moves the odds about one person past e^epsilon.

        The largest P(E) over events E with P(E) >= e^epsilon Q(E), where P = N(mu, 1) and
        Q = N(0, 1) are the two tables' worst views: E is the tail y > t with Phi(mu - t) =
        e^epsilon Phi(-t). It covers views that merge outcomes, and so is larger than the tail of
        the privacy loss, which is larger than delta.
        """
        from scipy.optimize import brentq
        from scipy.special import log_ndtr

        mu = math.sqrt(sum(costs, Fraction(0)))
        if mu == 0:
            return 0.0
        edge = epsilon / mu + mu / 2  # where the likelihood ratio itself is e^epsilon
        threshold = brentq(lambda t: log_ndtr(mu - t) - log_ndtr(-t) - epsilon, edge - 40, edge)
        return math.exp(log_ndtr(mu - threshold))

    def mu_squared(self, costs: Iterable[Fraction]) -> tuple[Fraction, ...]:
        """What releases of these costs are charged where Gaussian costs are counted."""
        return tuple(costs)


class LaplaceMechanism:
    """Discrete Laplace noise on an integer sum: sensitivities are L1 norms, costs are epsilon, and delta is zero.

    Everything that it says is what ``GaussianMechanism`` says under the same name.
    """

    name: Literal["gaussian", "laplace"] = "laplace"
    norm: Literal["l1", "l2"] = "l1"
    cost_name = "epsilon"
    kurtosis = 6.0

    def total(self, budget: Budget) -> Fraction:
        """The epsilon of a pure budget, rounded down to the whole units of a ledger."""
        if not budget.is_pure:
            raise ValueError("a budget with a delta above 0 is for Gaussian noise")
        units = math.floor(Fraction(budget.epsilon) * UNITS_PER_COST)
        return Fraction(units, UNITS_PER_COST)

    def noise_scale(self, sensitivity: int, epsilon: Fraction) -> int:
        """The smallest whole scale, exact as a float, whose release costs at most ``epsilon``."""
        return exact_as_float(max(1, math.ceil(sensitivity / epsilon)))

    def cost(self, sensitivity: int, scale: int) -> Fraction:
        """What a release of integer L1 sensitivity and whole scale costs, exactly."""
        if scale < 1:
            raise ValueError("without noise there is no guarantee")
        return Fraction(sensitivity, scale)

    def epsilon(self, costs: Iterable[Fraction], delta: float = 0.0) -> float:
        """The epsilon of releases of these costs, together, whatever the delta; never below it."""
        total = sum(costs, Fraction(0))
        found = float(total)
        return found if found >= total else math.nextafter(found, math.inf)

    def deviation(self, scale: int) -> float:
        """Standard deviation of discrete Laplace noise: sqrt(2) scales, a hair less if they are small."""
        return 1 / (math.sqrt(2) * math.sinh(1 / (2 * scale)))

    def deviations(self, normal: float) -> float:
        """As many deviations of a Laplace law as leave the tails that ``normal`` of a normal law leave.

        1.96 become 2.12, and 4 become 6.8: rare values are larger. Sums of several noises lie between.
        """
        return -math.log(math.erfc(normal / math.sqrt(2))) / math.sqrt(2)

    def below(self, deviations: float) -> float:
        """Exponential tails on either side."""
        tail = 0.5 * math.exp(-math.sqrt(2) * abs(deviations))
        return tail if deviations < 0 else 1 - tail

    def length(self, sensitivity: int) -> float:
        return float(sensitivity)

    def best_guess(self, costs: Iterable[Fraction]) -> float:
        """e^epsilon / (1 + e^epsilon), from a coin toss."""
        return 1 / (1 + math.exp(-self.epsilon(costs)))

    def exceedance(self, costs: Iterable[Fraction], epsilon: float) -> float:
        """Never, up to the epsilon that was spent."""
        return 0.0 if self.epsilon(costs) <= epsilon else 1.0

    def mu_squared(self, costs: Iterable[Fraction]) -> tuple[Fraction, ...]:
        """One cost for all of them: the sum is converted, not its parts, which costs less."""
        return (mu_squared_of_epsilon(self.epsilon(costs)),)


Mechanism = GaussianMechanism | LaplaceMechanism
GAUSSIAN = GaussianMechanism()
LAPLACE = LaplaceMechanism()


def mechanism_for(budget: Budget) -> Mechanism:
    """The mechanism that meets a budget."""
    return LAPLACE if budget.is_pure else GAUSSIAN


def critical(mechanism: Mechanism, level: float) -> float:
    """Deviations that the noise of an estimate stays within, on either side, at this level.

    Estimates are weighted sums of independent noises. Of normal ones they are normal. Of Laplace ones they lie between
    a single one and a normal one; the wider of these two is taken.
    """
    from scipy.special import ndtri

    normal = float(ndtri((1 + level) / 2))
    return max(normal, mechanism.deviations(normal))


SHARE_STEP = 1e-7
"""Relative step towards more noise, until a share is met in whole units."""

MOST_RELEASES = 10**6
"""Of one horizon."""


ROUNDING = 1e-13
"""Absolute error of any computed delta, several times over."""

GRID = 2000
"""Values of epsilon at which two curves delta(epsilon) are compared."""


def gaussian_delta(mu: float, epsilon: Floats) -> Floats:
    """Delta of a Gaussian mechanism (Balle & Wang 2018, Thm 8)."""
    from scipy.special import log_ndtr, ndtr

    middle = epsilon / mu
    return np.asarray(ndtr(mu / 2 - middle) - np.exp(epsilon + log_ndtr(-mu / 2 - middle)))


@dataclass(frozen=True, slots=True)
class Charge:
    """Approximate Gaussian DP: a Gaussian mechanism of so many mu squared, except with the chance ``slack``."""

    mu_squared: Fraction
    slack: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.mu_squared < 0 or self.slack < 0:
            raise ValueError("a cost is not negative")

    def __add__(self, other: Charge) -> Charge:
        """Both together: mu squared add up, and so do slacks."""
        return Charge(self.mu_squared + other.mu_squared, self.slack + other.slack)

    def epsilon(self, delta: float) -> float:
        """The epsilon at a delta; infinite if the slack uses it up."""
        left = Fraction(delta) - self.slack
        return epsilon_of([self.mu_squared], float(left)) if left > 0 else math.inf

    @property
    def best_guess(self) -> float:
        """How often, at most, the best attacker is right about one person, from a coin toss."""
        return min(1.0, GAUSSIAN.best_guess([self.mu_squared]) + float(self.slack))

    def exceedance(self, epsilon: float) -> float:
        """How often, at most, odds about one person move past e^epsilon.

        Where they do, P(E) >= e^epsilon Q(E); as P(E) <= e^a Q(E) + delta(a) for every a, such an event has
        P(E) <= delta(a) / (1 - e^(a - epsilon)) for every a below epsilon.
        """
        below = epsilon * np.linspace(0.0, 1.0, GRID, endpoint=False)
        deltas = float(self.slack) + gaussian_delta(math.sqrt(self.mu_squared), below) + ROUNDING
        return float(min(1.0, np.min(deltas / -np.expm1(below - epsilon))))


NO_CHARGE = Charge(Fraction(0))


def share_of(budget: Budget, releases: int) -> Budget:
    """The budget of each of so many releases of a growing table that, together, meet a budget.

    Guarantee:
        ``releases`` times what the mechanism may spend under the share is at most what it may spend under
        the whole, in exact units of a ledger: a ledger with the whole as its cap takes them all (proofs/noise.md).
    """
    if not 1 <= releases <= MOST_RELEASES:
        raise UsageError("horizon", f"must lie between 1 and {MOST_RELEASES:,} releases")
    if releases == 1:
        return budget
    mechanism = mechanism_for(budget)
    part = mechanism.total(budget) / releases
    epsilon = mechanism.epsilon([part], budget.delta)
    while mechanism.total(share := Budget(epsilon, budget.delta)) > part:
        epsilon *= 1 - SHARE_STEP
    return share


def round_up(value: float) -> float:
    """Four significant digits, never below the value."""
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    rounded = float(f"{math.ceil(value / step) * step:.6g}")
    return rounded if rounded >= value else float(f"{rounded + step:.6g}")
