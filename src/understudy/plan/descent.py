"""Noisy gradient descent (DP-SGD) as plans state it: sampling, clipping, noise, steps, and what they cost.

A classifier, an encoder of images and the decoder of dp-merf-ae are trained by it. Which function is trained, and
on what of a row, is theirs; everything that privacy rests on is here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from understudy.accounting.dpsgd import DescentCost, slack_for
from understudy.accounting.mechanisms import GAUSSIAN, NO_CHARGE, Budget, Charge, Neighbours, epsilon_of
from understudy.codec import FLAT
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
    neighbours = Neighbours.ADD_REMOVE  # rows come or go: Poisson sampling is accounted for nothing else

    @cached_property
    def charge(self) -> Charge:
        """The Gaussian mechanism that dominates the descent, up to a slack; ledgers count it."""
        return self.cost.charge(slack_for(self.budget, self.cost.sampling_rate))

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
            doubled = 4 * self._whole.mu_squared  # one row goes, and another comes
            return math.inf if self._whole.slack else epsilon_of([doubled], delta)
        return self.cost.epsilon(delta, beside=self.beside)

    def charged_epsilon(self) -> float:
        """The epsilon as ledgers count it, which is a little more where rows are sampled."""
        return self._whole.epsilon(self.budget.delta)

    @property
    def best_guess(self) -> float:
        """How often the best attacker is right about one person, from a coin toss."""
        return self._whole.best_guess

    @property
    def exceedance(self) -> float:
        """How often, at most, odds about one person move past what epsilon allows."""
        if self._whole.slack:
            return self._whole.exceedance(self.epsilon())
        return GAUSSIAN.exceedance([self._whole.mu_squared], self.epsilon())

    @property
    def _whole(self) -> Charge:
        return sum(self.charges, NO_CHARGE)


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
    """The descent before the stages of a release, which trains an auto-encoder of images; its decoder is handed out.

    Fields are as in ``DescentPlan``, but for the budget, which is the whole plan's.
    """

    network: AutoEncoder
    cost: DescentCost = field(metadata=FLAT)
    clip: float
    learning_rate: float
    expected_rows: int
    seed: int
