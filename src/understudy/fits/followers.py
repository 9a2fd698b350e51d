"""Followers: columns that another one determines (functional dependencies), as an age does its group.

A mixture's components draw them by one law given the other column, so that they have no say in the fit, and any number
of them may follow the same column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.sparse import bmat
from scipy.sparse.csgraph import connected_components

from understudy.arrays import Floats, Truths
from understudy.features import Cells
from understudy.fits.comonotone import MEAN_DEVIATION, Inside, at_steps
from understudy.fits.shrinkage import Target, Targets, members
from understudy.fits.ties import LEAST_TIED, distances
from understudy.generators.mixture import Tie
from understudy.rules.marginals import Marginals, unions
from understudy.rules.pair_selection import SelectedPairs

MOST_APART = 0.1
"""No label has more of its rows in cells that the law does not give them, beside what noise has on average: a function
told from all rows may be none of a rare label."""

LEAST_HELD = 1e-12
"""Share of rows: of cells with fewer nothing is known."""


def find_followers(
    marginals: Marginals, targets: Targets, pairs: SelectedPairs, *, noise: float, inside: Inside
) -> tuple[list[Tie], Marginals]:
    """Columns that others determine, each with its law given the other's cells as ratios.

    Step functions come first, then those that matter most. Cells are split at steps, and what is known of both columns
    is brought together: marginals come back with that.

    Args:
        marginals: what is known of columns.
        targets: what is known of pairs.
        pairs: their cells and their noise.
        noise: that of a cell that was counted by label, in rows.
        inside: what is known of rows inside cells.
    """
    apart = distances(marginals, targets, pairs.cells)
    found: list[tuple[Tie, Cells]] = []  # and the parent's cells at that time
    for pair in sorted(targets, key=lambda pair: (targets[pair].staircase is None, -apart[pair])):
        target = targets[pair]
        if target.follower is None or apart[pair] < LEAST_TIED:
            continue
        one, other = pairs.cells[pair[1 - target.follower]], pairs.cells[pair[target.follower]]
        parent, child = marginals.place(one), marginals.place(other)
        if child in {place for tie, _ in found for place in (tie.parent, tie.child)}:
            continue
        if parent in {tie.child for tie, _ in found}:
            continue
        split, joint = marginals, None
        if target.staircase is not None:
            steps = at_steps(marginals, one, other, target.staircase, inside, noise=pairs.noise / marginals.total)
            if steps is None:
                continue
            split, joint = steps
        elif other.num_known < marginals.cells[child].num_known:
            continue  # a function of cells that hold several values says nothing of these
        law = _law(split, (one, other), target, joint)
        agreed = _agreeing(split, (parent, child), (law if joint is None else joint) > 0, noise)
        if agreed is not None:
            marginals = agreed
            found.append((Tie(parent, child, law), marginals.cells[parent]))
    ties = [replace(tie, ratios=tie.ratios[unions(marginals.cells[tie.parent], own)]) for tie, own in found]
    return ties, marginals


def _law(marginals: Marginals, cells: Sequence[Cells], target: Target, joint: Floats | None) -> Floats:
    """The follower's law given the other column's cells, of which ``joint`` knows the ones without nulls.

    # (cells of the parent, cells of the child)
    """
    table = target.table[0]
    possible = np.ones(table.shape, dtype=bool) if target.zeros is None else ~target.zeros
    if target.follower == 0:
        table, possible = table.T, possible.T
    places = [marginals.place(each) for each in cells]
    left, right = (members(marginals.cells[place], each) for place, each in zip(places, cells, strict=True))
    own = marginals.of_all(places[1])
    usual = own @ right
    law = _each(_each(table, possible * usual), np.broadcast_to(usual, table.shape))
    law = (left @ (law / np.maximum(usual, LEAST_HELD)) @ right.T) * own
    if joint is not None:
        rows, columns = joint.shape
        known = 1 - law[:rows, columns:].sum(axis=1, keepdims=True)
        law[:rows, :columns] = known * _each(joint, law[:rows, :columns])
    return _each(law, np.broadcast_to(own, law.shape))


def _each(table: Floats, otherwise: Floats) -> Floats:
    """Each row as shares of its sum; of a row of nothing, as the other table has it."""
    table = np.where(table.sum(axis=1, keepdims=True) > LEAST_HELD, table, otherwise)
    return np.asarray(table / np.maximum(table.sum(axis=1, keepdims=True), LEAST_HELD))


def _agreeing(marginals: Marginals, places: Sequence[int], meets: Truths, noise: float) -> Marginals | None:
    """Marginals by label that a law with these cells in use can have; none if some label's are too far from that.

    Cells that meet one another alone have as many rows of one column as of the other: means of both, as their variances
    deserve, which grow with the number of cells.
    """
    _, group = connected_components(bmat([[None, meets], [meets.T, None]]))
    groups, by_label = np.split(np.eye(int(group.max()) + 1)[group], [len(meets)]), list(marginals.by_label)
    held = [by_label[place][:, : len(own)] @ own for place, own in zip(places, groups, strict=True)]
    known = [sums.sum(axis=1, keepdims=True) + LEAST_HELD for sums in held]
    shares, sizes = [sums / whole for sums, whole in zip(held, known, strict=True)], [own.sum(axis=0) for own in groups]
    rows = np.maximum(marginals.total * marginals.label_shares, 1.0)
    allowed = MOST_APART + MEAN_DEVIATION * noise * float(np.sqrt(sizes[0] + sizes[1]).sum()) / rows
    both = np.minimum(*known)[:, 0]  # a label of which nearly all are null says little
    if (both * np.abs(shares[0] - shares[1]).sum(axis=1) / 2 > allowed).any():
        return None
    mean = (sizes[1] * shares[0] + sizes[0] * shares[1]) / (sizes[0] + sizes[1])
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), LEAST_HELD)
    for place, own, sums, whole in zip(places, groups, held, known, strict=True):
        factor = np.divide(mean * whole, sums, out=np.ones_like(sums), where=sums > LEAST_HELD)
        by_label[place] = by_label[place].copy()
        by_label[place][:, : len(own)] *= factor @ own.T
    return replace(marginals, by_label=tuple(by_label))
