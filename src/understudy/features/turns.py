"""Cosine and sine of whole phases, the same to the last bit on every machine.

A phase is a 32-bit integer in units of 2^-32 turns, so that sums of phases that wrap around are right modulo a
turn. It is rounded to 24 bits, so that all phases there are can be tried. Everything after that is float32
multiplication and addition, which IEEE 754 defines to the last bit; the compiled kernel of the private side does
the same steps (proofs/lattice.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from understudy.arrays import Singles

Phases = npt.NDArray[np.int32]

PHASE_BITS = 32
DROPPED_BITS = 8
"""Phases are rounded to multiples of 2^8: 2^24 of them are left."""

HALF_DROPPED = np.int32(1 << (DROPPED_BITS - 1))
KEPT_MASK = np.int32(-(1 << DROPPED_BITS))
ONE, SIGN_SHIFT, SIGN_BIT = np.int32(1), np.int32(PHASE_BITS - 1), np.int32(-(2**31))
QUARTER = np.float32(2.0 ** -(PHASE_BITS - 1))
"""Twice a phase times this is its distance from the nearest half turn, in quarters of a turn."""

# cos(pi z / 2) and sin(pi z / 2) / z in z^2 on [-1, 1]: least worst error (5e-8 and 3e-9), the first with C0 = 1.
C0, C1, C2 = np.float32(1.0), np.float32(-1.2336988), np.float32(0.2536532)
C3, C4 = np.float32(-0.020813966), np.float32(0.0008596899)
S0, S1, S2 = np.float32(1.5707963), np.float32(-0.64596337), np.float32(0.07968848)
S3, S4 = np.float32(-0.004672228), np.float32(0.00015082056)

WORST_ERROR = 4.5e-7
"""No cosine or sine is further from the true one: 1.9e-7 for the rounded phase, the rest for the series."""


def cosines_and_sines(phases: Phases) -> tuple[Singles, Singles]:
    """Cosine and sine of each phase, in single precision."""
    kept = phases + HALF_DROPPED
    kept &= KEPT_MASK
    double = kept << ONE  # less whole half turns
    kept ^= double
    kept &= SIGN_BIT  # an odd number of half turns away both change their signs
    z = double.astype(np.float32)
    z *= QUARTER
    y = z * z
    cosine, sine = _series((C0, C1, C2, C3, C4), y), _series((S0, S1, S2, S3, S4), y)
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


def phases_of(turns: npt.NDArray[np.float64]) -> Phases:
    """Turns as phases; exact where they are multiples of 2^-32."""
    rest = np.rint(turns)
    np.subtract(turns, rest, out=rest)
    rest *= 2.0**PHASE_BITS
    np.rint(rest, out=rest)
    return rest.astype(np.int64).astype(np.int32)  # half a turn becomes minus half a turn
