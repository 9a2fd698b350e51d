"""Each family of metrics as scores: synthetic rows beside the floor of real rows and a baseline of independent columns.

Distances between samples are above zero by chance alone, the more so the fewer rows there are. The floor of a distance
is therefore measured between two halves and between two quarters of the real rows, and carried over to as many rows as
the real and the synthetic table have: chance shrinks as a power of 1/n + 1/m, a half for well-filled cells and less for
thin ones, and the two measurements tell which. Two-sample tests and nearest neighbours depend on the number of rows in
ways of their own: there one half of the real rows meets equally many synthetic rows, rows of the other half, and rows
with independent columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from understudy.arrays import Floats
from understudy.evaluation.columns import (
    as_matrix,
    association_gaps,
    association_matrix,
    column_sets,
    marginal_gaps,
    null_gaps,
    number_gaps,
    number_shifts,
)
from understudy.evaluation.image_features import ImageFeatures, bins_apart, coverage, frechet_distance, pixels_of
from understudy.evaluation.metrics import METRICS, Associations, ColumnView, Score
from understudy.evaluation.models import processes
from understudy.evaluation.tables import CodedTable, column_bins
from understudy.evaluation.two_sample import copied_share, kernel_test, make_geometry, nearest_distances, two_sample_auc
from understudy.schema.images import ImageShape

Distance = Callable[[CodedTable, CodedTable], Floats]
"""One or several distances between two tables."""


@dataclass(frozen=True, eq=False)
class Sides:
    """The tables that a score compares."""

    real: CodedTable
    synthetic: CodedTable
    independent: CodedTable
    """Real columns, each shuffled by itself."""
    halves: tuple[CodedTable, CodedTable]


@dataclass(frozen=True, eq=False)
class Compared:
    """Distances of synthetic rows, of real rows by chance, and of independent columns."""

    value: Floats
    floor: Floats
    baseline: Floats


def make_sides(real: CodedTable, synthetic: CodedTable, *, seed: int) -> Sides:
    """Split the real rows into two halves at random, and shuffle their columns for the baseline."""
    order = np.random.default_rng(seed).permutation(len(real))
    middle = len(real) // 2
    return Sides(
        real=real,
        synthetic=synthetic,
        independent=real.independent(len(synthetic), seed=seed + 1),
        halves=(real.take(order[:middle]), real.take(order[middle : 2 * middle])),
    )


def compare(distance: Distance, sides: Sides) -> Compared:
    """All rows of both tables, and a floor for as many rows."""
    quarters = [half.take(slice(len(half) // 2)) for half in sides.halves]
    half, quarter = distance(*sides.halves), distance(*quarters)
    spread = 1 / len(sides.real) + 1 / len(sides.synthetic)
    return Compared(
        value=distance(sides.real, sides.synthetic),
        floor=half * chance_ratio(half, quarter, spread * len(sides.halves[0]) / 2),
        baseline=distance(sides.real, sides.independent),
    )


def chance_ratio(half: Floats, quarter: Floats, spread: float) -> float:
    """Chance at a ``spread`` (1/n + 1/m, in units of that of the halves), relative to the halves."""
    if not half.any() or not quarter.any():
        return 1.0
    power = float(np.clip(np.log2(quarter.mean() / half.mean()), 0.0, 0.5))
    return float(spread**power)


def equal_parts(sides: Sides, *, most_rows: int, seed: int) -> tuple[CodedTable, ...]:
    """Equally many rows: of a real half, of the synthetic table, the other half and the baseline."""
    num_rows = min(len(sides.halves[0]), len(sides.synthetic), len(sides.independent), most_rows)
    rng = np.random.default_rng(seed)
    tables = (sides.halves[0], sides.synthetic, sides.halves[1], sides.independent)
    return tuple(table.take(rng.choice(len(table), num_rows, replace=False)) for table in tables)


WIDEST_SET = 4
"""Columns of the largest marginals that are compared."""


def column_scores(sides: Sides) -> tuple[list[Score], tuple[ColumnView, ...]]:
    """Numbers and nulls, mean over the columns that have them; and every column by itself."""
    singles = column_sets(len(sides.real.columns), 1)
    distances = compare(partial(marginal_gaps, sets=singles), sides)
    gaps, shifts = (compare(distance, sides) for distance in (number_gaps, number_shifts))
    scores = [
        _mean_score(key, found)
        for key, found in (
            ("kolmogorov_smirnov", gaps),
            ("wasserstein", shifts),
            ("null_share", compare(null_gaps, sides)),
        )
        if found.value.size
    ]
    views = column_views(sides.real, sides.synthetic, distances=distances, gaps=gaps.value, shifts=shifts.value)
    return scores, views


def marginal_scores(sides: Sides, *, most_sets: int, seed: int) -> list[Score]:
    """Marginals of one to four columns: all single columns, at most ``most_sets`` of the others."""
    num_columns, scores = len(sides.real.columns), []
    for size in range(1, min(WIDEST_SET, num_columns) + 1):
        most = None if size == 1 else most_sets
        sets = column_sets(num_columns, size, most_sets=most, seed=seed)
        found = compare(partial(marginal_gaps, sets=sets), sides)
        scores.append(_mean_score(f"marginal_{size}", found))
    return scores


def association_scores(sides: Sides) -> tuple[list[Score], Associations]:
    """Mean and largest difference, none if there is one column only; and both matrices."""
    matrix = cache(association_matrix)  # a table is compared more than once
    found = compare(partial(association_gaps, matrix=matrix), sides)
    names = tuple(column.name for column in sides.real.columns)
    shown = Associations(names, as_matrix(matrix(sides.real)), as_matrix(matrix(sides.synthetic)))
    if not found.value.size:
        return [], shown
    parts = (found.value, found.floor, found.baseline)
    largest = Score(METRICS["association_max"], *(float(each.max()) for each in parts))
    return [_mean_score("association_mean", found), largest], shown


def two_sample_scores(sides: Sides, *, most_rows: int, num_folds: int, seed: int, num_jobs: int = 1) -> list[Score]:
    """Boosted trees, in bins and by exact values. An AUC below that of a guess counts as a guess."""
    from sklearn.utils.parallel import delayed

    real, *others = equal_parts(sides, most_rows=most_rows, seed=seed)
    found = processes(num_jobs)(
        delayed(two_sample_auc)(real, other, binned=binned, seed=seed, num_folds=num_folds)
        for binned in (True, False)
        for other in others
    )
    kept = [max(0.5, area) for area in found]
    return [Score(METRICS["two_sample_auc_binned"], *kept[:3]), Score(METRICS["two_sample_auc_raw"], *kept[3:])]


def kernel_scores(sides: Sides, *, most_rows: int, seed: int) -> list[Score]:
    """Kernel distance and the p-value of its test."""
    real, *others = equal_parts(sides, most_rows=most_rows, seed=seed)
    geometry = make_geometry(sides.real, seed=seed)
    found = [kernel_test(real, other, geometry=geometry, seed=seed) for other in others]
    return [
        Score(METRICS[key], *(each[place] for each in found))
        for place, key in enumerate(("kernel_distance", "kernel_p_value"))
    ]


def neighbour_scores(sides: Sides, *, most_rows: int, seed: int) -> list[Score]:
    """Distance to the nearest real row, and rows that equal one."""
    real, *others = equal_parts(sides, most_rows=most_rows, seed=seed)
    geometry = make_geometry(sides.real, seed=seed)
    distances = [nearest_distances(other, real, geometry=geometry) for other in others]
    every, *all_others = equal_parts(sides, most_rows=len(sides.real), seed=seed)
    return [
        Score(METRICS["neighbour_distance"], *(float(np.median(each)) for each in distances)),
        Score(METRICS["copied_rows"], *(copied_share(other, every) for other in all_others)),
    ]


def image_scores(sides: Sides, shape: ImageShape, features: ImageFeatures, *, most_rows: int, seed: int) -> list[Score]:
    """Images as a network sees them: how far, which are missing, and which are too many."""
    parts = equal_parts(sides, most_rows=most_rows, seed=seed)
    real, *others = (features.of(pixels_of(part.values, shape)) for part in parts)
    found = {
        "frechet_distance": [frechet_distance(real, other) for other in others],
        "coverage": [coverage(real, other) for other in others],
        "bins_apart": [bins_apart(real, other, seed=seed) for other in others],
    }
    return [Score(METRICS[key], *values) for key, values in found.items()]


def _mean_score(key: str, found: Compared) -> Score:
    parts = (found.value, found.floor, found.baseline)
    return Score(METRICS[key], *(float(each.mean()) for each in parts))


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
