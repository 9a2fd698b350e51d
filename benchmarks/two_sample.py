"""Can a boosted tree tell synthetic rows from real ones? An ROC-AUC of 0.5 says that it cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
from metrics import bins
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from understudy import Schema

MOST_ROWS = 50_000


def two_sample_auc(
    schema: Schema, real: pd.DataFrame, synthetic: pd.DataFrame, *, binned: bool, seed: int = 0
) -> float:
    """ROC-AUC of a classifier that tells real from synthetic rows, over five held-out folds.

    Both sides have equally many rows, at most ``MOST_ROWS``. A category is its code, null 0; a
    number is its bin of 20 with ``binned``, else itself with NaN for null. A row that occurs on
    both sides counts as it is: methods that repeat real rows are not found out here.
    """
    num_rows = min(len(real), len(synthetic), MOST_ROWS)
    rng = np.random.default_rng(seed)
    sides = [
        _codes(schema, frame, binned=binned)[rng.choice(len(frame), num_rows, replace=False)]
        for frame in (real, synthetic)
    ]
    rows, is_synthetic = np.concatenate(sides), np.repeat([0, 1], num_rows)
    guesses = cross_val_predict(
        HistGradientBoostingClassifier(random_state=seed), rows, is_synthetic,
        cv=StratifiedKFold(shuffle=True, random_state=seed), method="predict_proba",
    )  # fmt: skip
    return float(roc_auc_score(is_synthetic, guesses[:, 1]))


def _codes(schema: Schema, frame: pd.DataFrame, *, binned: bool) -> np.ndarray:
    columns = [
        bins(column, frame[column.name])
        if binned or column.is_choice
        else frame[column.name].to_numpy(dtype=float, na_value=np.nan)
        for column in schema.used
    ]
    return np.stack(columns, axis=1).astype(float)  # (num_rows, num_columns)
