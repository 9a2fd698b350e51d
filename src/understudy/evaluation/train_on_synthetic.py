"""The prediction part of an evaluation: which rows, which models, and what they reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.arrays import StageProgress
from understudy.evaluation.metrics import METRICS, ModelScores, Prediction, Score
from understudy.evaluation.models import QUICK, Models, Protocol, Task, models_for
from understudy.evaluation.prediction import (
    SCORES,
    Exam,
    Examples,
    Outcome,
    Scores,
    constant_scores,
    examples,
    mean_scores,
    run_exam,
    task_of,
)
from understudy.evaluation.tables import CodedTable
from understudy.schema.columns import Column
from understudy.schema.images import ImageShape

# Accuracy against the number of synthetic rows that models learn from.
#
# The point past which more rows teach nothing new is what the papers call the effective size of a
# synthetic data set (DP-HP, Figure 3).

SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
QUICK_SHARES = (0.01, 0.1)
FEWEST_ROWS = 50
PREFIX = "first "


def nested_parts(synthetic: Examples, *, shares: tuple[float, ...], seed: int) -> dict[str, Examples]:
    """Smaller and smaller parts of the rows, each inside the next; the whole is left out."""
    order = np.random.default_rng(seed).permutation(len(synthetic))
    sizes = sorted({round(share * len(synthetic)) for share in shares})
    return {f"{PREFIX}{size}": synthetic.take(order[:size]) for size in sizes if FEWEST_ROWS <= size < len(synthetic)}


def learning_curve(outcomes: list[Outcome], *, score: str, whole: str, num_rows: int) -> tuple[tuple[int, float], ...]:
    """Mean score over the models at every size, the whole synthetic set last."""
    found: dict[int, list[float]] = {}
    for outcome in outcomes:
        if outcome.training == whole:
            size = num_rows
        elif outcome.training.startswith(PREFIX):
            size = int(outcome.training.removeprefix(PREFIX))
        else:
            continue
        found.setdefault(size, []).append(outcome.scores[score])
    return tuple((size, float(np.mean(scores))) for size, scores in sorted(found.items()))


REAL = "real"
SYNTHETIC = "synthetic"
TEST_SHARE = 0.2
FEWEST_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Judgement:
    """What prediction found; none, with a note that says why, where rows do not allow it."""

    prediction: Prediction | None
    scores: tuple[Score, ...]
    notes: tuple[str, ...]


def judge_prediction(
    real: CodedTable,
    synthetic: CodedTable,
    *,
    label: Column,
    test: CodedTable | None,
    protocol: Protocol,
    quick: bool,
    most_rows: int,
    image: ImageShape | None,
    seed: int,
    num_jobs: int,
    progress: StageProgress | None,
) -> Judgement:
    """Train on synthetic and on real rows, and test both on the same real rows.

    Without test rows a fifth of the real ones is split off: models never see those, but the release
    may have.
    """
    rng = np.random.default_rng(seed)
    is_held_out = test is not None
    if test is None:
        is_test = rng.random(len(real)) < TEST_SHARE
        real, test = real.take(np.flatnonzero(~is_test)), real.take(np.flatnonzero(is_test))
    sides = {
        name: examples(table, label=label, most_rows=most_rows, rng=rng)
        for name, table in ((SYNTHETIC, synthetic), (REAL, real))
    }
    tested = examples(test, label=label, most_rows=most_rows, rng=rng)
    task = task_of(label)
    reason = _reason_against(sides, tested, task, num_columns=len(real.columns))
    if reason is not None:
        return Judgement(None, (), (f"{label.name} was not predicted: {reason}.",))
    parts = nested_parts(sides[SYNTHETIC], shares=QUICK_SHARES if quick else SHARES, seed=seed)
    others = len(real.columns) - 1 - (image.num_pixels if image is not None else 0)
    models = models_for(task, protocol, seed=seed, image=None if others else image)
    models = models.only(QUICK) if quick else models
    outcomes = run_exam(Exam(task, protocol, sides | parts, tested), models, num_jobs=num_jobs, progress=progress)
    baseline = constant_scores(task, sides[REAL], tested)
    rows = _model_scores(outcomes, baseline)
    prediction = Prediction(
        label=label.name,
        task=task,
        protocol=protocol.value,
        models=rows,
        test_rows=len(tested),
        is_held_out=is_held_out,
        by_set_size=learning_curve(outcomes, score=SCORES[task][0], whole=SYNTHETIC, num_rows=len(sides[SYNTHETIC])),
    )
    return Judgement(prediction, _mean_scores(rows, baseline), _notes(label, task, models, outcomes, sides))


def _reason_against(sides: dict[str, Examples], test: Examples, task: Task, *, num_columns: int) -> str | None:
    if num_columns < 2:
        return "there is no other column to predict it from"
    for name, each in (*sides.items(), ("test", test)):
        if len(each) < FEWEST_EXAMPLES:
            return f"fewer than {FEWEST_EXAMPLES} {name} rows have a label"
    if task != "regression" and len(np.unique(test.target)) == 1:
        return "the test rows hold one class only"
    return None


def _model_scores(outcomes: list[Outcome], baseline: Scores) -> tuple[ModelScores, ...]:
    found: dict[str, dict[str, Scores]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.model, {})[outcome.training] = outcome.scores
    return tuple(
        ModelScores(name, synthetic=scores[SYNTHETIC], real=scores[REAL], baseline=baseline)
        for name, scores in found.items()
    )


def _mean_scores(rows: tuple[ModelScores, ...], baseline: Scores) -> tuple[Score, ...]:
    synthetic, real = (mean_scores([getattr(row, side) for row in rows]) for side in (SYNTHETIC, REAL))
    return tuple(Score(METRICS[key], synthetic[key], real[key], baseline[key]) for key in baseline)


def _notes(
    label: Column, task: Task, models: Models, outcomes: list[Outcome], sides: dict[str, Examples]
) -> tuple[str, ...]:
    notes = [f"Models learnt from {len(sides[SYNTHETIC]):,} synthetic and {len(sides[REAL]):,} real rows."]
    if task == "binary":
        notes.append(f"The positive class of {label.name} is {label.categories[-1]}, the schema's last.")
    if task != "regression" and len(np.unique(sides[SYNTHETIC].target)) < len(np.unique(sides[REAL].target)):
        notes.append(f"The synthetic rows lack a class of {label.name} that real ones have.")
    notes += [f"{name} is not installed and was left out of the models." for name in models.absent]
    refused = sorted({each.model for each in outcomes if each.refusal is not None})
    notes += [f"{name} refused some of its rows: it counts as a constant guess." for name in refused]
    return tuple(notes)
