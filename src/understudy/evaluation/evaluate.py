"""One call: every score of synthetic rows against real ones, with a floor and a baseline.

It reads real rows and is outside the certificate: what it finds may not leave the house as it is.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from understudy.arrays import StageProgress
from understudy.errors import InputError, UsageError
from understudy.evaluation.image_features import ImageFeatures, features_for
from understudy.evaluation.metrics import METRICS, Evaluation, Score
from understudy.evaluation.models import Protocol, one_thread, parse_protocol
from understudy.evaluation.prediction import examples
from understudy.evaluation.scoring import (
    WIDEST_SET,
    Sides,
    association_scores,
    column_scores,
    image_scores,
    kernel_scores,
    make_sides,
    marginal_scores,
    neighbour_scores,
    two_sample_scores,
)
from understudy.evaluation.tables import CodedTable, code_table, invalid_cells
from understudy.evaluation.train_on_synthetic import PredictionScores, score_prediction
from understudy.schema.table import Schema

if TYPE_CHECKING:
    import pandas as pd

FEWEST_ROWS = 20
"""Floors are measured on quarters of them."""

MOST_COLUMNS_PAIRED = 64
"""Of 2,016 pairs; images have a column for every pixel."""

LARGEST_SEED = 2**32 - 1
"""That scikit-learn takes."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rows and sets of columns are looked at."""

    rows: int
    sets: int
    test_rows: int
    """On each side of a two-sample test. Boosted trees stop early from 10,000 rows in all."""
    test_folds: int
    neighbour_rows: int
    training_rows: int
    image_rows: int
    """That models learn from where each is an image."""
    num_jobs: int


FULL = Effort(
    rows=200_000,
    sets=1500,
    test_rows=10_000,
    test_folds=5,
    neighbour_rows=5000,
    training_rows=50_000,
    image_rows=10_000,
    num_jobs=os.cpu_count() or 1,
)
QUICK = Effort(
    rows=50_000,
    sets=150,
    test_rows=10_100,
    test_folds=2,
    neighbour_rows=2000,
    training_rows=10_000,
    image_rows=3000,
    num_jobs=1,
)


def evaluate(
    synthetic: pd.DataFrame,
    reference: pd.DataFrame,
    schema: Schema,
    *,
    test: pd.DataFrame | None = None,
    quick: bool = False,
    seed: int = 0,
    protocol: str = "probabilities",
    features: ImageFeatures | None = None,
    progress: StageProgress | None = None,
) -> Evaluation:
    """Score synthetic rows against the real ones that they stand in for.

    Args:
        synthetic: the rows to score.
        reference: the real rows that the release was made from.
        schema: which columns to read, their bounds and categories.
        test: real rows that the release never saw, to test predictions on. Without them a fifth of
            the reference is split off, by ``seed``, and kept from the models trained on real rows.
        quick: a few fast models, fewer rows and sets of columns.
        seed: of all sampling; the same seed gives the same scores.
        protocol: ``probabilities``, or ``papers`` for hard guesses and the papers' settings.
        features: of images, what they are compared in; by default those of a small network that learns
            the classes of the reference.
        progress: is told the stage, how many of its steps are done, and how many it has.

    Raises:
        InputError: a table lacks a column or has too few rows, or a column holds the wrong type.
        UsageError: the seed or the protocol is not one of those allowed.
    """
    started, chosen = time.perf_counter(), parse_protocol(protocol)
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError("seed", f"must lie between 0 and {LARGEST_SEED}", "Choose a smaller one")
    effort, told = QUICK if quick else FULL, progress or _tell_nobody
    with one_thread():
        sides = _read_sides(synthetic, reference, schema, effort=effort, seed=seed)
        columns, views = column_scores(sides)
        columns.append(_invalid_score(schema, synthetic, reference))
        told("distances", 1, 3)
        marginals = marginal_scores(sides, most_sets=effort.sets, seed=seed)
        told("distances", 2, 3)
        pairs, associations = association_scores(_first_columns(sides, MOST_COLUMNS_PAIRED))
        told("distances", 3, 3)
        tests = _test_scores(sides, effort=effort, seed=seed, progress=told)
        seen, seen_in = _image_scores(sides, schema, features, effort=effort, seed=seed)
        predicted = _prediction_scores(sides, schema, test, chosen, effort=effort, seed=seed, progress=told)
    return Evaluation(
        rows_real=len(reference),
        rows_synthetic=len(synthetic),
        is_quick=quick,
        seed=seed,
        scores=(*predicted.scores, *seen, *marginals, *columns, *pairs, *tests),
        columns=views,
        associations=associations,
        prediction=predicted.prediction,
        notes=(*_sampling_notes(synthetic, reference, sides, effort=effort), *seen_in, *predicted.notes),
        seconds=time.perf_counter() - started,
    )


def _tell_nobody(stage: str, done: int, total: int) -> None:
    """Progress without an audience."""


def _read_sides(
    synthetic: pd.DataFrame, reference: pd.DataFrame, schema: Schema, *, effort: Effort, seed: int
) -> Sides:
    rng = np.random.default_rng(seed)
    tables = []
    for name, frame in (("reference", reference), ("synthetic", synthetic)):
        if len(frame) < FEWEST_ROWS:
            raise InputError(f"{name} table", f"needs at least {FEWEST_ROWS} rows to be judged", "Add rows")
        if len(frame) > effort.rows:
            frame = frame.iloc[np.sort(rng.choice(len(frame), effort.rows, replace=False))]
        tables.append(code_table(schema, frame))
    return make_sides(*tables, seed=seed)


def _first_columns(sides: Sides, most: int) -> Sides:
    def cut(table: CodedTable) -> CodedTable:
        return CodedTable(table.columns[:most], table.bins[:, :most], table.values[:, :most])

    first, second = sides.halves
    return Sides(cut(sides.real), cut(sides.synthetic), cut(sides.independent), (cut(first), cut(second)))


def _invalid_score(schema: Schema, synthetic: pd.DataFrame, reference: pd.DataFrame) -> Score:
    found, real = (invalid_cells(schema, frame) / (len(frame) * len(schema.used)) for frame in (synthetic, reference))
    return Score(METRICS["invalid_cells"], found, floor=real, baseline=real)


def _test_scores(sides: Sides, *, effort: Effort, seed: int, progress: StageProgress) -> list[Score]:
    scores = two_sample_scores(
        sides, most_rows=effort.test_rows, num_folds=effort.test_folds, seed=seed, num_jobs=effort.num_jobs
    )
    progress("tests", 1, 3)
    scores += kernel_scores(sides, most_rows=effort.neighbour_rows, seed=seed)
    progress("tests", 2, 3)
    scores += neighbour_scores(sides, most_rows=effort.neighbour_rows, seed=seed)
    progress("tests", 3, 3)
    return scores


def _image_scores(
    sides: Sides, schema: Schema, features: ImageFeatures | None, *, effort: Effort, seed: int
) -> tuple[list[Score], tuple[str, ...]]:
    """Scores of images, and a note on what they were compared in; nothing where there are none."""
    if schema.image is None:
        return [], ()
    if features is None:
        label = schema.label if schema.label is not None and schema.label.is_choice else None
        learnt = None
        if label is not None:
            rng = np.random.default_rng(seed)
            learnt = examples(sides.real, label=label, most_rows=effort.image_rows, rng=rng)
        features = features_for(schema.image, learnt, seed=seed)
    found = image_scores(sides, schema.image, features, most_rows=effort.neighbour_rows, seed=seed)
    return found, (f"Images were compared in {features.name}.",)


def _prediction_scores(
    sides: Sides,
    schema: Schema,
    test: pd.DataFrame | None,
    protocol: Protocol,
    *,
    effort: Effort,
    seed: int,
    progress: StageProgress,
) -> PredictionScores:
    if schema.label is None:
        return PredictionScores(None, (), ("The schema names no label, so nothing was predicted.",))
    return score_prediction(
        sides.real,
        sides.synthetic,
        label=schema.label,
        test=None if test is None else code_table(schema, test),
        protocol=protocol,
        quick=effort is QUICK,
        most_rows=effort.training_rows if schema.image is None else effort.image_rows,
        image=schema.image,
        seed=seed,
        num_jobs=effort.num_jobs,
        progress=progress,
    )


def _sampling_notes(
    synthetic: pd.DataFrame, reference: pd.DataFrame, sides: Sides, *, effort: Effort
) -> tuple[str, ...]:
    num_columns, notes = len(sides.real.columns), []
    for name, frame in (("real", reference), ("synthetic", synthetic)):
        if len(frame) > effort.rows:
            notes.append(f"{effort.rows:,} of the {name} rows were drawn and looked at.")
    for size in range(2, min(WIDEST_SET, num_columns) + 1):
        if comb(num_columns, size) > effort.sets:
            notes.append(f"Of {comb(num_columns, size):,} sets of {size} columns, {effort.sets:,} were drawn.")
    if num_columns > MOST_COLUMNS_PAIRED:
        notes.append(f"Associations are those of the first {MOST_COLUMNS_PAIRED} columns.")
    half = min(len(sides.halves[0]), len(sides.synthetic))
    notes.append(
        f"Boosted trees told {min(half, effort.test_rows):,} rows from as many, the kernel test and the "
        f"nearest neighbours {min(half, effort.neighbour_rows):,}."
    )
    return tuple(notes)
