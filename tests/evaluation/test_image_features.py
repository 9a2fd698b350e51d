from __future__ import annotations

import numpy as np
import pytest
import torch

from understudy.errors import UsageError
from understudy.evaluation.image_features import features_for, network_features, pixels_of
from understudy.evaluation.prediction import Examples
from understudy.networks.public import Intake, network_of_module
from understudy.schema.images import ImageShape

SHAPE = ImageShape(8, 8)


def test_with_classes_a_network_looks_and_without_cosines_do(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_public_network_may_look_instead():
    source = torch.Generator().manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.AvgPool2d(4))
    with torch.no_grad():
        for values in module.parameters():
            values.normal_(generator=source)
    network = network_of_module(module, name="eyes", intake=Intake(), layers=("0", "1"))
    found = network_features(network, SHAPE)
    assert found.name == "layer '1' of the network 'eyes'"
    pixels = np.random.default_rng(0).random((40, 64))
    with torch.no_grad():
        wanted = module(torch.from_numpy(pixels.astype(np.float32)).reshape(-1, 1, 8, 8)).flatten(1)
    np.testing.assert_allclose(found.of(pixels), wanted.numpy(), atol=1e-5)
    wide = network_of_module(torch.nn.Sequential(torch.nn.Conv2d(1, 40, 1)), name="w", intake=Intake(), layers=("0",))
    with pytest.raises(UsageError, match="more than 2048"):
        network_features(wide, SHAPE)
