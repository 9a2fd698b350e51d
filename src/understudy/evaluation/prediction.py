"""Train on synthetic rows, test on real ones: the same models beside, trained on real rows.

Test rows keep their class shares. A class that was never generated is never guessed; where the
synthetic rows hold one class only, or a model refuses them, it counts as a constant guess. The
baseline is a constant guess too, not a model trained on independent columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers, StageProgress
from understudy.evaluation.models import Models, Protocol, Task, processes
from understudy.evaluation.tables import CodedTable
from understudy.schema.columns import Column


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

SCORES: dict[Task, tuple[str, ...]] = {
    "binary": ("roc_auc", "prc_auc"),
    "multiclass": ("f1_weighted", "f1_macro", "accuracy"),
    "regression": ("r2", "rmse"),
}
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
    if task == "regression":
        return _score_guesses(task, test.target, model.fit(train.inputs, train.target).predict(test.inputs))
    if task == "multiclass":
        classes, codes = np.unique(train.target, return_inverse=True)  # xgboost takes 0, 1, ...
        guesses = classes[model.fit(train.inputs, codes).predict(test.inputs)]
        return _score_guesses(task, test.target, guesses)
    model.fit(train.inputs, train.target)
    if protocol is Protocol.PAPERS:
        ranking = model.predict(test.inputs).astype(np.float64)
    elif hasattr(model, "predict_proba"):
        ranking = model.predict_proba(test.inputs)[:, 1]
    else:
        ranking = model.decision_function(test.inputs)
    return _score_guesses(task, test.target, ranking)


def _score_guesses(task: Task, truth: npt.NDArray[Any], guesses: npt.NDArray[Any]) -> Scores:
    from sklearn import metrics

    found: tuple[float, ...]
    if task == "binary":
        found = (metrics.roc_auc_score(truth, guesses), metrics.average_precision_score(truth, guesses))
    elif task == "multiclass":
        found = (
            metrics.f1_score(truth, guesses, average="weighted", zero_division=0),
            metrics.f1_score(truth, guesses, average="macro", zero_division=0),
            metrics.accuracy_score(truth, guesses),
        )
    else:
        found = (max(LOWEST_R2, metrics.r2_score(truth, guesses)), metrics.root_mean_squared_error(truth, guesses))
    return {key: float(score) for key, score in zip(SCORES[task], found, strict=True)}


def mean_scores(outcomes: Sequence[Scores]) -> Scores:
    """Every score's mean over the models."""
    return {key: float(np.mean([each[key] for each in outcomes])) for key in outcomes[0]}
