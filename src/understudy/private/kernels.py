"""Sums of Fourier features in one compiled loop (``compiled.py``), if numba is installed; else NumPy does the same.

Rows lie side by side in vectors, so that a frequency of one or two columns costs one or two products, not one
for every column, and sums over rows stay in registers. Columns go by pairs, which processors multiply and add at once
(``compiled.py``), and frequencies two by two.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.arrays import Integers
from understudy.features import Fourier
from understudy.features.exact import DROPPED_BITS
from understudy.features.fourier import LAST_POSITION
from understudy.schema.columns import POSITION_BITS

Positions = npt.NDArray[np.int16]

MOST_ROWS = 512
"""Rows at a time: their positions stay in the second cache while frequencies go by."""

CACHED_CELLS = 2**16
"""Positions at a time, if there are many columns."""

MIDDLE = 2 ** (POSITION_BITS - 1)
TILE_ROWS = 32
TILE_FREQUENCIES = 2
"""Rows and frequencies whose phases are added up in registers at once."""


def centred(positions: npt.NDArray[np.float64]) -> Positions:
    """Positions of rows as 16-bit integers around the middle of their range."""
    whole = np.minimum(positions, LAST_POSITION) * 2**POSITION_BITS - MIDDLE
    return np.asarray(whole, dtype=np.int16)


def fourier_sums(
    map_: Fourier, positions: Positions, slots: Integers, copies: int, *, amplitude: np.float32, radius: int
) -> Integers | None:
    """Whole sums of a Fourier map's features, a row per copy; None if a row could leave its radius.

    ``slots`` says which copy each row adds to, one past the last for none.
    # (numbers, num_rows) -> (copies, dim)

    Guarantee:
        Every row's features have a norm of at most ``radius``: a frequency's cosine and sine are a function of its
        phase, and no phase of all 2^24 has a longer pair than the radius leaves each of them (proofs/lattice.md).
    """
    from understudy.private.compiled import add_rows

    count = map_.num_features // 2
    if longest_pair(amplitude) * count > radius**2:
        return None
    tasks = _tasks(map_)
    order = np.argsort(slots, kind="stable")
    bounds = np.searchsorted(slots[order], np.arange(copies + 1))
    pairs = (len(positions) + 1) // 2
    total = np.zeros((copies, len(tasks.order), 2), dtype=np.int64)
    tile = np.zeros((pairs, _block_rows(amplitude, pairs), 2), dtype=np.int16)
    add_rows(positions, order, bounds, *tasks.groups, amplitude, tile, total)
    found = np.empty((copies, 2, count), dtype=np.int64)
    found[:, :, tasks.order[:count]] = total[:, :count].transpose(0, 2, 1)
    return found.reshape(copies, 2 * count)


@cache
def longest_pair(amplitude: np.float32) -> int:
    """The largest sum of squares of the whole cosine and sine of any phase."""
    from understudy.private.compiled import longest

    return int(longest(amplitude))


class _Groups(NamedTuple):
    """Frequencies two by two, with the pairs of columns that either of the two touches."""

    starts: Integers  # where a group's pairs begin  # (groups + 1,)
    pairs: Integers  # which pairs of columns  # (listed,)
    steps: npt.NDArray[np.int16]  # (listed, TILE_FREQUENCIES, 2)
    offsets: npt.NDArray[np.int32]  # what a phase begins with, before it is shifted
    shifts: npt.NDArray[np.int32]  # (groups, TILE_FREQUENCIES)


class _Tasks(NamedTuple):
    groups: _Groups
    order: Integers  # which frequency each place of the groups holds


def _tasks(map_: Fourier) -> _Tasks:
    if "tasks" not in map_.cache:
        map_.cache["tasks"] = _grouped(*map_.steps)
    found: _Tasks = map_.cache["tasks"]
    return found


def _grouped(steps: npt.NDArray[np.int16], shifts: Integers) -> _Tasks:
    """Frequencies that touch few columns stand beside others that touch the same."""
    numbers, count = steps.shape
    padded = np.pad(steps, ((0, numbers % 2), (0, count % TILE_FREQUENCIES)))
    raised = np.pad(shifts, (0, count % TILE_FREQUENCIES))
    touched = padded != 0
    order = np.lexsort((touched.argmax(axis=0), touched.sum(axis=0)))
    order = np.concatenate([order[order < count], order[order >= count]])
    whole = padded.T[order].astype(np.int64)
    # Positions are centred, and a phase is rounded by what is half of its dropped bits once it is shifted.
    shift = raised[order]
    half = np.where(shift < DROPPED_BITS, 2.0 ** (DROPPED_BITS - 1 - shift), 0).astype(np.int64)
    offsets = (whole.sum(axis=1) * MIDDLE + half).astype(np.int32)
    paired = padded.T[order].reshape(-1, TILE_FREQUENCIES, padded.shape[0] // 2, 2)
    listed = (paired != 0).any(axis=(1, 3))  # (groups, pairs)
    group, pair = np.nonzero(listed)
    groups = _Groups(
        np.concatenate([[0], listed.sum(axis=1).cumsum()]).astype(np.int64),
        pair.astype(np.int64),
        np.ascontiguousarray(paired[group, :, pair]),
        offsets.reshape(-1, TILE_FREQUENCIES),
        shift.astype(np.int32).reshape(-1, TILE_FREQUENCIES),
    )
    return _Tasks(groups, order)


def _block_rows(amplitude: np.float32, pairs: int) -> int:
    """Rows at a time: sums of so many stay below 2^31, and their positions in the cache."""
    cached = min(MOST_ROWS, CACHED_CELLS // (2 * pairs), 2**30 // (int(amplitude) + 1))
    return max(TILE_ROWS, cached // TILE_ROWS * TILE_ROWS)
