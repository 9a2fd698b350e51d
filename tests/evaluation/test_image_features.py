from __future__ import annotations

import numpy as np
import pytest

from understudy.evaluation.image_features import features_for, pixels_of
from understudy.evaluation.inputs import Examples
from understudy.schema.images import ImageShape

SHAPE = ImageShape(8, 8)


def test_with_classes_a_network_looks_and_without_cosines_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    images, labels = 255 * rng.random((40, 64)), rng.integers(0, 2, 40)
    examples = Examples(images, labels)
    network, cosines = features_for(SHAPE, examples, seed=0), features_for(SHAPE, None, seed=0)
    assert "network" in network.name
    assert "cosine" in cosines.name
    assert network.of(images / 255).shape == (40, 64)
    lengths = [np.linalg.norm(each, axis=1) for each in (cosines.of(images), images)]
    np.testing.assert_allclose(*lengths)  # all 64 of 64: orthonormal
    monkeypatch.setattr("understudy.evaluation.image_features.find_spec", lambda name: None)
    assert "cosine" in features_for(SHAPE, examples, seed=0).name


def test_pixels_lie_between_0_and_1_and_null_is_black() -> None:
    values = np.array([[255.0, 51.0, np.nan, 0.0, 7.0]])
    np.testing.assert_allclose(pixels_of(values, ImageShape(2, 2)), [[1, 0.2, 0, 0]])
