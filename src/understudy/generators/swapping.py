"""Variance reduction of drawn rows: exchanges within components bring tables of pairs near what the mixture expects.

Columns are independent inside a component, so rows of one component may exchange their cells of a column and are as
likely as before. Drawn at random, their tables of pairs miss the mixture's by a sampling error; a local search over
exchanges takes most of it away, as rounding in order ("even marks") does for single columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from understudy.arrays import Floats, Integers

MOST_GROUPS = 24
"""Cells of a column that tables of pairs have; of two-dimensional histograms more would hold no rows."""

MOST_WIDTH = 2_048
"""Groups of all columns together: the table of all pairs takes 16 MB."""

MOST_LOOKUPS = 1e8
"""Numbers looked up for one chunk of rows, about a second: of many columns a part of the exchanges is tried."""

LEAST_TRIED = 0.25
"""If that is a smaller part of them, none is: the table of excesses takes longer than it is worth."""

BATCH = 256
BATCHES = 16
"""Exchanges judged by the same table at most, and how many times at least it is brought up to date: exchanges that are
judged together all mend the same cells."""


def exchange(
    cells: Integers,
    chosen: Integers,
    marginals: Sequence[Floats],
    units: Sequence[Sequence[int]],
    rng: np.random.Generator,
) -> Integers:
    """Rows whose cells were exchanged within components, one pass over columns, wherever that helps tables of pairs.

    Args:
        cells: (num_rows, num_columns).
        chosen: the component of each row, in ascending order.
        marginals: each column's probabilities, component by component.
        units: columns that stay together in a row, as those that are tied.
        rng: draws which rows meet.
    """
    share = min(1.0, MOST_LOOKUPS / (2.0 * max(1, cells.size) * len(marginals)))
    most = min(MOST_GROUPS, MOST_WIDTH // len(marginals))
    if share < LEAST_TRIED or most < 2 or len(units) < 2 or len(cells) < 2:
        return cells
    sizes = np.bincount(chosen, minlength=len(marginals[0])).astype(np.float64)
    groups = [_groups(sizes @ own, most) for own in marginals]
    starts = np.cumsum([0, *(int(group.max()) + 1 for group in groups)])
    expected = np.concatenate([_merged(own, group) for own, group in zip(marginals, groups, strict=True)], axis=1)
    found = cells.copy()
    places = np.stack([group[own] for group, own in zip(groups, found.T, strict=True)], axis=1) + starts[:-1]
    excess = _counts(places, int(starts[-1])) - (expected * sizes[:, None]).T @ expected
    for unit in rng.permutation(len(units)):
        own = np.asarray(units[unit])
        others = np.setdiff1d(np.arange(len(groups)), own)
        first, second = _met(chosen, share, rng)
        size = max(1, min(BATCH, len(first) // BATCHES))
        for start in range(0, len(first), size):
            a, b = first[start : start + size], second[start : start + size]
            gain = _gain(excess, places, a, b, own, others)
            a, b = a[gain > 0], b[gain > 0]
            if len(a):
                _move(excess, places, a, b, own, others)
                for table in (places, found):
                    table[np.ix_(a, own)], table[np.ix_(b, own)] = table[np.ix_(b, own)], table[np.ix_(a, own)]
    return found


def _groups(masses: Floats, most: int) -> Integers:
    """Neighbouring cells together, to so many groups of about equal masses; of choices, those next in the schema."""
    if len(masses) <= most:
        return np.arange(len(masses))
    middles = np.cumsum(masses) - masses / 2
    found = np.minimum(middles / max(float(masses.sum()), 1e-300) * most, most - 1).astype(np.int64)
    return np.unique(found, return_inverse=True)[1]


def _merged(table: Floats, groups: Integers) -> Floats:
    """Sums over groups of columns.  # (components, cells) -> (components, groups)"""
    return np.asarray(table @ np.eye(int(groups.max()) + 1)[groups])


def _counts(places: Integers, width: int) -> Floats:
    """How many rows have each two places.  # (num_rows, num_columns) -> (width, width)"""
    count, columns = places.shape
    rows = csr_array((np.ones(places.size), places.ravel(), np.arange(count + 1) * columns), shape=(count, width))
    return np.asarray((rows.T @ rows).toarray())


def _met(chosen: Integers, share: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Random disjoint pairs of rows of the same component, in random order."""
    order = np.lexsort((rng.random(len(chosen)), chosen))
    place = np.arange(len(chosen)) - np.searchsorted(chosen, chosen)
    first = np.flatnonzero((place[:-1] % 2 == 0) & (chosen[:-1] == chosen[1:]))
    first = rng.permutation(first)[: int(np.ceil(share * len(first)))]
    return order[first], order[first + 1]


def _gain(excess: Floats, places: Integers, a: Integers, b: Integers, own: Integers, others: Integers) -> Floats:
    """By how much exchanges bring down the sum of squared excesses, one pair of rows after another."""
    left, right, found = places[a][:, others], places[b][:, others], np.zeros(len(a))
    for column in own:
        x, y = places[a, column][:, None], places[b, column][:, None]
        slope = excess[x, left] + excess[y, right] - excess[y, left] - excess[x, right]
        found += np.where((x != y) & (left != right), slope - 2.0, 0.0).sum(axis=1)
    return found


def _move(excess: Floats, places: Integers, a: Integers, b: Integers, own: Integers, others: Integers) -> None:
    """Keep the table of excesses up with exchanges."""
    left, right = places[a][:, others], places[b][:, others]
    for column in own:
        x, y = (np.broadcast_to(places[rows, column][:, None], left.shape) for rows in (a, b))
        for rows, columns, change in ((x, left, -1.0), (y, right, -1.0), (y, left, 1.0), (x, right, 1.0)):
            np.add.at(excess, (rows, columns), change)
            np.add.at(excess, (columns, rows), change)
