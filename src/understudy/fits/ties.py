"""Ties: pairs of columns whose structural zeros the components of a mixture miss are drawn so that none is hit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.arrays import Floats, Integers, Truths
from understudy.features import Cells
from understudy.fits.shrinkage import Targets, members
from understudy.generators.mixture import Tie
from understudy.rules.marginals import RAKINGS, Marginals

LEAST_MISSED = 2e-4
"""Share of rows in cells that should be empty for which a tie is worth its time."""

MOST_RAKED = 2.0
"""A factor of one round at most: margins that no factors can give must not make numbers overflow."""

MOST_MOVED = 0.25
"""A tie may move so many rows of a column for each row that it keeps out of structural zeros, else it is left out."""

MOST_MOVED_OF_LABEL = 0.1
"""A tie that moves more of one label's rows to other cells of a column is left out: a rare label may be all that its
zeros know nothing of."""

IMPOSSIBLE = 1e-9
"""Instead of zero, so that a component without another cell stays defined."""


def find_ties(
    marginals: Marginals, targets: Targets, cells: Sequence[Cells], by_column: Sequence[Floats], sizes: Integers
) -> tuple[list[Tie], list[Floats]]:
    """Pairs whose structural zeros the components hit most often, and components that no longer do.

    Inside a component the cells of tied columns are then in proportion to the product of their probabilities and of
    ratios, which are nothing at structural zeros: the parent is drawn as its child lets it, and the child given it.

    Returns:
        Ties, and every component's probabilities, column by column.
    """
    weights = np.repeat(marginals.label_shares / sizes, sizes)[:, None]
    zeros = {(i, j): target.zeros for (i, j), target in targets.items() if target.zeros is not None}
    union = [members(marginals.cells[marginals.place(own)], own) for own in cells]
    place = [marginals.place(own) for own in cells]
    ties: list[Tie] = []
    merged = [by_column[column] @ own for column, own in zip(place, union, strict=True)]
    missed = {(i, j): float(((weights * merged[i]).T @ merged[j])[empty].sum()) for (i, j), empty in zeros.items()}
    found = list(by_column)
    for i, j in _matching(missed, place):
        raked, moved = _raked_ratios(zeros[i, j], merged[i], merged[j], weights)
        by_label = _moved_by_label(raked, merged[i], merged[j], sizes)
        if moved > MOST_MOVED * missed[i, j] or by_label.max() > MOST_MOVED_OF_LABEL:
            continue
        ratios = union[i] @ raked @ union[j].T
        ties.append(Tie(place[i], place[j], ratios))
        own = by_column[place[i]] * (by_column[place[j]] @ ratios.T)
        found[place[i]] = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
    return ties, found


def _matching(missed: dict[tuple[int, int], float], place: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs that miss most, no column twice: ties of one column to several would move its margins."""
    found: list[tuple[int, int]] = []
    used: set[int] = set()
    for i, j in sorted(missed, key=lambda pair: -missed[pair]):
        if missed[i, j] >= LEAST_MISSED and not {place[i], place[j]} & used:
            found.append((i, j))
            used |= {place[i], place[j]}
    return found


def _raked_ratios(zeros: Truths, left: Floats, right: Floats, weights: Floats) -> tuple[Floats, float]:
    """Factors on the cells of two columns inside components: none at structural zeros, and margins as they were.

    Also the share of rows by which margins are moved all the same, as zeros that are none will have it.

    Raking, or iterative proportional fitting (Deming & Stephan 1940), of factors that all components share.

    # (cells, others), (components, cells), (components, others), (components, 1) -> (cells, others)
    """
    ratios, moved = np.where(zeros, IMPOSSIBLE, 1.0), 0.0
    rows, columns = ((weights * side).sum(axis=0) for side in (left, right))
    for _ in range(RAKINGS):
        whole = ((left @ ratios) * right).sum(axis=1, keepdims=True)
        now = ratios * ((weights / np.maximum(whole, 1e-300) * left).T @ right)
        by_row, by_column = (np.maximum(now.sum(axis=axis), 1e-300) for axis in (1, 0))
        moved = 0.5 * max(float(np.abs(rows - by_row).sum()), float(np.abs(columns - by_column).sum()))
        ratios = ratios * np.clip(rows / by_row, 1 / MOST_RAKED, MOST_RAKED)[:, None]
        ratios = ratios * np.clip(columns / by_column, 1 / MOST_RAKED, MOST_RAKED)
        ratios /= ratios.max()
    return np.asarray(ratios), moved


def _moved_by_label(ratios: Floats, left: Floats, right: Floats, sizes: Integers) -> Floats:
    """The share of each label's rows that a tie moves to other cells of either column.

    # (cells, others), (components, cells), (components, others), (labels,) -> (labels,)
    """
    whole = np.maximum(((left @ ratios) * right).sum(axis=1, keepdims=True), 1e-300)
    after = left * (right @ ratios.T) / whole, right * (left @ ratios) / whole
    starts = np.cumsum([0, *sizes[:-1]])
    apart = [np.add.reduceat(new - old, starts, axis=0) for new, old in zip(after, (left, right), strict=True)]
    return np.asarray(0.5 * np.maximum(*(np.abs(each).sum(axis=1) for each in apart)) / sizes)
