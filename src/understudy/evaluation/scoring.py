"""Each family of metrics as scores: synthetic rows, the floor of real rows, independent columns.

Distances are taken between all rows, with a floor for as many rows (see ``comparison``). Tests and
neighbours depend on the number of rows in ways of their own: there one half of the real rows meets
equally many synthetic rows, rows of the other half, and rows with independent columns.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from understudy.evaluation.associations import as_matrix, association_gaps, association_matrix
from understudy.evaluation.columns import (
    column_sets,
    column_views,
    marginal_gaps,
    null_gaps,
    number_gaps,
    number_shifts,
)
from understudy.evaluation.comparison import Compared, Sides, compare, equal_parts
from understudy.evaluation.geometry import (
    bins_apart,
    copied_share,
    coverage,
    frechet_distance,
    make_geometry,
    nearest_distances,
)
from understudy.evaluation.image_features import ImageFeatures, pixels_of
from understudy.evaluation.metrics import METRICS
from understudy.evaluation.parallel import processes
from understudy.evaluation.results import Associations, ColumnView, Score
from understudy.evaluation.two_sample import kernel_test, two_sample_auc
from understudy.schema.images import ImageShape

WIDEST_SET = 4


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
