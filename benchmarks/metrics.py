"""Scores of synthetic rows against real ones, shared by the benchmark scripts."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
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


def marginal_distance(
    schema: Schema,
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    size: int,
    *,
    columns: list[Column] | None = None,
    most_sets: int | None = None,
) -> float:
    """Mean total variation distance over marginals of ``size`` columns each.

    Over all sets of columns, or over ``most_sets`` drawn ones. Every marginal has as many columns
    as it says, and every bin, category and null is a value of its own.
    """
    columns = schema.used if columns is None else columns
    codes = [
        np.stack([bins(column, frame[column.name]) for column in columns], axis=1).astype(np.int64)
        for frame in (real, synthetic)
    ]
    radix = np.maximum(codes[0].max(axis=0), codes[1].max(axis=0)) + 1
    if most_sets is None or comb(len(columns), size) <= most_sets:
        sets = list(combinations(range(len(columns)), size))
    else:
        rng = np.random.default_rng(0)
        sets = [tuple(rng.choice(len(columns), size, replace=False)) for _ in range(most_sets)]
    return float(np.mean([_distance(codes, radix, list(chosen)) for chosen in sets]))


def _distance(codes: list[np.ndarray], radix: np.ndarray, chosen: list[int]) -> float:
    strides = np.cumprod([1, *radix[chosen[:-1]]])
    joint = [part[:, chosen] @ strides for part in codes]
    values, index = np.unique(np.concatenate(joint), return_inverse=True)
    shares = [
        np.bincount(part, minlength=len(values)) / len(part)
        for part in np.split(index, [len(joint[0])])
    ]
    return 0.5 * np.abs(shares[0] - shares[1]).sum()


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


def prediction_scores(
    schema: Schema, train: pd.DataFrame, test: pd.DataFrame, positive: Any
) -> tuple[float, float]:
    """Two scores on real test rows, each the mean of three classifiers trained on ``train``.

    ROC-AUC and average precision with two classes, weighted and macro F1 with more.
    """
    label = schema.label.name
    classifiers = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        RandomForestClassifier(100, random_state=0, n_jobs=2),
        HistGradientBoostingClassifier(random_state=0, early_stopping=False),
    )
    inputs, rows, found = design(schema, test), design(schema, train), []
    for classifier in classifiers:
        if positive is not None:
            truth, target = test[label] == positive, train[label] == positive
            if target.nunique() == 1:  # a class that was never generated
                found.append((0.5, float(truth.mean())))
                continue
            scores = classifier.fit(rows, target).predict_proba(inputs)[:, 1]
            found.append((roc_auc_score(truth, scores), average_precision_score(truth, scores)))
        else:
            truth, target = test[label].astype(str), train[label].astype(str)
            guesses = classifier.fit(rows, target).predict(inputs)
            found.append(
                tuple(f1_score(truth, guesses, average=kind) for kind in ("weighted", "macro"))
            )
    return tuple(float(score) for score in np.mean(found, axis=0))
