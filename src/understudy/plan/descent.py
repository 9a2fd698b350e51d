"""Noisy gradient descent (DP-SGD) as plans state it: sampling, clipping, noise, steps, and what they cost.

A classifier, an encoder of images and the decoder of dp-merf-ae are trained by it. Which function is trained, and
on what of a row, is theirs; everything that privacy rests on is here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from understudy.accounting import GAUSSIAN, Budget, Neighbours, epsilon_of
from understudy.accounting.dpsgd import (
    Charge,
    DescentCost,
    charge_of_descent,
    epsilon_of_charges,
    epsilon_of_descent,
    exceedance_of_charges,
    slack_for,
)
from understudy.codec import decode, encode
from understudy.networks.autoencoder import AutoEncoder
from understudy.schema import Schema


@dataclass(frozen=True)
class DescentPlan:
    """Steps on Poisson samples of the rows, each with Gaussian noise on a sum of clipped gradients (Abadi et al. 2016).

    Args:
        budget: epsilon and delta of the descent and of everything ``beside`` it together.
        cost: sampling rate, noise multiplier and number of steps.
        clip: norm to which the gradient of every row is shortened.
        learning_rate: length of the first step.
        expected_rows: public number of rows, or a public guess; it sets the length of steps and protects nothing.
        seed: public seed of the first parameters. Noise has none.
        beside: mu squared of the Gaussian releases that are charged with the descent.

    Guarantee:
        Its ``charges`` together dominate the descent and what is beside it, between tables with one row more or less
        (proofs/descent.md).
    """

    budget: Budget
    cost: DescentCost
    clip: float
    learning_rate: float
    expected_rows: int | None
    seed: int = 0
    beside: tuple[Fraction, ...] = ()

    @property
    def neighbours(self) -> Neighbours:
        """Rows come or go: Poisson sampling is accounted for nothing else."""
        return Neighbours.ADD_REMOVE

    @cached_property
    def charge(self) -> Charge:
        """The Gaussian mechanism that dominates the descent, up to a slack; ledgers count it."""
        return charge_of_descent(self.cost, slack_for(self.budget, self.cost.sampling_rate))

    @cached_property
    def charges(self) -> tuple[Charge, ...]:
        """What is charged to a ledger: the releases beside the descent, then the descent."""
        return (*(Charge(cost) for cost in self.beside), self.charge)

    def epsilon(self, neighbours: Neighbours | None = None, *, delta: float | None = None) -> float:
        """The epsilon of everything together, by privacy loss distributions.

        Infinite, and so not stated, at a delta that the slack uses up, and for replaced rows where rows are sampled.
        """
        delta = self.budget.delta if delta is None else delta
        if delta <= self.charge.slack:
            return math.inf
        if neighbours is Neighbours.REPLACE_ONE:
            doubled = 4 * sum(
                (charge.mu_squared for charge in self.charges), Fraction(0)
            )  # one row goes, and another comes
            return math.inf if self.charge.slack else epsilon_of([doubled], delta)
        return epsilon_of_descent(self.cost, delta, beside=self.beside)

    def charged_epsilon(self) -> float:
        """The epsilon as ledgers count it, which is a little more where rows are sampled."""
        return epsilon_of_charges(self.charges, self.budget.delta)

    def least_epsilon(self, delta: float) -> float:
        """By privacy loss distributions or as an almost Gaussian mechanism: neither is ever below the truth."""
        by_losses = epsilon_of_descent(self.cost, delta, beside=self.beside)
        return min(by_losses, epsilon_of_charges(self.charges, delta))

    @property
    def best_guess(self) -> float:
        """How often the best attacker is right about one person, from a coin toss."""
        return GAUSSIAN.best_guess(charge.mu_squared for charge in self.charges) + float(self.charge.slack)

    @property
    def exceedance(self) -> float:
        """How often, at most, odds about one person move past what epsilon allows."""
        if self.charge.slack:
            return exceedance_of_charges(self.charges, self.epsilon())
        return GAUSSIAN.exceedance([charge.mu_squared for charge in self.charges], self.epsilon())


class TrainedPlan(Protocol):
    """The plan of a product that a noisy descent makes: a classifier, or an encoder."""

    @property
    def schema(self) -> Schema:
        """The public description of the table."""

    @property
    def descent(self) -> DescentPlan:
        """All that it costs."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the plan."""


@dataclass(frozen=True)
class DecoderPlan:
    """An auto-encoder of images that is trained before anything else is released; its decoder is handed out."""

    network: AutoEncoder
    descent: DescentPlan

    def to_dict(self) -> dict[str, Any]:
        """Public description; the budget is the whole plan's."""
        descent = self.descent
        return {
            "network": encode(self.network),
            **encode(descent.cost),
            "clip": descent.clip,
            "learning_rate": descent.learning_rate,
            "expected_rows": descent.expected_rows,
            "seed": descent.seed,
        }


def decoder_from_dict(document: dict[str, Any], budget: Budget) -> DecoderPlan:
    """A decoder from its public description."""
    descent = DescentPlan(
        budget,
        DescentCost(float(document["sampling_rate"]), float(document["noise_multiplier"]), int(document["steps"])),
        float(document["clip"]),
        float(document["learning_rate"]),
        int(document["expected_rows"]),
        int(document["seed"]),
    )
    return DecoderPlan(decode(AutoEncoder, document["network"]), descent)
