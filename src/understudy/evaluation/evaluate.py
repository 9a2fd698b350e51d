"""One call: every score of synthetic rows against real ones, with a floor and a baseline.

It reads real rows and is outside the certificate: what it finds may not leave the house as it is.
"""

from __future__ import annotations

import time
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from understudy.arrays import StageProgress
from understudy.errors import InputError, UsageError
from understudy.evaluation.columns import MOST_COLUMNS_PAIRED
from understudy.evaluation.image_features import ImageFeatures, features_for
from understudy.evaluation.metrics import METRICS, Evaluation, Score
from understudy.evaluation.models import one_thread, parse_protocol
from understudy.evaluation.prediction import examples, score_prediction
from understudy.evaluation.scoring import (
    WIDEST_SET,
    association_scores,
    column_scores,
    image_scores,
    kernel_scores,
    marginal_scores,
    neighbour_scores,
    two_sample_scores,
)
from understudy.evaluation.tables import QUICK, THOROUGH, Effort, Sides, code_table, invalid_cells, make_sides
from understudy.schema.table import Schema

if TYPE_CHECKING:
    import pandas as pd

FEWEST_ROWS = 20
"""Floors are measured on quarters of them."""

LARGEST_SEED = 2**32 - 1
"""That scikit-learn takes."""


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
    told = progress or _tell_nobody
    with one_thread():
        sides = _read_sides(synthetic, reference, schema, effort=QUICK if quick else THOROUGH, seed=seed)
        columns, views = column_scores(sides)
        told("distances", 1, 3)
        marginals = marginal_scores(sides)
        told("distances", 2, 3)
        pairs, associations = association_scores(sides)
        told("distances", 3, 3)
        tests: list[Score] = []
        for done, family in enumerate((two_sample_scores, kernel_scores, neighbour_scores), start=1):
            tests += family(sides)
            told("tests", done, 3)
        images, notes = _image_scores(sides, schema, features)
        prediction, said = None, ["The schema names no label, so nothing was predicted."]
        if schema.label is not None:
            held_out = None if test is None else code_table(schema, test)
            prediction, said = score_prediction(
                sides, schema.label, test=held_out, protocol=chosen, image=schema.image, progress=told
            )
    predicted = () if prediction is None else prediction.scores
    invalid = _invalid_score(schema, synthetic, reference)
    return Evaluation(
        rows_real=len(reference),
        rows_synthetic=len(synthetic),
        is_quick=quick,
        seed=seed,
        scores=(*predicted, *images, *marginals, *columns, invalid, *pairs, *tests),
        columns=views,
        associations=associations,
        prediction=prediction,
        notes=(*_sampling_notes(synthetic, reference, sides), *notes, *said),
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
    return make_sides(*tables, effort=effort, seed=seed)


def _invalid_score(schema: Schema, synthetic: pd.DataFrame, reference: pd.DataFrame) -> Score:
    found, real = (
        invalid_cells(schema, frame) / (len(frame) * len(schema.in_files)) for frame in (synthetic, reference)
    )
    return Score(METRICS["invalid_cells"], found, floor=real, baseline=real)


def _image_scores(sides: Sides, schema: Schema, features: ImageFeatures | None) -> tuple[list[Score], list[str]]:
    """Scores of images, and a note on what they were compared in; nothing where there are none."""
    if schema.image is None:
        return [], []
    if features is None:
        learnt, rng = None, np.random.default_rng(sides.seed)
        if schema.label is not None and schema.label.is_choice:
            learnt = examples(sides.real, label=schema.label, most_rows=sides.effort.image_rows, rng=rng)
        features = features_for(schema.image, learnt, seed=sides.seed)
    return image_scores(sides, schema.image, features), [f"Images were compared in {features.name}."]


def _sampling_notes(synthetic: pd.DataFrame, reference: pd.DataFrame, sides: Sides) -> list[str]:
    effort, num_columns, notes = sides.effort, len(sides.real.columns), []
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
    return notes
