"""The models that are trained on synthetic rows: the papers' twelve classifiers, a network, and regressors.

The papers list the twelve (DP-HP, Table 10) with settings meant for images and scores of hard
guesses. By default they keep the settings of scikit-learn and xgboost: on real rows of Adult (one
split) that moves the means by 0.003 at most. Models come slowest first, so that processes share
them evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from understudy.errors import MissingExtraError, UsageError
from understudy.schema.images import ImageShape

Task = Literal["binary", "multiclass", "regression"]


class Protocol(StrEnum):
    """How classifiers are set and scored."""

    PROBABILITIES = "probabilities"
    """Settings of the libraries; ROC and PRC of probabilities or margins."""
    PAPERS = "papers"
    """Settings of Table 10; ROC and PRC of hard guesses."""


@dataclass(frozen=True, slots=True)
class Models:
    """Unfitted models by name, and the names of those whose package is not installed."""

    by_name: dict[str, Any]
    absent: tuple[str, ...] = ()

    def only(self, names: tuple[str, ...]) -> Models:
        """The named ones."""
        return Models(
            {name: model for name, model in self.by_name.items() if name in names},
            tuple(name for name in self.absent if name in names),
        )


FAST_MODELS = ("cnn", "logistic regression", "lda", "decision tree", "xgboost", "ridge", "boosted trees")


def parse_protocol(name: str) -> Protocol:
    """The protocol of that name."""
    try:
        return Protocol(name)
    except ValueError:
        raise UsageError("protocol", f"must be one of {', '.join(Protocol)}", "Leave it out for the default") from None


def models_for(task: Task, protocol: Protocol, *, seed: int = 0, image: ImageShape | None = None) -> Models:
    """All models for a task, slowest first; of images a small convolutional network too."""
    if task == "regression":
        return Models(_regressors(seed))
    found, absent = _twelve(seed), []
    try:
        from xgboost import XGBClassifier

        found["xgboost"] = XGBClassifier(random_state=seed, n_jobs=1)
    except ModuleNotFoundError:
        absent.append("xgboost")
    if protocol is Protocol.PAPERS:
        found = _with_papers_settings(found)
    if image is not None and find_spec("torch") is None:
        absent.append("torch")
    elif image is not None:
        from understudy.evaluation.convolution import SmallNetwork

        found = {"cnn": SmallNetwork(image.height, image.width, image.channels, seed=seed)} | found
    return Models(found, tuple(absent))


def _twelve(seed: int) -> dict[str, Any]:
    """The papers' classifiers but for xgboost, which may not be installed."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import (
        AdaBoostClassifier,
        BaggingClassifier,
        GradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import BernoulliNB, GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    return {
        "mlp": MLPClassifier(random_state=seed),
        "gradient boosting": GradientBoostingClassifier(random_state=seed),
        "random forest": RandomForestClassifier(random_state=seed),
        "bagging": BaggingClassifier(random_state=seed),
        "adaboost": AdaBoostClassifier(random_state=seed),
        "lda": LinearDiscriminantAnalysis(),
        "decision tree": DecisionTreeClassifier(random_state=seed),
        "linear svc": LinearSVC(random_state=seed),
        "logistic regression": LogisticRegression(max_iter=1000),
        "gaussian bayes": GaussianNB(),
        "bernoulli bayes": BernoulliNB(),
    }


TABLE_10: dict[str, dict[str, Any]] = {
    "adaboost": {"n_estimators": 1000, "learning_rate": 0.7},
    "linear svc": {"max_iter": 10_000, "tol": 1e-8, "loss": "hinge"},
    "logistic regression": {"max_iter": 5000},
    "bernoulli bayes": {"binarize": 0.5},
    "decision tree": {"class_weight": "balanced"},
    "lda": {"solver": "eigen", "tol": 1e-8, "shrinkage": 0.5},
    "bagging": {"max_samples": 0.1, "n_estimators": 20},
    "random forest": {"n_estimators": 100, "class_weight": "balanced"},
    "gradient boosting": {"subsample": 0.1, "n_estimators": 50},
    "xgboost": {"colsample_bytree": 0.1, "n_estimators": 50},
}
"""Of DP-HP, as far as current versions have its settings.

SAMME.R is gone from AdaBoost, which leaves SAMME. LDA's ``n_components`` shapes projections, never guesses. Softmax of
two classes is xgboost's own objective for two.
"""


def _with_papers_settings(models: dict[str, Any]) -> dict[str, Any]:
    for name, model in models.items():
        model.set_params(**TABLE_10.get(name, {}))
    first = ("adaboost", "linear svc")  # which these settings make the slowest
    return {name: models[name] for name in (*first, *models)}


def _regressors(seed: int) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    return {
        "random forest": RandomForestRegressor(random_state=seed, min_samples_leaf=5),
        "boosted trees": HistGradientBoostingRegressor(random_state=seed),
        "decision tree": DecisionTreeRegressor(random_state=seed, min_samples_leaf=20),
        "ridge": Ridge(),
    }


# Models are trained in processes, not threads: threads that wait for each other by spinning crawl on a busy machine.


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra and for boosted trees."""
    try:
        import sklearn.ensemble  # a limit holds for the libraries that are loaded by then
    except ModuleNotFoundError:
        raise MissingExtraError("scikit-learn", "evaluation") from None
    del sklearn
    with threadpool_limits(1):
        yield


def processes(num_jobs: int, **options: Any) -> Any:
    """Calls on several processes, to which rows are sent through pipes.

    By default large arrays would be files in shared memory or the temporary folder, where a run
    that is killed leaves the real rows behind.
    """
    from sklearn.utils.parallel import Parallel

    return Parallel(n_jobs=num_jobs, max_nbytes=None, **options)
