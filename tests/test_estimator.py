from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from understudy import LocallyLinearClassifier
from understudy.errors import UsageError

EXPECTED_FAILURES = {
    # These ask two fits for the same predictions, which noise without a seed never gives.
    "check_classifier_data_not_an_array": "two fits differ",
    "check_fit_idempotent": "two fits differ",
    # These ask for a refusal or a warning that one row decides on, which would tell of that row.
    "check_classifiers_regression_target": "labels are not looked at, and those that are no class not used",
    "check_dtype_object": "a cell that is no number is missing, as NaN is",
    "check_estimators_empty_data_messages": "a table without rows is a table like any other",
    "check_supervised_y_2d": "nothing is said of the form of labels; and two fits differ",
    "check_supervised_y_no_nan": "a label that is no class is not used",
}
"""Checks of scikit-learn's that a private estimator cannot pass, and why."""


class Informed(LocallyLinearClassifier):
    """The estimator told in public what the checks' data look like, which they cannot tell it."""

    def fit(self, X: Any, y: Any) -> Informed:
        classes = np.array([0, 1])
        if y is not None and np.asarray(y).dtype.kind != "c":
            classes = np.unique(np.asarray(y))
        settings = {"bounds": self.bounds, "classes": self.classes}
        self.bounds, self.classes = (-10.0, 10.0), classes
        try:
            super().fit(X, y)
        finally:
            for name, value in settings.items():
                setattr(self, name, value)
        return self


def test_scikit_learns_own_checks_pass() -> None:
    estimator = Informed(epsilon=50.0, options={"steps": 5})
    with warnings.catch_warnings():
        # It is an estimator by what it does; scikit-learn is not loaded until it is fitted.
        warnings.filterwarnings("ignore", message=".*does not inherit.*")
        results = check_estimator(estimator, expected_failed_checks=EXPECTED_FAILURES, on_fail=None, on_skip=None)
    failed = {each["check_name"]: str(each["exception"]) for each in results if each["status"] == "failed"}
    assert not failed
    by_chance = {name for name, why in EXPECTED_FAILURES.items() if "two fits differ" in why}
    expected = {each["check_name"] for each in results if each["status"] == "xfail"}
    assert set(EXPECTED_FAILURES) - by_chance <= expected <= set(EXPECTED_FAILURES)
    assert sum(each["status"] == "passed" for each in results) > 30


def blobs(count: int = 2000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, count)
    centres = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    return centres[labels] + rng.normal(0, 0.7, (count, 2)), np.array(["a", "b", "c"])[labels]


def test_it_learns_and_predicts_with_names() -> None:
    X, y = blobs()
    found = LocallyLinearClassifier(epsilon=2.0, bounds=(-6, 6), classes=["c", "a", "b"]).fit(X, y)
    assert found.score(X, y) > 0.9
    assert list(found.classes_) == ["a", "b", "c"]
    assert found.predict_proba(X[:5]).shape == (5, 3)
    assert found.classifier_.plan.descent.epsilon() <= 2.0
    assert clone(found).get_params() == found.get_params()


def test_bounds_may_differ_by_feature() -> None:
    X, y = blobs()
    X[:, 1] *= 1000
    bounds = [(-6, 6), (-6000, 6000)]
    found = LocallyLinearClassifier(epsilon=2.0, bounds=bounds, classes=["a", "b", "c"]).fit(X, y)
    assert found.score(X, y) > 0.9


@pytest.mark.parametrize("missing", ["bounds", "classes"])
def test_what_must_be_public_is_never_taken_from_data(missing: str) -> None:
    settings: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1]} | {missing: None}
    with pytest.raises(UsageError, match=missing):
        LocallyLinearClassifier(**settings).fit([[0.1], [0.9]], [0, 1])


def test_a_class_that_was_not_announced_is_not_used() -> None:
    X, y = blobs()
    found = LocallyLinearClassifier(epsilon=2.0, bounds=(-6, 6), classes=["a", "b"]).fit(X, y)
    assert set(found.predict(X)) <= {"a", "b"}


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(UsageError, match="'maps'"):
        LocallyLinearClassifier(bounds=(0, 1), classes=[0, 1], options={"maps": 2}).plan(2)
    with pytest.raises(ValueError, match="Invalid parameter"):
        LocallyLinearClassifier().set_params(speed=1)
