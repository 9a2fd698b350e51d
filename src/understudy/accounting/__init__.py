"""Budgets, calibration and composition: numbers in, numbers out."""

from understudy.accounting.budget import UNITS_PER_COST, Budget, Neighbours, neighbours_by_name
from understudy.accounting.gaussian import (
    best_guess_probability,
    epsilon_of,
    exceedance_probability,
    lattice_noise_std,
    mu_squared_of_budget,
    spent_mu_squared,
)
from understudy.accounting.laplace import (
    epsilon_of_budget,
    laplace_deviations,
    laplace_std,
    lattice_noise_scale,
    mu_squared_of_epsilon,
    spent_epsilon,
    total_epsilon,
)
from understudy.accounting.mechanisms import GAUSSIAN, LAPLACE, Mechanism, mechanism_for

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "UNITS_PER_COST",
    "Budget",
    "Mechanism",
    "Neighbours",
    "best_guess_probability",
    "epsilon_of",
    "epsilon_of_budget",
    "exceedance_probability",
    "laplace_deviations",
    "laplace_std",
    "lattice_noise_scale",
    "lattice_noise_std",
    "mechanism_for",
    "mu_squared_of_budget",
    "mu_squared_of_epsilon",
    "neighbours_by_name",
    "spent_epsilon",
    "spent_mu_squared",
    "total_epsilon",
]
