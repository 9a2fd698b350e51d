"""A network that noisy descent trains on private rows: what a plan says of it, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from understudy.accounting import Budget
from understudy.accounting.dpsgd import (
    Charge,
    DescentCost,
    charge_of_descent,
    epsilon_of_charges,
    epsilon_of_descent,
    epsilon_of_replacement,
    slack_for,
)
from understudy.networks.autoencoder import AutoEncoder, autoencoder_from_dict


@dataclass(frozen=True)
class Descent:
    """An auto-encoder, trained in steps on samples of the rows before anything else is released.

    Every row's gradient is cut to norm ``clip``. ``expected_rows`` sets the length of steps and protects nothing.
    """

    network: AutoEncoder
    cost: DescentCost
    clip: float
    learning_rate: float
    expected_rows: int
    seed: int = 0

    def charge(self, budget: Budget) -> Charge:
        """What it costs where Gaussian costs are counted."""
        return charge_of_descent(self.cost, slack_for(budget, self.cost.sampling_rate))

    def epsilon(self, budget: Budget, delta: float, *, beside: Sequence[Fraction]) -> float:
        """The epsilon of the descent and Gaussian releases together, if a row is added or removed.

        By privacy loss distributions, or as an almost Gaussian mechanism if that says less: both are
        never below the truth.
        """
        charges = [self.charge(budget), *(Charge(cost) for cost in beside)]
        return min(epsilon_of_descent(self.cost, delta, beside=beside), epsilon_of_charges(charges, delta))

    def epsilon_of_replacement(self, budget: Budget, delta: float, *, beside: Sequence[Fraction]) -> float:
        """The same if a row is replaced."""
        return epsilon_of_replacement(lambda part: self.epsilon(budget, part, beside=beside), delta)

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {
            "network": self.network.to_dict(),
            "sampling_rate": self.cost.sampling_rate,
            "noise_multiplier": self.cost.noise_multiplier,
            "steps": self.cost.steps,
            "clip": self.clip,
            "learning_rate": self.learning_rate,
            "expected_rows": self.expected_rows,
            "seed": self.seed,
        }


def descent_from_dict(document: dict[str, Any]) -> Descent:
    """A descent from its public description."""
    cost = DescentCost(float(document["sampling_rate"]), float(document["noise_multiplier"]), int(document["steps"]))
    return Descent(
        autoencoder_from_dict(document["network"]),
        cost,
        float(document["clip"]),
        float(document["learning_rate"]),
        int(document["expected_rows"]),
        int(document["seed"]),
    )
