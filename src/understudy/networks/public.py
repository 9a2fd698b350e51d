"""Public networks: preprocessing, fingerprints, the registry by hash, small encoders of our own, torchvision's models.

A plan names a network by the SHA-256 of its form and its weights. Whoever evaluates one must have registered it
first; a plan, a certificate and a verification do without. An encoder (feature extractor) is an architecture with
weights, and a directory of files. Known by name are VGG19, ResNet18 and Inception, trained on ImageNet, whose weights
torchvision downloads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from understudy.arrays import load_torch
from understudy.codec import decode, encode
from understudy.errors import InputError, MissingExtraError
from understudy.files import CERTIFICATE, has_file, read_json, read_tensors, to_json, write_directory
from understudy.schema.images import ImageShape

Weights = dict[str, npt.NDArray[Any]]

COMPONENTS = "components"
"""The layer of linear components: coordinates of an image in a public basis of few dimensions."""

DOCUMENT = "encoder.json"
WEIGHTS = "encoder.safetensors"

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


@dataclass(frozen=True, slots=True)
class EncoderForm:
    """Convolutions with rectified units after each, beside linear components of the whole image.

    Layers are called ``conv1``, ``conv2``, ... and ``components``.
    """

    image: ImageShape
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    depths: tuple[int, ...]
    strides: tuple[int, ...]
    kernels: tuple[int, ...]
    components: int

    def __post_init__(self) -> None:
        if not 0 < len(self.depths) == len(self.strides) == len(self.kernels):
            raise ValueError("every convolution has a depth, a stride and a width")
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise ValueError("widths of convolutions are odd")

    @property
    def convolutions(self) -> tuple[str, ...]:
        return tuple(f"conv{i + 1}" for i in range(len(self.depths)))

    @property
    def intake(self) -> Intake:
        """Preprocessing of images."""
        size = (self.image.height, self.image.width)
        return Intake(self.image.channels, self.means, self.deviations, size)

    def build(self, torch: Any) -> Any:
        """A new module, with random weights."""
        module = torch.nn.ModuleDict({COMPONENTS: torch.nn.Linear(self.image.num_pixels, self.components)})
        before = self.image.channels
        parts = zip(self.convolutions, self.depths, self.strides, self.kernels, strict=True)
        for name, depth, stride, kernel in parts:
            module[name] = torch.nn.Conv2d(before, depth, kernel, stride, padding=kernel // 2)
            before = depth

        def forward(images: Any) -> Any:
            module[COMPONENTS](images.flatten(1))
            for name in self.convolutions:
                images = torch.relu(module[name](images))
            return images

        module.forward = forward
        return module


@dataclass(frozen=True)
class Encoder:
    """An architecture with weights, and what they were trained on, in a few words."""

    form: EncoderForm
    weights: Weights
    trained_on: str = ""
    private_cost: dict[str, Any] | None = None
    """What learning it from private rows cost, if it was (``ExtractorPlan.cost``)."""

    @property
    def sha256(self) -> str:
        """The hash by which plans name it."""
        cost = {"private_cost": self.private_cost} if self.private_cost else {}
        return fingerprint(encode(self.form) | cost, self.weights)

    def network(self, name: str) -> PublicNetwork:
        """Build the network and register it for feature maps.

        Raises:
            ValueError: the weights are those of another form.
        """

        def build(torch: Any) -> Any:
            with torch.random.fork_rng(devices=[]):
                module = self.form.build(torch)
            state = {key: torch.from_numpy(np.array(value)) for key, value in self.weights.items()}
            try:
                module.load_state_dict(state)
            except RuntimeError:
                raise ValueError("the weights do not fit the encoder") from None
            return module

        form = self.form
        return register_network(
            PublicNetwork(name, self.sha256, form.intake, form.convolutions, build, self.trained_on, self.private_cost)
        )


def save_encoder(encoder: Encoder, directory: str | Path) -> Path:
    """Write a public encoder into a new directory."""
    files = {DOCUMENT: to_json(document_of(encoder)), WEIGHTS: weights_of(encoder)}
    return write_directory(directory, files)


def document_of(encoder: Encoder) -> dict[str, Any]:
    """An encoder without its weights; it holds their hash."""
    return {
        "format": 1,
        "form": encode(encoder.form),
        "told": encoder.trained_on,
        "sha256": encoder.sha256,
        "private_cost": encoder.private_cost,
    }


def weights_of(encoder: Encoder) -> bytes:
    """The weights as safetensors bytes."""
    return bytes(safetensors.numpy.save(encoder.weights))


def is_encoder(directory: str | Path) -> bool:
    """Whether a directory is an encoder's."""
    return has_file(directory, DOCUMENT)


def load_encoder(directory: str | Path) -> Encoder:
    """Read an encoder back; its weights, and what it cost, must be what it was saved with.

    One that has a certificate was learnt from private rows, and is refused if it does not say at which cost.
    """
    folder = Path(directory)
    try:
        document, weights = read_json(folder / DOCUMENT), read_tensors(folder / WEIGHTS)
        form, cost = decode(EncoderForm, document["form"]), document["private_cost"]
        encoder = Encoder(form, weights, str(document["told"]), cost)
        is_product = "plan" in document or (folder / CERTIFICATE).exists()
        whole = encoder.sha256 == document["sha256"] and (cost or not is_product)
    except Exception:  # files may say anything
        whole = False
    if not whole:
        raise InputError(
            f"encoder '{folder}'", "is missing or damaged", "Make it: understudy encoder train PUBLIC -o DIR"
        )
    return encoder


IMAGENET = Intake(3, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), (32, 32))
"""ImageNet's means and deviations of red, green and blue, as torchvision's models were trained with."""


@dataclass(frozen=True, slots=True)
class VisionModel:
    """Where a model and its weights are in ``torchvision.models``.

    ``part`` is the module of it that is taken, by default the whole. ``layers`` are features, by default the output
    of every convolution before its activation (DP-MEPF, sec. 6). Images are scaled to ``size``.
    """

    model: str
    weights: str
    part: str = ""
    layers: tuple[str, ...] | None = None
    size: int = 32


VISION = {
    "vgg19": VisionModel("vgg19", "VGG19_Weights", part="features"),
    "resnet18": VisionModel("resnet18", "ResNet18_Weights"),
    "inception": VisionModel("inception_v3", "Inception_V3_Weights", layers=("avgpool",), size=299),
}


def vision_network(name: str, models: Any = None) -> PublicNetwork:
    """A pretrained network of torchvision by name, registered.

    Args:
        name: ``vgg19``, ``resnet18`` or ``inception``.
        models: what stands for ``torchvision.models``.
    """
    wanted, models = VISION[name], models or _models()
    try:
        module = getattr(models, wanted.model)(weights=getattr(models, wanted.weights).IMAGENET1K_V1)
    except (OSError, RuntimeError):
        raise InputError(
            f"weights of '{wanted.model}'",
            "are not in torchvision's cache and cannot be downloaded",
            "Fetch them where there is a network, or train an encoder: understudy encoder train",
        ) from None
    body = module.train(False).get_submodule(wanted.part)
    convolutions = tuple(own for own, part in body.named_modules() if type(part).__name__ == "Conv2d")
    return network_of_module(
        body,
        name=name,
        intake=replace(IMAGENET, size=(wanted.size,) * 2),
        layers=wanted.layers or convolutions,
        trained_on="ImageNet (torchvision)",
    )


def _models() -> Any:
    try:
        import torchvision
    except ModuleNotFoundError:
        raise MissingExtraError("torchvision", "vision") from None
    return torchvision.models
