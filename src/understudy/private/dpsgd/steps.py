"""One step of DP-SGD: Poisson subsampling, discrete Gaussian noise on the gradient sum, and the optimizer's update."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from understudy.accounting import lattice_noise_std
from understudy.accounting.dpsgd import RATE_UNITS
from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.plan.plan import ROW_CAP
from understudy.private.noise import NoiseSource
from understudy.private.spending import Receipt

Draw = Callable[[int, float], Integers]
"""From a number of rows and a chance to the places of the rows that were drawn."""


def drawn_rows(num_rows: int, rate: float) -> Integers:
    """Poisson subsampling: indices of the rows in a step; there may be none.

    Guarantee:
        Each row is drawn with the chance ``rate``, exactly (it is a multiple of 2^-32), independently of all
        others and of earlier steps, if the operating system's bytes are uniform. There is no seed (proofs/descent.md).
    """
    words = np.frombuffer(os.urandom(4 * num_rows), dtype=np.uint32)
    return np.flatnonzero(words < round(rate * RATE_UNITS))


def check_size(num_rows: int) -> None:
    """Refuse more rows than certificates say that sums hold."""
    if num_rows > ROW_CAP:
        raise InputError("data", "has more rows than can be trained on", "Train on parts of it")


def noisy_sum(sums: Integers, *, radius: int, noise_multiplier: float, noise: NoiseSource, receipt: Receipt) -> Floats:
    """A sum of integer vectors inside a radius plus discrete Gaussian noise, in units of the radius.

    Guarantee:
        If one row more or less moves ``sums`` by an integer vector of norm at most ``radius``, this is
        post-processing of a Gaussian mechanism whose noise is ``noise_multiplier`` sensitivities
        (proofs/descent.md). The noise depends on public numbers alone.
    """
    whole = lattice_noise_std(radius**2, 1 / Fraction(noise_multiplier) ** 2)
    return np.asarray(noise.add_noise(sums.ravel(), whole, receipt), dtype=np.float64) / radius


Rule = Literal["momentum", "adam"]


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Learning rate and update rule of a descent; public, and post-processing of noisy gradients.

    Args:
        learning_rate: length of a step at the start; it falls to zero along a cosine.
        rule: ``momentum`` (a tenth of each gradient is new) or ``adam``.
        averaged: last part of the steps whose mean is the result (Polyak averaging); noise averages out in it.
    """

    learning_rate: float
    rule: Rule = "momentum"
    averaged: float = 0.0


class Optimizer:
    """Momentum or Adam (Kingma & Ba 2015) on a flat vector of parameters, with a cosine schedule. It sees no rows."""

    def __init__(self, start: Floats, steps: OptimizerSettings, num_steps: int) -> None:
        self.parameters = start.astype(np.float64)
        self._steps, self._total, self._done = steps, num_steps, 0
        self._first, self._second = np.zeros_like(self.parameters), np.zeros_like(self.parameters)
        self._mean, self._counted = np.zeros_like(self.parameters), 0

    def step(self, gradient: Floats) -> None:
        """Update the parameters by a noisy gradient."""
        self._done += 1
        done = (self._done - 1) / self._total
        pace = self._steps.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        self.parameters -= pace * self._direction(gradient)
        if self._done > self._total * (1 - self._steps.averaged):
            self._counted += 1
            self._mean += (self.parameters - self._mean) / self._counted

    def _direction(self, gradient: Floats) -> Floats:
        self._first = 0.9 * self._first + 0.1 * gradient
        first = self._first / (1 - 0.9**self._done)
        if self._steps.rule == "momentum":
            return first
        self._second = 0.999 * self._second + 0.001 * gradient**2
        second = self._second / (1 - 0.999**self._done)
        return np.asarray(first / (np.sqrt(second) + 1e-8))

    @property
    def result(self) -> Floats:
        """The last parameters, or the mean over the last part of the steps."""
        return self._mean if self._counted else self.parameters
