"""Sums of Fourier features, compiled or by NumPy: the same integers (proofs/lattice.md)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.features import Block, Fourier, Norm
from understudy.features.embedding import kept_radius
from understudy.private.kernels import fourier_sums, has_kernel
from understudy.private.lattice import inside
from understudy.private.rows import Rows, members_of

CACHED_FEATURES = 2**16


def is_fourier(block: Block) -> bool:
    """Whether a block's sums are made here."""
    return isinstance(block.map, Fourier) and block.norm is Norm.L2


def sums_of_fourier(rows: Rows, block: Block, slots: Integers, copies: int, lattice: int) -> npt.NDArray[Any]:
    """The same for Fourier features, which are whole as they are made."""
    found = compiled_sums(rows, block, slots, copies, lattice) if has_kernel() else None
    return found if found is not None else careful_sums(rows, block, slots, copies, lattice)


def compiled_sums(rows: Rows, block: Block, slots: Integers, copies: int, lattice: int) -> Integers | None:
    """By the compiled kernel, unless a row could leave its radius there."""
    map_, (radius, unit) = cast(Fourier, block.map), block.rounding(lattice)
    amplitude = map_.amplitude(kept_radius(radius, map_.dim))
    positions = rows.positions(map_.numbers)
    found = fourier_sums(map_, positions, slots, copies, amplitude=amplitude, radius=radius)
    return None if found is None else found * unit


def careful_sums(rows: Rows, block: Block, slots: Integers, copies: int, lattice: int) -> Floats:
    """By NumPy, where every row is compared with its radius."""
    map_, (radius, unit) = cast(Fourier, block.map), block.rounding(lattice)
    target, members = kept_radius(radius, map_.dim), members_of(slots, copies)
    total, step = np.zeros((copies, map_.dim)), max(1, CACHED_FEATURES // map_.dim)
    for start in range(0, len(slots), step):  # few rows at a time stay in the cache: three times as fast
        some = slice(start, start + step)
        whole = inside(map_.whole(rows.cells[some], target), radius, Norm.L2)
        total += members[some].T @ whole
    return total * unit
