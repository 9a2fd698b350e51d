"""Images as points that a network, or a cosine transform, makes of them, and metrics over such points.

Frechet distance (FID, if the network is Inception), coverage (Naeem et al. 2020) and the number of statistically
different bins (NDB; Richardson & Weiss 2018): do synthetic points lie where real ones do, as often, and everywhere?
"""

from __future__ import annotations

import math
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


NUM_CLUSTERS = 50
NEIGHBOURS = 5
"""The neighbour up to which a real point counts as covered."""

DEVIATIONS_AT_5_PERCENT = 1.959964
"""What a normal law exceeds, on either side, in one of twenty comparisons."""


def frechet_distance(one: Floats, other: Floats) -> float:
    """Squared distance between the Gaussians of two sets of points (FID, if an Inception network made them)."""
    means = one.mean(axis=0) - other.mean(axis=0)
    first, second = (np.atleast_2d(np.cov(points.T)) for points in (one, other))
    root = _root(first)
    middle = np.linalg.eigvalsh(root @ second @ root)
    common = np.sqrt(np.maximum(middle, 0.0)).sum()
    return max(0.0, float(means @ means + np.trace(first) + np.trace(second) - 2 * common))


def coverage(real: Floats, synthetic: Floats) -> float:
    """Share of real points that have a synthetic one nearer than their fifth real neighbour."""
    from sklearn.neighbors import NearestNeighbors

    among = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(real)), algorithm="brute").fit(real)
    reach = among.kneighbors(real)[0][:, -1]
    nearest = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(synthetic).kneighbors(real)[0]
    return float((nearest[:, 0] <= reach).mean())


def bins_apart(real: Floats, synthetic: Floats, *, seed: int) -> float:
    """Share of bins, clusters of real points, that hold another share of synthetic points than chance allows."""
    from sklearn.cluster import KMeans

    num_bins = min(NUM_CLUSTERS, max(2, len(real) // 20))
    clusters = KMeans(num_bins, n_init=1, random_state=seed).fit(real)
    sizes = len(real), len(synthetic)
    counts = [np.bincount(labels, minlength=num_bins) for labels in (clusters.labels_, clusters.predict(synthetic))]
    shares = [count / size for count, size in zip(counts, sizes, strict=True)]
    pooled = (counts[0] + counts[1]) / sum(sizes)
    chance = np.sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]))
    apart = np.abs(shares[0] - shares[1]) > DEVIATIONS_AT_5_PERCENT * np.maximum(chance, math.ulp(1.0))
    return float(apart.mean())


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
