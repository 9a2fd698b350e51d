"""Weights of bounded sum: projections are nearest points, and fits are as good as can be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from understudy.fits import weighting
from understudy.fits.weighting import fit_nonnegative, nearest_in_l1_ball, project_to_l1_ball, project_to_simplex


@pytest.mark.parametrize("bound", [1.0, 2.5])
def test_a_projection_is_inside_and_no_other_point_is_nearer(bound: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        start = rng.normal(0, 1, 12)
        found = project_to_l1_ball(start, bound)
        assert np.abs(found).sum() <= bound + 1e-9
        others = rng.normal(0, 1, (200, 12))
        others *= bound * rng.random((200, 1)) / np.abs(others).sum(axis=1, keepdims=True)
        assert ((others - start) ** 2).sum(axis=1).min() >= ((found - start) ** 2).sum() - 1e-9


def test_points_inside_stay_where_they_are() -> None:
    inside = np.array([0.2, -0.3, 0.1])
    assert np.array_equal(project_to_l1_ball(inside, 1.0), inside)
    assert np.array_equal(project_to_simplex(inside), [0.2, 0.0, 0.1])


def problem(seed: int, count: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 1, (count, 50)) / 8
    return features, rng.dirichlet(np.ones(count)) @ features


def test_an_attainable_mean_is_attained() -> None:
    features, target = problem(1)
    weights = nearest_in_l1_ball(features, target, 1.0, steps=3000)
    assert np.abs(features.T @ weights - target).max() < 1e-5
    assert np.abs(weights).sum() <= 1 + 1e-9


def test_the_bound_holds_where_it_is_in_the_way() -> None:
    features, target = problem(2)
    weights = nearest_in_l1_ball(features, 5 * target, 1.0, steps=500)
    assert np.abs(weights).sum() == pytest.approx(1.0)


def test_a_wider_bound_comes_nearer() -> None:
    features, target = problem(3)
    gaps = [
        np.linalg.norm(features.T @ nearest_in_l1_ball(features, 3 * target, bound, steps=2000) - 3 * target)
        for bound in (1.0, 2.0, 3.0)
    ]
    assert gaps[0] > gaps[1] > gaps[2]


@pytest.mark.parametrize("many", [2048, 5])
def test_nonnegative_weights_are_the_best_ones(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sum is no constraint, they are those of another solver; by either of two ways."""
    monkeypatch.setattr(weighting, "MANY_ROWS", many)
    rng = np.random.default_rng(4)
    features = rng.normal(0, 1, (20, 40)) / 6
    target = rng.dirichlet(np.ones(20)) @ features * 0.5 + rng.normal(0, 0.01, 40)
    expected, distance = nnls(features.T, target)
    assert expected.sum() < 1
    found = fit_nonnegative(features, target)
    assert (found >= 0).all()
    assert np.linalg.norm(features.T @ found - target) == pytest.approx(distance, rel=1e-3)


def test_progress_ends_at_the_last_step() -> None:
    features, target = problem(5)
    seen: list[tuple[int, int, float]] = []
    nearest_in_l1_ball(features, target, 1.0, steps=47, progress=lambda *s: seen.append(s))
    assert seen[-1][:2] == (47, 47)
    assert seen[-1][2] <= seen[0][2]
