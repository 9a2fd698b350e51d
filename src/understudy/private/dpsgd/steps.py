"""DP-SGD by steps: Poisson subsampling, discrete Gaussian noise on the gradient sum, and the optimizer's update."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from understudy.accounting.dpsgd import RATE_UNITS
from understudy.accounting.mechanisms import lattice_noise_std
from understudy.arrays import Floats, Integers, StepProgress
from understudy.errors import InputError
from understudy.features.exact import row_norms
from understudy.plan.descent import DecoderPlan, DescentPlan
from understudy.plan.plan import ROW_CAP
from understudy.private.noise import LongNoise, NoiseSource
from understudy.private.sealed import sealed
from understudy.private.spending import Receipt
from understudy.readers import open_source

Arrays = tuple[npt.NDArray[Any], ...]
"""Arrays with a row at each place of their first axis."""


def drawn_rows(num_rows: int, rate: float) -> Integers:
    """Poisson subsampling: indices of the rows in a step; there may be none.

    Guarantee:
        Each row is drawn with the chance ``rate``, exactly (it is a multiple of 2^-32), independently of all
        others and of earlier steps, if the operating system's bytes are uniform. There is no seed (proofs/descent.md).
    """
    words = np.frombuffer(os.urandom(4 * num_rows), dtype=np.uint32)
    return np.flatnonzero(words < round(rate * RATE_UNITS))


def read_rows(
    data: object, columns: list[str], encode: Callable[[pa.RecordBatch], Arrays], *, query: str | None, empty: Arrays
) -> Arrays:
    """All rows as arrays, in memory, batch by batch; ``empty`` are the same arrays without rows. PRIVATE."""
    with open_source(data, columns=columns, query=query) as batches:
        parts = [empty, *(encode(batch) for batch in batches)]
    if sum(len(part[0]) for part in parts) > ROW_CAP:  # certificates say that sums hold no more
        raise InputError("data", "has more rows than can be trained on", "Train on parts of it")
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


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

    plan: DescentPlan | DecoderPlan
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
        plan, cost, parameters = self.plan, self.plan.cost, start.astype(np.float64)
        scale = plan.clip / (cost.sampling_rate * (plan.expected_rows or 1))
        first, second, mean = (np.zeros_like(parameters) for _ in range(3))
        counted = 0
        with threadpool_limits(limits=1, user_api="blas"):
            for step in range(1, cost.steps + 1):
                places = drawn_rows(num_rows, cost.sampling_rate)
                sums = sealed(partial(gradient_sum, parameters, places))
                noisy = noisy_sum(
                    sums, radius, noise_multiplier=cost.noise_multiplier, noise=self.noise, receipt=self.receipt
                )
                # From here on no row is seen: momentum or Adam (Kingma & Ba 2015), with a cosine schedule.
                gradient = scale * noisy
                first = 0.9 * first + 0.1 * gradient
                direction = first / (1 - 0.9**step)
                if self.rule == "adam":
                    second = 0.999 * second + 0.001 * gradient**2
                    direction /= np.sqrt(second / (1 - 0.999**step)) + 1e-8
                pace = plan.learning_rate * 0.5 * (1 + math.cos(math.pi * ((step - 1) / cost.steps)))
                parameters = parameters - pace * direction
                if step > cost.steps * (1 - self.averaged):
                    counted += 1
                    mean += (parameters - mean) / counted
                if self.progress is not None:
                    self.progress(step, cost.steps)
        return mean if counted else parameters
