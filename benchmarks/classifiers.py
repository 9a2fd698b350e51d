"""The twelve classifiers of the papers, trained on synthetic rows and tested on real ones.

The papers list the twelve (DP-HP, Table 10) with settings meant for images. Here they keep the
defaults of scikit-learn and xgboost: on real rows of Adult (one split) that moves the means by
0.003 at most and saves two minutes. What matters is the coding. The peers' figures go with 0.880
ROC-AUC and 0.712 average precision on real rows (one split). Over three splits, choices one-hot
and columns standardised by the training rows give 0.882 and 0.715, ordinal codes standardised
0.882 and 0.725, one-hot or ordinal unscaled 0.845 and 0.811 ROC-AUC. Unlike the papers, scores are
probabilities or margins, never hard guesses, and the test rows keep their class shares.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from metrics import design
from sklearn.base import ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from understudy import Schema

Array = np.ndarray[Any, Any]


def twelve() -> dict[str, ClassifierMixin]:
    """The classifiers, the slowest first so that two processes share them evenly."""
    return {
        "mlp": MLPClassifier(random_state=0),
        "gradient boosting": GradientBoostingClassifier(random_state=0),
        "logistic regression": LogisticRegression(max_iter=1000),
        "gaussian bayes": GaussianNB(),
        "bernoulli bayes": BernoulliNB(),
        "linear svc": LinearSVC(random_state=0),
        "decision tree": DecisionTreeClassifier(random_state=0),
        "lda": LinearDiscriminantAnalysis(),
        "adaboost": AdaBoostClassifier(random_state=0),
        "bagging": BaggingClassifier(random_state=0),
        "random forest": RandomForestClassifier(random_state=0),
        "xgboost": XGBClassifier(random_state=0, n_jobs=1),
    }


def twelve_scores(
    schema: Schema, train: pd.DataFrame, test: pd.DataFrame, positive: Any
) -> dict[str, tuple[float, float]]:
    """Two scores on real test rows of each classifier trained on ``train``.

    ROC-AUC and average precision with two classes, weighted and macro F1 with more (``positive``
    is None). A classifier that refuses its rows scores NaN and is named on stderr.
    """
    label = schema.label.name
    scaler = StandardScaler().fit(design(schema, train))
    rows, inputs = (scaler.transform(design(schema, frame)) for frame in (train, test))
    if positive is None:
        target, truth = (frame[label].astype(str).to_numpy() for frame in (train, test))
        score = _many_classes
    else:
        target, truth = ((frame[label] == positive).to_numpy() for frame in (train, test))
        score = _two_classes
    jobs = (
        delayed(_attempt)(score, name, classifier, rows, target, inputs, truth)
        for name, classifier in twelve().items()
    )
    return dict(Parallel(n_jobs=2)(jobs))


def _attempt(
    score: Callable[..., tuple[float, float]], name: str, *rest: Any
) -> tuple[str, tuple[float, float]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 200 epochs are the default: converged or not
        try:
            return name, score(*rest)
        except ValueError as error:
            print(f"{name}: not fitted, {error}", file=sys.stderr)
            return name, (float("nan"), float("nan"))


def _two_classes(
    classifier: ClassifierMixin, rows: Array, target: Array, inputs: Array, truth: Array
) -> tuple[float, float]:
    if len(np.unique(target)) == 1:  # a class that was never generated
        return 0.5, float(truth.mean())
    classifier.fit(rows, target)
    if hasattr(classifier, "predict_proba"):
        scores = classifier.predict_proba(inputs)[:, 1]
    else:
        scores = classifier.decision_function(inputs)
    return float(roc_auc_score(truth, scores)), float(average_precision_score(truth, scores))


def _many_classes(
    classifier: ClassifierMixin, rows: Array, target: Array, inputs: Array, truth: Array
) -> tuple[float, float]:
    classes, codes = np.unique(target, return_inverse=True)  # xgboost takes codes only
    guesses = np.repeat(classes, len(truth))
    if len(classes) > 1:
        guesses = classes[classifier.fit(rows, codes).predict(inputs)]
    weighted, macro = (
        float(f1_score(truth, guesses, average=kind, zero_division=0))
        for kind in ("weighted", "macro")
    )
    return weighted, macro
