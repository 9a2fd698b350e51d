"""Smooth maps of single numbers from a table, so that training need not walk a recursion."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.features import FeatureMap, Hermite, Sign, Tensors

STEPS = 4096
"""Table entries over a column's range. A feature of length scale s is off by at most
1 / (8 (STEPS s)^2) of its size between entries: 1e-5 at s = 0.03."""


class Interpolated:
    """A Hermite map in torch, linear between the entries of a table of its exact values."""

    sign = Sign.SIGNED

    def __init__(self, torch: Any, map_: Hermite) -> None:
        self._map, self.dim = map_, map_.dim
        self.numbers = list(map_.numbers)
        scales, which = np.unique(map_.length_scales, return_inverse=True)
        self._table = torch.from_numpy(_table(map_, tuple(scales.tolist())))
        self._offsets = torch.from_numpy(which * (STEPS + 1))

    def __call__(self, cells: Any) -> Any:
        """Features of each row.  # (num_rows, dim)"""
        places = cells[:, self.numbers] * STEPS
        below = places.detach().floor().clamp(0, STEPS - 1)
        rest = (places - below)[:, :, None]
        entries = below.long() + self._offsets
        low, high = self._table[entries], self._table[entries + 1]
        return (low + rest * (high - low)).reshape(len(cells), self.dim)

    def to_dict(self) -> dict[str, Any]:
        """The description of the exact map."""
        return self._map.to_dict()


def trainable(torch: Any, map_: FeatureMap) -> FeatureMap:
    """The map as training evaluates it."""
    if isinstance(map_, Hermite):
        return Interpolated(torch, map_)
    if isinstance(map_, Tensors):
        return replace(map_, factors=tuple(trainable(torch, factor) for factor in map_.factors))
    return map_


def _table(map_: Hermite, scales: tuple[float, ...]) -> npt.NDArray[np.float32]:
    """Exact features at every entry, for each length scale.  # (scales * (STEPS + 1), order + 1)"""
    grid = np.linspace(0.0, 1.0, STEPS + 1)[:, None]
    single = [replace(map_, numbers=(0,), length_scales=(scale,))(grid) for scale in scales]
    return (np.concatenate(single) / math.sqrt(len(map_.numbers))).astype(np.float32)
