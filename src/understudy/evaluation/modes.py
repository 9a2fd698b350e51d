"""Do synthetic points lie where real ones do, as often, and everywhere?"""

from __future__ import annotations

import math

import numpy as np

from understudy.arrays import Floats

NUM_BINS, NEIGHBOURS = 50, 5
LEVEL = 1.959964
"""Deviations that chance leaves in one of twenty comparisons."""


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

    num_bins = min(NUM_BINS, max(2, len(real) // 20))
    clusters = KMeans(num_bins, n_init=1, random_state=seed).fit(real)
    sizes = len(real), len(synthetic)
    counts = [np.bincount(labels, minlength=num_bins) for labels in (clusters.labels_, clusters.predict(synthetic))]
    shares = [count / size for count, size in zip(counts, sizes, strict=True)]
    pooled = (counts[0] + counts[1]) / sum(sizes)
    chance = np.sqrt(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]))
    apart = np.abs(shares[0] - shares[1]) > LEVEL * np.maximum(chance, math.ulp(1.0))
    return float(apart.mean())


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
