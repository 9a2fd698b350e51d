"""Budgets, calibration and composition: numbers in, numbers out."""

from understudy.accounting.budget import Budget, Neighbours, neighbours_by_name
from understudy.accounting.gaussian import (
    UNITS_PER_MU_SQUARED,
    best_guess_probability,
    epsilon_of,
    exceedance_probability,
    lattice_noise_std,
    mu_squared_of_budget,
    spent_mu_squared,
)

__all__ = [
    "UNITS_PER_MU_SQUARED", "Budget", "Neighbours", "best_guess_probability", "epsilon_of", "exceedance_probability",
    "lattice_noise_std", "mu_squared_of_budget", "neighbours_by_name", "spent_mu_squared",
]  # fmt: skip
