"""Images from a network: the sampler. It needs torch, which is loaded when images are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, one_thread
from understudy.codec import decode, encode
from understudy.generators.base import GENERATOR_KINDS, LabelFirst, Tensors, image_shape
from understudy.generators.image_architectures import Architecture
from understudy.schema import NULL, Schema
from understudy.schema.images import LIGHTEST

IMAGES_AT_A_TIME = 2**10
"""Whose activations are held in memory together."""


@dataclass(frozen=True)
class ImageNetwork(LabelFirst):
    """Draws a class, then noise, and makes an image of both.

    ``weights`` are the module's state by name: what was learnt, and what batch normalisation has seen.
    """

    schema: Schema
    architecture: Architecture
    weights: Tensors
    default_num_rows: int
    label_shares: tuple[float, ...] = (1.0,)

    @cached_property
    def module(self) -> Any:
        """The network, ready to draw.

        Raises:
            ValueError: the weights are those of another network.
        """
        with one_thread() as torch:
            module = self.architecture.build(torch, image_shape(self.schema), len(self.label_shares))
            state = {name: torch.from_numpy(value.copy()) for name, value in self.weights.items()}
            try:
                module.load_state_dict(state)
            except RuntimeError:
                raise ValueError("the weights do not fit the network") from None
            return module.train(False)

    def codes(self, num_rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Codes of new images.  # (num_rows, num_used)"""
        pixels, label = image_shape(self.schema).num_pixels, self.schema.label
        found = np.empty((num_rows, len(self.schema.used)), dtype=np.int64)
        drawn = rng.choice(len(self.label_shares), size=num_rows, p=np.asarray(self.label_shares))
        for start in range(0, num_rows, IMAGES_AT_A_TIME):
            some = slice(start, start + IMAGES_AT_A_TIME)
            found[some, :pixels] = np.rint(self.images(drawn[some], rng) * LIGHTEST)
        if label is not None:
            found[:, pixels] = np.where(drawn < len(label.categories), drawn, NULL)
        return found

    def images(self, places: npt.NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """An image of each of these classes, in [0, 1].  # (num_images, num_pixels)"""
        one_hot = np.eye(len(self.label_shares))[places]
        with one_thread() as torch, torch.no_grad():
            inputs = draw_inputs(torch, one_hot, self.architecture.noise_dim, rng)
            pixels: Floats = by_pixel(self.module(inputs)).double().numpy()
        return pixels

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights."""
        return {
            "kind": "image-network",
            "architecture": encode(self.architecture),
            "default_num_rows": self.default_num_rows,
            "label_shares": list(self.label_shares),
        }

    def tensors(self) -> Tensors:
        """The weights."""
        return dict(self.weights)


def draw_inputs(torch: Any, one_hot: Floats, noise_dim: int, rng: np.random.Generator) -> Any:
    """Inputs of a network for images of these one-hot labels.  # (num_images, inputs)"""
    noise = rng.standard_normal((len(one_hot), noise_dim))
    return torch.from_numpy(np.concatenate([noise, one_hot], axis=1).astype(np.float32))


def by_pixel(images: Any) -> Any:
    """A module's images with pixels in the schema's order, (…, channels, height, width) to (…, num_pixels)."""
    return images.movedim(1, 3).reshape(len(images), -1)


def state_of(module: Any) -> Tensors:
    """What a trained module has learnt, as arrays."""
    return {name: value.detach().numpy().copy() for name, value in module.state_dict().items()}


def _load(schema: Schema, document: dict[str, Any], tensors: Tensors) -> ImageNetwork:
    found = ImageNetwork(
        schema=schema,
        architecture=decode(Architecture, document["architecture"]),
        weights=tensors,
        default_num_rows=int(document["default_num_rows"]),
        label_shares=tuple(float(share) for share in document["label_shares"]),
    )
    _ = found.module  # weights of another network are refused here, not when images are drawn
    return found


GENERATOR_KINDS["image-network"] = _load
