"""Linear maps and norms whose values do not depend on how rows are blocked."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from understudy.schema.layout import POSITION_BITS

EXACT_BITS = 52
FINEST_BITS = 24
SMALLEST = 1e-250
"""Rows whose entries are all below it are taken to be of length zero, more or less."""


def exact_weights(weights: npt.NDArray[np.float64], *, finest: int = FINEST_BITS) -> npt.NDArray[np.float64]:
    """Weights rounded so that positions times weights is exact in float64.

    Positions are multiples of 2^-16 in [0, 1]. Weights become multiples of 2^-b with b as large
    as 52 bits allow, and at most ``finest``, so every partial sum is a whole number below 2^53 in its unit: exact,
    whatever the blocking, order or padding of the matrix product (proofs/lattice.md).
    # (numbers, outputs) -> (numbers, outputs)
    """
    reach = float(np.abs(weights).sum(axis=0).max(initial=1.0))
    bits = EXACT_BITS - POSITION_BITS - math.ceil(math.log2(reach + 1))
    grid = 2.0 ** min(finest, bits)
    return np.ascontiguousarray(np.rint(weights * grid) / grid)


def row_norms(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The Euclidean norm of each row, about, with the same bits whatever rows stand around it.

    NumPy sums long rows in another order if they stand alone. So norms are taken of whole numbers, whose
    squares add up exactly in any order. NaN for rows that are not finite.  # (num_rows, dim) -> (num_rows,)
    """
    bits = (EXACT_BITS - math.ceil(math.log2(vectors.shape[1] + 1))) // 2
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    unit = np.maximum(largest, SMALLEST) / 2.0**bits
    with np.errstate(invalid="ignore"):
        whole = np.rint(vectors / unit[:, None])
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", whole, whole)) * unit)
