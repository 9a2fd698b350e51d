from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from understudy.errors import InputError
from understudy.features.perceptual import perceptual
from understudy.networks import Encoder, EncoderTraining, load_encoder, save_encoder, train_encoder, vision_network
from understudy.networks.activations import activations
from understudy.networks.public import WEIGHTS
from understudy.schema.images import ImageShape

TINY = EncoderTraining(depths=(6, 8), strides=(2, 2), kernels=(3, 3), components=4, steps=120, batch=48)
SHAPE = ImageShape(8, 8)


def stripes(count: int = 240, channels: int = 1) -> tuple[Any, Any]:
    """Stripes that run down or across: two classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    waves = (np.arange(8)[None, :] // 2 + rng.integers(0, 2, count)[:, None]) % 2 * 180
    down = np.repeat(waves[:, None, :], 8, axis=1)
    images = np.where(labels[:, None, None] == 0, down, down.transpose(0, 2, 1))
    images = (images + rng.integers(0, 60, images.shape)).astype(np.uint8)
    if channels == 3:
        images = np.stack([images, images // 2, 255 - images], axis=3)
    return images, labels


@pytest.fixture(scope="module")
def trained() -> tuple[Encoder, float]:
    return train_encoder(*stripes(), TINY, trained_on="stripes")


def test_an_encoder_learns_to_tell_classes_apart(trained: tuple[Encoder, float]):
    assert trained[1] > 0.9
    _, guessed = train_encoder(stripes()[0], np.arange(240) % 2, TINY)
    assert guessed < 0.75, "there is nothing to learn in labels of chance"


def test_without_labels_it_learns_how_images_are_turned():
    ramps = np.repeat(np.arange(8, dtype=np.uint8)[None, :, None] * 30, 60, axis=0)
    images = np.broadcast_to(ramps, (60, 8, 8)).copy()
    _, share = train_encoder(images, None, TINY)
    assert share > 0.8


def test_the_same_seed_gives_the_same_encoder(trained: tuple[Encoder, float]):
    short = EncoderTraining(depths=(4,), strides=(1,), kernels=(3,), components=2, steps=3)
    first, second = (train_encoder(*stripes(), short)[0] for _ in range(2))
    assert first.sha256 == second.sha256 != trained[0].sha256


def test_an_encoder_comes_back_from_its_directory(trained: tuple[Encoder, float], tmp_path: Path):
    encoder = trained[0]
    save_encoder(encoder, tmp_path / "stripes")
    again = load_encoder(tmp_path / "stripes")
    assert (again.sha256, again.form, again.trained_on) == (encoder.sha256, encoder.form, "stripes")


def test_other_weights_under_the_same_hash_are_refused(trained: tuple[Encoder, float], tmp_path: Path):
    save_encoder(trained[0], tmp_path / "stripes")
    file = tmp_path / "stripes" / WEIGHTS
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(InputError, match="missing or damaged"):
        load_encoder(tmp_path / "stripes")
    with pytest.raises(InputError, match="missing or damaged"):
        load_encoder(tmp_path / "nowhere")


def test_weights_of_another_form_are_refused(trained: tuple[Encoder, float]):
    encoder = trained[0]
    wrong = Encoder(encoder.form, encoder.weights | {"conv1.bias": np.zeros(3, np.float32)})
    with pytest.raises(ValueError, match="do not fit"):
        _ = wrong.network("wrong").module


@pytest.mark.parametrize("channels", [1, 3])
def test_components_are_products_with_an_orthogonal_basis_of_pixels(channels: int):
    images, labels = stripes(channels=channels)
    short = EncoderTraining(depths=(4,), strides=(1,), kernels=(3,), components=4, steps=2)
    encoder, _ = train_encoder(images, labels, short)
    network = encoder.network("stripes")
    flat = torch.from_numpy(images.reshape(len(images), -1)[:50] / 255)
    shape = ImageShape(8, 8, channels)
    (found,) = activations(network, flat, shape, ("components",))
    ends = torch.cat([torch.zeros(1, flat.shape[1]), torch.eye(flat.shape[1])])
    (basis,) = activations(network, ends, shape, ("components",))
    assert float(basis[0].abs().max()) < 1e-5, "black images have no components"
    assert torch.allclose(found, flat.float() @ (basis[1:] - basis[0]), atol=1e-3)
    gram = (basis[1:].T @ basis[1:]).numpy()
    assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-3 * gram.max()


def test_layers_of_an_encoder_make_a_map(trained: tuple[Encoder, float]):
    map_ = perceptual(trained[0].network("stripes"), SHAPE)
    assert map_.source.layers == ("conv1", "conv2")
    assert map_.sizes == (6 * 16, 8 * 4)


def test_too_few_images_are_refused():
    with pytest.raises(InputError, match="too few"):
        train_encoder(np.zeros((1, 8, 8), np.uint8), np.zeros(1, np.int64), TINY)


def models_of(module: torch.nn.Module) -> Any:
    """What stands for torchvision.models: the same names, a tiny network."""
    weights = SimpleNamespace(IMAGENET1K_V1="downloaded")
    given = []

    def make(*, weights: str) -> torch.nn.Module:
        given.append(weights)
        return module

    return SimpleNamespace(vgg19=make, resnet18=make, VGG19_Weights=weights, ResNet18_Weights=weights, given=given)


def tiny_vgg() -> torch.nn.Module:
    features = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.ReLU(inplace=True),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 5, 3, padding=1),
        torch.nn.ReLU(inplace=True),
    )
    whole = torch.nn.Module()
    whole.features = features
    return whole


def test_vgg19_of_torchvision_gives_its_convolutions_before_their_activations():
    models = models_of(tiny_vgg())
    network = vision_network("vgg19", models)
    assert models.given == ["downloaded"]
    assert network.layers == ("0", "3")
    map_ = perceptual(network, ImageShape(28, 28))
    assert map_.sizes == (4 * 32 * 32, 5 * 16 * 16)
    assert (map_(np.random.default_rng(0).random((2, 784))) < 0).any()


def test_resnet18_of_torchvision_is_taken_whole():
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    module.train()
    network = vision_network("resnet18", models_of(module))
    assert network.layers == ("0",)
    assert not network.module.training, "batch normalisation must not look at the batch"


def test_weights_that_cannot_be_had_are_refused():
    def offline(*, weights: str) -> None:
        raise OSError

    models = models_of(tiny_vgg())
    models.vgg19 = offline
    with pytest.raises(InputError, match="cannot be downloaded"):
        vision_network("vgg19", models)
