"""Scores of synthetic rows against real ones, shared by the benchmark scripts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from understudy import Schema
from understudy.schema import Column

NUM_BINS = 20


def bins(column: Column, values: pd.Series) -> np.ndarray[Any, Any]:
    """Equal bins over the public bounds, or the category; null is a bin of its own."""
    if column.is_choice:
        return pd.Categorical(values, categories=list(column.categories)).codes + 1
    low, high = column.low_high
    scaled = np.floor((values.to_numpy(dtype=float) - low) / (high - low) * NUM_BINS)
    return np.where(np.isnan(scaled), 0, np.clip(scaled, 0, NUM_BINS - 1) + 1).astype(int)


def one_way_distances(
    schema: Schema, real: pd.DataFrame, synthetic: pd.DataFrame
) -> dict[str, float]:
    """Total variation distance of every column."""
    found = {}
    for column in schema.used:
        left, right = (bins(column, frame[column.name]) for frame in (real, synthetic))
        size = max(left.max(), right.max()) + 1
        shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (left, right)]
        found[column.name] = float(0.5 * np.abs(shares[0] - shares[1]).sum())
    return found


def invalid_cells(schema: Schema, synthetic: pd.DataFrame) -> int:
    """Cells that the schema does not allow."""
    wrong = 0
    for column in schema.used:
        values = synthetic[column.name]
        null = values.isna()
        wrong += 0 if column.nullable else int(null.sum())
        if column.is_choice:
            wrong += int((~values[~null].isin(column.categories)).sum())
        else:
            low, high = column.low_high
            wrong += int(((values[~null] < low) | (values[~null] > high)).sum())
            wrong += int((values[~null] % 1 != 0).sum()) if column.is_whole else 0
    return wrong


def design(schema: Schema, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Numbers as they are, choices one-hot, without the label."""
    parts = []
    for column in schema.used:
        if column is schema.label:
            continue
        if column.is_choice:
            parts.append(np.eye(len(column.categories) + 1)[bins(column, frame[column.name])])
        else:
            middle = sum(column.low_high) / 2
            parts.append(frame[[column.name]].fillna(middle).to_numpy(dtype=float))
    return np.concatenate(parts, axis=1)


def train_on_synthetic(
    schema: Schema, train: pd.DataFrame, test: pd.DataFrame, positive: Any
) -> dict[str, float]:
    """ROC-AUC on real test rows of three classifiers trained on the given rows."""
    label = schema.label.name
    classifiers = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "forest": RandomForestClassifier(100, random_state=0, n_jobs=2),
        "boosting": GradientBoostingClassifier(random_state=0),
    }
    inputs, truth = design(schema, test), test[label] == positive
    return {
        name: float(
            roc_auc_score(
                truth,
                classifier.fit(design(schema, train), train[label] == positive).predict_proba(
                    inputs
                )[:, 1],
            )
        )
        for name, classifier in classifiers.items()
    }
