"""Privacy accounting: budgets, calibration of noise, and composition (Gaussian DP, pure DP, DP-SGD)."""

from understudy.accounting.mechanisms import (
    GAUSSIAN,
    LAPLACE,
    UNITS_PER_COST,
    Budget,
    Mechanism,
    Neighbours,
    critical,
    epsilon_of,
    exceedance_probability,
    lattice_noise_std,
    mechanism_for,
    mu_squared_of_budget,
    neighbours_by_name,
    spent_mu_squared,
)

__all__ = [
    "GAUSSIAN",
    "LAPLACE",
    "UNITS_PER_COST",
    "Budget",
    "Mechanism",
    "Neighbours",
    "critical",
    "epsilon_of",
    "exceedance_probability",
    "lattice_noise_std",
    "mechanism_for",
    "mu_squared_of_budget",
    "neighbours_by_name",
    "spent_mu_squared",
]
