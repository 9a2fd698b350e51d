"""An auto-encoder as plain functions of its parameters and one image, for per-example gradients in DP-SGD.

Written in methods that arrays of torch have, so that nothing here needs torch itself. The
first version of DP-MERF has batch normalisation in its encoder; here every image stands alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Parameters = dict[str, Any]
Arrays = dict[str, npt.NDArray[np.float32]]
DECODER = "decoder."
"""How names of the decoder's parameters begin; the others are never released."""

SMALLEST_SQUARED_DISTANCE = 1e-6
"""Squared distances are taken to be at least so much, as the root's gradient at zero is infinite."""


@dataclass(frozen=True, slots=True)
class AutoEncoder:
    """Widths, and the loss of one image.

    The encoder has layers of ``encoder`` widths and the decoder one hidden layer, as in the paper. ``siamese`` is the
    weight of the siamese loss against squared errors of pixels. The paper takes it over pairs of images: codes of
    one class within ``margin``, of two classes further apart. A gradient would then hang on two images. So
    the partners are public here: class c has its place at two margins on the c-th axis of the codes.
    """

    num_pixels: int
    num_labels: int = 1
    code_dim: int = 10
    encoder: tuple[int, ...] = (100, 50)
    decoder: int = 100
    margin: float = 1.0
    siamese: float = 1.0

    def __post_init__(self) -> None:
        if self.code_dim < self.num_labels:
            raise ValueError("codes have an axis for every class")

    def first_parameters(self, seed: int) -> Arrays:
        """Initial parameters from a public seed: uniform weights of variance 1 / inputs (LeCun), zero biases."""
        rng = np.random.default_rng(seed)
        widths = {
            "encoder": (self.num_pixels, *self.encoder, self.code_dim),
            "decoder": (self.code_dim, self.decoder, self.num_pixels),
        }
        found = {}
        for part, sizes in widths.items():
            for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
                bound = math.sqrt(3 / inputs)
                weights = rng.uniform(-bound, bound, (inputs, outputs))
                found[f"{part}.{layer}.weight"] = weights.astype(np.float32)
                found[f"{part}.{layer}.bias"] = np.zeros(outputs, dtype=np.float32)
        return found

    def encode(self, parameters: Parameters, images: Any) -> Any:
        """Codes.  # (…, num_pixels) -> (…, code_dim)"""
        hidden = images - 0.5
        for layer in range(len(self.encoder)):
            hidden = _dense(parameters, f"encoder.{layer}", hidden).clamp(min=0.0)
        return _dense(parameters, f"encoder.{len(self.encoder)}", hidden)

    def decode(self, parameters: Parameters, codes: Any) -> Any:
        """Images in [0, 1].  # (…, code_dim) -> (…, num_pixels)"""
        hidden = _dense(parameters, "decoder.0", codes).clamp(min=0.0)
        return _dense(parameters, "decoder.1", hidden).sigmoid()

    def loss(self, parameters: Parameters, image: Any, one_hot: Any) -> Any:
        """Squared error of one image's pixels, and how far its code is from where its class should be."""
        code = self.encode(parameters, image)
        errors = ((self.decode(parameters, code) - image) ** 2).sum()
        if self.num_labels == 1:
            return errors
        reach = 2 * self.margin
        squares = (code**2).sum() - 2 * reach * code[: self.num_labels] + reach**2  # to each place
        beyond = squares.clamp(min=SMALLEST_SQUARED_DISTANCE).sqrt() - self.margin
        pulled = one_hot * beyond.clamp(min=0.0) - (1 - one_hot) * beyond.clamp(max=0.0)
        return errors + self.siamese * pulled.sum()


def _dense(parameters: Parameters, name: str, inputs: Any) -> Any:
    """A layer, summed product by product: a matrix product of several images may sum the first of them otherwise
    than the last, and then an image's gradient would hang on how many are before it.
    """
    products = inputs[..., :, None] * parameters[f"{name}.weight"]
    return products.sum(-2) + parameters[f"{name}.bias"]
