"""A stage's noisy vector, read block by block: what rules and generators see of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.features.embedding import Embedding
from understudy.features.tables import Tables

Floats = npt.NDArray[np.float64]
Result = TypeVar("Result")


def _normal(deviations: float) -> float:
    return deviations


@dataclass(frozen=True)
class Reading:
    """A noisy integer vector with its embedding and the deviation of its noise on the lattice.

    ``tail`` tells as many deviations of the noise as so many of a normal law are as rare.
    """

    embedding: Embedding
    vector: npt.NDArray[np.int64]
    noise_std: float
    lattice: int
    tail: Callable[[float], float] = _normal
    _kept: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Any, make: Callable[[], Result]) -> Result:
        """What ``make`` gives, which is kept under a key: vectors are long and never change."""
        if key not in self._kept:
            self._kept[key] = make()
        found: Result = self._kept[key]
        return found

    def has(self, name: str) -> bool:
        """Whether there is a block of that name."""
        return name in self.embedding.spans

    def sums(self, name: str) -> Floats:
        """Estimated sum over all rows of a block's features.  # (copies, block dim)"""
        rows = self.embedding.rows_of(name, self.vector)
        return np.asarray(rows / self.embedding.block(name).scales(self.lattice))

    def noise_of_sum(self, name: str) -> float:
        """Deviation of the noise in the entries of ``sums(name)``; of the noisiest, if they differ."""
        block = self.embedding.block(name)
        return self.once(
            ("noise", name), lambda: float(self.noise_std / block.scales(self.lattice).min())
        )

    def tables(self, name: str) -> list[Floats]:
        """Noisy counts of a block of tables.  # (copies, *shape) of each"""
        map_ = self.map(name)
        root = math.sqrt(len(map_.subsets))
        return self.once(("tables", name), lambda: list(map_.split(self.sums(name) * root)))

    def noise_of_count(self, name: str) -> float:
        """Deviation of the noise in the entries of ``tables(name)``."""
        return self.noise_of_sum(name) * math.sqrt(len(self.map(name).subsets))

    def map(self, name: str) -> Tables:
        """The tables of a block."""
        map_: Any = self.embedding.block(name).map
        if not isinstance(map_, Tables):
            raise TypeError("the block holds no tables")
        return map_
