"""What is done with a noisy gradient: the rules of descent. They see no rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.arrays import Floats

Rule = Literal["momentum", "adam"]


@dataclass(frozen=True, slots=True)
class Steps:
    """How a descent walks.

    Args:
        learning_rate: length of a step at the start; it falls to zero along a cosine.
        rule: ``momentum`` (a tenth of each gradient is new) or ``adam``.
        averaged: last part of the walk whose mean is the outcome; noise averages out in it.
    """

    learning_rate: float
    rule: Rule = "momentum"
    averaged: float = 0.0


class Walk:
    """The parameters on their way, a flat vector moved by one noisy gradient after another."""

    def __init__(self, start: Floats, steps: Steps, num_steps: int) -> None:
        self.place = start.astype(np.float64)
        self._steps, self._total, self._done = steps, num_steps, 0
        self._first, self._second = np.zeros_like(self.place), np.zeros_like(self.place)
        self._mean, self._counted = np.zeros_like(self.place), 0

    def move(self, gradient: Floats) -> None:
        """One step down a noisy gradient."""
        self._done += 1
        done = (self._done - 1) / self._total
        pace = self._steps.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        self.place -= pace * self._direction(gradient)
        if self._done > self._total * (1 - self._steps.averaged):
            self._counted += 1
            self._mean += (self.place - self._mean) / self._counted

    def _direction(self, gradient: Floats) -> Floats:
        self._first = 0.9 * self._first + 0.1 * gradient
        first = self._first / (1 - 0.9**self._done)
        if self._steps.rule == "momentum":
            return first
        self._second = 0.999 * self._second + 0.001 * gradient**2
        second = self._second / (1 - 0.999**self._done)
        return np.asarray(first / (np.sqrt(second) + 1e-8))

    @property
    def outcome(self) -> Floats:
        """Where the walk ends, or the mean of its last part."""
        return self._mean if self._counted else self.place
