from __future__ import annotations

import numpy as np

from understudy.evaluation.prediction import Examples, Outcome
from understudy.evaluation.train_on_synthetic import learning_curve, nested_parts

ROWS = Examples(np.arange(2000.0)[:, None], np.arange(2000))


def test_parts_are_nested_and_neither_tiny_nor_whole():
    parts = nested_parts(ROWS, shares=(0.001, 0.05, 0.3, 1.0), seed=1)
    assert [len(part) for part in parts.values()] == [100, 600]
    small, large = (set(part.target.tolist()) for part in parts.values())
    assert small < large
    assert small != set(range(100))


def test_the_curve_is_the_mean_over_models_at_every_size():
    outcomes = [
        Outcome(training, model, {"accuracy": score})
        for training, model, score in (
            ("first 60", "a", 0.5),
            ("first 60", "b", 0.7),
            ("synthetic", "a", 0.8),
            ("synthetic", "b", 0.9),
            ("real", "a", 1.0),
            ("first 600", "a", 0.7),
        )
    ]
    curve = learning_curve(outcomes, score="accuracy", whole="synthetic", num_rows=5000)
    np.testing.assert_allclose(curve, [(60, 0.6), (600, 0.7), (5000, 0.85)])
