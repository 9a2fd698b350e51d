"""An evaluation made by hand, with every part that a report can show."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from understudy.evaluation.metrics import METRICS, Associations, ColumnView, Evaluation, ModelScores, Prediction, Score

SCORES = {
    "marginal_1": (0.006, 0.004, 0.004),
    "marginal_2": (0.023, 0.012, 0.075),
    "marginal_3": (0.120, 0.030, 0.164),
    "two_sample_auc_raw": (0.66, 0.50, 0.93),
    "roc_auc": (0.873, 0.880, 0.5),
    "copied_rows": (0.001, 0.002, 0.0),
}
MODELS = ("Logistic regression", "Random forest", "XGBoost")

Make = Callable[..., Evaluation]


def number(name: str, distance: float) -> ColumnView:
    shares = [math.exp(-((i - 8) ** 2) / 20) for i in range(20)]
    real = tuple(share / sum(shares) for share in shares)
    moved = (real[0] + distance, *real[1:8], real[8] - distance, *real[9:])
    edges = tuple(float(5 * i) for i in range(21))
    bins = tuple(f"{edge:g} to {edge + 5:g}" for edge in edges[:-1])
    return ColumnView(name, "number", bins, edges, real, moved, distance, 0.004, 0.0, 0.0)


def choice(name: str, distance: float, categories: tuple[str, ...]) -> ColumnView:
    weights = [1 / (i + 1) for i in range(len(categories))]
    real = tuple(weight / sum(weights) for weight in weights)
    moved = (real[0] - distance, *real[1:-1], real[-1] + distance)
    return ColumnView(name, "choice", categories, (), real, moved, distance, 0.004, 0.05, 0.09)


def build(
    num_columns: int = 8,
    *,
    categories: tuple[str, ...] = ("yes", "no"),
    names: Callable[[int], str] = "column_{}".format,
    is_quick: bool = False,
) -> Evaluation:
    distances = [0.12 * 0.8**i for i in range(num_columns)]
    columns = tuple(
        number(names(i), distance) if i % 2 else choice(names(i), distance, categories)
        for i, distance in enumerate(distances)
    )
    ties = [[1 / (1 + abs(i - j)) for i in range(num_columns)] for j in range(num_columns)]
    faded = [[tie * (0.6 if i + j == 1 else 0.99) for i, tie in enumerate(row)] for j, row in enumerate(ties)]
    models = tuple(
        ModelScores(
            name,
            {"roc_auc": 0.87 + i / 100, "prc_auc": 0.70},
            {"roc_auc": 0.88 + i / 100, "prc_auc": 0.71},
            {"roc_auc": 0.5, "prc_auc": 0.24},
        )
        for i, name in enumerate(MODELS)
    )
    return Evaluation(
        rows_real=39_073,
        rows_synthetic=39_000,
        is_quick=is_quick,
        seed=0,
        scores=tuple(Score(METRICS[key], *values) for key, values in SCORES.items()),
        columns=columns,
        associations=Associations(
            tuple(view.name for view in columns), tuple(map(tuple, ties)), tuple(map(tuple, faded))
        ),
        prediction=Prediction(
            "income",
            "binary",
            "probabilities",
            models,
            9_769,
            True,
            ((500, 0.81), (2_000, 0.845), (8_000, 0.866), (39_000, 0.873)),
        ),
        notes=("Triples are a sample of 200.",),
        seconds=12.3,
    )


@pytest.fixture
def make() -> Make:
    return build
