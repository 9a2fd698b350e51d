"""The experiments of Balog, Tolstikhin & Schölkopf (ICML 2018), App. B: data, points and distances.

The text has means of covariance 200 I and components of covariance 30 I. The published curves were
measured with *deviations* of 200 and 30 (their mean kernel value 0.21216 in two dimensions comes out
with those, and 0.98 with the text's), and public points drawn with a deviation of 500, so that is
what is drawn here, from the same public seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from understudy import load_schema
from understudy.schema import Schema

NUM_ROWS, DELTA = 100_000, 1e-6
COMPONENTS, CENTRE, BETWEEN, WITHIN, WIDE = 10, 100.0, 200.0, 30.0, 500.0
LOW, HIGH = -2500.0, 2500.0
"""Public bounds, wide enough for every point that is drawn; the paper's numbers are unbounded."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Rows in some dimension, and the kernel exp(-gamma |x - y|^2) with gamma = 1e-4 / dimension."""

    dimension: int
    num_rows: int = NUM_ROWS
    seed: int = 0
    _means: dict[bytes, float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def gamma(self) -> float:
        """Of the kernel."""
        return 1e-4 / self.dimension

    @property
    def length_scale(self) -> float:
        """The same in units of a column's range: gamma = 1 / (2 length_scale^2)."""
        return 1 / math.sqrt(2 * self.gamma) / (HIGH - LOW)

    @property
    def names(self) -> list[str]:
        """Columns."""
        return [f"x{j}" for j in range(self.dimension)]

    @cached_property
    def components(self) -> tuple[Floats, Floats]:
        """Means and shares of the mixture's components; the same for every seed of the rows."""
        means, _ = self._draws()
        shares = 1 / np.arange(1, COMPONENTS + 1)
        return means, shares / shares.sum()

    def _draws(self) -> tuple[Floats, np.random.RandomState]:
        # The stream of the published data set: other seeds draw other rows from the same mixture.
        source = np.random.RandomState(0)
        means = source.normal(CENTRE, BETWEEN, size=(COMPONENTS, self.dimension))
        return means, source if self.seed == 0 else np.random.RandomState(self.seed)

    @cached_property
    def rows(self) -> Floats:
        """The private rows.  # (num_rows, dimension)"""
        means, source = self._draws()
        members = source.choice(COMPONENTS, size=self.num_rows, p=self.components[1])
        return means[members] + WITHIN * source.standard_normal((self.num_rows, self.dimension))

    def public_subset(self, count: int, seed: int) -> Floats:
        """Rows that are public: the first ones (seed 0, as published), or any."""
        if seed == 0:
            return self.rows[:count]
        return self.rows[np.random.default_rng(seed).permutation(self.num_rows)[:count]]

    def random_points(self, count: int, seed: int) -> Floats:
        """Points from a wide Gaussian; seed 0 draws the published ones."""
        source = np.random.RandomState(0) if seed == 0 else np.random.RandomState(seed)
        return source.normal(0.0, WIDE, size=(count, self.dimension))

    @cached_property
    def schema(self) -> Schema:
        """Continuous columns with wide bounds."""
        column = {"kind": "continuous", "bounds": [LOW, HIGH], "bounds_from": "definition"}
        columns = [{"name": name} | column for name in self.names]
        return load_schema({"name": "mixture", "columns": columns, "rows": self.num_rows})

    def frame(self, rows: Floats) -> pd.DataFrame:
        """Rows as a table."""
        return pd.DataFrame(rows, columns=self.names)

    def kernel(self, left: Floats, right: Floats) -> Floats:
        """Kernel values.  # (left, right)"""
        squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
        return np.exp(-self.gamma * np.maximum(squares, 0.0))

    @cached_property
    def mean_kernel(self) -> float:
        """The mean of k over all pairs of rows: exact, every pair once."""
        total, step, rows = 0.0, 2500, self.rows - CENTRE
        for i in range(0, self.num_rows, step):
            block = rows[i : i + step]
            for j in range(i, self.num_rows, step):
                other = rows[j : j + step]
                squares = (block**2).sum(1)[:, None] + (other**2).sum(1) - 2 * block @ other.T
                # Exponentials in single precision: each is off by 1e-7 at most, at random.
                values = np.exp((-self.gamma * squares).astype(np.float32))
                total += float(values.sum(dtype=np.float64)) * (1 if i == j else 2)
        return total / self.num_rows**2

    def mean_at(self, points: Floats) -> Floats:
        """The embedding of all rows at points, exactly; points seen before are looked up."""
        keys = [point.tobytes() for point in points]
        new = [i for i, key in enumerate(keys) if key not in self._means]
        for start in range(0, len(new), 500):
            some = new[start : start + 500]
            sums = np.zeros(len(some))
            for i in range(0, self.num_rows, 2000):
                sums += self.kernel(points[some], self.rows[i : i + 2000]).sum(axis=1)
            self._means.update((keys[k], float(s) / self.num_rows) for k, s in zip(some, sums, strict=True))
        return np.array([self._means[key] for key in keys])

    def distance(self, points: Floats, weights: Floats) -> float:
        """RKHS distance between weighted points and the embedding of all private rows (App. B.1)."""
        square = self._norm(points, weights) - 2 * weights @ self.mean_at(points)
        return math.sqrt(max(square + self.mean_kernel, 0.0))

    def distance_to_law(self, points: Floats, weights: Floats) -> float:
        """RKHS distance to the embedding of the distribution that rows come from, in closed form."""
        means, shares = self.components
        at = self._smoothed(points, means, WITHIN**2) @ shares
        own = shares @ self._smoothed(means, means, 2 * WITHIN**2) @ shares
        return math.sqrt(max(self._norm(points, weights) - 2 * weights @ at + own, 0.0))

    def _norm(self, points: Floats, weights: Floats) -> float:
        parts = range(0, len(points), 2000)
        return float(sum(weights[i : i + 2000] @ (self.kernel(points[i : i + 2000], points) @ weights) for i in parts))

    def _smoothed(self, left: Floats, right: Floats, variance: float) -> Floats:
        """The kernel, averaged over a Gaussian of this variance around one side."""
        wide = 1 + 2 * self.gamma * variance
        squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
        return wide ** (-self.dimension / 2) * np.exp(-self.gamma / wide * squares)

    def as_printed(self, points: Floats, epsilon: float) -> float:
        """Root mean squared distance of Algorithm 1 as printed: all of the span, and its noise."""
        points = points.copy()
        gram, mean = self.kernel(points, points), self.mean_at(points)
        factor, kept = np.zeros((len(points), 0)), []
        for i in range(len(points)):
            column = gram[:, i] - factor @ factor[i]
            if column[i] > 1e-6:
                factor = np.column_stack([factor, column / math.sqrt(column[i])])
                kept.append(i)
        coordinates = np.linalg.solve(factor[kept], mean[kept])
        noise = 8 * math.log(1.25 / DELTA) / (self.num_rows * epsilon) ** 2
        outside = max(self.mean_kernel - float(coordinates @ coordinates), 0.0)
        return math.sqrt(outside + noise * len(kept))
