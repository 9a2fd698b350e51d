"""Expectations of any function of a row: the nearest function that the released features span.

A release holds noisy sums of features. If f(x) is c . phi(x), the sum of f over the data is c . s, with
the noise of s and no other error. Another f is fitted: c minimises what an error of the fit would
cost, N times its root mean square over reference rows, squared, and the variance of the noise.
With K the kernel of the features, each divided by its noise, c is the features' sum with weights a
that solve (K + m / N^2) a = f, for m reference rows and N rows of data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.linalg import cho_factor, cho_solve

from understudy.accounting.mechanisms import critical
from understudy.arrays import Floats, Integers
from understudy.errors import UsageError
from understudy.features import Block
from understudy.queries.answers import LEVEL, Answer, Estimate
from understudy.queries.atoms import Sources, can_tell, single_axis
from understudy.queries.estimates import ratio_interval
from understudy.released import Release
from understudy.released.tables import tables_of
from understudy.rules.measurement import Measurement
from understudy.schema import NULL
from understudy.schema.columns import from_position
from understudy.schema.encode import decode_table, encode_batch

Function = Callable[[pa.Table], Any]

NUM_REFERENCE = 1000
EVENLY = 0.1
"""The part of reference rows that is spread evenly over a column's range, and that is null."""

DRAWN = "rows with independent columns, drawn from the release's counts or evenly"
ERROR = (
    "the interval adds what noise may do and the root mean square error of the fit ({:.3g}), seen on "
    "{} that it was not fitted to; elsewhere the fit may be worse"
)


def expectation(
    release: Release, function: Function, *, reference: pa.Table | None = None, level: float = LEVEL, seed: int = 0
) -> Answer:
    """The mean of a function of rows over the data set, from the released features.

    Args:
        release: what was published.
        function: takes a table of rows and gives a number for each.
        reference: rows on which the function is fitted, at best like the data: those of a fitted
            generator. By default columns are drawn independently, from the counts that the release
            has of them, or evenly over the schema's range.
        level: of the interval.
        seed: public seed of the rows that are drawn.
    """
    schema = release.plan.schema
    codes = _reference_codes(release, reference, seed)
    rows = decode_table(schema, codes)
    wanted = np.asarray(function(rows), dtype=np.float64)
    if wanted.shape != (len(codes),) or not np.isfinite(wanted).all():
        raise UsageError("function", "must give a finite number for each row")
    kernel, sums = _kernel_and_sums(release, codes)
    half = len(codes) // 2
    fitted, unseen = slice(0, half), slice(half, None)
    total = float(release.label_counts.sum())
    ridge = kernel[fitted, fitted] + half / total**2 * np.eye(half)
    ones = np.ones(half)
    weights = cho_solve(cho_factor(ridge), np.stack([wanted[fitted], ones], axis=1))
    found, count = (weights.T @ sums[fitted]).tolist()
    spread = weights.T @ kernel[fitted, fitted] @ weights
    guess = kernel[unseen, fitted] @ weights
    misfit = wanted[unseen] - guess[:, 0]
    error = math.sqrt(float(np.mean(misfit**2)))
    mean = found / count
    noise = math.sqrt(max(0.0, spread[0, 0] - 2 * mean * spread[0, 1] + mean**2 * spread[1, 1]))
    factor = critical(release.plan.mechanism, level)
    ends = ratio_interval(found, count, (spread[0, 0], spread[0, 1], spread[1, 1]), factor)
    low, high = ends if ends is not None else (-math.inf, math.inf)
    only = Estimate((), mean, noise / count, float(low - error), float(high + error), False)
    query = f"mean of {getattr(function, '__name__', 'a function')}"
    source = f"{sum(each.dim for each in release.embeddings):,} noisy sums of features"
    notes = (ERROR.format(error, DRAWN if reference is None else "reference rows"),)
    return Answer(query, "mean", (only,), source, level, is_model=True, notes=notes)


def _reference_codes(release: Release, reference: pa.Table | None, seed: int) -> Integers:
    schema, rng = release.plan.schema, np.random.default_rng(seed)
    if reference is not None:
        if reference.num_rows < 2:
            raise UsageError("reference", "must have two rows at least")
        return rng.permutation(encode_batch(schema, reference))[: 2 * NUM_REFERENCE]
    sources = Sources(tables_of(release))
    drawn = [_drawn(sources, place, rng) for place in range(len(schema.used))]
    return np.stack(drawn, axis=1)


def _drawn(sources: Sources, place: int, rng: np.random.Generator) -> Integers:
    """Codes of one column as the release's counts have them, and some spread evenly."""
    column, count = sources.measured.columns[place], 2 * NUM_REFERENCE
    if not column.is_choice:
        codes = from_position(column, rng.random(count))
    else:
        codes = rng.integers(0, len(column.categories), count)
    if column.is_choice or can_tell(sources.measured, place):
        cells = single_axis(sources.measured, place, [], every_value=False)
        masses = np.cumsum(sources.masses(cells))
        piece = np.searchsorted(masses, rng.random(count) * masses[-1])
        piece = np.minimum(piece, len(masses) - 1)
        first, last = cells.first_codes[piece], cells.last_codes[piece]
        like = first + np.floor(rng.random(count) * (last - first + 1)).astype(np.int64)
        codes = np.where(rng.random(count) < EVENLY, codes, like)
    if column.nullable:
        codes = np.where(rng.random(count) < EVENLY, NULL, codes)
    return np.asarray(codes)


def _kernel_and_sums(release: Release, codes: Integers) -> tuple[Floats, Floats]:
    """Inner products of rows' features, and with the noisy sums, each feature over its noise.

    # (rows, rows), (rows,)
    """
    cells = release.plan.layout.expand(codes)
    kernel, sums = np.zeros((len(codes), len(codes))), np.zeros(len(codes))
    for measurement in release.measurements:
        for block in measurement.embedding.blocks:
            copy = _copy_of(measurement, block, cells)
            precision = 1 / measurement.noise_of_sum(block.name) ** 2
            known = copy >= 0
            same = (copy[:, None] == copy[None, :]) & known[:, None]
            products, own = block.map.inner_products(
                codes, cells, sums=measurement.sums(block.name), copy=np.maximum(copy, 0)
            )
            kernel += precision * products * same
            sums += precision * own * known
    return kernel, sums


def _copy_of(measurement: Measurement, block: Block, cells: Floats) -> Integers:
    """The copy of a block that each row adds to; -1 for none."""
    label = measurement.embedding.label
    if not block.per_label or label is None:
        return np.zeros(len(cells), dtype=np.int64)
    members = cells[:, slice(*label)]
    return np.where(members.any(axis=1), members.argmax(axis=1), -1)
