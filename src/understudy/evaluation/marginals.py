"""How far joint shares of a few columns lie apart, in total variation (half of the L1 distance)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.evaluation.tables import CodedTable

MOST_CELLS = 2**22
"""Counts over more cells than this are kept for the cells that occur."""

ColumnSet = tuple[int, ...]


def column_sets(num_columns: int, size: int, *, most_sets: int | None = None, seed: int = 0) -> list[ColumnSet]:
    """All sets of ``size`` columns, or ``most_sets`` drawn ones where there are more."""
    if most_sets is None or comb(num_columns, size) <= most_sets:
        return list(combinations(range(num_columns), size))
    rng = np.random.default_rng(seed)
    return [tuple(rng.choice(num_columns, size, replace=False).tolist()) for _ in range(most_sets)]


def marginal_gaps(left: CodedTable, right: CodedTable, *, sets: Sequence[ColumnSet]) -> Floats:
    """Total variation distance of each set of columns.

    Every bin, category, null and unlisted value is a value of its own, whether it occurs on both
    sides or on one.
    """
    radix = np.maximum(left.bins.max(axis=0), right.bins.max(axis=0)) + 1
    codes = np.ascontiguousarray(np.concatenate([left.bins, right.bins]).T)
    return np.array([_distance(codes, radix, chosen, len(left)) for chosen in sets])


def _distance(codes: Integers, radix: Integers, chosen: ColumnSet, num_left: int) -> float:
    first, *others = chosen
    joint, size = codes[first], int(radix[first])
    for position in others:
        width = int(radix[position])
        if size * width >= MOST_CELLS:  # then renumber the cells that occur
            occurring, joint = np.unique(joint, return_inverse=True)
            size = len(occurring)
        joint, size = joint * width + codes[position], size * width
    if size >= MOST_CELLS:
        occurring, joint = np.unique(joint, return_inverse=True)
        size = len(occurring)
    shares = [np.bincount(part, minlength=size) / len(part) for part in np.split(joint, [num_left])]
    return float(0.5 * np.abs(shares[0] - shares[1]).sum())


def marginal_distance(
    real: CodedTable, synthetic: CodedTable, *, size: int, most_sets: int | None = None, seed: int = 0
) -> float:
    """Mean total variation distance over marginals of ``size`` columns each.

    As the papers define it (Zhang et al. 2017; DP-HP, Section 5.2), except that every marginal has
    as many columns as it says and a binary column keeps both its values.
    """
    sets = column_sets(len(real.columns), size, most_sets=most_sets, seed=seed)
    return float(marginal_gaps(real, synthetic, sets=sets).mean())


def one_way_distances(real: CodedTable, synthetic: CodedTable) -> dict[str, float]:
    """Total variation distance of every column."""
    found = marginal_gaps(real, synthetic, sets=column_sets(len(real.columns), 1))
    return {column.name: float(each) for column, each in zip(real.columns, found, strict=True)}
