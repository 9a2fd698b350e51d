"""Can synthetic rows be told from real ones: by boosted trees, by a kernel, or because they copy real rows?

A classifier two-sample test (Lopez-Paz & Oquab 2017), the maximum mean discrepancy (Gretton et al. 2012), and distances
to the nearest real row. None of it is the privacy guarantee, which is a theorem about the release (epsilon and delta of
the certificate): a generator that copies rows shows in these distances, one that leaks otherwise does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats
from understudy.evaluation.models import one_thread
from understudy.evaluation.tables import CodedTable

SCALED_ON = 1000
"""Rows whose median distance is the kernel's length scale."""

MOST_ROWS = 50_000
NUM_FREQUENCIES = 256
"""Of random Fourier features: the kernel errs by about 1 / sqrt(256)."""

NUM_PERMUTATIONS = 199
"""With the observed order 200, so that p-values are multiples of 0.005."""

FEWEST_KNOWN = 50
"""With fewer numbers in a column a fold may have none, of which boosted trees can make no bins."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """Numbers in units of their deviation, choices on the corners of a simplex.

    Two different categories are 1 apart, as two numbers are that differ by one deviation. A
    number's null lies at its mean and 1 away from every number that is there.
    """

    centre: Floats
    deviation: Floats
    """Of every column; those of choices are not used.  # (num_columns,)"""
    length_scale: float = 1.0

    def points(self, table: CodedTable) -> Floats:
        """One point per row.  # (num_rows, num_axes)"""
        parts: list[Floats] = []
        for position, column in enumerate(table.columns):
            if column.is_choice:
                corners = np.eye(len(column.categories) + 2) / np.sqrt(2)
                parts.append(corners[table.bins[:, position]])
            else:
                scaled = (table.values[:, [position]] - self.centre[position]) / self.deviation[position]
                missing = np.isnan(scaled)
                parts += [np.where(missing, 0.0, scaled), missing.astype(np.float64)]
        return np.concatenate(parts, axis=1)


def make_geometry(real: CodedTable, *, seed: int) -> Geometry:
    """Units from the real rows; the length scale is the median distance between some of them."""
    from scipy.spatial.distance import pdist

    # Of choices only, or of a column of nulls, there is nothing to take the mean of.
    known = np.where(np.isnan(real.values).all(axis=0), 0.0, real.values)
    centre, deviation = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    found = Geometry(centre, np.where(deviation > 0, deviation, 1.0))
    order = np.random.default_rng(seed).permutation(len(real))[:SCALED_ON]
    return replace(found, length_scale=float(np.median(pdist(found.points(real.take(order))))) or 1.0)


def two_sample_auc(
    real: CodedTable,
    synthetic: CodedTable,
    *,
    binned: bool,
    seed: int = 0,
    most_rows: int = MOST_ROWS,
    num_folds: int = 5,
) -> float:
    """ROC-AUC of a classifier that tells real from synthetic rows, over held-out folds.

    Both sides have equally many rows, at most ``most_rows``. A category is its code, null 0; a
    number is its bin of 20 with ``binned``, else itself with NaN for null. A row that occurs on
    both sides counts as it is: methods that repeat real rows are not found out here.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    num_rows = min(len(real), len(synthetic), most_rows)
    rng = np.random.default_rng(seed)
    sides = [
        (table.bins.astype(np.float64) if binned else table.values)[rng.choice(len(table), num_rows, replace=False)]
        for table in (real, synthetic)
    ]
    rows, is_synthetic = _fit_for_trees(np.concatenate(sides)), np.repeat([0, 1], num_rows)
    with one_thread():
        guesses = cross_val_predict(
            HistGradientBoostingClassifier(random_state=seed),
            rows,
            is_synthetic,
            cv=StratifiedKFold(num_folds, shuffle=True, random_state=seed),
            method="predict_proba",
        )
    return float(roc_auc_score(is_synthetic, guesses[:, 1]))


def _fit_for_trees(rows: Floats) -> Floats:
    """Null is one more number, below all others, where a column holds little else."""
    missing = np.isnan(rows)
    lowest = np.where(missing, 0.0, rows).min(axis=0) - 1
    is_rare = (~missing).sum(axis=0) < FEWEST_KNOWN
    return np.where(missing & is_rare, lowest, rows)


def kernel_test(left: CodedTable, right: CodedTable, *, geometry: Geometry, seed: int) -> tuple[float, float]:
    """Maximum mean discrepancy and its p-value under permutations of the rows.

    The kernel is Gaussian, with the geometry's length scale, by random Fourier features (Rahimi and
    Recht 2007): the discrepancy is the distance between two mean features, and a permutation costs
    one row of a matrix product. The p-value counts the observed order as a permutation, so that it
    is valid for any number of them.
    """
    rng = np.random.default_rng(seed)
    points = np.concatenate([geometry.points(left), geometry.points(right)])
    features = _fourier(points, geometry.length_scale, rng)
    signs = np.repeat([1 / len(left), -1 / len(right)], [len(left), len(right)])
    orders = np.stack([signs, *(rng.permutation(signs) for _ in range(NUM_PERMUTATIONS))])
    distances = np.linalg.norm(orders.astype(np.float32) @ features, axis=1)
    # The observed order is among those counted; a hair of slack keeps ties ties.
    p_value = (distances >= distances[0] * (1 - 1e-6)).mean()
    return float(distances[0]), float(p_value)


def _fourier(points: Floats, length_scale: float, rng: np.random.Generator) -> Floats:
    frequencies = rng.standard_normal((points.shape[1], NUM_FREQUENCIES)) / length_scale
    phases = (points @ frequencies).astype(np.float32)
    features = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
    return np.asarray(features / np.sqrt(NUM_FREQUENCIES, dtype=np.float32))


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
