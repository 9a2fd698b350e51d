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

from understudy.arrays import StageProgress
from understudy.evaluation.inputs import Examples, standardise
from understudy.evaluation.models import Models, Protocol, Task
from understudy.evaluation.threads import processes

Scores = dict[str, float]

SCORES: dict[Task, tuple[str, ...]] = {
    "binary": ("roc_auc", "prc_auc"),
    "multiclass": ("f1_weighted", "f1_macro", "accuracy"),
    "regression": ("r2", "rmse"),
}
LOWEST_R2 = -1.0


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
