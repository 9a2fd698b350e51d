"""Rows that move: Algorithm 2 of Balog, Tolstikhin & Schölkopf (ICML 2018).

The mean of random Fourier features of all rows gets noise; rows and weights are then sought whose
own mean features are as near as can be. Features are pairs of a cosine and a sine, of norm one. (The
published code has cosines with a phase, whose norm reaches sqrt 2 where the sensitivity assumes 1.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from understudy.accounting import Budget, Neighbours, neighbours_by_name
from understudy.errors import UsageError
from understudy.features import Block, Constant, Embedding, Fourier, Scales
from understudy.features.points import Draw, drawn_points
from understudy.fits.reduced_set import EMBEDDING, ReducedSet
from understudy.methods.balog_kernel import balog_kernel, kernel_words
from understudy.methods.common import COUNT_SHARE
from understudy.plan.plan import Plan, Stage
from understudy.schema import Layout, Schema

Weights = Literal["free", "uniform"]
WEIGHTS: tuple[Weights, ...] = ("free", "uniform")

FEATURES = 4000
MOST_FEATURES = 20_000
MOST_ROWS = 10_000
SMALLEST_MISMATCH = 1e-6


def balog_features(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    num_features: int = FEATURES,
    num_points: int = 256,
    length_scale: float | Mapping[str, float] | None = None,
    mismatch: float | None = None,
    weights: Weights = "free",
    draw: Draw = "uniform",
    means: Mapping[str, float] | None = None,
    deviations: Mapping[str, float] | None = None,
    num_candidates: int = 1000,
    steps: int = 800,
    seed: int = 0,
) -> Plan:
    """Plan a release of random features, from which rows and weights are found.

    The kernel is Gaussian over numbers; for a choice it is 1 where rows agree and ``mismatch`` where
    they do not, which is what a Gaussian kernel makes of one-hot memberships. A row's choices are
    found by drawing, its numbers by descent.

    Args:
        schema: the public description of the table.
        budget: the guarantee to meet.
        neighbours: between which tables it holds.
        num_rows: the public row count (``replace-one``), or a public guess (``add-remove``).
        num_features: how many random features, a cosine and a sine per frequency.
        num_points: rows of the weighted database.
        length_scale: in units of each column's range: one number, or a number per column name.
        mismatch: kernel value of two different values of a choice.
        weights: ``free`` (nonnegative, of sum at most 1), or ``uniform``, for a plain table.
        draw: where rows are looked for first: ``uniform`` over the schema's domain, or ``gaussian``
            with public ``means`` and ``deviations`` by column.
        means: of drawn numbers, in their own units (the middle of the range).
        deviations: of drawn numbers (a quarter of the range).
        num_candidates: how many rows each search draws.
        steps: of descent, in all.
        seed: public seed of features, search and samples.
    """
    num_rows = num_rows if num_rows is not None else schema.rows
    neighbours = neighbours_by_name(neighbours)
    _check(weights, num_features, num_points, steps)
    layout = Layout(schema)
    kernel = balog_kernel(layout, length_scale=length_scale, mismatch=mismatch)
    term = kernel.terms[0]
    # exp(-|e - e'|^2 / (2 s^2)) of two one-hot vectors is the mismatch.
    apart = 1 / math.sqrt(-math.log(max(term.mismatch, SMALLEST_MISMATCH)))
    widths = (*term.length_scales, *([apart] * (layout.width - len(layout.numbers))))
    map_ = Fourier(
        tuple(range(layout.width)), widths, (Scales(layout.width, 1.0, 1.0),), num_features + num_features % 2, seed
    )
    # What cannot be drawn is refused here, before a budget is spent on it.
    drawn_points(schema, num_candidates, draw=draw, means=means, deviations=deviations, seed=seed)
    rest = 1.0 if neighbours is Neighbours.REPLACE_ONE else math.sqrt(1 - COUNT_SHARE)
    blocks = (Block("count", Constant(), math.sqrt(COUNT_SHARE)), Block(EMBEDDING, map_, rest))
    training = ReducedSet(
        num_points=num_points,
        weights=weights,
        steps=steps,
        candidates=num_candidates,
        draw=draw,
        means=dict(means or {}),
        deviations=dict(deviations or {}),
        seed=seed,
    )
    words = "free weights, nonnegative and of sum at most 1" if weights == "free" else "equal weights"
    settings: dict[str, Any] = {
        "generator": "reduced-set",
        "training": asdict(training),
        "explanation": [
            kernel_words(kernel, layout),
            f"{map_.dim} random features, cosines and sines of {map_.dim // 2} frequencies",
            f"{num_points} rows with {words}",
        ],
    }
    return Plan(
        schema=schema,
        method="balog-features",
        budget=budget,
        neighbours=neighbours,
        stages=(Stage("embedding", Embedding(blocks)),),
        num_rows=num_rows,
        settings=tuple(settings.items()),
    )


def _check(weights: str, num_features: int, num_points: int, steps: int) -> None:
    if weights not in WEIGHTS:
        raise UsageError("weights", "must be one of " + ", ".join(WEIGHTS))
    if not 2 <= num_features <= MOST_FEATURES:
        raise UsageError("features", f"must be between 2 and {MOST_FEATURES}")
    if not 1 <= num_points <= MOST_ROWS:
        raise UsageError("points", f"must be between 1 and {MOST_ROWS}")
    if steps < 1:
        raise UsageError("steps", "must be at least 1")
