"""Networks of torchvision with weights that it downloads: VGG19, ResNet18 and Inception, trained on ImageNet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from understudy.errors import InputError, MissingExtraError
from understudy.networks.public import Intake, PublicNetwork, network_of_module

IMAGENET = Intake(3, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), (32, 32))
"""What all want: colours over ImageNet's means and deviations. Images are scaled, most to 32 x 32."""


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
    """A network of torchvision by name, on the shelf.

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
        told="ImageNet (torchvision)",
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
