"""What all tables of a release together say of the cells of a query: least squares.

The unknowns x are the true counts of *atoms*, the cells of a query's columns. Every table tells
sums of some of them with independent noise of known variance, y = A x + z. The estimate of a.x is
that of generalised least squares: unbiased, of least variance among all linear unbiased ones, and
normal if the noise is. With M the sum of A' A / variance over tables, two estimates have covariance
a' M^-1 b. A public row count is a condition on x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, vstack
from scipy.special import chdtrc

from understudy.accounting.mechanisms import GAUSSIAN, Mechanism
from understudy.arrays import Floats, Integers
from understudy.features import Cells
from understudy.released.tables import NoisyTable, ReleaseTables, common_coarsening, holds_all, sum_cells

DENSE = 1500
"""Up to so many atoms M is one matrix; beyond, most of them must have a sum of their own."""

DISAGREEMENT = 1e-9
"""Tables that disagree with so small a chance have not counted the same rows."""

LAPLACE_EXCESS = 400.0
"""What squared Laplace noises may add up to beyond their mean and eight deviations of it: a single one exceeds this
with a chance of exp(-sqrt(2 * 400)), 5e-13."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Sums of atoms: which sum each atom is in (-1: none), the noisy sums and their variances.

    If several tables told the same sums, ``scatter`` is their squared distance from the average, in
    variances, with so many degrees of ``freedom``.
    """

    index: Integers  # (atoms,)
    sums: Floats
    variances: Floats
    scatter: float = 0.0
    freedom: int = 0

    @property
    def separates(self) -> bool:
        """Whether every atom has a sum of its own."""
        return len(self.sums) == len(self.index) and bool((self.index >= 0).all())

    @cached_property
    def weights(self) -> Floats:
        """The precision of each sum."""
        return np.asarray(1 / self.variances)

    @cached_property
    def selector(self) -> csr_array:
        """The matrix A of a table: which atoms each of its sums adds up."""
        known = np.flatnonzero(self.index >= 0)
        entries = (np.ones(len(known)), (self.index[known], known))
        return csr_array(entries, shape=(len(self.sums), len(self.index)))


def gather(measured: ReleaseTables, axes: Sequence[Cells]) -> list[Evidence]:
    """What each table tells of the atoms, which are the products of the axes' cells."""
    columns = {cells.column for cells in axes}
    # If atoms surely miss rows, tables that are not over these columns count others than the atoms do.
    short = {cells.column for cells in axes if not measured.is_whole(cells)}
    found: dict[bytes, list[Evidence]] = {}
    union = cache(common_coarsening)  # several tables cut a column alike
    for table in _complete(measured, columns):
        others = (cells for cells in table.cells if cells.column not in columns)
        if short <= set(table.columns) and all(measured.is_whole(cells) for cells in others):
            each = _evidence(table, axes, union)
            found.setdefault(each.index.tobytes(), []).append(each)
    pooled = [_average(alike) for alike in found.values()]
    if len(axes) > 1 and math.prod(cells.dim for cells in axes) > DENSE:
        return [each for each in pooled if each.separates]
    return pooled


def _complete(measured: ReleaseTables, columns: set[int]) -> Sequence[NoisyTable]:
    """Tables that have a cell for every row, if such tables are over these columns; else all of them.

    Others may miss rows, fewer than noise lets be seen.
    """
    found = [
        table
        for table in measured.tables
        if all(holds_all(cells) for cells in table.cells if cells.column not in columns)
    ]
    return found if any(columns <= set(table.columns) for table in found) else measured.tables


def _evidence(table: NoisyTable, axes: Sequence[Cells], union: Callable[[Cells, Cells], Any]) -> Evidence:
    sums, merged, shape = table.counts, 1, [cells.dim for cells in axes]
    index, is_known = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=bool)
    sizes: Floats = np.ones(())
    kept = 0  # axes of the sums so far that belong to the atoms
    for cells in table.cells:
        place = next((i for i, own in enumerate(axes) if own.column == cells.column), None)
        if place is None:
            sums, merged = sums.sum(axis=kept), merged * cells.dim
            continue
        mine, theirs, count = union(axes[place], cells)
        sums = sum_cells(sums, theirs, count, axis=kept)
        sizes = np.multiply.outer(sizes, np.bincount(theirs[theirs >= 0], minlength=count))
        along = mine.reshape([-1 if i == place else 1 for i in range(len(axes))])
        index, is_known, kept = index * count + along, is_known & (along >= 0), kept + 1
    variances = (sizes * (merged * table.noise**2)).ravel()
    return Evidence(np.where(is_known, index, -1).ravel(), np.ravel(sums), variances)


def _average(alike: list[Evidence]) -> Evidence:
    """Several sums of the same atoms as one, each as its variance deserves."""
    weights = np.stack([each.weights for each in alike])
    sums = np.stack([each.sums for each in alike])
    total = weights.sum(axis=0)
    mean = (weights * sums).sum(axis=0) / total
    scatter = float((weights * (sums - mean) ** 2).sum())
    freedom = (len(alike) - 1) * len(mean)
    return Evidence(alike[0].index, mean, 1 / total, scatter, freedom)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Estimates of sums over atoms, with the covariance of their noise.

    If tables disagree more than their noise explains (``disagrees``), deviations also hold what they disagree by:
    they are multiplied by the root of the excess, which for a single total is the spread of the tables' own totals.
    """

    evidence: Sequence[Evidence]
    num_rows: int | None
    mechanism: Mechanism = GAUSSIAN

    @property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.evidence[0].index)

    @cached_property
    def atoms(self) -> Floats:
        """The estimated count of each atom."""
        told = sum(each.selector.T @ (each.weights * each.sums) for each in self.evidence)
        found = self._solve(np.asarray(told)[None, :])[0]
        if self.num_rows is not None:
            direction, length = self._total
            found = found + direction * (self.num_rows - found.sum()) / length
        return np.asarray(found)

    def estimates(self, weights: Floats) -> Floats:
        """Estimated sums of atoms with these weights.  # (..., atoms) -> (...)"""
        return np.asarray(weights @ self.atoms)

    def covariance(self, weights: Floats) -> Floats:
        """Covariance of the noise of several estimates.  # (count, atoms) -> (count, count)"""
        found = weights @ self._solve(weights).T
        if self.num_rows is not None:
            direction, length = self._total
            along = weights @ direction
            found = found - np.outer(along, along) / length
        return np.asarray((found + found.T) / 2 * self._inflation)

    def deviations(self, weights: Floats) -> Floats:
        """Deviation of the noise of each of several estimates.  # (count, atoms) -> (count,)"""
        variances = (weights * self._solve(weights)).sum(axis=1)
        if self.num_rows is not None:
            direction, length = self._total
            variances = variances - (weights @ direction) ** 2 / length
        scale = np.maximum((weights**2).sum(axis=1), 1e-300)
        return np.sqrt(np.where(variances > 1e-9 * scale, variances * self._inflation, 0.0))

    @cached_property
    def disagrees(self) -> bool:
        """Whether tables differ by more than their noise would let them, had they counted the same rows."""
        apart, freedom = self._apart
        if freedom <= 0:
            return False
        if self.mechanism is GAUSSIAN:
            return float(chdtrc(freedom, apart)) < DISAGREEMENT
        # A square of noise of deviation 1 has mean 1 and variance kurtosis - 1.
        return apart > freedom + 8 * math.sqrt((self.mechanism.kurtosis - 1) * freedom) + LAPLACE_EXCESS

    @cached_property
    def _inflation(self) -> float:
        """What variances are multiplied by: 1, or the squared disagreement beyond what noise explains."""
        apart, freedom = self._apart
        return max(1.0, apart - freedom) if self.disagrees else 1.0

    @cached_property
    def _apart(self) -> tuple[float, int]:
        """Squared distance of all tables from the estimates, in variances, and its degrees of freedom."""
        apart = sum(
            float(((each.selector @ self.atoms - each.sums) ** 2 * each.weights).sum()) + each.scatter
            for each in self.evidence
        )
        freedom = sum(len(each.sums) + each.freedom for each in self.evidence)
        return apart, freedom + (self.num_rows is not None) - self.size

    @cached_property
    def _total(self) -> tuple[Floats, float]:
        """M^-1 1, and the variance of the total."""
        direction = self._solve(np.ones((1, self.size)))[0]
        return direction, float(direction.sum())

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        matrix = sum(each.selector.T.multiply(each.weights) @ each.selector for each in self.evidence)
        found: tuple[Floats, bool] = cho_factor(matrix.toarray())
        return found

    @cached_property
    def _woodbury(self) -> tuple[Floats, csr_array, tuple[Floats, bool] | None]:
        """M as a diagonal, from sums of one atom, and a few sums of several, if any (Woodbury's formula)."""
        rows = csr_array(vstack([each.selector for each in self.evidence]))
        weights = np.concatenate([each.weights for each in self.evidence])
        sizes = np.diff(rows.indptr)
        diagonal = rows[sizes == 1].T @ weights[sizes == 1]
        several = csr_array(rows[sizes > 1])
        inner = (several.multiply(1 / diagonal) @ several.T).toarray()
        inner[np.diag_indices(len(inner))] += 1 / weights[sizes > 1]
        return diagonal, several, cho_factor(inner) if len(inner) else None

    def _solve(self, sides: Floats) -> Floats:
        """M^-1 times each row.  # (count, atoms) -> (count, atoms)"""
        if self.size <= DENSE and not all(each.separates for each in self.evidence):
            return np.asarray(cho_solve(self._factor, sides.T).T)
        diagonal, several, inner = self._woodbury
        plain = sides / diagonal
        if inner is None:
            return np.asarray(plain)
        return np.asarray(plain - (several.T @ cho_solve(inner, several @ plain.T)).T / diagonal)


def fit_tables(measured: ReleaseTables, axes: Sequence[Cells]) -> LeastSquares:
    """Counts of the atoms from all tables together, and from a public row count if every row is in some atom."""
    num_rows = measured.num_rows if all(map(measured.is_whole, axes)) else None
    return LeastSquares(gather(measured, axes), num_rows, measured.mechanism)
