from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from understudy.evaluation.convolution import SmallNetwork


def stripes(num_images: int, seed: int, channels: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Images of horizontal or vertical stripes, under noise, moved about."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, num_images)
    wave = (np.arange(8)[None, :] + rng.integers(0, 4, num_images)[:, None]) % 4 < 2
    images = np.repeat(wave[:, :, None], 8, axis=2).astype(float)
    images[labels == 1] = images[labels == 1].transpose(0, 2, 1)
    images = np.repeat(images[..., None], channels, axis=3)
    return (images + 0.3 * rng.standard_normal(images.shape)).reshape(num_images, -1), labels


@pytest.mark.parametrize("channels", [1, 3])
def test_it_learns_what_no_single_pixel_tells(channels: int) -> None:
    (train, labels), (test, truth) = stripes(300, 1, channels), stripes(300, 2, channels)
    names = np.array(["across", "down"])[labels]
    network = SmallNetwork(8, 8, channels, num_batches=60).fit(train, names)
    guesses = network.predict(test)
    assert np.mean(guesses == np.array(["across", "down"])[truth]) > 0.95
    assert network.features(test).shape == (300, 64)
    np.testing.assert_allclose(network.predict_proba(test).sum(axis=1), 1, atol=1e-6)


def test_the_same_seed_gives_the_same_network_and_a_clone_has_learnt_nothing() -> None:
    images, labels = stripes(100, 1)
    first, second, other = (SmallNetwork(8, 8, num_batches=3, seed=seed).fit(images, labels) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.features(images), second.features(images))
    assert not np.allclose(first.features(images), other.features(images))
    assert clone(first) == first
    assert not hasattr(clone(first), "body_")
