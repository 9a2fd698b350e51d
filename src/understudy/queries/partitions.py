"""Ways to cut a column into cells, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from understudy.arrays import Integers
from understudy.features import Cells
from understudy.schema import Column
from understudy.schema.codesets import CodeSet


def whole_column(place: int, column: Column, *, has_unlisted: bool) -> Cells:
    """A column whose every code is a cell, and so are unlisted values if they can be told from nulls."""
    size = len(column.categories) if column.is_choice else column.num_steps + 1
    ordered = not column.is_choice
    return Cells(place, size, column.nullable, is_ordered=ordered, has_unlisted=has_unlisted)


def cut_at(cells: Cells, edges: Integers) -> Cells:
    """A column in runs of codes that begin at these edges, and at its first code."""
    inside = edges[(edges > 0) & (edges < cells.num_codes)]
    lows = np.unique(np.append(inside, 0)).astype(np.int64)
    return replace(cells, lows=tuple(lows.tolist()), groups=())


def cell_edges(cells: Cells) -> Integers:
    """The first code of each run of codes that lie in one cell."""
    place = cells.cell_of_piece
    return np.asarray(cells.first_codes[np.append(True, place[1:] != place[:-1])])


def edges_of(sets: Iterable[CodeSet]) -> Integers:
    """The codes at which membership in some of the sets begins or ends."""
    ranges = [each for codes in sets for each in codes.ranges]
    return np.unique([edge for low, high in ranges for edge in (low, high + 1)]).astype(np.int64)


def nearest_edges(wanted: Integers, available: Integers) -> Integers:
    """For each wanted edge the available ones next to it; itself if it is available."""
    below = np.searchsorted(available, wanted, side="right") - 1
    above = np.searchsorted(available, wanted, side="left")
    keep = [below[below >= 0], above[above < len(available)]]
    return np.asarray(available[np.unique(np.concatenate(keep))])


def common_coarsening(one: Cells, other: Cells) -> tuple[Integers, Integers, int]:
    """The finest cells that are unions of cells of both: the union of each cell, and their number.

    -1 for cells of which the other way of cutting knows nothing.  # (one.dim,), (other.dim,)
    """
    edges = np.union1d(one.first_codes, other.first_codes)
    mine, theirs = one(edges), other(edges)
    for left, right in _same_others(one, other):
        mine, theirs = np.append(mine, left), np.append(theirs, right)
    size = one.dim + other.dim
    graph = coo_array((np.ones(len(mine)), (mine, one.dim + theirs)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    left, right = component[: one.dim], component[one.dim :]
    shared = np.intersect1d(left, right)

    def numbered(parts: npt.NDArray[np.generic]) -> Integers:
        place = np.minimum(np.searchsorted(shared, parts), len(shared) - 1)
        return np.where(shared[place] == parts, place, -1).astype(np.int64)

    return numbered(left), numbered(right), len(shared)


def _same_others(one: Cells, other: Cells) -> list[tuple[int, int]]:
    """Cells of nulls and of unlisted values that hold the same rows, or some of the same.

    A cell of nulls holds unlisted values too where these have none of their own, and the other way round.
    """
    mine, theirs = _others(one), _others(other)
    if len(mine) == len(theirs):
        return list(zip(mine, theirs, strict=True))
    return [(left, right) for left in mine for right in theirs]


def _others(cells: Cells) -> range:
    return range(cells.num_known, cells.dim)


def merged_cells(cells: Cells, signatures: npt.NDArray[np.float64]) -> Cells:
    """Cells with equal signatures made one; that of nulls stays by itself.

    # signatures: (known cells, any number)
    """
    _, group = np.unique(signatures, axis=0, return_inverse=True)
    group = group.ravel()
    if len(np.unique(group)) == cells.num_known:
        return cells
    return replace(cells, groups=tuple(group[cells.cell_of_piece].tolist()))
