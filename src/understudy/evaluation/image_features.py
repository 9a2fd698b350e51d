"""Images as points in which distances mean something: what a network, or cosines, make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from understudy.arrays import Floats
from understudy.errors import UsageError
from understudy.evaluation.prediction import Examples
from understudy.features.image_bases import Cosines
from understudy.networks.activations import activations_of_rows, sizes_of
from understudy.networks.public import PublicNetwork
from understudy.schema.images import LIGHTEST, ImageShape

NUM_COSINES = 64
MOST_FEATURES = 2048


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """A named map from pixels, in [0, 1], to points."""

    name: str
    of: Callable[[Floats], Floats]
    """# (num_images, num_pixels) -> (num_images, num_features)"""


def features_for(shape: ImageShape, real: Examples | None, *, seed: int) -> ImageFeatures:
    """A small network trained to tell classes of real images apart; without classes, low frequencies.

    Args:
        shape: of the images.
        real: images to learn from, with their classes.
        seed: of the training.
    """
    if real is None or find_spec("torch") is None:
        cosines = Cosines(shape)
        count = min(NUM_COSINES, shape.num_pixels)
        return ImageFeatures(
            f"the {count} lowest cosine coefficients", lambda pixels: cosines.coefficients(pixels)[:, :count]
        )
    from understudy.evaluation.convolution import SmallNetwork

    network = SmallNetwork(shape.height, shape.width, shape.channels, seed=seed)
    network.fit(real.inputs[:, : shape.num_pixels] / LIGHTEST, real.target)
    return ImageFeatures("a small network that learnt the classes of the real images", network.features)


def network_features(network: PublicNetwork, shape: ImageShape) -> ImageFeatures:
    """What the last of a public network's layers makes of images; with Inception, distances are FIDs."""
    layers = network.layers[-1:]
    (size,) = sizes_of(network, shape, layers)
    if size > MOST_FEATURES:
        raise UsageError(
            "encoder", f"layer '{layers[0]}' has more than {MOST_FEATURES} numbers", "Use a network that ends in fewer"
        )
    return ImageFeatures(
        f"layer '{layers[0]}' of the network '{network.name}'",
        lambda pixels: activations_of_rows(network, pixels, shape, layers)[0].astype(np.float64),
    )


def pixels_of(values: Floats, shape: ImageShape) -> Floats:
    """Pixels of a table of images, in [0, 1]; null is black."""
    return np.nan_to_num(values[:, : shape.num_pixels] / LIGHTEST, nan=0.0)
