from __future__ import annotations

import numpy as np
import pytest

from understudy.evaluation.metrics import METRICS
from understudy.evaluation.prediction import Examples, constant_scores


def test_every_metric_knows_its_name_direction_range_and_meaning():
    for key, metric in METRICS.items():
        assert metric.key == key
        assert metric.better in ("lower", "higher")
        assert metric.high is None or metric.low < metric.high
        assert metric.title
        assert metric.meaning.endswith(".")


def test_titles_are_not_shared():
    assert len({metric.title for metric in METRICS.values()}) == len(METRICS)


def test_neighbours_say_that_they_are_not_the_guarantee():
    for key in ("neighbour_distance", "copied_rows"):
        assert "not the privacy guarantee" in METRICS[key].meaning


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_every_score_of_a_prediction_is_a_metric(task):
    rows = Examples(np.zeros((4, 1)), np.array([0, 0, 1, 1]))
    assert set(constant_scores(task, rows, rows)) <= set(METRICS)
