"""Loops that numba compiles. To be imported only where it is installed.

Phases, cosines, cuts and sums are those of ``features/exact.py`` and ``features/fourier.py``, step by step, so that
both ways give the same integers (proofs/lattice.md). Nothing is contracted; int32 sums wrap around, modulo one turn.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from understudy.features import exact
from understudy.features.exact import (
    C0,
    C1,
    C2,
    C3,
    C4,
    DROPPED_BITS,
    KEPT_MASK,
    ONE,
    PHASE_BITS,
    QUARTER,
    S0,
    S1,
    S2,
    S3,
    S4,
    SIGN_SHIFT,
)
from understudy.private import kernels, pair_products
from understudy.private.kernels import TILE_FREQUENCIES, TILE_ROWS

BITS_OF_A_SHIFT = np.int32(31)


def _kept(function: Any) -> Any:
    """Compiled, and kept on disk for the next time if there is a folder for it.

    Numba looks at this file's time alone to see whether what it has kept is out of date, so the name that it is
    kept by tells of all that it is made from.
    """
    files = (__file__, *(str(module.__file__) for module in (exact, kernels, pair_products)))
    sources = b"".join(Path(file).read_bytes() for file in files)
    function.__qualname__ += f"_{hashlib.sha256(sources).hexdigest()[:16]}"
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def _wave(phase: Any, amplitude: Any) -> Any:
    """Whole cosine and sine of a rounded phase, and 0; or, if it has an odd half turn, their complements, and -1.

    A number less the third is then the number itself with its sign turned.
    """
    int32 = np.int32
    kept = int32(phase & KEPT_MASK)
    double = int32(kept << ONE)
    odd = int32(int32(kept ^ double) >> SIGN_SHIFT)
    z = np.float32(double) * QUARTER
    y = z * z
    cosine = C0 + y * (C1 + y * (C2 + y * (C3 + y * C4)))
    sine = z * (S0 + y * (S1 + y * (S2 + y * (S3 + y * S4))))
    return int32(int32(cosine * amplitude) ^ odd), int32(int32(sine * amplitude) ^ odd), odd


wave = njit(inline="always")(_wave)
add_pairs = pair_products.pair_products()


def _add_rows(
    positions: Any,
    order: Any,
    bounds: Any,
    starts: Any,
    pairs: Any,
    steps: Any,
    offsets: Any,
    shifts: Any,
    amplitude: Any,
    tile: Any,
    total: Any,
) -> None:
    """Add features of rows to ``total``: block by block of a copy's rows, group by group of frequencies."""
    int32, int64 = np.int32, np.int64
    block = tile.shape[1]
    phases = np.empty((TILE_FREQUENCIES, block), np.int32)
    for copy in range(len(bounds) - 1):
        for first in range(bounds[copy], bounds[copy + 1], block):
            num_rows = min(block, bounds[copy + 1] - first)
            for number in range(len(positions)):
                column, own = tile[number // 2], positions[number]
                for row in range(num_rows):
                    column[row, number % 2] = own[order[first + row]]
            for group in range(len(starts) - 1):
                for row in range(0, num_rows, TILE_ROWS):
                    add_pairs(tile, steps, pairs, starts[group], starts[group + 1], row, phases)
                for i in range(TILE_FREQUENCIES):
                    phase, offset = phases[i], offsets[group, i]
                    shift = shifts[group, i] & BITS_OF_A_SHIFT  # so that it stays in 32 bits
                    cosines, sines, odds = int32(0), int32(0), int32(0)
                    for row in range(num_rows):
                        cosine, sine, odd = wave(int32(int32(phase[row] + offset) << shift), amplitude)
                        cosines = int32(cosines + cosine)
                        sines = int32(sines + sine)
                        odds = int32(odds + odd)
                    place = TILE_FREQUENCIES * group + i
                    total[copy, place, 0] += int64(cosines) - int64(odds)
                    total[copy, place, 1] += int64(sines) - int64(odds)


def _longest(amplitude: Any) -> Any:
    """The largest sum of squares of the whole cosine and sine of any phase."""
    found = np.int64(0)
    for number in range(2 ** (PHASE_BITS - DROPPED_BITS)):
        cosine, sine, odd = wave(np.int32(number << DROPPED_BITS), amplitude)
        left, right = np.int64(cosine) - np.int64(odd), np.int64(sine) - np.int64(odd)
        found = max(found, left * left + right * right)
    return found


add_rows = _kept(_add_rows)
longest = _kept(_longest)
