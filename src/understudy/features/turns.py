"""Cosine and sine of whole phases, the same to the last bit on every machine.

A phase is a 32-bit integer in units of 2^-32 turns, so that sums of phases that wrap around are right modulo a
turn. Everything after that is float32 multiplication and addition, which IEEE 754 defines to the last bit; the
compiled kernel of the private side does the same steps (proofs/lattice.md).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Phases = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]

PHASE_BITS = 32
QUARTER_BITS = PHASE_BITS - 2
HALF_QUARTER = np.int32(1 << (QUARTER_BITS - 1))
TURN = np.float32(2.0**-PHASE_BITS)

# Taylor's series of sin(2 pi t) / t and cos(2 pi t) in t^2; up to an eighth of a turn the next terms are below 2e-8.
_SIGNED = [(-1) ** (n // 2) * (2 * math.pi) ** n / math.factorial(n) for n in range(10)]
C0, C2, C4, C6, C8 = (np.float32(term) for term in _SIGNED[0::2])
S1, S3, S5, S7, S9 = (np.float32(term) for term in _SIGNED[1::2])

WORST_ERROR = 2.5e-7
"""No cosine or sine is further from the true one."""


def cosines_and_sines(phases: Phases) -> tuple[Singles, Singles]:
    """Cosine and sine of each phase, in single precision."""
    quarter = (phases + HALF_QUARTER) >> np.int32(QUARTER_BITS)
    turns = (phases - (quarter << np.int32(QUARTER_BITS))).astype(np.float32) * TURN
    square = turns * turns
    cosine = C0 + square * (C2 + square * (C4 + square * (C6 + square * C8)))
    sine = turns * (S1 + square * (S3 + square * (S5 + square * (S7 + square * S9))))
    is_odd = (quarter & 1) != 0
    first, second = np.where(is_odd, sine, cosine), np.where(is_odd, cosine, sine)
    np.negative(first, out=first, where=((quarter + np.int32(1)) & 2) != 0)
    np.negative(second, out=second, where=(quarter & 2) != 0)
    return first, second


def phases_of(turns: npt.NDArray[np.float64]) -> Phases:
    """Turns as phases; exact where they are multiples of 2^-32."""
    whole: npt.NDArray[np.int64] = np.rint((turns - np.rint(turns)) * 2.0**PHASE_BITS).astype(
        np.int64
    )
    return whole.astype(np.int32)  # half a turn wraps around to minus half a turn
