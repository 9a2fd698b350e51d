"""Sums of Fourier features in one compiled loop, if numba is installed; else None, and NumPy does the same.

Phases, cosines, roundings and sums are those of ``features/turns.py`` and ``private/sums.py``, step by step, so
that both ways give the same integers (proofs/lattice.md).
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.features import Fourier
from understudy.features.turns import (
    C0,
    C2,
    C4,
    C6,
    C8,
    HALF_QUARTER,
    QUARTER_BITS,
    S1,
    S3,
    S5,
    S7,
    S9,
    TURN,
)
from understudy.schema.layout import POSITION_BITS

Integers = npt.NDArray[np.int64]
CHUNK = 128
"""Frequencies at a time: with those of 30 columns they fit a core's first cache."""

ROWS = 1024
"""Rows at a time: their positions stay in the second cache while chunks go by."""

Steps = npt.NDArray[np.int32]


def has_kernel() -> bool:
    """Whether sums of Fourier features are compiled here."""
    return find_spec("numba") is not None


def fourier_sums(
    map_: Fourier,
    cells: npt.NDArray[np.float64],
    slots: Integers,
    copies: int,
    *,
    scale: np.float32,
    radius: int,
) -> Integers | None:
    """Whole sums of a Fourier map's features, a row per copy; None if a row leaves its radius.

    ``slots`` says which copy each row adds to, one past the last for none. The caller must then look at
    the rows one by one.  # (copies, dim)
    """
    positions = np.rint(cells[:, list(map_.numbers)] * 2**POSITION_BITS).astype(np.int32)
    steps, count = _steps(map_), map_.num_features // 2
    total = np.zeros((len(steps), copies + 1, 2, CHUNK), dtype=np.int64)
    squares = np.zeros(len(positions), dtype=np.int64)
    for start in range(0, len(positions), ROWS):
        rows = slice(start, start + ROWS)
        _compiled()(positions[rows], steps, count, scale, slots[rows], total, squares[rows])
    if (squares > radius**2).any():
        return None
    found = total.transpose(1, 2, 0, 3).reshape(copies + 1, 2, -1)[:copies, :, :count]
    return found.reshape(copies, 2 * count)


def _steps(map_: Fourier) -> Steps:
    """Frequencies in phases per step of a position, chunk by chunk.  # (chunks, numbers, CHUNK)"""
    if "steps" not in map_.cache:
        whole = np.rint(map_.frequencies * 2.0**POSITION_BITS).astype(np.int64)
        padded = np.pad(whole, ((0, 0), (0, -whole.shape[1] % CHUNK)))
        apart = padded.reshape(len(whole), -1, CHUNK).transpose(1, 0, 2)
        map_.cache["steps"] = np.ascontiguousarray(apart).astype(np.int32)
    found: Steps = map_.cache["steps"]
    return found


@cache
def _compiled() -> Any:
    from numba import njit

    return njit(nogil=True, cache=True)(_add_rows)


def _add_rows(positions, steps, count, scale, slots, total, squares):  # type: ignore[no-untyped-def]
    # Nothing is contracted; int32 products and sums wrap around, modulo one turn.
    int32, int64 = np.int32, np.int64
    num_rows, num_numbers = positions.shape
    phase, left, right = (
        np.empty(CHUNK, np.int32),
        np.empty(CHUNK, np.int32),
        np.empty(CHUNK, np.int32),
    )
    for chunk in range(len(steps)):
        own, width = steps[chunk], min(CHUNK, count - chunk * CHUNK)
        for row in range(num_rows):
            at = positions[row]
            for k in range(CHUNK):
                phase[k] = 0
            number = 0
            while number + 5 <= num_numbers:
                p, q, r = at[number], at[number + 1], at[number + 2]
                s, t = at[number + 3], at[number + 4]
                f, g, h = own[number], own[number + 1], own[number + 2]
                i, j = own[number + 3], own[number + 4]
                for k in range(CHUNK):
                    phase[k] = int32(
                        phase[k] + int32(p * f[k]) + int32(q * g[k]) + int32(r * h[k])
                        + int32(s * i[k]) + int32(t * j[k])
                    )  # fmt: skip
                number += 5
            while number < num_numbers:
                p, f = at[number], own[number]
                for k in range(CHUNK):
                    phase[k] = int32(phase[k] + int32(p * f[k]))
                number += 1
            for k in range(CHUNK):
                quarter = int32(phase[k] + HALF_QUARTER) >> int32(QUARTER_BITS)
                turns = np.float32(int32(phase[k] - int32(quarter << int32(QUARTER_BITS)))) * TURN
                square = turns * turns
                cosine = C0 + square * (C2 + square * (C4 + square * (C6 + square * C8)))
                sine = turns * (S1 + square * (S3 + square * (S5 + square * (S7 + square * S9))))
                is_odd = (quarter & int32(1)) != 0
                first, second = (sine if is_odd else cosine), (cosine if is_odd else sine)
                first = -first if ((quarter + int32(1)) & int32(2)) != 0 else first
                second = -second if (quarter & int32(2)) != 0 else second
                left[k] = int32(np.rint(first * scale))
                right[k] = int32(np.rint(second * scale))
            cosines, sines = total[chunk, slots[row], 0], total[chunk, slots[row], 1]
            for k in range(CHUNK):
                cosines[k] += left[k]
                sines[k] += right[k]
            norm = int64(0)
            for k in range(width):
                norm += int64(left[k]) * int64(left[k]) + int64(right[k]) * int64(right[k])
            squares[row] += norm
