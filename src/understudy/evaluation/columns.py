"""Column by column: how far real and synthetic values lie apart, and what there is to draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.evaluation.comparison import Compared
from understudy.evaluation.results import ColumnView
from understudy.evaluation.tables import CodedTable, column_bins


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


def column_views(
    real: CodedTable, synthetic: CodedTable, *, distances: Compared, gaps: Floats, shifts: Floats
) -> tuple[ColumnView, ...]:
    """Every column as shares of all rows in its bins, worst first. Null shares come beside."""
    of_number = {position: i for i, position in enumerate(real.numeric)}
    views = []
    for position, column in enumerate(real.columns):
        bins = column_bins(column)
        shares = [
            np.bincount(table.bins[:, position], minlength=len(bins.labels) + 1) / len(table)
            for table in (real, synthetic)
        ]
        shown = len(bins.labels)
        if column.is_choice and not shares[0][-1] and not shares[1][-1]:
            shown -= 1  # nothing unlisted to show
        number = of_number.get(position)
        views.append(
            ColumnView(
                name=column.name,
                kind="choice" if column.is_choice else "number",
                bins=bins.labels[:shown],
                edges=bins.edges,
                real=tuple(shares[0][1 : shown + 1].tolist()),
                synthetic=tuple(shares[1][1 : shown + 1].tolist()),
                distance=float(distances.value[position]),
                floor=float(distances.floor[position]),
                null_share_real=float(shares[0][0]),
                null_share_synthetic=float(shares[1][0]),
                kolmogorov_smirnov=None if number is None else float(gaps[number]),
                wasserstein=None if number is None else float(shifts[number]),
            )
        )
    return tuple(sorted(views, key=lambda view: -view.distance))


# How far joint shares of a few columns lie apart, in total variation (half of the L1 distance).

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
