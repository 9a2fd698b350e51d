"""How strongly two columns depend on each other, from 0 to 1, whatever they hold.

Two choices: Cramer's V, corrected for bias (Bergsma 2013). A choice and a number: the correlation
ratio. Two numbers: Spearman's rank correlation without its sign. A choice's null is a value of its
own; rows in which a number is null are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.evaluation.results import Matrix
from understudy.evaluation.tables import CodedTable


def association_matrix(table: CodedTable) -> Floats:
    """Symmetric, with ones on the diagonal.  # (num_columns, num_columns)"""
    size = len(table.columns)
    found, ranks = np.eye(size), _complete_ranks(table)
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
    below = np.tril_indices(len(left.columns), k=-1)
    return np.asarray(np.abs(matrix(left) - matrix(right))[below])


def as_matrix(values: Floats) -> Matrix:
    """Nested tuples, as results hold them."""
    return tuple(tuple(row) for row in values.tolist())


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


def _complete_ranks(table: CodedTable) -> dict[int, Floats]:
    """Ranks of the numbers without nulls, which all their pairs share."""
    return {
        position: _centred_ranks(table.values[:, position])
        for position in table.numeric
        if not np.isnan(table.values[:, position]).any()
    }


def _centred_ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = rankdata(values)
    return ranks - (len(ranks) + 1) / 2


def _cosine(first: Floats, second: Floats) -> float:
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return min(1.0, abs(float(first @ second)) / scale) if scale > 0 else 0.0
