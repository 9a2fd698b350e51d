"""Pretrained public networks: preprocessing, fingerprints, the registry by hash, and torchvision's models.

A plan names a network by the SHA-256 of its form and its weights. Whoever evaluates one must have registered it
first; a plan, a certificate and a verification do without. Known by name are VGG19, ResNet18 and Inception, trained on
ImageNet, whose weights torchvision downloads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import load_torch
from understudy.codec import encode
from understudy.errors import InputError, MissingExtraError

Weights = dict[str, npt.NDArray[Any]]

PIXELS = "pixels"
"""The layer that every network has: the image itself, from 0 to 1, before anything is done to it."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Preprocessing of a network's input: channels, the mean and deviation of each, and a size.

    Without a ``size`` (height, width) images come as they are; else they are scaled to it.
    """

    channels: int = 1
    means: tuple[float, ...] = (0.0,)
    deviations: tuple[float, ...] = (1.0,)
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class PublicNetwork:
    """A torch network with public weights.

    ``build`` makes the module, ready to be evaluated, when it is first wanted. ``layers`` are names
    of its modules whose outputs are features unless others are asked for.
    """

    name: str
    sha256: str
    intake: Intake
    layers: tuple[str, ...]
    build: Callable[[Any], Any] = field(compare=False, repr=False)
    trained_on: str = ""
    """What it was trained on, in a few words."""
    private_cost: dict[str, Any] | None = None
    """What a noisy descent cost that learnt it from the private rows; none, if it was public before."""

    @cached_property
    def module(self) -> Any:
        """The module: evaluated only, never trained."""
        module = self.build(load_torch()).train(False)
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        return module


_REGISTERED: dict[str, PublicNetwork] = {}


def register_network(network: PublicNetwork) -> PublicNetwork:
    """Register a network in this process, for feature maps that name it by its hash."""
    return _REGISTERED.setdefault(network.sha256, network)


def registered_network(sha256: str, name: str) -> PublicNetwork:
    """The registered network with that hash; ``name`` is for the refusal if there is none."""
    if sha256 in _REGISTERED:
        return _REGISTERED[sha256]
    raise InputError(
        f"network '{name}'",
        f"the one with SHA-256 {sha256[:16]}... is not at hand",
        "Give the directory or name of the network that the release was planned with: --encoder",
    )


def fingerprint(form: Mapping[str, Any], weights: Weights) -> str:
    """SHA-256 of what a network does: its form, and every weight with name, type and shape."""
    digest = hashlib.sha256(json.dumps(form, sort_keys=True, ensure_ascii=True).encode())
    for name in sorted(weights):
        tensor = np.ascontiguousarray(weights[name])
        digest.update(json.dumps([name, tensor.dtype.str, list(tensor.shape)]).encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()


def network_of_module(
    module: Any, *, name: str, intake: Intake, layers: tuple[str, ...], trained_on: str = ""
) -> PublicNetwork:
    """Register any torch module; its fingerprint is of its printed form and its weights."""
    weights = {key: value.detach().cpu().numpy() for key, value in module.state_dict().items()}
    sha256 = fingerprint({"module": str(module), "intake": encode(intake)}, weights)
    network = PublicNetwork(name, sha256, intake, layers, lambda torch: module, trained_on)
    return register_network(network)


IMAGENET = Intake(3, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), (32, 32))
"""ImageNet's means and deviations of red, green and blue, as torchvision's models were trained with."""


@dataclass(frozen=True, slots=True)
class VisionModel:
    """Where a model and its weights are in ``torchvision.models``, and which layers are features."""

    model: str
    weights: str
    layers: Callable[[Any], tuple[str, ...]]
    body: Callable[[Any], Any]
    size: int = 32


def _convolutions(module: Any) -> tuple[str, ...]:
    """Every convolution: its output before the activation (DP-MEPF, sec. 6)."""
    return tuple(name for name, part in module.named_modules() if type(part).__name__ == "Conv2d")


VISION = {
    "vgg19": VisionModel("vgg19", "VGG19_Weights", _convolutions, lambda module: module.features),
    "resnet18": VisionModel("resnet18", "ResNet18_Weights", _convolutions, lambda module: module),
    "inception": VisionModel(
        "inception_v3", "Inception_V3_Weights", lambda module: ("avgpool",), lambda module: module, 299
    ),
}


def vision_network(name: str, models: Any = None) -> PublicNetwork:
    """A pretrained network of torchvision by name, registered.

    Args:
        name: ``vgg19``, ``resnet18`` or ``inception``.
        models: what stands for ``torchvision.models``.
    """
    wanted = VISION[name]
    module = _with_weights(models if models is not None else _models(), wanted)
    body = wanted.body(module.train(False))
    return network_of_module(
        body,
        name=name,
        intake=replace(IMAGENET, size=(wanted.size,) * 2),
        layers=wanted.layers(body),
        trained_on="ImageNet (torchvision)",
    )


def _models() -> Any:
    try:
        import torchvision
    except ModuleNotFoundError:
        raise MissingExtraError("torchvision", "vision") from None
    return torchvision.models


def _with_weights(models: Any, wanted: VisionModel) -> Any:
    try:
        return getattr(models, wanted.model)(weights=getattr(models, wanted.weights).IMAGENET1K_V1)
    except (OSError, RuntimeError):
        pass
    raise InputError(
        f"weights of '{wanted.model}'",
        "are not in torchvision's cache and cannot be downloaded",
        "Fetch them where there is a network, or train an encoder: understudy encoder train",
    )
