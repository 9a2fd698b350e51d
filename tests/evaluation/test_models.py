from __future__ import annotations

import sys

import pytest

from understudy.errors import UsageError
from understudy.evaluation.models import FAST_MODELS, Protocol, models_for, parse_protocol
from understudy.schema.images import ImageShape

TWELVE = {
    "logistic regression",
    "gaussian bayes",
    "bernoulli bayes",
    "linear svc",
    "decision tree",
    "lda",
    "adaboost",
    "bagging",
    "random forest",
    "gradient boosting",
    "mlp",
    "xgboost",
}
# Table 10 of the DP-HP paper, where current libraries have the setting.
TABLE_10 = {
    "logistic regression": {"max_iter": 5000},
    "bernoulli bayes": {"binarize": 0.5},
    "linear svc": {"max_iter": 10_000, "tol": 1e-8, "loss": "hinge"},
    "decision tree": {"class_weight": "balanced"},
    "lda": {"solver": "eigen", "tol": 1e-8, "shrinkage": 0.5},
    "adaboost": {"n_estimators": 1000, "learning_rate": 0.7},
    "bagging": {"max_samples": 0.1, "n_estimators": 20},
    "random forest": {"n_estimators": 100, "class_weight": "balanced"},
    "gradient boosting": {"subsample": 0.1, "n_estimators": 50},
    "xgboost": {"colsample_bytree": 0.1, "n_estimators": 50},
}


@pytest.mark.parametrize("protocol", Protocol)
def test_there_are_the_papers_twelve_classifiers(protocol):
    assert set(models_for("binary", protocol).by_name) == TWELVE


def test_images_have_a_network_too_where_there_is_torch(monkeypatch):
    shape = ImageShape(4, 6, 3)
    found = models_for("multiclass", Protocol.PAPERS, image=shape)
    assert set(found.by_name) == TWELVE | {"cnn"}
    network = found.by_name["cnn"]
    assert (network.height, network.width, network.channels) == (4, 6, 3)
    monkeypatch.setattr("understudy.evaluation.models.find_spec", lambda name: None)
    found = models_for("multiclass", Protocol.PAPERS, image=shape)
    assert set(found.by_name) == TWELVE
    assert "torch" in found.absent


def test_the_papers_protocol_has_the_papers_settings():
    models = models_for("binary", Protocol.PAPERS).by_name
    for name, settings in TABLE_10.items():
        found = models[name].get_params()
        assert {key: found[key] for key in settings} == settings


def test_without_xgboost_eleven_are_left_and_the_twelfth_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    models = models_for("binary", Protocol.PROBABILITIES)
    assert set(models.by_name) == TWELVE - {"xgboost"}
    assert models.absent == ("xgboost",)
    assert models.only(FAST_MODELS).absent == ("xgboost",)
    assert set(models.only(("lda",)).by_name) == {"lda"}
    assert models.only(("lda",)).absent == ()


def test_a_seed_reaches_every_model_that_draws():
    for task in ("binary", "regression"):
        for model in models_for(task, Protocol.PROBABILITIES, seed=5).by_name.values():
            assert model.get_params().get("random_state", 5) in (5, None)
    assert models_for("binary", Protocol.PAPERS, seed=5).by_name["mlp"].random_state == 5


def test_an_unknown_protocol_is_refused():
    assert parse_protocol("papers") is Protocol.PAPERS
    with pytest.raises(UsageError, match="probabilities, papers"):
        parse_protocol("guess")
