"""A private classifier in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.accounting.mechanisms import Budget
from understudy.arrays import Floats
from understudy.classifier.model import Classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.errors import ArrayError, InputError, UsageError
from understudy.private.dpsgd.classifier import train_classifier
from understudy.private.sealed import sealed
from understudy.readers import Examples, count_features, feature_names, open_source
from understudy.readers.cells import raw_text
from understudy.schema import Schema
from understudy.schema.columns import Column, Kind
from understudy.schema.entries import parse_column

LABEL = "label"


@dataclass(kw_only=True, eq=False)
class LocallyLinearClassifier:
    """Locally linear maps trained by noisy descent: private, and it shows what it looks at.

    Bounds and classes are what privacy needs to know before it looks: they are never taken from data.

    Args:
        epsilon: the privacy budget; with ``delta`` it is the whole guarantee.
        bounds: the public range of features: one (low, high) for all, or one for each. Values outside
            are clipped.
        classes: the values that the label may have. Rows with another one are not used; 1, 1.0 and "1" are one.
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
        feature_names_in_: what a frame called them, if it was one.
    """

    _estimator_type = "classifier"

    epsilon: float = 1.0
    bounds: Sequence[Any] | None = None
    classes: Sequence[Any] | None = None
    delta: float = 1e-5
    num_rows: int | None = None
    ledger: str | Path | None = None
    key: str | None = None
    seed: int = 0
    options: dict[str, Any] | None = None
    classifier_: Classifier = field(init=False, repr=False)
    classes_: npt.NDArray[Any] = field(init=False, repr=False)
    n_features_in_: int = field(init=False, repr=False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn's ``clone`` wants them."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

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
        unknown = set(self.options or {}) - {each.name for each in fields(Training)}
        if unknown:
            raise UsageError("options", f"'{min(unknown)}' is unknown")
        settings: dict[str, Any] = {"inputs": "table", "seed": self.seed}
        training = Training(**settings | (self.options or {}))
        return ClassifierPlan(self._schema(num_features), Budget(self.epsilon, self.delta), training, self.num_rows)

    def fit(self, X: Any, y: Any) -> LocallyLinearClassifier:
        """Train on private rows; this spends the budget.

        Args:
            X: rows of features: lists of rows, an array, or a frame of pandas, polars or pyarrow. What is no
                number counts as missing, as NaN does.
            y: a label per row, of any of these.

        Guarantee:
            Neither is looked at here: cells are encoded one by one inside the seal, so that a row's codes depend on
            that row alone. No refusal holds a cell, a type of a cell or a number of rows (proofs/cells.md).
        """
        if y is None:
            raise ArrayError("y", "requires y to be passed, but the target y is None", "Pass labels")
        num_features = sealed(lambda: count_features(X))
        plan = self.plan(self._num_bounds() if num_features is None else num_features)
        examples = Examples(X, len(plan.schema.used) - 1, y, LABEL)
        self.classes_ = self._sorted_classes()
        self.classifier_ = train_classifier(examples, plan, ledger=self.ledger, key=self.key)
        self.n_features_in_ = examples.num_features
        self.__dict__.pop("feature_names_in_", None)
        if (names := feature_names(X)) is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row."""
        chances = self.predict_proba(X)
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Chances of the classes, in the order of ``classes_``."""
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self)
        # Looked at for its form only: cells are encoded as they were in fit.
        validate_data(self, X, reset=False, dtype=None, ensure_all_finite=False)
        examples = Examples(X, self.n_features_in_)
        with open_source(examples, columns=examples.names) as batches:
            return self.classifier_.probabilities(self.classifier_.codes(batches))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose class is predicted right."""
        right = np.asarray(self.predict(X) == np.asarray(y), dtype=np.float64)
        return float(np.average(right, weights=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True),
            input_tags=InputTags(allow_nan=True),
            non_deterministic=True,
        )

    def _schema(self, num_features: int) -> Schema:
        if self.classes is None or self.bounds is None:
            missing = "classes" if self.classes is None else "bounds"
            raise UsageError(
                missing, "must be public, and were not given", f"Pass {missing}=, from a codebook and not from the data"
            )
        try:
            given = np.asarray(self.bounds, dtype=np.float64)
            low, high = np.broadcast_to(given, (num_features, 2)).T
        except (TypeError, ValueError):
            raise UsageError(
                "bounds", "must be one (low, high) for all features, or one for each", "Mend bounds="
            ) from None
        columns = [
            Column(name=f"x{i}", kind=Kind.CONTINUOUS, bounds=(low[i], high[i]), bounds_from="given")
            for i in range(num_features)
        ]
        return Schema(columns=(*columns, self._label_column()))

    def _num_bounds(self) -> int:
        """How many features there are by their bounds, for a list without rows, which does not tell."""
        given = np.asarray(self.bounds if self.bounds is not None else (), dtype=np.float64)
        if given.ndim != 2:
            raise ArrayError(
                "X",
                "is a list without rows, which does not tell how many features there are",
                "Pass an array of shape (0, features), or bounds for each feature",
            )
        return len(given)

    def _sorted_classes(self) -> npt.NDArray[Any]:
        """The public classes, each once; those that do not sort, such as numbers beside text, keep their order."""
        listed = list(self.classes) if self.classes is not None else []
        is_plain = all(isinstance(each, str | int | float | np.generic) for each in listed)
        is_one_kind = len({isinstance(each, str) for each in listed}) == 1
        return np.unique(np.asarray(listed)) if is_plain and is_one_kind else np.fromiter(listed, dtype=object)

    def _label_column(self) -> Column:
        """The label as a column whose categories are the classes: numbers, or words as cells are written."""
        classes = self._sorted_classes()
        is_number = classes.dtype.kind in "biuf" and bool((np.abs(classes) < 2**53).all())
        words = [None if is_number else raw_text(each) for each in classes]
        try:
            names = [(word or b"").decode() for word in words]
            entry = {
                "name": LABEL,
                "kind": "categorical",
                "role": "label",
                "bounds_from": "given",
                "categories": classes.tolist() if is_number else names,
            }
            return parse_column(entry)
        except (InputError, UnicodeDecodeError):
            pass
        raise UsageError(
            "classes",
            "must be numbers or text that differ from one another as cells of a file would",
            "Pass each class once",
        )
