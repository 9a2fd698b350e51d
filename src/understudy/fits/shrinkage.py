"""Shrinkage of noisy tables of pairs towards independence: singular values, posterior means, projections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx

from understudy.arrays import Floats, Truths
from understudy.features import Cells
from understudy.fits.staircases import Staircase, better_function, find_staircase, hides_rows
from understudy.fits.structural_zeros import find_function, follower_of, surely_empty
from understudy.rules.adaptive_bins import COARSE_PAIRS
from understudy.rules.denoise import centred, project_to_simplex, scale_to_total
from understudy.rules.marginals import Marginals, unions
from understudy.rules.measurement import Measurement
from understudy.rules.pair_selection import SelectedPairs


@dataclass(frozen=True)
class Target:
    """What a pair's table should be, and how much that weighs beside others of the same noise."""

    table: Floats  # (copies, cells of one, cells of the other)
    weight: float = 1.0
    zeros: Truths | None = None  # (cells of one, cells of the other): surely empty
    follower: int | None = None  # which of the two columns the other one determines
    staircase: Staircase | None = None  # of cells in use, if it is a step function


Targets = dict[tuple[int, ...], Target]


def positive_counts(cells: Cells, counts: Floats, noise: float, total: float) -> Floats:
    """Counts that are not negative: of a number the nearest, of a choice the expected ones.

    A rare category whose noisy count is below zero is rare, not impossible.
    """
    return scale_to_total(counts, total) if cells.is_ordered else expected_counts(counts, noise, total)


def expected_counts(counts: Floats, noise: float, total: float) -> Floats:
    """Posterior means of counts under an exponential prior, scaled to a total."""
    mean = max(total / len(counts), 1e-9)
    shifted = np.clip((counts - noise**2 / mean) / noise, -1e6, None)
    # A normal variable above zero has the mean s + phi(s) / Phi(s), in its deviations.
    found = shifted + math.sqrt(2 / math.pi) / erfcx(-shifted / math.sqrt(2))
    return np.asarray(found * (total / found.sum()))


def shrunk(table: Floats, noise: float) -> Floats:
    """Denoise a matrix by optimal shrinkage of its singular values for the Frobenius error (Gavish & Donoho 2017).

    Below the edge of the Marchenko-Pastur bulk, 1 + sqrt(ratio) in units of the noise, they become zero. The noise
    lies in the interactions, which have one row and one column less than the table.
    """
    left, values, right = np.linalg.svd(table, full_matrices=False)
    short, long = sorted(max(1, size - 1) for size in table.shape)
    scale, ratio = noise * math.sqrt(long), short / long
    relative = values / scale
    inside = np.maximum((relative**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)
    kept = np.where(relative > 1 + math.sqrt(ratio), np.sqrt(inside) / np.maximum(relative, 1e-300), 0.0)
    return np.asarray((left * (kept * scale)) @ right)


def likely_table(table: Floats, expected: Floats, noise: float) -> tuple[Floats, float]:
    """Denoise a two-way marginal, given the one that independence expects.

    First no share is negative, which alone clears the empty cells of columns that nearly determine
    one another; the noise that is left, about that of the cells still in use, is shrunk away.
    Also gives the share of cells in use.
    """
    possible = _nonnegative(expected + centred(table - expected))
    left = float(np.mean(possible > 0))
    found = _nonnegative(expected + shrunk(centred(possible - expected), left * noise))
    return found, left


def _nonnegative(table: Floats) -> Floats:
    return project_to_simplex(table.ravel(), float(table.sum())).reshape(table.shape)


def pair_targets(marginals: Marginals, pairs: SelectedPairs) -> Targets:
    """Chosen pairs: independence within labels, and what is surely more."""
    noise = pairs.noise / marginals.total
    found: Targets = {}
    for pair, table in pairs.tables.items():
        expected = marginals.independent((pair[0], pair[1]), pairs.cells).sum(axis=0)
        share = table / marginals.total
        likely, doubt = likely_table(share, expected, noise)
        cells = [pairs.cells[j] for j in pair]
        staircase = find_staircase(share, expected, noise, cells)
        function = find_function(share, expected, noise, [each.is_ordered for each in cells])
        if staircase is not None and function is not None and better_function(share / noise, function, staircase):
            staircase = None
        zeros = surely_empty(share, expected, noise) if function is None else ~function
        follower = None if function is None or hides_rows(share[~function], noise) else follower_of(function)
        if staircase is not None:
            beside, follower = staircase.is_beside, 0 if staircase.is_turned else 1
            zeros[: beside.shape[0], : beside.shape[1]] = beside
        if function is not None or staircase is not None:
            likely = np.where(zeros, 0.0, likely) / max(float(likely[~zeros].sum()), 1e-12)
        found[pair] = Target(likely[None], 1 / math.sqrt(doubt), zeros, follower, staircase)
    return found


def coarse_targets(marginals: Marginals, second: Measurement, chosen: Targets, finer: Sequence[Cells]) -> Targets:
    """All pairs, coarsely and by label: the dependence that labels share, and each label's own.

    The shared part is taken from the chosen pairs where there is one: it is less noisy. Labels
    have it in proportion to the rows that each would have in a cell: a label whose rows are never
    there (no child earns much) gets none of the dependence among those rows.
    """
    map_, noise = second.map(COARSE_PAIRS), second.noise_of_count(COARSE_PAIRS) / marginals.total
    shares = marginals.label_shares
    own_noise = noise * np.sqrt(1 - 2 * shares + len(shares) * shares**2)
    same = {(finer[i].column, finer[j].column): (i, j) for i, j in chosen}
    found: Targets = {}
    for pair, table in zip(map_.subsets, second.tables(COARSE_PAIRS), strict=True):
        i, j = pair
        expected = marginals.independent((i, j), map_.factors)
        apart = centred(table / marginals.total - expected)
        together = apart.sum(axis=0)
        better = same.get((map_.factors[i].column, map_.factors[j].column))
        if better is not None:
            excess = chosen[better].table[0] - marginals.independent(better, finer).sum(axis=0)
            left = _spread(marginals, finer[better[0]], map_.factors[i])
            right = _spread(marginals, finer[better[1]], map_.factors[j])
            shared = left.T @ excess @ right
        else:
            shared = shrunk(together, noise * math.sqrt(len(shares)))
        parts = expected / np.maximum(expected.sum(axis=0), 1e-12)
        own = [
            shrunk(centred(each - part * together), deviation) if deviation > 0 else 0.0 * each
            for each, part, deviation in zip(apart, parts, own_noise, strict=True)
        ]
        tables = expected + parts * shared + np.stack(own)
        found[pair] = Target(np.stack([_nonnegative(each) for each in tables]))
    return found


def _spread(marginals: Marginals, finer: Cells, coarser: Cells) -> Floats:
    """Which part of each finer cell lies in each coarser one.  # (finer cells, coarser cells)"""
    place = marginals.place(finer)
    shares = marginals.label_shares @ marginals.by_label[place] + 1e-12
    cells = marginals.cells[place]
    joint = members(cells, finer).T @ (shares[:, None] * members(cells, coarser))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def members(finer: Cells, coarser: Cells) -> Floats:
    """Which cell of ``coarser`` each cell of ``finer`` is in, as ones and zeros."""
    return np.asarray(np.eye(coarser.dim)[unions(finer, coarser)])
