"""Shrinking noisy means: closer on average than taking them as they come, and never far worse."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from understudy.fits.weighting import filtered_mean

Floats = npt.NDArray[np.float64]
DIM, POINTS = 60, 400


def public(rng: np.random.Generator) -> Floats:
    """Points whose features fall off along the axes."""
    return np.asarray(rng.normal(0.3, 1, (POINTS, DIM)) * 0.9 ** np.arange(DIM) / 4)


def errors(mean_of: str, noise: float, seed: int = 0) -> tuple[float, float]:
    """Squared error of the shrunk mean and of the noisy one, over 200 draws of noise."""
    rng = np.random.default_rng(seed)
    features = public(rng)
    truth = features[:150].mean(axis=0) if mean_of == "points" else rng.normal(0, 0.3, DIM)
    shares = np.full(POINTS, 1 / POINTS)
    shrunk = []
    for _ in range(200):
        noisy = truth + noise * rng.standard_normal(DIM)
        shrunk.append(((filtered_mean(noisy, noise, features, shares).mean - truth) ** 2).sum())
    return float(np.mean(shrunk)), DIM * noise**2


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_a_mean_of_points_like_the_public_ones_gains_much(noise: float) -> None:
    shrunk, plain = errors("points", noise)
    assert shrunk < 0.6 * plain


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.1])
def test_a_mean_unlike_the_public_points_loses_little(noise: float) -> None:
    shrunk, plain = errors("anything", noise)
    assert shrunk < 1.2 * plain


def test_weights_on_the_points_have_the_estimated_mean() -> None:
    rng = np.random.default_rng(1)
    features = public(rng)
    shares = rng.dirichlet(np.ones(POINTS))
    for truth in (shares @ features, rng.normal(0, 0.3, DIM)):
        found = filtered_mean(truth + 0.01, 0.02, features, shares)
        assert np.abs(found.weights @ features - found.mean).max() < 1e-9


@pytest.mark.parametrize("count", [1, 2, 10])
def test_as_many_points_as_features_reach_everything(count: int) -> None:
    """Weights around the points' own mean sum to one and miss a direction, which must then be seen."""
    rng = np.random.default_rng(3)
    features = np.tril(rng.normal(0.3, 1, (count, count))) / 4
    truth = rng.dirichlet(np.ones(count)) @ features * 0.4
    found = filtered_mean(truth, 1e-5, features, np.full(count, 1 / count))
    assert np.abs(found.weights @ features - found.mean).max() < 1e-6
    assert np.abs(found.weights @ features - truth).max() < 1e-3


def test_noise_alone_leaves_the_points_as_they_are_weighted() -> None:
    features = public(np.random.default_rng(2))
    shares = np.full(POINTS, 1 / POINTS)
    found = filtered_mean(shares @ features, 1e6, features, shares)
    assert np.abs(found.weights - shares).max() < 1e-9


def test_one_point_is_weighted_by_what_is_seen_of_it() -> None:
    features = np.array([[0.8, 0.0]])
    found = filtered_mean(np.array([0.4, 0.0]), 1e-6, features, np.ones(1))
    assert found.weights == pytest.approx([0.5], abs=1e-3)
