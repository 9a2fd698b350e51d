"""Train on synthetic, test on real (TSTR): models trained on synthetic and on real rows, tested on the same real rows.

Test rows keep their class shares. A class that was never generated is never guessed; where the
synthetic rows hold one class only, or a model refuses them, it counts as a constant guess. The
baseline is a constant guess too, not a model trained on independent columns.

The learning curve is their accuracy against the number of synthetic rows that they learn from. The point past which
more rows teach nothing new is what the papers call the effective size of a synthetic data set (DP-HP, Figure 3).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers, StageProgress
from understudy.evaluation.metrics import ModelScores, Prediction
from understudy.evaluation.models import Models, Protocol, Task, models_for, processes
from understudy.evaluation.tables import CodedTable, Sides
from understudy.schema.columns import Column
from understudy.schema.images import ImageShape


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows to learn from or to test on: numbers as they are, choices one-hot, and the label apart."""

    inputs: Floats
    """# (num_rows, num_inputs)"""
    target: npt.NDArray[Any]
    """Truth values with two classes, codes with more, numbers in a regression.  # (num_rows,)"""

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Integers | slice) -> Examples:
        """Some of the rows."""
        return Examples(self.inputs[rows], self.target[rows])


def task_of(label: Column) -> Task:
    """Numbers are regressed on; choices are told apart."""
    if not label.is_choice:
        return "regression"
    return "binary" if len(label.categories) == 2 else "multiclass"


def design(table: CodedTable, *, label: Column) -> Floats:
    """Every column but the label: a number's null is the middle, a choice's null a place of its own."""
    parts: list[Floats] = [np.empty((len(table), 0))]
    for position, column in enumerate(table.columns):
        if column.name == label.name:
            continue
        if column.is_choice:
            codes = table.bins[:, position]
            listed = np.where(codes > len(column.categories), 0, codes)
            parts.append(np.eye(len(column.categories) + 1)[listed])
        else:
            values = table.values[:, [position]]
            parts.append(np.where(np.isnan(values), sum(column.low_high) / 2, values))
    return np.concatenate(parts, axis=1)


def examples(
    table: CodedTable, *, label: Column, most_rows: int | None = None, rng: np.random.Generator | None = None
) -> Examples:
    """Rows whose label is known, or ``most_rows`` of them by a draw.

    With two classes the schema's last category is the positive one.
    """
    position = next(i for i, each in enumerate(table.columns) if each.name == label.name)
    target: npt.NDArray[Any] = table.values[:, position]
    known = ~np.isnan(target)
    if label.is_choice:
        codes = table.bins[:, position]
        known = (codes > 0) & (codes <= len(label.categories))
        target = codes == 2 if len(label.categories) == 2 else codes
    rows = np.flatnonzero(known)
    if most_rows is not None and len(rows) > most_rows:
        rows = (rng or np.random.default_rng(0)).permutation(rows)[:most_rows]
    return Examples(design(table.take(rows), label=label), target[rows])


def standardise(train: Examples, test: Examples) -> tuple[Examples, Examples]:
    """Both, scaled by the mean and deviation of the rows to learn from."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train.inputs)
    first, second = (Examples(scaler.transform(side.inputs), side.target) for side in (train, test))
    return first, second


Scores = dict[str, float]

LOWEST_R2 = -1.0
"""A useless model may have any R2 below 0, of which a mean over models would show little else."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The scores of one model on one set of rows, and why it refused them if it did."""

    training: str
    model: str
    scores: Scores
    refusal: str | None = None


@dataclass(frozen=True, eq=False)
class Exam:
    """Rows to learn from, by name, and the test rows that all models are scored on."""

    task: Task
    protocol: Protocol
    training: dict[str, Examples]
    test: Examples


def run_exam(exam: Exam, models: Models, *, num_jobs: int = 1, progress: StageProgress | None = None) -> list[Outcome]:
    """Fit every model to every training set, on several processes if asked to."""
    from sklearn.utils.parallel import delayed

    total = len(exam.training) * len(models.by_name)
    outcomes = []
    jobs = (delayed(_attempt)(*job) for job in _jobs(exam, models))
    for outcome in processes(num_jobs, return_as="generator_unordered")(jobs):
        outcomes.append(outcome)
        if progress is not None:
            progress("models", len(outcomes), total)
    places = {name: i for i, name in enumerate(models.by_name)}
    return sorted(outcomes, key=lambda each: places[each.model])


def constant_scores(task: Task, train: Examples, test: Examples) -> Scores:
    """What guessing without looking reaches: the largest class, or the mean."""
    if task == "binary":
        return {"roc_auc": 0.5, "prc_auc": float(test.target.mean())}
    if task == "multiclass":
        classes, counts = np.unique(train.target, return_counts=True)
        guesses = np.repeat(classes[counts.argmax()], len(test))
    else:
        guesses = np.repeat(train.target.mean(), len(test))
    return _score_guesses(task, test.target, guesses)


def _jobs(exam: Exam, models: Models) -> Iterator[tuple[Any, ...]]:
    """The largest sets first, as the slowest models are."""
    sizes = sorted(exam.training, key=lambda name: -len(exam.training[name]))
    scaled = {name: standardise(exam.training[name], exam.test) for name in sizes}
    largest = [name for name in sizes if 2 * len(exam.training[name]) > len(exam.training[sizes[0]])]
    for group in (largest, [name for name in sizes if name not in largest]):
        for model_name, model in models.by_name.items():
            for name in group:
                yield exam.task, exam.protocol, name, model_name, model, *scaled[name]


def _attempt(
    task: Task, protocol: Protocol, training: str, name: str, model: Any, train: Examples, test: Examples
) -> Outcome:
    if task != "regression" and len(np.unique(train.target)) == 1:
        return Outcome(training, name, constant_scores(task, train, test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the default number of epochs, converged or not
        try:
            return Outcome(training, name, _fit_and_score(task, protocol, model, train, test))
        except ValueError as error:
            return Outcome(training, name, constant_scores(task, train, test), str(error))


def _fit_and_score(task: Task, protocol: Protocol, model: Any, train: Examples, test: Examples) -> Scores:
    from sklearn.base import clone

    model = clone(model)
    if task == "multiclass":
        classes, codes = np.unique(train.target, return_inverse=True)  # xgboost takes 0, 1, ...
        return _score_guesses(task, test.target, classes[model.fit(train.inputs, codes).predict(test.inputs)])
    model.fit(train.inputs, train.target)
    if task == "regression" or protocol is Protocol.PAPERS:
        guesses = model.predict(test.inputs).astype(np.float64)
    elif hasattr(model, "predict_proba"):
        guesses = model.predict_proba(test.inputs)[:, 1]
    else:
        guesses = model.decision_function(test.inputs)
    return _score_guesses(task, test.target, guesses)


def _score_guesses(task: Task, truth: npt.NDArray[Any], guesses: npt.NDArray[Any]) -> Scores:
    """Every score of a task; the first is the one that a learning curve shows."""
    from sklearn import metrics

    found: Scores
    if task == "binary":
        found = {
            "roc_auc": metrics.roc_auc_score(truth, guesses),
            "prc_auc": metrics.average_precision_score(truth, guesses),
        }
    elif task == "multiclass":
        found = {
            "f1_weighted": metrics.f1_score(truth, guesses, average="weighted", zero_division=0),
            "f1_macro": metrics.f1_score(truth, guesses, average="macro", zero_division=0),
            "accuracy": metrics.accuracy_score(truth, guesses),
        }
    else:
        found = {
            "r2": max(LOWEST_R2, metrics.r2_score(truth, guesses)),
            "rmse": metrics.root_mean_squared_error(truth, guesses),
        }
    return {key: float(score) for key, score in found.items()}


FEWEST_CURVE_ROWS = 50  # a smaller part of the rows says nothing of a learning curve
TEST_SHARE = 0.2
"""Of the reference, if no held-out rows are given."""

FEWEST_EXAMPLES = 10  # labelled rows that a model is trained or tested on
REAL = "real"
SYNTHETIC = "synthetic"


def nested_parts(synthetic: Examples, *, shares: tuple[float, ...], seed: int) -> dict[str, Examples]:
    """Smaller and smaller parts of the rows, each inside the next; the whole is left out."""
    order = np.random.default_rng(seed).permutation(len(synthetic))
    sizes = sorted({round(share * len(synthetic)) for share in shares})
    return {
        f"first {size}": synthetic.take(order[:size]) for size in sizes if FEWEST_CURVE_ROWS <= size < len(synthetic)
    }


def learning_curve(outcomes: list[Outcome], parts: dict[str, Examples], *, score: str) -> tuple[tuple[int, float], ...]:
    """Mean score over the models for every part of the synthetic rows."""
    found: dict[str, list[float]] = {name: [] for name in parts}
    for outcome in outcomes:
        if outcome.training in parts:
            found[outcome.training].append(outcome.scores[score])
    return tuple((len(parts[name]), float(np.mean(scores))) for name, scores in found.items())


def score_prediction(
    sides: Sides,
    label: Column,
    *,
    test: CodedTable | None,
    protocol: Protocol,
    image: ImageShape | None,
    progress: StageProgress,
) -> tuple[Prediction | None, list[str]]:
    """Train on synthetic and on real rows, and test both on the same real rows; with notes on how that was done.

    Without test rows a fifth of the real ones is split off: models never see those, but the release
    may have. Where rows do not allow a prediction there is none, and a note that says why.
    """
    effort, real, is_held_out = sides.effort, sides.real, test is not None
    rng = np.random.default_rng(sides.seed)
    if test is None:
        is_test = rng.random(len(real)) < TEST_SHARE
        real, test = real.take(np.flatnonzero(~is_test)), real.take(np.flatnonzero(is_test))
    most_rows = effort.training_rows if image is None else effort.image_rows
    whole, trained_on, tested = (
        examples(table, label=label, most_rows=most_rows, rng=rng) for table in (sides.synthetic, real, test)
    )
    task = task_of(label)
    reason = _reason_against({SYNTHETIC: whole, REAL: trained_on, "test": tested}, task, num_columns=len(real.columns))
    if reason is not None:
        return None, [f"{label.name} was not predicted: {reason}."]
    parts = nested_parts(whole, shares=effort.curve_shares, seed=sides.seed) | {SYNTHETIC: whole}
    others = len(real.columns) - 1 - (image.num_pixels if image is not None else 0)
    models = models_for(task, protocol, seed=sides.seed, image=None if others else image)
    models = models if effort.models is None else models.only(effort.models)
    exam = Exam(task, protocol, {REAL: trained_on} | parts, tested)
    outcomes = run_exam(exam, models, num_jobs=effort.num_jobs, progress=progress)
    by_model: dict[str, dict[str, Scores]] = {}
    for outcome in outcomes:
        by_model.setdefault(outcome.model, {})[outcome.training] = outcome.scores
    baseline = constant_scores(task, trained_on, tested)
    prediction = Prediction(
        label=label.name,
        task=task,
        protocol=protocol.value,
        models=tuple(ModelScores(name, each[SYNTHETIC], each[REAL], baseline) for name, each in by_model.items()),
        test_rows=len(tested),
        is_held_out=is_held_out,
        by_set_size=learning_curve(outcomes, parts, score=next(iter(baseline))),
    )
    notes = [f"Models learnt from {len(whole):,} synthetic and {len(trained_on):,} real rows."]
    if task == "binary":
        notes.append(f"The positive class of {label.name} is {label.categories[-1]}, the schema's last.")
    if task != "regression" and len(np.unique(whole.target)) < len(np.unique(trained_on.target)):
        notes.append(f"The synthetic rows lack a class of {label.name} that real ones have.")
    notes += [f"{name} is not installed and was left out of the models." for name in models.absent]
    refused = sorted({each.model for each in outcomes if each.refusal is not None})
    notes += [f"{name} refused some of its rows: it counts as a constant guess." for name in refused]
    return prediction, notes


def _reason_against(rows: dict[str, Examples], task: Task, *, num_columns: int) -> str | None:
    if num_columns < 2:
        return "there is no other column to predict it from"
    for name, each in rows.items():
        if len(each) < FEWEST_EXAMPLES:
            return f"fewer than {FEWEST_EXAMPLES} {name} rows have a label"
    if task != "regression" and len(np.unique(rows["test"].target)) == 1:
        return "the test rows hold one class only"
    return None
