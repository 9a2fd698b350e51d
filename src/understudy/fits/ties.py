"""Ties: pairs of columns that every component of a mixture draws given one another, by what the pair's table says.

A mixture of products needs as many components as tied columns have cells, times those of every other group of tied
columns. With ties it is a mixture of trees that share their edges (Meila & Jordan 2000), each edge with one table of
ratios to independence, and components are left for what pairs do not say.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from understudy.arrays import Floats
from understudy.features import Cells
from understudy.fits.shrinkage import Target, Targets, members
from understudy.generators.mixture import Tie
from understudy.rules.marginals import RAKINGS, Marginals

LEAST_TIED = 0.02
"""Distance (total variation) of a pair's table from independence within labels, from which a tie is worth its time."""

MOST_MOVED = 0.1
KNOWN_DEVIATIONS = 3.0
"""A tie that moves more of some label's rows to other cells of a column is left out, if that label's rows are known:
so many deviations of the noise that its cells have together. The table of all rows may know nothing of a small label;
what is known of an empty one is noise."""

LEAST_EXPECTED = 1e-12
"""Share of rows: below it a cell is not used at all."""

LEAST_MET = 1e-3
"""Of ratios that are one on average: a cell with next to no partners in a label's other column is not raised further.
It would leave nothing to all other cells."""

IMPOSSIBLE = 1e-9
"""A ratio instead of zero, so that a component without another cell stays defined."""


def choose_ties(
    marginals: Marginals, targets: Targets, cells: Sequence[Cells], *, noise: float, followers: Collection[int] = ()
) -> list[Tie]:
    """Ties of the pairs that depend most on one another, no column twice (a greedy matching).

    Ratios are over the cells of the marginals, and so are the places of parents and children. ``noise`` is that of a
    cell that was counted by label, in rows. ``followers`` are the places of columns that others determine. Parents have
    more cells: given another column, cells are drawn less evenly.
    """
    rows = marginals.total * marginals.label_shares
    apart = distances(marginals, targets, cells)
    found: list[Tie] = []
    used = set(followers)
    for pair in sorted(apart, key=lambda pair: -apart[pair]):
        places = marginals.place(cells[pair[0]]), marginals.place(cells[pair[1]])
        if apart[pair] < LEAST_TIED or used & set(places):
            continue
        left, right = (members(marginals.cells[place], cells[j]) for place, j in zip(places, pair, strict=True))
        tie = Tie(*places, left @ association(targets[pair], independent(marginals, pair, cells)) @ right.T)
        sides = [marginals.by_label[place] for place in places]
        is_known = rows > KNOWN_DEVIATIONS * noise * math.sqrt(min(side.shape[1] for side in sides))
        if not is_known.any() or _moved(tie.ratios, *(side[is_known] for side in sides)) <= MOST_MOVED:
            used |= set(places)
            found.append(tie if tie.ratios.shape[0] >= tie.ratios.shape[1] else Tie(*places[::-1], tie.ratios.T))
    return found


def independent(marginals: Marginals, pair: tuple[int, ...], cells: Sequence[Cells]) -> Floats:
    """A pair's table, all labels together, if its columns were independent within labels."""
    return np.asarray(marginals.independent((pair[0], pair[1]), cells).sum(axis=0))


def distances(marginals: Marginals, targets: Targets, cells: Sequence[Cells]) -> dict[tuple[int, ...], float]:
    """Total variation of each pair's table from independence within labels."""
    return {
        pair: 0.5 * float(np.abs(target.table[0] - independent(marginals, pair, cells)).sum())
        for pair, target in targets.items()
    }


def association(target: Target, expected: Floats) -> Floats:
    """A pair's table as ratios to what independence expects, next to nothing at structural zeros, and its margins.

    Rows of cells that shrinkage has emptied, as of tails, are spread as independence would, where they may be; cells in
    which nobody is expected say nothing.
    """
    possible = np.ones(expected.shape, dtype=bool) if target.zeros is None else ~target.zeros
    possible |= ~possible.any(axis=1, keepdims=True) | ~possible.any(axis=0)  # zeros that leave a cell nothing are none
    usual, found = np.where(possible, expected, 0.0) + 1e-15, np.where(possible, target.table[0], 0.0)
    rows, columns = expected.sum(axis=1, keepdims=True), expected.sum(axis=0)
    found += np.maximum(rows - found.sum(axis=1, keepdims=True), 0.0) * usual / usual.sum(axis=1, keepdims=True)
    found += np.maximum(columns - found.sum(axis=0), 0.0) * usual / usual.sum(axis=0)
    for _ in range(RAKINGS):  # iterative proportional fitting (Deming & Stephan 1940)
        found *= rows / np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
        found *= columns / np.maximum(found.sum(axis=0), 1e-300)
    ratios = np.divide(found, expected, out=np.ones_like(found), where=expected > LEAST_EXPECTED)
    return np.clip(np.where(possible, ratios, IMPOSSIBLE), IMPOSSIBLE, 1 / IMPOSSIBLE)


def joint_margins(left: Any, right: Any, ratios: Any) -> tuple[Any, Any, Any]:
    """Marginals of two columns whose joint law in a component is left x ratios x right, over its sum; and that sum.

    For arrays of NumPy and of torch.  # (components, cells), (components, others) -> ..., (components, 1)
    """
    joint = left * (right @ ratios.T)
    whole = joint.sum(1)[:, None] + 1e-30
    return joint / whole, right * (left @ ratios) / whole, whole


def balanced(ratios: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """What a component must be for its marginals to be these, given the ratios (Sinkhorn's algorithm).

    # (labels, cells), (labels, others)
    """
    found, other = left.copy(), right.copy()
    for _ in range(2 * RAKINGS):
        found = _shares(left / np.maximum(other @ ratios.T, LEAST_MET))
        other = _shares(right / np.maximum(found @ ratios, LEAST_MET))
    return np.maximum(found, IMPOSSIBLE), np.maximum(other, IMPOSSIBLE)


def _moved(ratios: Floats, left: Floats, right: Floats) -> float:
    """The largest share of a label's rows that a tie moves to other cells of a column, whatever components do."""
    one, other, _ = joint_margins(*balanced(ratios, left, right), ratios)
    return 0.5 * max(float(np.abs(own - side).sum(axis=1).max()) for own, side in ((one, left), (other, right)))


def _shares(table: Floats) -> Floats:
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300))
