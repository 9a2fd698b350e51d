"""Each family of metrics as scores: synthetic rows beside the floor of real rows and a baseline of independent columns.

Distances between samples are above zero by chance alone, the more so the fewer rows there are. The floor of a distance
is therefore measured between two halves and between two quarters of the real rows, and carried over to as many rows as
the real and the synthetic table have: chance shrinks as a power of 1/n + 1/m, a half for well-filled cells and less for
thin ones, and the two measurements tell which. Two-sample tests and nearest neighbours depend on the number of rows in
ways of their own: there one half of the real rows meets equally many synthetic rows, rows of the other half, and rows
with independent columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from understudy.arrays import Floats
from understudy.evaluation.columns import (
    MOST_COLUMNS_PAIRED,
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
from understudy.evaluation.tables import CodedTable, Sides, column_bins
from understudy.evaluation.two_sample import copied_share, kernel_test, make_geometry, nearest_distances, two_sample_auc
from understudy.schema.images import ImageShape

Distance = Callable[[CodedTable, CodedTable], Floats]
"""One or several distances between two tables."""


class Compared(NamedTuple):
    """Distances of synthetic rows, of real rows by chance, and of independent columns."""

    value: Floats
    floor: Floats
    baseline: Floats


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


def equal_parts(sides: Sides, most_rows: int) -> tuple[CodedTable, ...]:
    """Equally many rows: of a real half, of the synthetic table, the other half and the baseline."""
    num_rows = min(len(sides.halves[0]), len(sides.synthetic), len(sides.independent), most_rows)
    rng = np.random.default_rng(sides.seed)
    tables = (sides.halves[0], sides.synthetic, sides.halves[1], sides.independent)
    return tuple(table.take(rng.choice(len(table), num_rows, replace=False)) for table in tables)


def _score(key: str, parts: Iterable[float]) -> Score:
    """Of synthetic rows, of the floor and of the baseline."""
    return Score(METRICS[key], *map(float, parts))


WIDEST_SET = 4
"""Columns of the largest marginals that are compared."""


def column_scores(sides: Sides) -> tuple[list[Score], tuple[ColumnView, ...]]:
    """Numbers and nulls, mean over the columns that have them; and every column by itself."""
    singles = partial(marginal_gaps, sets=column_sets(len(sides.real.columns), 1))
    distances, gaps, shifts, nulls = (
        compare(distance, sides) for distance in (singles, number_gaps, number_shifts, null_gaps)
    )
    named = {"kolmogorov_smirnov": gaps, "wasserstein": shifts, "null_share": nulls}
    scores = [_score(key, (each.mean() for each in found)) for key, found in named.items() if found.value.size]
    views = column_views(sides.real, sides.synthetic, distances=distances, gaps=gaps.value, shifts=shifts.value)
    return scores, views


def marginal_scores(sides: Sides) -> list[Score]:
    """Marginals of one to four columns: all single columns, a limited number of sets of the others."""
    num_columns, scores = len(sides.real.columns), []
    for size in range(1, min(WIDEST_SET, num_columns) + 1):
        most = None if size == 1 else sides.effort.sets
        sets = column_sets(num_columns, size, most_sets=most, seed=sides.seed)
        found = compare(partial(marginal_gaps, sets=sets), sides)
        scores.append(_score(f"marginal_{size}", (each.mean() for each in found)))
    return scores


def association_scores(sides: Sides) -> tuple[list[Score], Associations]:
    """Mean and largest difference, none if there is one column only; and both matrices."""
    matrix = cache(association_matrix)  # a table is compared more than once
    found = compare(partial(association_gaps, matrix=matrix), sides)
    names = tuple(column.name for column in sides.real.columns[:MOST_COLUMNS_PAIRED])
    real, synthetic = (tuple(map(tuple, matrix(side).tolist())) for side in (sides.real, sides.synthetic))
    shown = Associations(names, real, synthetic)
    if not found.value.size:
        return [], shown
    mean = _score("association_mean", (each.mean() for each in found))
    return [mean, _score("association_max", (each.max() for each in found))], shown


def two_sample_scores(sides: Sides) -> list[Score]:
    """Boosted trees, in bins and by exact values. An AUC below that of a guess counts as a guess."""
    from sklearn.utils.parallel import delayed

    real, *others = equal_parts(sides, sides.effort.test_rows)
    found = processes(sides.effort.num_jobs)(
        delayed(two_sample_auc)(real, other, binned=binned, seed=sides.seed, num_folds=sides.effort.test_folds)
        for binned in (True, False)
        for other in others
    )
    areas = [max(0.5, area) for area in found]
    return [_score("two_sample_auc_binned", areas[:3]), _score("two_sample_auc_raw", areas[3:])]


def kernel_scores(sides: Sides) -> list[Score]:
    """Kernel distance and the p-value of its test."""
    real, *others = equal_parts(sides, sides.effort.neighbour_rows)
    geometry = make_geometry(sides.real, seed=sides.seed)
    found = [kernel_test(real, other, geometry=geometry, seed=sides.seed) for other in others]
    keys = ("kernel_distance", "kernel_p_value")
    return [_score(key, parts) for key, parts in zip(keys, zip(*found, strict=True), strict=True)]


def neighbour_scores(sides: Sides) -> list[Score]:
    """Distance to the nearest real row, and rows that equal one."""
    real, *others = equal_parts(sides, sides.effort.neighbour_rows)
    geometry = make_geometry(sides.real, seed=sides.seed)
    distances = (np.median(nearest_distances(other, real, geometry=geometry)) for other in others)
    every, *all_others = equal_parts(sides, len(sides.real))
    copied = (copied_share(other, every) for other in all_others)
    return [_score("neighbour_distance", distances), _score("copied_rows", copied)]


def image_scores(sides: Sides, shape: ImageShape, features: ImageFeatures) -> list[Score]:
    """Images as a network sees them: how far, which are missing, and which are too many."""
    parts = equal_parts(sides, sides.effort.neighbour_rows)
    real, *others = (features.of(pixels_of(part.values, shape)) for part in parts)
    distances: dict[str, Callable[[Floats, Floats], float]] = {
        "frechet_distance": frechet_distance,
        "coverage": coverage,
        "bins_apart": partial(bins_apart, seed=sides.seed),
    }
    return [_score(key, (distance(real, other) for other in others)) for key, distance in distances.items()]


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
