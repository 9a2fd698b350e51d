"""One call: every score of synthetic rows against real ones, with a floor and a baseline.

It reads real rows and is outside the certificate: what it finds may not leave the house as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from understudy.errors import InputError
from understudy.evaluation.associations import as_matrix, association_gaps, association_matrix
from understudy.evaluation.columns import column_views, number_gaps, number_shifts
from understudy.evaluation.comparison import Compared, Sides, compare, make_sides
from understudy.evaluation.marginals import column_sets, marginal_gaps
from understudy.evaluation.metrics import METRICS
from understudy.evaluation.results import Associations, ColumnView, Evaluation, Score
from understudy.evaluation.tables import code_table
from understudy.schema.table import Schema

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]
"""A stage's name, how many of its steps are done, and how many it has."""

FEWEST_ROWS = 20


def evaluate(
    synthetic: pd.DataFrame,
    reference: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None = None,
    quick: bool = False,
    seed: int = 0,
    protocol: str = "probabilities",
    progress: Progress | None = None,
) -> Evaluation:
    """Score synthetic rows against real ones."""
    started = time.perf_counter()
    for name, frame in (("synthetic", synthetic), ("reference", reference)):
        if len(frame) < FEWEST_ROWS:
            raise InputError(f"{name} table", f"needs at least {FEWEST_ROWS} rows")
    sides = make_sides(code_table(schema, reference), code_table(schema, synthetic), seed=seed)
    scores: list[Score] = []
    notes: list[str] = []
    views = _column_scores(sides, scores)
    scores += _marginal_scores(sides, most_sets=60 if quick else None, seed=seed)
    scores += _association_scores(sides)
    return Evaluation(
        rows_real=len(reference),
        rows_synthetic=len(synthetic),
        is_quick=quick,
        seed=seed,
        scores=tuple(scores),
        columns=views,
        associations=Associations(
            tuple(column.name for column in schema.used),
            as_matrix(association_matrix(sides.real)),
            as_matrix(association_matrix(sides.synthetic)),
        ),
        prediction=None,
        notes=tuple(notes),
        seconds=time.perf_counter() - started,
    )


def _score(key: str, found: Compared) -> Score:
    parts = (found.value, found.floor, found.baseline)
    return Score(METRICS[key], *(float(each.mean()) for each in parts))


def _column_scores(sides: Sides, scores: list[Score]) -> tuple[ColumnView, ...]:
    singles = column_sets(len(sides.real.columns), 1)
    distances = compare(partial(marginal_gaps, sets=singles), sides)
    gaps, shifts = compare(number_gaps, sides), compare(number_shifts, sides)
    if sides.real.numeric:
        scores += [_score("kolmogorov_smirnov", gaps), _score("wasserstein", shifts)]
    return column_views(
        sides.real, sides.synthetic, distances=distances, gaps=gaps.value, shifts=shifts.value
    )


def _marginal_scores(sides: Sides, *, most_sets: int | None, seed: int) -> list[Score]:
    num_columns, scores = len(sides.real.columns), []
    for size in range(1, min(4, num_columns) + 1):
        sets = column_sets(num_columns, size, most_sets=most_sets, seed=seed)
        found = compare(partial(marginal_gaps, sets=sets), sides)
        scores.append(_score(f"marginal_{size}", found))
    return scores


def _association_scores(sides: Sides) -> list[Score]:
    found = compare(association_gaps, sides)
    parts = (found.value, found.floor, found.baseline)
    largest = Score(METRICS["association_max"], *(float(each.max()) for each in parts))
    return [_score("association_mean", found), largest]
