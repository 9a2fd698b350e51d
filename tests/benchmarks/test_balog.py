"""The setting of the weighted database figures is the published one, and distances are distances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from balog_figures import CURVES, EPSILONS, published
from balog_setting import HIGH, LOW, Setting

PUBLISHED_MEAN_KERNEL = 0.21215986
"""Of the authors' 100,000 rows in two dimensions."""


def test_every_published_curve_has_every_epsilon_in_both_dimensions() -> None:
    found = published()
    assert {(c, d, e) for c, d, _, e in found} == {(c, d, e) for c in CURVES for d in (2, 5) for e in EPSILONS}
    assert len(found) == 2 * 3 * (22 + 22 + 16)


@pytest.mark.parametrize(("count", "expected"), [(1, 0.2926744), (10, 0.1395023)])
def test_public_rows_project_the_mean_as_far_as_the_published_ones(count: int, expected: float) -> None:
    """So the rows are theirs: any other draw of the mixture has other distances."""
    setting = Setting(2)
    points = setting.public_subset(count, 0)
    at = setting.mean_at(points)
    inside = float(at @ np.linalg.solve(setting.kernel(points, points), at))
    assert math.sqrt(PUBLISHED_MEAN_KERNEL - inside) == pytest.approx(expected, abs=2e-6)


def test_random_points_are_the_published_ones() -> None:
    setting = Setting(2)
    points = setting.random_points(20, 0)[:4]
    at = setting.mean_at(points)
    inside = float(at @ np.linalg.solve(setting.kernel(points, points), at))
    assert math.sqrt(PUBLISHED_MEAN_KERNEL - inside) == pytest.approx(0.4398919, abs=2e-6)


def test_rows_and_points_lie_inside_the_bounds() -> None:
    for dimension in (2, 5):
        setting = Setting(dimension)
        for rows in (setting.rows, setting.random_points(20_000, 0)):
            assert LOW < rows.min() < rows.max() < HIGH


def test_all_rows_with_equal_weights_are_at_no_distance() -> None:
    setting = Setting(2, num_rows=3000)
    weights = np.full(3000, 1 / 3000)
    assert setting.distance(setting.rows, weights) < 1e-3
    assert setting.mean_kernel == pytest.approx(setting.kernel(setting.rows, setting.rows).mean(), rel=1e-6)


def test_the_distance_to_the_law_is_what_many_rows_come_to() -> None:
    setting, many = Setting(2, 10, seed=1), Setting(2, 20_000, seed=2)
    points, weights = setting.rows, np.full(10, 0.1)
    assert setting.distance_to_law(points, weights) == pytest.approx(many.distance(points, weights), rel=0.02)
