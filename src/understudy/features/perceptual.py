"""Perceptual features: normalised activations of a public network's layers, whose moments DP-MEPF releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import array_api_compat
import numpy as np

from understudy.codec import FLAT
from understudy.features.base import MAP_KINDS, Array, FeatureMap, PublicInput, Sign
from understudy.features.exact import whole_rows
from understudy.networks.activations import activations, activations_of_rows, sizes_of
from understudy.networks.public import PublicNetwork, registered_network
from understudy.schema.images import ImageShape

TINY = 1e-20
"""Keeps the slope of a norm finite at zero."""


@dataclass(frozen=True)
class NetworkLayers(PublicInput):
    """Which layers of which public network features are taken from."""

    network: str
    sha256: str
    layers: tuple[str, ...]


@MAP_KINDS.register("perceptual")
@dataclass(frozen=True)
class Perceptual(FeatureMap):
    """Activations of several layers (``moment`` 1) or their squares (2), each layer alike.

    A layer's numbers are divided by their Euclidean norm, so that every row has norm 1 in each of L
    layers, over sqrt(L). With ``rectified`` negative activations count as zero: what a ReLU after
    the layer would leave.

    The weights are not here: ``source`` says which network's layers they are (``public_networks``).
    """

    shape: ImageShape
    source: NetworkLayers = field(metadata=FLAT)
    sizes: tuple[int, ...]
    moment: int = 1
    rectified: bool = False
    words = "activations of a public network"

    def __post_init__(self) -> None:
        layers = self.source.layers
        if not layers or len(layers) != len(self.sizes) or min(self.sizes) < 1:
            raise ValueError("there are layers, each with a size")
        if len(set(layers)) < len(layers) or self.moment not in (1, 2):
            raise ValueError("layers differ, and there are two moments")

    @property
    def dim(self) -> int:
        """Numbers of all layers."""
        return sum(self.sizes)

    @property
    def sign(self) -> Sign:
        """Squares are never negative, nor is what a ReLU leaves."""
        return Sign.NONNEGATIVE if self.moment == 2 or self.rectified else Sign.SIGNED

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, dim)"""
        network = registered_network(self.source.sha256, self.source.network)
        if array_api_compat.is_torch_array(cells):
            found = activations(network, cells, self.shape, self.source.layers)
            return self.of_activations(found).to(cells.dtype)
        rows = activations_of_rows(network, np.asarray(cells), self.shape, self.source.layers)
        return self.of_activations([layer.astype(np.float64) for layer in rows])

    def of_activations(self, layers: Sequence[Array]) -> Array:
        """Features from the outputs of the layers, in torch differentiable.  # (num_rows, dim)"""
        xp = array_api_compat.array_namespace(layers[0])
        found = [_unit(self._moment_of(layer)) for layer in layers]
        return xp.concat(found, axis=1) / math.sqrt(len(found))

    def _moment_of(self, layer: Array) -> Array:
        values = layer.clip(0.0) if self.rectified else layer
        return values**2 if self.moment == 2 else values


def perceptual(
    network: PublicNetwork,
    shape: ImageShape,
    *,
    layers: tuple[str, ...] | None = None,
    moment: int = 1,
    rectified: bool = False,
) -> Perceptual:
    """The map of a network for images of a shape; by default of the layers that it was made for."""
    chosen = layers or network.layers
    sizes = sizes_of(network, shape, chosen)
    return Perceptual(shape, NetworkLayers(network.name, network.sha256, chosen), sizes, moment, rectified)


def _unit(values: Array) -> Array:
    """Rows over their norms, in NumPy the same whatever rows stand around; rows of zeros stay.

    Norms are of whole numbers, whose squares add up exactly in any order.
    """
    if array_api_compat.is_torch_array(values):
        return values / ((values**2).sum(1, keepdim=True) + TINY).sqrt()
    whole, _ = whole_rows(values)
    squares = (whole**2).sum(axis=1, keepdims=True)
    return np.asarray(whole / np.sqrt(np.maximum(squares, 1.0)))
