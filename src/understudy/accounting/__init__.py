"""Budgets, calibration and composition: numbers in, numbers out."""

from understudy.accounting.budget import Budget, Neighbours, neighbours_by_name
from understudy.accounting.gaussian import (
    best_guess_probability,
    epsilon_of,
    exceedance_probability,
    lattice_noise_std,
    mu_squared_of_budget,
    spent_mu_squared,
)

__all__ = [
    "Budget", "Neighbours", "best_guess_probability", "epsilon_of", "exceedance_probability",
    "lattice_noise_std", "mu_squared_of_budget", "neighbours_by_name", "spent_mu_squared",
]  # fmt: skip
