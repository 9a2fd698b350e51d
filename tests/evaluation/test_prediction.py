from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from understudy.evaluation.models import Models, Protocol, models_for
from understudy.evaluation.prediction import (
    Exam,
    Examples,
    Outcome,
    constant_scores,
    learning_curve,
    nested_parts,
    run_exam,
)

RNG = np.random.default_rng(3)
INPUTS = RNG.standard_normal((400, 3))
NUMBER = INPUTS @ [2.0, -1.0, 0.0] + RNG.standard_normal(400)
TRAIN, TEST = slice(300), slice(300, None)


def split(target) -> tuple[Examples, Examples]:
    whole = Examples(INPUTS, target)
    return whole.take(TRAIN), whole.take(TEST)


def run(task, train, test, *, protocol=Protocol.PROBABILITIES, models=None, num_jobs=1):
    exam = Exam(task, protocol, {"rows": train}, test)
    models = models or models_for(task, protocol).only(
        ("logistic regression", "linear svc", "gaussian bayes", "xgboost", "ridge", "decision tree")
    )
    return {each.model: each for each in run_exam(exam, models, num_jobs=num_jobs)}


def test_probabilities_of_two_classes_are_scored_as_scikit_learn_does():
    train, test = split(NUMBER > 1)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.inputs, train.target)
    chances = model.predict_proba(test.inputs)[:, 1]
    found = run("binary", train, test)["logistic regression"].scores
    assert found["roc_auc"] == pytest.approx(roc_auc_score(test.target, chances), abs=1e-6)
    assert found["prc_auc"] == pytest.approx(average_precision_score(test.target, chances), abs=1e-6)


def test_the_papers_protocol_scores_hard_guesses():
    train, test = split(NUMBER > 1)
    models = Models({"logistic regression": LogisticRegression()})
    soft, hard = (
        run("binary", train, test, protocol=protocol, models=models)["logistic regression"].scores
        for protocol in Protocol
    )
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.inputs, train.target)
    guesses = model.predict(test.inputs)
    assert hard["roc_auc"] == pytest.approx(roc_auc_score(test.target, guesses), abs=1e-6)
    assert hard["roc_auc"] < soft["roc_auc"]


def test_many_classes_are_scored_by_f1_and_accuracy():
    train, test = split(np.digitize(NUMBER, [-1, 1]) + 1)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train.inputs, train.target)
    guesses = model.predict(test.inputs)
    found = run("multiclass", train, test)["logistic regression"].scores
    assert found == {
        "f1_weighted": pytest.approx(f1_score(test.target, guesses, average="weighted")),
        "f1_macro": pytest.approx(f1_score(test.target, guesses, average="macro")),
        "accuracy": pytest.approx((guesses == test.target).mean()),
    }


def test_numbers_are_scored_by_r2_and_error():
    train, test = split(NUMBER)
    found = run("regression", train, test)["ridge"].scores
    assert found["r2"] == pytest.approx(1 - found["rmse"] ** 2 / test.target.var(), abs=1e-9)
    assert found["r2"] > 0.7


def test_rows_of_one_class_score_as_a_guess_with_every_model():
    train, test = split(NUMBER > 1)
    single = Examples(train.inputs, np.zeros(len(train), dtype=bool))
    for outcome in run("binary", single, test).values():
        assert outcome.scores == {"roc_auc": 0.5, "prc_auc": test.target.mean()}
    train, test = split(np.digitize(NUMBER, [-1, 1]) + 1)
    single = Examples(train.inputs, np.full(len(train), 2))
    for outcome in run("multiclass", single, test).values():
        assert outcome.scores["accuracy"] == pytest.approx((test.target == 2).mean())


def test_a_class_that_was_never_generated_is_never_guessed_but_still_tested():
    train, test = split(np.digitize(NUMBER, [-1, 1]) + 1)
    lacking = train.take(np.flatnonzero(train.target != 2))
    found = run("multiclass", lacking, test)
    assert len(found) == 5
    for outcome in found.values():
        assert outcome.refusal is None
        assert 0.2 < outcome.scores["accuracy"] <= (test.target != 2).mean()
        assert outcome.scores["f1_macro"] <= 2 / 3


def test_a_model_that_refuses_its_rows_counts_as_a_guess():
    train, test = split(NUMBER > 1)
    broken = Examples(np.where(train.inputs > 2, np.nan, train.inputs), train.target)
    outcome = run("binary", broken, test)["logistic regression"]
    assert outcome.refusal is not None
    assert outcome.scores == constant_scores("binary", broken, test)


def test_a_constant_guess_explains_nothing():
    train, test = split(NUMBER)
    assert constant_scores("regression", train, test)["r2"] == pytest.approx(0.0, abs=0.05)
    far = Examples(train.inputs, train.target + 100)
    assert constant_scores("regression", far, test)["r2"] == -1.0


def test_two_processes_find_what_one_finds_and_progress_counts_to_the_end():
    train, test = split(NUMBER > 1)
    told = []
    models = models_for("binary", Protocol.PROBABILITIES).only(("linear svc", "decision tree"))
    exam = Exam("binary", Protocol.PROBABILITIES, {"a": train, "b": train.take(slice(50))}, test)
    alone = run_exam(exam, models, num_jobs=1)
    shared = run_exam(exam, models, num_jobs=2, progress=lambda *step: told.append(step))
    by_name = {(each.training, each.model): each.scores for each in shared}
    assert by_name == {(each.training, each.model): each.scores for each in alone}
    assert told == [("models", done, 4) for done in (1, 2, 3, 4)]


def test_real_rows_are_never_copied_into_files_for_other_processes(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    inputs = np.random.default_rng(5).standard_normal((5000, 60))  # 2.4 MB
    rows = Examples(inputs, inputs[:, 0] > 0)
    seen: list[Path] = []
    run_exam(
        Exam("binary", Protocol.PROBABILITIES, {"a": rows, "b": rows}, rows),
        models_for("binary", Protocol.PROBABILITIES).only(("gaussian bayes", "lda")),
        num_jobs=2,
        progress=lambda *_: seen.extend(path for path in tmp_path.rglob("*") if path.is_file()),
    )
    assert not seen


def test_parts_are_nested_and_neither_tiny_nor_whole():
    rows = Examples(np.arange(2000.0)[:, None], np.arange(2000))
    parts = nested_parts(rows, shares=(0.001, 0.05, 0.3, 1.0), seed=1)
    assert [len(part) for part in parts.values()] == [100, 600]
    small, large = (set(part.target.tolist()) for part in parts.values())
    assert small < large
    assert small != set(range(100))


def test_the_curve_is_the_mean_over_models_at_every_size():
    outcomes = [
        Outcome(training, model, {"accuracy": score})
        for training, model, score in (
            ("first 60", "a", 0.5),
            ("first 60", "b", 0.7),
            ("synthetic", "a", 0.8),
            ("synthetic", "b", 0.9),
            ("real", "a", 1.0),
            ("first 300", "a", 0.7),
        )
    ]
    parts = {name: Examples(INPUTS[:size], NUMBER[:size]) for name, size in (("first 60", 60), ("synthetic", 400))}
    parts["first 300"] = parts["synthetic"].take(slice(300))
    curve = learning_curve(outcomes, parts, score="accuracy")
    np.testing.assert_allclose(curve, [(60, 0.6), (400, 0.85), (300, 0.7)])
