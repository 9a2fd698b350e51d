"""Distances between the columns of two tables: Kolmogorov-Smirnov, Wasserstein, total variation, associations.

The association of two columns lies between 0 and 1, whatever they hold. Two choices: Cramer's V, corrected
for bias (Bergsma 2013). A choice and a number: the correlation ratio. Two numbers: Spearman's rank correlation without
its sign. A choice's null is a value of its own; rows in which a number is null are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.evaluation.tables import CodedTable


def kolmogorov_smirnov(left: Floats, right: Floats) -> float:
    """Largest gap between two cumulative distributions; nulls are left out.

    Where one side holds nothing but nulls the gap is 1, where both do it is 0.
    """
    left, right = (np.sort(side[~np.isnan(side)]) for side in (left, right))
    if not len(left) or not len(right):
        return float(len(left) != len(right))
    places = np.concatenate([left, right])
    shares = [np.searchsorted(side, places, side="right") / len(side) for side in (left, right)]
    return float(np.abs(shares[0] - shares[1]).max())


def wasserstein(left: Floats, right: Floats, *, width: float) -> float:
    """Mean distance that values have to be moved, as a share of ``width``; nulls are left out."""
    from scipy.stats import wasserstein_distance

    left, right = (side[~np.isnan(side)] for side in (left, right))
    if not len(left) or not len(right):
        return float(len(left) != len(right))
    return float(wasserstein_distance(left, right)) / (width or 1.0)


def number_gaps(left: CodedTable, right: CodedTable) -> Floats:
    """Kolmogorov-Smirnov distance of every number."""
    pairs = zip(left.values.T[left.numeric], right.values.T[left.numeric], strict=True)
    return np.array([kolmogorov_smirnov(*pair) for pair in pairs])


def number_shifts(left: CodedTable, right: CodedTable) -> Floats:
    """Wasserstein distance of every number, as a share of its public range."""
    found = []
    for position in left.numeric:
        low, high = left.columns[position].low_high
        sides = (np.clip(table.values[:, position], low, high) for table in (left, right))
        found.append(wasserstein(*sides, width=high - low))
    return np.array(found)


def null_gaps(left: CodedTable, right: CodedTable) -> Floats:
    """Difference between the shares of nulls, for every column that may hold them."""
    shares = [(table.bins == 0).mean(axis=0) for table in (left, right)]
    return np.asarray(np.abs(shares[0] - shares[1])[[each.nullable for each in left.columns]])


MOST_JOINT_CELLS = 2**22
"""Joint counts over more cells than this (32 MiB) are kept for the cells that occur alone."""

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
        if size * width >= MOST_JOINT_CELLS:  # then renumber the cells that occur
            occurring, joint = np.unique(joint, return_inverse=True)
            size = len(occurring)
        joint, size = joint * width + codes[position], size * width
    if size >= MOST_JOINT_CELLS:
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


MOST_COLUMNS_PAIRED = 64
"""Of 2,016 pairs; images have a column for every pixel."""


def association_matrix(table: CodedTable) -> Floats:
    """Symmetric, with ones on the diagonal; of the first columns, if there are many.  # (num_columns, num_columns)"""
    size = min(len(table.columns), MOST_COLUMNS_PAIRED)
    found, ranks = np.eye(size), _complete_ranks(table, [place for place in table.numeric if place < size])
    for i in range(size):
        for j in range(i):
            if i in ranks and j in ranks:
                found[i, j] = _cosine(ranks[i], ranks[j])
            else:
                found[i, j] = _association(table, i, j)
            found[j, i] = found[i, j]
    return found


def association_gaps(
    left: CodedTable, right: CodedTable, *, matrix: Callable[[CodedTable], Floats] = association_matrix
) -> Floats:
    """Absolute differences of both matrices, every pair of columns once."""
    found = np.abs(matrix(left) - matrix(right))
    return np.asarray(found[np.tril_indices(len(found), k=-1)])


def _association(table: CodedTable, first: int, second: int) -> float:
    is_choice = [table.columns[position].is_choice for position in (first, second)]
    if all(is_choice):
        return cramers_v(table.bins[:, first], table.bins[:, second])
    if any(is_choice):
        choice, number = (first, second) if is_choice[0] else (second, first)
        return correlation_ratio(table.bins[:, choice], table.values[:, number])
    return rank_correlation(table.values[:, first], table.values[:, second])


def cramers_v(first: Integers, second: Integers) -> float:
    """Bias-corrected Cramer's V of two columns of codes; 0 if one of them is constant."""
    width = int(second.max()) + 1
    counts = np.bincount(first * width + second, minlength=(int(first.max()) + 1) * width)
    table = counts.reshape(-1, width).astype(np.float64)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    total, (rows, columns) = table.sum(), table.shape
    if rows < 2 or columns < 2 or total < 2:
        return 0.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / total
    phi_squared = (((table - expected) ** 2) / expected).sum() / total
    phi_squared = max(0.0, phi_squared - (rows - 1) * (columns - 1) / (total - 1))
    sizes = [side - (side - 1) ** 2 / (total - 1) for side in (rows, columns)]
    smaller = min(sizes) - 1
    return float(min(1.0, np.sqrt(phi_squared / smaller))) if smaller > 0 else 0.0


def correlation_ratio(groups: Integers, values: Floats) -> float:
    """Root of the share of a number's variance that lies between groups; 0 if it is constant."""
    known = ~np.isnan(values)
    groups, values = groups[known], values[known]
    if len(values) < 2:
        return 0.0
    values = values - values.mean()
    total = (values**2).sum()
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=values)[counts > 0]
    between = (sums**2 / counts[counts > 0]).sum()
    return float(min(1.0, np.sqrt(between / total))) if total > 0 else 0.0


def rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's correlation without its sign; 0 if one of the numbers is constant."""
    known = ~np.isnan(first) & ~np.isnan(second)
    if known.sum() < 2:
        return 0.0
    return _cosine(_centred_ranks(first[known]), _centred_ranks(second[known]))


def _complete_ranks(table: CodedTable, positions: Sequence[int]) -> dict[int, Floats]:
    """Ranks of the numbers without nulls, which all their pairs share."""
    return {
        position: _centred_ranks(table.values[:, position])
        for position in positions
        if not np.isnan(table.values[:, position]).any()
    }


def _centred_ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = rankdata(values)
    return ranks - (len(ranks) + 1) / 2


def _cosine(first: Floats, second: Floats) -> float:
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return min(1.0, abs(float(first @ second)) / scale) if scale > 0 else 0.0
