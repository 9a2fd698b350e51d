"""A mixture of round Gaussians, each of one class: a distribution that is known, to score rows by their likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class LabelledMixture:
    """Equally likely Gaussians N(centre, deviation^2 I), and the class of each."""

    centres: Floats
    """# (num_modes, num_dimensions)"""
    classes: Integers
    """# (num_modes,)"""
    deviation: float

    def negative_log_likelihood(self, points: Floats, classes: Integers) -> Floats:
        """-log p(point, class) of every row, in nats; infinite for a class that has no mode."""
        num_modes, num_dimensions = self.centres.shape
        variance = self.deviation**2
        logs = (
            -self._squares(points) / (2 * variance)
            - num_dimensions / 2 * np.log(2 * np.pi * variance)
            - np.log(num_modes)
        )
        logs[classes[:, None] != self.classes] = -np.inf
        return -np.asarray(np.logaddexp.reduce(logs, axis=1))

    def modes_found(self, points: Floats, classes: Integers, *, least_share: float = 0.01) -> int:
        """How many modes hold at least that share of the rows, with the right class."""
        nearest = self._squares(points).argmin(axis=1)
        right = nearest[self.classes[nearest] == classes]
        counts = np.bincount(right, minlength=len(self.centres))
        return int((counts / len(points) >= least_share).sum())

    def _squares(self, points: Floats) -> Floats:
        squares: Floats = ((points[:, None] - self.centres) ** 2).sum(axis=2)
        return squares  # (num_rows, num_modes)
