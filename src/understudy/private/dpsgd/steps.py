"""DP-SGD by steps: Poisson subsampling, discrete Gaussian noise on the gradient sum, and the optimizer's update."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.accounting import lattice_noise_std
from understudy.accounting.dpsgd import RATE_UNITS
from understudy.arrays import Floats, Integers, StepProgress
from understudy.errors import InputError
from understudy.features.exact import row_norms
from understudy.plan.descent import DescentPlan
from understudy.plan.plan import ROW_CAP
from understudy.private.noise import LongNoise, NoiseSource
from understudy.private.sealed import sealed
from understudy.private.spending import Receipt


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


def noisy_sum(sums: Integers, radius: int, *, noise_multiplier: float, noise: NoiseSource, receipt: Receipt) -> Floats:
    """A sum of integer vectors inside a radius plus discrete Gaussian noise, in units of the radius.

    Guarantee:
        If one row more or less moves ``sums`` by an integer vector of norm at most ``radius``, this is
        post-processing of a Gaussian mechanism whose noise is ``noise_multiplier`` sensitivities
        (proofs/descent.md). The noise depends on public numbers alone.
    """
    whole = lattice_noise_std(radius**2, 1 / Fraction(noise_multiplier) ** 2)
    return np.asarray(noise.add_noise(sums.ravel(), whole, receipt), dtype=np.float64) / radius


def clipped(gradients: Floats, clip: float) -> Floats:
    """Per-example clipping, in units of the clipping norm: longer gradients are scaled to norm 1."""
    return np.asarray(gradients / np.maximum(row_norms(gradients), clip)[:, None])


@dataclass(frozen=True)
class Descent:
    """DP-SGD as it is run: what the plan says of it, the noise that is paid for, and the optimizer's update rule.

    Args:
        plan: sampling rate, noise multiplier, steps, clipping norm and learning rate. Its expected rows set the length
            of steps and protect nothing.
        receipt: pays for the noise of every step.
        noise: other noise than this is for tests only.
        rule: ``momentum`` (a tenth of each gradient is new) or ``adam``.
        averaged: last part of the steps whose mean is the result (Polyak averaging); noise averages out in it.
        progress: called with the steps done and the steps in all.
    """

    plan: DescentPlan
    receipt: Receipt
    noise: NoiseSource = field(default_factory=LongNoise)
    rule: Literal["momentum", "adam"] = "momentum"
    averaged: float = 0.0
    progress: StepProgress | None = None

    def run(
        self, start: Floats, gradient_sum: Callable[[Floats, Integers], Integers], *, num_rows: int, radius: int
    ) -> Floats:
        """Train a flat vector of parameters: in every step draw rows, sum their gradients, add noise, and update.

        ``gradient_sum`` takes parameters and the places of the rows that were drawn, out of ``num_rows``. Both are
        PRIVATE.

        Guarantee:
            If every row adds an integer vector of norm at most ``radius`` to an exact sum, a function of that row
            and of the parameters alone, the outcome is private as the plan's cost states, between tables with one
            row more or less (proofs/descent.md).
        """
        cost, optimizer = self.plan.cost, Optimizer(start, self)
        scale = self.plan.clip / (cost.sampling_rate * (self.plan.expected_rows or 1))
        with threadpool_limits(limits=1, user_api="blas"):
            for done in range(cost.steps):
                places = drawn_rows(num_rows, cost.sampling_rate)
                sums = sealed(partial(gradient_sum, optimizer.parameters, places))
                noisy = noisy_sum(
                    sums, radius, noise_multiplier=cost.noise_multiplier, noise=self.noise, receipt=self.receipt
                )
                optimizer.step(scale * noisy)
                if self.progress is not None:
                    self.progress(done + 1, cost.steps)
        return optimizer.result


class Optimizer:
    """Momentum or Adam (Kingma & Ba 2015) on a flat vector of parameters, with a cosine schedule. It sees no rows."""

    def __init__(self, start: Floats, descent: Descent) -> None:
        self.parameters = start.astype(np.float64)
        self._descent, self._total, self._done = descent, descent.plan.cost.steps, 0
        self._first, self._second = np.zeros_like(self.parameters), np.zeros_like(self.parameters)
        self._mean, self._counted = np.zeros_like(self.parameters), 0

    def step(self, gradient: Floats) -> None:
        """Update the parameters by a noisy gradient."""
        self._done += 1
        done = (self._done - 1) / self._total
        pace = self._descent.plan.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
        self.parameters -= pace * self._direction(gradient)
        if self._done > self._total * (1 - self._descent.averaged):
            self._counted += 1
            self._mean += (self.parameters - self._mean) / self._counted

    def _direction(self, gradient: Floats) -> Floats:
        self._first = 0.9 * self._first + 0.1 * gradient
        first = self._first / (1 - 0.9**self._done)
        if self._descent.rule == "momentum":
            return first
        self._second = 0.999 * self._second + 0.001 * gradient**2
        second = self._second / (1 - 0.999**self._done)
        return np.asarray(first / (np.sqrt(second) + 1e-8))

    @property
    def result(self) -> Floats:
        """The last parameters, or the mean over the last part of the steps."""
        return self._mean if self._counted else self.parameters
