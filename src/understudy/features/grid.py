"""Counts: a constant, one-hot memberships of choices, and binned numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import array_api_compat

from understudy.features.base import MAP_KINDS, Array, Sign


@dataclass(frozen=True, slots=True)
class Constant:
    """One feature that is 1 for every row: its sum is the row count."""

    dim: int = 1
    sign: Sign = Sign.CONSTANT

    def __call__(self, cells: Array) -> Array:
        """Ones.  # (num_rows, 1)"""
        xp = array_api_compat.array_namespace(cells)
        return xp.ones((cells.shape[0], 1), dtype=cells.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {"kind": "constant"}


@dataclass(frozen=True, slots=True)
class OneHot:
    """Memberships of several choices, scaled by the root of their number (DP-MERF, sec. 4.3).

    ``spans`` are the (start, stop) cells of each choice. Each membership vector is zero or
    one-hot, so k of them have norm at most sqrt(k), and the scaled vector at most 1.
    """

    spans: tuple[tuple[int, int], ...]

    @property
    def dim(self) -> int:
        """Number of memberships."""
        return sum(stop - start for start, stop in self.spans)

    @property
    def sign(self) -> Sign:
        """Counts are never negative."""
        return Sign.NONNEGATIVE

    def __call__(self, cells: Array) -> Array:
        """Scaled memberships.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        picked = xp.concat([cells[:, start:stop] for start, stop in self.spans], axis=1)
        return picked / math.sqrt(len(self.spans))

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {"kind": "one-hot", "spans": [list(span) for span in self.spans]}


@dataclass(frozen=True, slots=True)
class Grid:
    """Histograms: each number's position falls into one of equal bins; scaled like OneHot.

    Bins are half-open, the last one closed. For torch the map is piecewise constant, so its
    gradient is zero: it is for reading distributions, not for training through.
    """

    numbers: tuple[int, ...]
    num_bins: int

    @property
    def dim(self) -> int:
        """Bins of all numbers."""
        return len(self.numbers) * self.num_bins

    @property
    def sign(self) -> Sign:
        """Counts are never negative."""
        return Sign.NONNEGATIVE

    def __call__(self, cells: Array) -> Array:
        """Scaled bin memberships.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(cells)
        picked = xp.stack([cells[:, number] for number in self.numbers], axis=1)
        bins = xp.clip(xp.floor(picked * self.num_bins), 0, self.num_bins - 1)  # (num_rows, numbers)
        edges = xp.arange(self.num_bins, dtype=cells.dtype)
        members = xp.astype(bins[:, :, None] == edges[None, None, :], cells.dtype)
        flat = xp.reshape(members, (cells.shape[0], self.dim))
        return flat / math.sqrt(len(self.numbers))

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {"kind": "grid", "numbers": list(self.numbers), "num_bins": self.num_bins}


MAP_KINDS["constant"] = lambda document: Constant()
MAP_KINDS["one-hot"] = lambda document: OneHot(
    spans=tuple((int(start), int(stop)) for start, stop in document["spans"])
)
MAP_KINDS["grid"] = lambda document: Grid(
    numbers=tuple(int(number) for number in document["numbers"]), num_bins=int(document["num_bins"])
)
