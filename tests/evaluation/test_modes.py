from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from understudy.evaluation.image_features import bins_apart, coverage, frechet_distance


def blobs(num_rows: int, seed: int, centres: tuple[float, ...] = (0.0, 10.0, 20.0, 30.0)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice(centres, num_rows)[:, None] + rng.standard_normal((num_rows, 3))


def test_the_distance_is_that_between_the_two_gaussians() -> None:
    rng = np.random.default_rng(0)
    one, other = (rng.standard_normal((500, 4)), rng.standard_normal((400, 4)) @ rng.random((4, 4)) + 1)
    first, second = np.cov(one.T), np.cov(other.T)
    apart = one.mean(axis=0) - other.mean(axis=0)
    expected = apart @ apart + np.trace(first + second - 2 * sqrtm(first @ second).real)
    assert frechet_distance(one, other) == pytest.approx(expected)
    assert frechet_distance(one, one) == pytest.approx(0.0, abs=1e-9)


def test_one_feature_is_enough_for_a_distance() -> None:
    points = np.arange(5.0)[:, None]
    assert frechet_distance(points, points + 3) == pytest.approx(9.0)


def test_a_dropped_kind_is_not_covered_and_leaves_bins_empty() -> None:
    real, alike, short = blobs(1000, 1), blobs(1000, 2), blobs(1000, 3, (0.0, 10.0, 20.0))
    assert coverage(real, alike) > 0.9
    assert coverage(real, short) == pytest.approx(np.mean(real[:, 0] < 25), abs=0.1)
    assert bins_apart(real, alike, seed=0) < 0.2
    assert bins_apart(real, short, seed=0) > bins_apart(real, alike, seed=0) + 0.15


def test_copies_of_one_image_cover_hardly_anything() -> None:
    real = blobs(400, 1)
    assert coverage(real, np.repeat(real[:1], 400, axis=0)) < 0.05
    assert bins_apart(real, np.repeat(real[:1], 400, axis=0), seed=0) > 0.9
