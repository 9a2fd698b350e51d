"""Rows as points, so that a distance between rows of mixed columns means something."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.evaluation.tables import CodedTable

SCALED_ON = 1000


@dataclass(frozen=True, eq=False)
class Geometry:
    """Numbers in units of their deviation, choices on the corners of a simplex.

    Two different categories are 1 apart, as two numbers are that differ by one deviation. A
    number's null lies at its mean and 1 away from every number that is there.
    """

    centre: Floats
    deviation: Floats
    """Of every column; those of choices are not used.  # (num_columns,)"""
    length_scale: float

    def points(self, table: CodedTable) -> Floats:
        """One point per row.  # (num_rows, num_axes)"""
        return _points(table, self.centre, self.deviation)


def make_geometry(real: CodedTable, *, seed: int) -> Geometry:
    """Units from the real rows; the length scale is the median distance between some of them."""
    from scipy.spatial.distance import pdist

    # Of choices only, or of a column of nulls, there is nothing to take the mean of.
    known = np.where(np.isnan(real.values).all(axis=0), 0.0, real.values)
    centre, deviation = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    order = np.random.default_rng(seed).permutation(len(real))[:SCALED_ON]
    distances = pdist(_points(real.take(order), centre, deviation))
    return Geometry(centre, deviation, float(np.median(distances)) or 1.0)


def _points(table: CodedTable, centre: Floats, deviation: Floats) -> Floats:
    parts: list[Floats] = []
    for position, column in enumerate(table.columns):
        if column.is_choice:
            corners = np.eye(len(column.categories) + 2) / np.sqrt(2)
            parts.append(corners[table.bins[:, position]])
        else:
            scaled = (table.values[:, [position]] - centre[position]) / deviation[position]
            missing = np.isnan(scaled)
            parts += [np.where(missing, 0.0, scaled), missing.astype(np.float64)]
    return np.concatenate(parts, axis=1)


# Where the true distribution is known: a mixture of round Gaussians, each of one class.


@dataclass(frozen=True, eq=False)
class LabelledMixture:
    """Equally likely Gaussians N(centre, deviation^2 I), and the class of each."""

    centres: Floats
    """# (num_modes, num_dimensions)"""
    classes: Integers
    """# (num_modes,)"""
    deviation: float

    def negative_log_likelihood(self, points: Floats, classes: Integers) -> Floats:
        """-log p(point, class) of every row, in nats; infinite for a class that has no mode."""
        num_modes, num_dimensions = self.centres.shape
        variance = self.deviation**2
        logs = (
            -self._squares(points) / (2 * variance)
            - num_dimensions / 2 * np.log(2 * np.pi * variance)
            - np.log(num_modes)
        )
        logs[classes[:, None] != self.classes] = -np.inf
        return -np.asarray(np.logaddexp.reduce(logs, axis=1))

    def modes_found(self, points: Floats, classes: Integers, *, least_share: float = 0.01) -> int:
        """How many modes hold at least that share of the rows, with the right class."""
        nearest = self._squares(points).argmin(axis=1)
        right = nearest[self.classes[nearest] == classes]
        counts = np.bincount(right, minlength=len(self.centres))
        return int((counts / len(points) >= least_share).sum())

    def _squares(self, points: Floats) -> Floats:
        squares: Floats = ((points[:, None] - self.centres) ** 2).sum(axis=2)
        return squares  # (num_rows, num_modes)


# Do synthetic points lie where real ones do, as often, and everywhere?

NUM_BINS = 50
NEIGHBOURS = 5
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


# How near synthetic rows come to real ones. None of it is the privacy guarantee.
#
# The guarantee is a theorem about the release (epsilon and delta of the certificate). Distances are a
# plausibility check: a generator that copies shows in them, one that leaks otherwise does not.


def nearest_distances(rows: CodedTable, real: CodedTable, *, geometry: Geometry) -> Floats:
    """Distance of each row to the nearest real one."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(geometry.points(real))
    distances: Floats = search.kneighbors(geometry.points(rows))[0][:, 0]
    return distances


def copied_share(rows: CodedTable, real: CodedTable) -> float:
    """Share of the rows that equal a real one in every cell."""
    return float(np.isin(_as_keys(rows), _as_keys(real)).mean())


def _as_keys(table: CodedTable) -> npt.NDArray[np.void]:
    cells = np.where(np.isnan(table.values), np.nan, table.values + 0.0)  # one NaN, one zero
    rows = np.ascontiguousarray(cells)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
