"""A noisy measurement: a stage's released vector as estimated sums, marginals and their noise, block by block.

Everything computed from it is post-processing, and costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from understudy.accounting.mechanisms import GAUSSIAN
from understudy.arrays import Floats
from understudy.features.embedding import Embedding
from understudy.features.tables import Cells, Tables

Result = TypeVar("Result")


@dataclass(frozen=True)
class Measurement:
    """A noisy integer vector with its embedding and the standard deviation of its noise on the lattice.

    ``tail`` converts quantiles: from standard deviations of a normal distribution to those of the noise (Gaussian or
    Laplace) with the same tail probability.
    """

    embedding: Embedding
    vector: npt.NDArray[np.int64]
    noise_std: float
    lattice: int
    tail: Callable[[float], float] = GAUSSIAN.deviations
    _kept: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Any, make: Callable[[], Result]) -> Result:
        """Memoise ``make`` under a key: vectors are long and never change."""
        if key not in self._kept:
            self._kept[key] = make()
        found: Result = self._kept[key]
        return found

    def has(self, name: str) -> bool:
        return name in self.embedding.spans

    def sums(self, name: str) -> Floats:
        """Estimated sum of a block's features over all rows, or over those of each label value.

        # (copies, block dim)
        """
        found = self.all_sums(name)
        return found[:-1] if self.embedding.block(name).with_unlisted else found

    def all_sums(self, name: str) -> Floats:
        """The same, with the copy of rows whose label is not listed, if there is one."""
        rows = self.embedding.rows_of(name, self.vector)
        return np.asarray(rows / self.embedding.block(name).scales(self.lattice))

    def noise_of_sum(self, name: str) -> float:
        """Standard deviation of the noise in the entries of ``sums(name)``; of the noisiest, if they differ."""
        block = self.embedding.block(name)
        return self.once(("noise", name), lambda: float(self.noise_std / block.scales(self.lattice).min()))

    def tables(self, name: str) -> list[Floats]:
        """Noisy marginals of listed values in a block of tables.  # (copies, *cells) of each"""
        map_, copies = self.map(name), slice(len(self.sums(name)))

        def listed() -> list[Floats]:
            return [
                table[(copies, *(slice(map_.factors[j].dim) for j in subset))]
                for subset, table in zip(map_.subsets, self.all_tables(name), strict=True)
            ]

        return self.once(("tables", name), listed)

    def all_tables(self, name: str) -> list[Floats]:
        """The same, with rows whose label or cells are not listed.  # (copies, *shape) of each"""

        def counted() -> list[Floats]:
            sums = self.all_sums(name)
            return [table.counts(sums) for table in self.map(name).count_tables]

        return self.once(("all tables", name), counted)

    def noise_of_count(self, name: str) -> float:
        """Standard deviation of the noise in the entries of ``tables(name)``."""
        return self.noise_of_sum(name) * math.sqrt(len(self.map(name).subsets))

    def by_cells(self, name: str) -> dict[tuple[Cells, ...], tuple[Floats, float]]:
        """Noisy marginals of a block by the cells they are over, and the deviation of their noise."""
        map_, noise = self.map(name), self.noise_of_count(name)
        subsets = (tuple(map_.factors[j] for j in subset) for subset in map_.subsets)
        return {cells: (table, noise) for cells, table in zip(subsets, self.tables(name), strict=True)}

    def map(self, name: str) -> Tables:
        """The map of a block of marginals: which columns, and their bins."""
        return self.embedding.block(name).map_of(Tables)


Rule = Callable[[Measurement, Sequence[Measurement]], Embedding]
"""Settles a stage from all earlier ones. The first argument is the stage as planned, with its noise
and no vector yet; what comes out must have the sensitivity that was planned."""
