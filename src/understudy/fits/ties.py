"""Ties: pairs of columns whose structural zeros the components of a mixture miss are drawn so that none is hit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.features import Cells
from understudy.fits.shrinkage import Targets, members
from understudy.generators.mixture import Tie
from understudy.rules.marginals import Marginals

LEAST_MISSED = 2e-4
"""Share of rows in cells that should be empty for which a tie is worth its time."""

RAKINGS = 10
"""Rounds of raking; factors are near one by then."""

MOST_RAKED = 2.0
"""A factor of one round at most: margins that no factors can give must not make numbers overflow."""

IMPOSSIBLE = 1e-9
"""Instead of zero, so that a component without another cell stays defined."""

Edge = tuple[int, int, tuple[int, int]]
"""Two columns, among those of the marginals, and the pair of cells that ties them."""


def find_ties(
    marginals: Marginals, targets: Targets, cells: Sequence[Cells], by_column: Sequence[Floats], sizes: Integers
) -> tuple[list[Tie], list[Floats]]:
    """Trees of pairs whose structural zeros the components hit most often, and components that no longer do.

    Inside a component the cells of tied columns are then in proportion to the product of their probabilities and of
    ratios, which are nothing at structural zeros. From the leaves up, a parent's cells are as likely as its children
    let them be (belief propagation, Pearl 1982), and children are drawn given their parents.

    Returns:
        Ties, parents first, and every component's probabilities, column by column.
    """
    weights = np.repeat(marginals.label_shares / sizes, sizes)[:, None]
    zeros = {(i, j): target.zeros for (i, j), target in targets.items() if target.zeros is not None}
    union = [members(marginals.cells[marginals.place(own)], own) for own in cells]
    place = [marginals.place(own) for own in cells]
    ties: list[Tie] = []
    merged = [by_column[column] @ own for column, own in zip(place, union, strict=True)]
    missed = {(i, j): float(((weights * merged[i]).T @ merged[j])[empty].sum()) for (i, j), empty in zeros.items()}
    for here, there, (i, j) in _forest(missed, place):
        empty = zeros[i, j] if (i, j) in zeros else zeros[j, i].T
        ties.append(Tie(here, there, union[i] @ _raked_ratios(empty, merged[i], merged[j], weights) @ union[j].T))
    found = list(by_column)
    for tie in reversed(ties):
        own = found[tie.parent] * (found[tie.child] @ tie.ratios.T)
        found[tie.parent] = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
    return ties, found


def _forest(missed: dict[tuple[int, int], float], place: Sequence[int]) -> list[Edge]:
    """A maximum spanning forest (Kruskal 1956), its edges from parents to children."""
    tree = {column: column for column in place}
    edges: dict[int, list[Edge]] = {}
    for i, j in sorted(missed, key=lambda pair: -missed[pair]):
        here, there = place[i], place[j]
        if missed[i, j] >= LEAST_MISSED and tree[here] != tree[there]:
            joined, kept = tree[there], tree[here]
            tree = {column: kept if own == joined else own for column, own in tree.items()}
            edges.setdefault(here, []).append((here, there, (i, j)))
            edges.setdefault(there, []).append((there, here, (j, i)))
    found: list[Edge] = []
    reached: set[int] = set()
    for root in edges:
        waiting = [root] if root not in reached else []
        while waiting:
            here = waiting.pop()
            reached.add(here)
            onward = [edge for edge in edges[here] if edge[1] not in reached]
            found += onward
            waiting += [edge[1] for edge in onward]
    return found


def _raked_ratios(zeros: Truths, left: Floats, right: Floats, weights: Floats) -> Floats:
    """Factors on the cells of two columns inside components: none at structural zeros, and margins as they were.

    Raking, or iterative proportional fitting (Deming & Stephan 1940), of factors that all components share.

    # (cells, others), (components, cells), (components, others) -> (cells, others)
    """
    ratios = np.where(zeros, IMPOSSIBLE, 1.0)
    rows, columns = ((weights * side).sum(axis=0) for side in (left, right))
    for _ in range(RAKINGS):
        whole = ((left @ ratios) * right).sum(axis=1, keepdims=True)
        now = ratios * ((weights / np.maximum(whole, 1e-300) * left).T @ right)
        by_row, by_column = (np.maximum(now.sum(axis=axis), 1e-300) for axis in (1, 0))
        ratios = ratios * np.clip(rows / by_row, 1 / MOST_RAKED, MOST_RAKED)[:, None]
        ratios = ratios * np.clip(columns / by_column, 1 / MOST_RAKED, MOST_RAKED)
        ratios /= ratios.max()
    return np.asarray(ratios)
