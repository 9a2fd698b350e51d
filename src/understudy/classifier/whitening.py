"""Inputs of equal spread in all directions, by their noisy second moments.

Descent is slow where inputs vary much more in some directions than in others, and every step costs
privacy. A noisy matrix of second moments is released first, and what is made of it is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats
from understudy.classifier.inputs import CONSTANT, lengthened

RIDGE = 0.1
"""Part of the noise's largest eigenvalue that is added to all."""

UNIT = 2.0**20
"""Entries of a whitening are multiples of one over this, so that products with integers are exact."""


@dataclass(frozen=True)
class Whitening:
    """A public matrix that inputs are multiplied by, and what else noisy second moments tell."""

    matrix: Floats  # (dim, dim), entries at most 1
    mean: Floats  # (dim,) of unit inputs, noisy
    spread: Floats  # (dim,) deviation of unit inputs, noisy
    num_rows: float

    def __call__(self, inputs: Floats) -> Floats:
        """Inputs of norm one, spread evenly.  # (num_rows, dim)"""
        return lengthened(inputs @ self.matrix)

    @property
    def dim(self) -> int:
        """Coordinates."""
        return len(self.matrix)


def whitening_from(moments: Floats, noise_std: float) -> Whitening:
    """Whiten by a noisy matrix of second moments, summed over rows of norm one.

    Eigenvalues of the noise reach to 2 noise_std sqrt(dim): what is smaller is not believed.
    """
    reach = 2 * noise_std * math.sqrt(len(moments))
    values, directions = np.linalg.eigh(moments)
    matrix = directions / np.sqrt(np.maximum(values, 0.0) + RIDGE * reach + 1e-9)
    matrix /= np.abs(matrix).max()
    num_rows = max(1.0, float(np.trace(moments)))
    mean = moments[:, -1] / (CONSTANT * num_rows)  # products with the constant
    spread = np.sqrt(np.maximum(np.diag(moments) / num_rows - mean**2, 0.0))
    return Whitening(np.rint(matrix * UNIT) / UNIT, mean, spread, num_rows)
