"""Bit-reproducible numerics: matrix products, norms, cosines and sines that do not depend on batching or BLAS.

If a row's features depended in their last bits on the rows around it, neighbouring tables could differ in more than
one row's contribution, and the sensitivity would be wrong (cf. Mironov 2012 on floats in the Laplace mechanism).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Singles
from understudy.schema.columns import POSITION_BITS

EXACT_BITS = 52
"""Whole numbers of so many bits, and their sums by one more, are exact in float64."""

FINEST_BITS = 24
"""Weights are rounded to multiples of 2^-24 at the finest."""

SMALLEST = 1e-250
"""Rows whose entries are all below it are taken to be of length zero, more or less: it keeps units above zero."""


def exact_weights(weights: Floats, *, finest: int = FINEST_BITS) -> Floats:
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


def row_norms(vectors: Floats) -> Floats:
    """The Euclidean norm of each row, about, with the same bits whatever rows stand around it.

    NumPy sums long rows in another order if they stand alone. So norms are taken of whole numbers, whose
    squares add up exactly in any order. NaN for rows that are not finite.  # (num_rows, dim) -> (num_rows,)
    """
    whole, unit = whole_rows(vectors)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", whole, whole)) * unit)


def whole_rows(
    vectors: Floats,
) -> tuple[Floats, Floats]:
    """Each row in whole numbers of a unit of its own, small enough that their squares add up exactly.

    # (num_rows, dim) -> (num_rows, dim), (num_rows,)
    """
    bits = (EXACT_BITS - math.ceil(math.log2(vectors.shape[1] + 1))) // 2
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    unit = np.maximum(largest, SMALLEST) / 2.0**bits
    with np.errstate(invalid="ignore"):  # what is not a number becomes zero on the lattice
        return np.rint(vectors / unit[:, None]), unit


# Cosine and sine in fixed-point arithmetic, the same to the last bit on every machine.
#
# A phase is a 32-bit integer in units of 2^-32 turns, so that sums of phases that wrap around are right modulo a
# turn. It is rounded to 24 bits, so that all phases there are can be tried. Everything after that is float32
# multiplication and addition, which IEEE 754 defines to the last bit; the compiled kernel of the private side does
# the same steps (proofs/lattice.md).

Phases = npt.NDArray[np.int32]

PHASE_BITS = 32
DROPPED_BITS = 8
"""Phases are rounded to multiples of 2^8: 2^24 of them are left."""

HALF_DROPPED = np.int32(1 << (DROPPED_BITS - 1))
KEPT_MASK = np.int32(-(1 << DROPPED_BITS))
ONE = np.int32(1)
SIGN_SHIFT = np.int32(PHASE_BITS - 1)
SIGN_BIT = np.int32(-(2**31))
QUARTER = np.float32(2.0 ** -(PHASE_BITS - 1))
"""Twice a phase times this is its distance from the nearest half turn, in quarters of a turn."""

# Minimax polynomials of cos(pi z / 2) and sin(pi z / 2) / z in z^2 on [-1, 1]: worst errors are 5e-8 and
# 3e-9, the first under the constraint that it begins with 1, so that the cosine of zero is one.
COSINE_SERIES = tuple(map(np.float32, (1.0, -1.2336988, 0.2536532, -0.020813966, 0.0008596899)))
SINE_SERIES = tuple(map(np.float32, (1.5707963, -0.64596337, 0.07968848, -0.004672228, 0.00015082056)))

WORST_ERROR = 4.5e-7
"""No cosine or sine is further from the true one: 1.9e-7 for the rounded phase, the rest for the series."""


def cosines_and_sines(phases: Phases) -> tuple[Singles, Singles]:
    """Cosine and sine of each phase, in single precision: reduced modulo half a turn, then by polynomials."""
    kept = phases + HALF_DROPPED
    kept &= KEPT_MASK
    double = kept << ONE  # less whole half turns
    kept ^= double
    kept &= SIGN_BIT  # an odd number of half turns away both change their signs
    z = double.astype(np.float32)
    z *= QUARTER
    y = z * z
    cosine, sine = _series(COSINE_SERIES, y), _series(SINE_SERIES, y)
    sine *= z
    for wave in (cosine, sine):
        turned = wave.view(np.int32)
        turned ^= kept
    return cosine, sine


def _series(coefficients: tuple[np.float32, ...], y: Singles) -> Singles:
    """A polynomial by Horner's rule, the last coefficient first."""
    *others, last = coefficients
    found: Singles = y * last
    for coefficient in others[:0:-1]:
        found += coefficient
        found *= y
    found += others[0]
    return found


def phases_of(turns: Floats) -> Phases:
    """Turns as phases; exact where they are multiples of 2^-32."""
    rest = np.rint(turns)
    np.subtract(turns, rest, out=rest)
    rest *= 2.0**PHASE_BITS
    np.rint(rest, out=rest)
    return rest.astype(np.int64).astype(np.int32)  # half a turn becomes minus half a turn
