"""A small convolutional encoder (feature extractor): its architecture, its weights, and its directory of files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from understudy.codec import decode, encode
from understudy.errors import InputError
from understudy.files import CERTIFICATE, read_json, read_tensors, to_json, write_directory
from understudy.networks.public import Intake, PublicNetwork, Weights, fingerprint, register_network
from understudy.schema.images import ImageShape

COMPONENTS = "components"
"""The layer of linear components: coordinates of an image in a public basis of few dimensions."""

DOCUMENT = "encoder.json"
WEIGHTS = "encoder.safetensors"


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
        nn, form = torch.nn, self

        class Module(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.components = nn.Linear(form.image.num_pixels, form.components)
                before = form.image.channels
                parts = zip(form.convolutions, form.depths, form.strides, form.kernels, strict=True)
                for name, depth, stride, kernel in parts:
                    convolution = nn.Conv2d(before, depth, kernel, stride, padding=kernel // 2)
                    self.add_module(name, convolution)
                    before = depth

            def forward(self, images: Any) -> Any:
                self.components(images.flatten(1))
                for name in form.convolutions:
                    images = torch.relu(getattr(self, name)(images))
                return images

        return Module()


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
    return (Path(directory) / DOCUMENT).is_file()


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
