"""Cells of a column that one release has, or that two releases can both express."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from understudy.arrays import Floats, Integers
from understudy.features import Cells

MOST_CELLS = 512
"""A longer column is compared in runs of its cells: thousands of cells hold noise and little else."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One column of a table: the cells of each release, and the union that each is a part of.

    The last of ``unions`` takes what is in no union; ``num_ordered`` of them, the first, lie in the order of
    their codes.
    """

    cells: tuple[Cells, ...]
    unions: tuple[Integers, ...]  # (cells of that release,) each
    dim: int
    num_ordered: int

    def __call__(self, codes: Integers) -> Integers:
        """The union of each row; ``dim`` if it is in none.  # (num_rows, num_used) -> (num_rows,)"""
        cells, unions = self.cells[0], self.unions[0]
        return np.append(unions, self.dim)[cells(codes[:, cells.column])]

    @cached_property
    def sizes(self) -> tuple[Integers, ...]:
        """How many cells of each release a union holds."""
        return tuple(np.bincount(u, minlength=self.dim + 1)[: self.dim] for u in self.unions)

    def merge(self, values: Floats, release: int, axis: int) -> Floats:
        """Counts of a release's cells as counts of unions, along one axis."""
        moved = np.moveaxis(values, axis, 0)
        found = np.zeros((self.dim + 1, *moved.shape[1:]))
        np.add.at(found, self.unions[release], moved)
        return np.moveaxis(found[: self.dim], 0, axis)


def common_axis(cells: Sequence[Cells]) -> Axis:
    """The finest cells that are unions of every release's own."""
    known, count = _common_unions(cells)
    is_ordered = all(each.is_ordered for each in cells)
    if count > MOST_CELLS:
        known, count = [each * MOST_CELLS // count for each in known], MOST_CELLS
    has_null = all(each.has_null for each in cells)
    dim = count + has_null
    unions = []
    for own, each in zip(cells, known, strict=True):
        null = [count if has_null else dim] * own.has_null
        unions.append(np.append(each, null).astype(np.int64))
    return Axis(tuple(cells), tuple(unions), dim, count if is_ordered else 0)


def _common_unions(cells: Sequence[Cells]) -> tuple[list[Integers], int]:
    """Which union each known cell belongs to, unions in the order of their first codes."""
    if len(cells) == 1:
        return [np.arange(cells[0].num_known)], cells[0].num_known
    starts = np.unique(np.concatenate([each.first_codes for each in cells]))
    places = [each(starts) for each in cells]
    offsets = np.cumsum([0, *(each.num_known for each in cells)])
    # Cells that share a run of codes must be in one union: connected components of the overlaps.
    size = int(offsets[-1])
    links = [places[i] + offsets[i] for i in range(len(cells))]
    graph = coo_array((np.ones(len(starts)), (links[0], links[-1])), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    order = np.full(labels.max() + 1, -1, dtype=np.int64)
    met, first = np.unique(labels[links[0]], return_index=True)
    order[met[np.argsort(first)]] = np.arange(len(met))
    whole = order[labels]
    return [whole[offsets[i] : offsets[i + 1]] for i in range(len(cells))], len(met)
