"""A private classifier in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.accounting import Budget
from understudy.classifier.model import Classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.errors import UsageError
from understudy.private.training import train_classifier
from understudy.schema import Schema
from understudy.schema.columns import Column, Kind, Role

Floats = npt.NDArray[np.float64]
LABEL = "label"


class LocallyLinearClassifier:
    """Locally linear maps trained by noisy descent: private, and it shows what it looks at.

    Bounds and classes are what privacy needs to know before it looks: they are never taken from data.

    Args:
        epsilon: the privacy budget; with ``delta`` it is the whole guarantee.
        bounds: the public range of features: one (low, high) for all, or one for each. Values outside
            are clipped.
        classes: the values that the label may have. Rows with another one are not used.
        delta: far below one over the number of rows.
        num_rows: how many rows there are, if that is public; else a noisy count is used.
        ledger: an SQLite ledger to charge.
        key: names the classifier in the ledger.
        seed: public seed of projections and first weights; noise has none.
        options: further fields of ``Training``, such as ``{"num_maps": 3}``.

    Attributes:
        classes_: the label's values, in the order of probabilities.
        classifier_: the trained maps with their plan, safe to publish.
        n_features_in_: how many features there were.
    """

    classifier_: Classifier
    classes_: npt.NDArray[Any]
    n_features_in_: int
    _estimator_type = "classifier"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        bounds: Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        delta: float = 1e-5,
        num_rows: int | None = None,
        ledger: str | Path | None = None,
        key: str | None = None,
        seed: int = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.delta = delta
        self.num_rows = num_rows
        self.ledger = ledger
        self.key = key
        self.seed = seed
        self.options = options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn's ``clone`` wants them."""
        names = list(signature(LocallyLinearClassifier.__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **settings: Any) -> LocallyLinearClassifier:
        """Change settings."""
        known = self.get_params()
        for name, value in settings.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {type(self).__name__}")
            setattr(self, name, value)
        return self

    def plan(self, num_features: int) -> ClassifierPlan:
        """Everything that ``fit`` will do, without data."""
        unknown = set(self.options or {}) - {field.name for field in fields(Training)}
        if unknown:
            raise UsageError("options", f"'{min(unknown)}' is unknown")
        settings: dict[str, Any] = {"inputs": "table", "seed": self.seed}
        training = Training(**settings | (self.options or {}))
        return ClassifierPlan(
            self._schema(num_features), Budget(self.epsilon, self.delta), training, self.num_rows
        )

    def fit(self, X: Any, y: Any) -> LocallyLinearClassifier:
        """Train on private rows; this spends the budget."""
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import validate_data

        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=1)
        check_classification_targets(y)
        plan = self.plan(X.shape[1])
        self.classes_ = np.unique(np.asarray(self.classes))
        places = np.searchsorted(self.classes_, y)
        inside = np.minimum(places, len(self.classes_) - 1)
        known = self.classes_[inside] == y
        labels = [str(place) if ok else None for place, ok in zip(inside, known, strict=True)]
        table = self._table(X).append_column(LABEL, pa.array(labels, pa.string()))
        self.classifier_ = train_classifier(table, plan, ledger=self.ledger, key=self.key)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes, in the order of ``classes_``."""
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.classifier_.probabilities(self.classifier_.codes(self._table(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose class is predicted right."""
        right = np.asarray(self.predict(X) == np.asarray(y), dtype=np.float64)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier", target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True), input_tags=InputTags(),
            non_deterministic=True,
        )  # fmt: skip

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({shown})"

    def _schema(self, num_features: int) -> Schema:
        if self.classes is None or self.bounds is None:
            missing = "classes" if self.classes is None else "bounds"
            raise UsageError(
                missing, "must be public, and were not given",
                f"Pass {missing}=, from a codebook and not from the data",
            )  # fmt: skip
        low, high = np.broadcast_to(np.asarray(self.bounds, dtype=np.float64), (num_features, 2)).T
        columns = [
            Column(
                name=f"x{i}", kind=Kind.CONTINUOUS, bounds=(low[i], high[i]), bounds_from="given"
            )
            for i in range(num_features)
        ]
        names = tuple(str(place) for place in range(len(np.unique(np.asarray(self.classes)))))
        label = Column(
            name=LABEL,
            kind=Kind.CATEGORICAL,
            role=Role.LABEL,
            categories=names,
            bounds_from="given",
        )
        return Schema(columns=(*columns, label))

    def _table(self, X: Floats) -> pa.Table:
        return pa.table({f"x{i}": pa.array(X[:, i]) for i in range(X.shape[1])})
