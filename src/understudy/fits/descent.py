"""Gradient descent on the distance to a release: torch, loaded lazily and used on one thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import LossProgress
from understudy.fits.mmd_loss import Term

WARM_UP = 0.05
SETTLED = 0.25
"""Share of the steps that are always taken, for single columns to settle."""

FEWEST_PER_LABEL = 8


def descend(
    torch: Any,
    parameters: list[Any],
    terms: list[Term],
    make_cells: Callable[[], Any],
    *,
    steps: int,
    learning_rate: float,
    progress: LossProgress | None,
) -> None:
    """Move the parameters until their cells' mean features are the released ones.

    It stops once the loss is what the known noise alone would leave a perfect fit, on average:
    nearer would be fitting noise.
    """
    optimiser = torch.optim.Adam(parameters, lr=learning_rate, betas=(0.9, 0.99))
    loss = 0.0
    for step in range(steps if terms else 0):
        done = step / steps
        optimiser.param_groups[0]["lr"] = learning_rate * pace(done)
        active = [term for term in terms if term.has_turn(done)]
        cells = make_cells()
        total = sum(term.loss(cells) for term in active)
        loss = float(total.detach())
        if progress is not None and step % 20 == 19:
            progress(step + 1, steps, loss)
        if done >= SETTLED and loss <= sum(term.noise_floor for term in active):
            if active == terms:
                break
            continue  # other blocks are still to have their turn
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
    if progress is not None and terms and steps:
        progress(steps, steps, loss)


def pace(done: float) -> float:
    """Learning rate over the course of training: a short warm-up, then a cosine to zero."""
    return min(1.0, (done + 1e-3) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * done))


def rows_per_label(shares: npt.NDArray[np.float64], batch: int) -> npt.NDArray[np.int64]:
    """Rows of each label value in a batch, by the root of its share so that rare ones are seen."""
    roots = np.sqrt(shares)
    sizes = np.maximum(np.rint(batch * roots / roots.sum()), FEWEST_PER_LABEL)
    return np.asarray(sizes, dtype=np.int64)
