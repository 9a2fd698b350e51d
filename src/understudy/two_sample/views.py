"""Ways to look at a part's numbers: by label or together, finely or coarsely, slow features or fast.

Each view is a kernel of its own; the test sums them with weights. A broad shift of a column shows in
a few wide cells, where noise of many narrow ones averages out; a spike shows in narrow ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from understudy.arrays import Floats, Integers
from understudy.two_sample.parts import Part

DROPPED = -1


@dataclass(frozen=True, eq=False)
class View:
    """Sums over groups of a part's numbers, and the columns that they tell of."""

    columns: tuple[str, ...]
    sums: csr_array  # (copies * dim, groups), zeros and ones


def views_of(part: Part, mass: Floats) -> list[View]:
    """All views of a part; ``mass`` is about how large each number is."""
    if not part.columns and part.is_count:
        return []  # the row count tells how large a table is, not what is in it
    found = []
    by_label = (*part.columns, part.label_column) if part.columns else ()
    for groups in _groupings(part, mass.reshape(part.copies, -1).sum(axis=0)):
        size = int(groups.max()) + 1
        if part.copies > 1:
            apart = np.arange(part.copies)[:, None] * size + groups
            found.append(View(by_label, _matrix(np.where(groups < 0, DROPPED, apart).ravel())))
        found.append(View(part.columns, _matrix(np.tile(groups, part.copies))))
    return found


def _groupings(part: Part, mass: Floats) -> Iterator[Integers]:
    """Which group each number of a copy is in, or that it is left aside."""
    every = np.arange(part.dim)
    if part.bands is not None:
        for band in np.unique(part.bands):
            chosen = part.bands == band
            yield np.where(chosen, np.cumsum(chosen) - 1, DROPPED)
        return
    yield every
    count = 2
    while count < part.num_ordered:
        yield _runs(np.maximum(mass[: part.num_ordered], 0.0), count, part.dim)
        count *= 2


def _runs(mass: Floats, count: int, dim: int) -> Integers:
    """About ``count`` runs of neighbours with about equal shares of the mass; nulls stay apart."""
    mass = mass + 1e-9 * (mass.sum() + 1)
    middles = (np.cumsum(mass) - mass / 2) / mass.sum()
    _, runs = np.unique(np.floor(middles * count), return_inverse=True)
    others = np.arange(dim - len(mass)) + runs.max() + 1
    return np.append(runs, others).astype(np.int64)


def _matrix(groups: Integers) -> csr_array:
    kept = np.flatnonzero(groups >= 0)
    shape = (len(groups), int(groups.max()) + 1)
    return csr_array((np.ones(len(kept)), (kept, groups[kept])), shape=shape)
