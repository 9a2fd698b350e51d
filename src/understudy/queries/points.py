"""Answers from rows of a generator, or from weighted points: what a model says, marked as that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.accounting.mechanisms import GAUSSIAN, critical
from understudy.arrays import Floats
from understudy.errors import UsageError
from understudy.queries.answers import LEVEL, Answer, Estimate
from understudy.queries.ask import bounded
from understudy.queries.atoms import DEFAULT_BARS, Group, groups_of
from understudy.queries.estimates import root_of
from understudy.queries.question import Question, understand
from understudy.released.tables import cut_at, whole_column
from understudy.schema import NULL, Schema
from understudy.schema.encode import encode_batch
from understudy.schema.scales import own_scale

# Functions of a random variable: weights of an embedding carry over to the points f(x).
#
# If sum_i w_i k(x_i, .) estimates the kernel mean embedding of X, then sum_i w_i k'(f(x_i), .)
# estimates that of f(X), for continuous f and without any independence (Simon-Gabriel, Scibior,
# Tolstikhin and Schoelkopf 2016, Theorem 1).

Kernel = Callable[[Floats, Floats], Floats]
"""Points and points to the matrix of their kernel values.  # (a, dim), (b, dim) -> (a, b)"""


@dataclass(frozen=True, eq=False)
class PushedForward:
    """Weighted points that stand for the distribution of f(X)."""

    points: Floats  # (count,) or (count, dim)
    weights: Floats  # (count,), of sum one

    @property
    def mean(self) -> Floats:
        """The expectation of f(X)."""
        return np.asarray(self.weights @ self.points)

    def then(self, function: Callable[[Floats], Floats]) -> PushedForward:
        """The distribution of g(f(X))."""
        return PushedForward(np.asarray(function(self.points), dtype=np.float64), self.weights)

    def embedding(self, kernel: Kernel, at: Floats) -> Floats:
        """The embedding of f(X), evaluated at points.  # (count, dim) -> (count,)"""
        return np.asarray(kernel(_rows(at), _rows(self.points)) @ self.weights)

    def distance(self, other: PushedForward, kernel: Kernel) -> float:
        """The maximum mean discrepancy between two distributions."""
        points = np.concatenate([_rows(self.points), _rows(other.points)])
        weights = np.concatenate([self.weights, -other.weights])
        return float(np.sqrt(max(0.0, weights @ kernel(points, points) @ weights)))


def gaussian(length_scale: float) -> Kernel:
    """The Gaussian kernel exp(-|x - y|^2 / (2 length_scale^2))."""

    def kernel(left: Floats, right: Floats) -> Floats:
        apart = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)
        return np.asarray(np.exp(-apart / (2 * length_scale**2)))

    return kernel


def _rows(points: Floats) -> Floats:
    return points[:, None] if points.ndim == 1 else points


ONLY_DRAWS = "model-based: the interval covers the draw of rows and the noisy row count, not how well the model fits"
AS_IF_DRAWN = (
    "model-based: sums of w h(z) over all points; the interval is as wide as if the points were drawn at random "
    "and covers the noisy row count, but neither the release's noise in the weights nor how well few points "
    "stand for this question"
)

UNKNOWN = Estimate((), math.nan, math.inf, -math.inf, math.inf, False)
"""Of a group without rows."""


@dataclass(frozen=True, eq=False)
class Points:
    """Rows z_i with weights w_i, standing in for a table of ``num_rows`` rows.

    The mean of h(x) over the table is about sum_i w_i h(z_i) (Balog et al. 2018, eq. 4). Weights are taken as they
    are: they sum to about one, and some may be negative, as those of kernel mean embeddings are. Rows that a generator
    drew weigh alike, the default. ``count_error`` is the deviation of the noise in ``num_rows``.
    """

    schema: Schema
    rows: pa.Table
    num_rows: float
    weights: Floats | None = None
    count_error: float = 0.0

    @cached_property
    def shares(self) -> Floats:
        """The weight of each row, as given, or one over their number."""
        if self.weights is None:
            return np.full(self.rows.num_rows, 1 / self.rows.num_rows)
        given = np.asarray(self.weights, dtype=np.float64)
        if given.shape != (self.rows.num_rows,) or not np.isfinite(given).all():
            raise UsageError("weights", "must be one finite number for each point")
        return given

    @cached_property
    def codes(self) -> npt.NDArray[np.int64]:
        """The rows' codes.  # (points, num_used)"""
        return encode_batch(self.schema, self.rows)

    def ask(self, query: str, *, level: float = LEVEL) -> Answer:
        """Answer a query, with an error bar that covers only the draw of rows and their number."""
        question = understand(query, self.schema)
        rows = tuple(self._estimates(question, critical(GAUSSIAN, level)))
        source = f"{self.rows.num_rows:,} " + ("drawn rows" if self.weights is None else "points")
        notes = (ONLY_DRAWS if self.weights is None else AS_IF_DRAWN,)
        found = Answer(question.text, question.aggregate, rows, source, level, is_model=True, notes=notes)
        return bounded(found, question, self.schema.used)

    def pushed(self, function: Callable[[pa.Table], Any]) -> PushedForward:
        """The points that a function makes of the rows, with the rows' weights."""
        return PushedForward(np.asarray(function(self.rows), dtype=np.float64), self.shares)

    def expectation(self, function: Callable[[pa.Table], Any]) -> float:
        """The weighted mean of a function of rows."""
        return float(self.pushed(function).mean)

    def _estimates(self, question: Question, factor: float) -> Iterator[Estimate]:
        where = np.ones(len(self.codes), dtype=bool)
        for place, kept in question.where.items():
            where &= kept.contains(self.codes[:, place])
        if question.valued is not None:
            where &= self.codes[:, question.valued] != NULL
        groups = {place: self._groups(question, place) for place in question.grouping}
        for own in product(*groups.values()):
            inside = np.ones(len(self.codes), dtype=bool)
            for place, group in zip(groups, own, strict=True):
                inside &= group.codes.contains(self.codes[:, place])
            name = tuple(group.name for group in own)
            yield replace(self._estimate(question, where, inside, factor), group=name)

    def _groups(self, question: Question, place: int) -> list[Group]:
        column = self.schema.used[place]
        cells = whole_column(place, column, has_unlisted=False)
        bars = int(question.number or DEFAULT_BARS)
        if not column.is_choice:
            cells = cut_at(cells, np.linspace(0, cells.num_codes, bars + 1).astype(np.int64))
        return groups_of(column, cells, most=bars)

    def _estimate(
        self, question: Question, where: npt.NDArray[np.bool_], inside: npt.NDArray[np.bool_], factor: float
    ) -> Estimate:
        kept, aggregate = where & inside, question.aggregate
        values = kept.astype(np.float64)
        if question.valued is not None:
            values[kept] = own_scale(self.schema.used[question.valued]).values(self.codes[kept, question.valued])
        if aggregate in ("count", "histogram", "sum"):
            return self._total(values, factor)
        if aggregate == "share":
            return self._mean(values, inside if question.where else np.ones_like(inside), factor)
        if aggregate == "mean":
            return self._mean(values, kept, factor)
        if aggregate in ("median", "quantile"):
            return self._quantile(values, kept, question.number or 0.5, factor)
        middle = self._mean(values, kept, factor).estimate
        found = self._mean((values - middle) ** 2 * kept, kept, factor)
        return found if aggregate == "var" else root_of(found)

    def _total(self, values: Floats, factor: float) -> Estimate:
        mean = float(self.shares @ values)
        drawn = math.sqrt(float(self.shares**2 @ (values - mean) ** 2))
        error = math.hypot(self.num_rows * drawn, mean * self.count_error)
        return _around(mean * self.num_rows, error, factor)

    def _mean(self, values: Floats, inside: npt.NDArray[np.bool_], factor: float) -> Estimate:
        held = 1.0 if inside.all() else float(self.shares @ inside)  # all rows are 1, whatever weights add up to
        if held <= 0:
            return UNKNOWN
        mean = float(self.shares @ values) / held
        drawn = float(self.shares**2 @ ((values - mean * inside) ** 2))
        return _around(mean, math.sqrt(drawn) / held, factor)

    def _quantile(self, values: Floats, inside: npt.NDArray[np.bool_], level: float, factor: float) -> Estimate:
        own, place = np.unique(values[inside], return_inverse=True)
        shares = self.shares[inside]
        held = float(shares.sum())
        if held <= 0:
            return UNKNOWN
        # Negative weights make the share at or below a value fall; the least value that reaches one is wanted.
        reached = np.maximum.accumulate(np.cumsum(np.bincount(place, weights=shares)) / held)
        error = math.sqrt(level * (1 - level) * float(shares @ shares)) / held

        def at(wanted: float) -> float:
            return float(own[min(int(np.searchsorted(reached, wanted - 1e-12)), len(own) - 1)])

        ends = at(level - factor * error), at(level + factor * error)
        return Estimate((), at(level), (ends[1] - ends[0]) / (2 * factor), *ends, False)


def _around(middle: float, error: float, factor: float) -> Estimate:
    return Estimate((), middle, error, middle - factor * error, middle + factor * error, False)
