"""Weights on public points: Algorithm 1 of Balog, Tolstikhin & Schölkopf (ICML 2018).

The mean embedding of the private rows is projected onto the span of the kernels of public points,
its coordinates in an orthonormal basis get noise, and what comes out is those points with weights.
Only as many points as the noise deserves span the space (a pivoted factorisation), so that noise is
spread over few coordinates. If public points lie all over the place, a tenth of the budget buys a
noisy look at where rows are, and the points there are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from understudy.accounting import Budget, Neighbours, neighbours_by_name
from understudy.arrays import Integers
from understudy.errors import UsageError
from understudy.features import Block, Constant, Embedding, Kernel, Landmarks, Points
from understudy.features.landmarks import kernel_sums
from understudy.features.points import Draw, drawn_points
from understudy.methods.balog_kernel import Join, balog_kernel, kernel_words
from understudy.methods.common import COUNT_SHARE, given_points, noise_of_mean
from understudy.plan.plan import Plan, Stage
from understudy.rules.pivots import COORDINATES, LOOK, enough_points, pivot_points, public_density, spanned_by
from understudy.schema import Layout, Schema

Weights = Literal["shrunk", "plain", "bounded"]
WEIGHTS: tuple[Weights, ...] = ("shrunk", "plain", "bounded")

SPANNING = 512
MOST_SPANNING = 2048
CANDIDATES = 2000
"""Points that may span the space by default and at most, and points that are drawn by default."""

LOOK_SHARE = 0.1
FEW_POINTS = 256
CLOSE = 0.01
"""No look is needed if so few points leave others so close (mean squared distance) to their span."""


def balog_subspace(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    public_points: object = None,
    draw: Draw = "uniform",
    means: Mapping[str, float] | None = None,
    deviations: Mapping[str, float] | None = None,
    num_candidates: int | None = None,
    num_points: int = SPANNING,
    kernel: str = "gaussian",
    join: Join = "product",
    length_scale: float | Mapping[str, float] | None = None,
    mismatch: float | None = None,
    look: bool | None = None,
    weights: Weights = "shrunk",
    bound: float = 1.0,
    seed: int = 0,
    steps: int = 2000,
) -> Plan:
    """Plan a release of weights on public points.

    Args:
        schema: the public description of the table.
        budget: the guarantee to meet.
        neighbours: between which tables it holds.
        num_rows: the public row count (``replace-one``), or a public guess that the plan is made
            for (``add-remove``). By default what the schema says.
        public_points: rows that are public already, as a table. They become part of the release.
            By default points are drawn.
        draw: the distribution of drawn points: ``uniform`` over the schema's domain, or
            ``gaussian`` with public ``means`` and ``deviations`` by column.
        means: of drawn numbers, in their own units (the middle of the range).
        deviations: of drawn numbers (a quarter of the range).
        num_candidates: how many points are drawn (2,000).
        num_points: how many points may span the space.
        kernel: ``gaussian``, ``laplace``, ``matern12``, ``matern32`` or ``matern52``.
        join: ``product`` of the columns' kernels, or ``sum``.
        length_scale: in units of each column's range: one number, or a number per column name.
        mismatch: kernel value of two different values of a choice.
        look: whether a tenth of the budget buys a noisy look at where rows are; by default if a
            few points cannot stand for all.
        weights: ``shrunk`` by the known noise (least error), ``plain`` as in the paper's line 8, or
            ``bounded`` to an absolute sum of ``bound`` (its Theorem 11).
        bound: for bounded weights, at least 1.
        seed: public seed of drawn points and samples.
        steps: of the search for bounded weights.
    """
    num_rows = num_rows if num_rows is not None else schema.rows
    neighbours = neighbours_by_name(neighbours)
    _check(weights, bound, num_points)
    layout = Layout(schema)
    own = balog_kernel(layout, shape=kernel, join=join, length_scale=length_scale, mismatch=mismatch)
    if public_points is not None:
        points = given_points(schema, public_points)
    else:
        points = drawn_points(
            schema, num_candidates or CANDIDATES, draw=draw, means=means, deviations=deviations, seed=seed
        )
    places, left = pivot_points(own, points, public_density(own, points), most=num_points)
    looks = bool(left[min(FEW_POINTS, len(left)) - 1] > CLOSE) if look is None else look
    is_signed = neighbours is Neighbours.ADD_REMOVE
    share = (1 - LOOK_SHARE if looks else 1.0) * (1 - COUNT_SHARE if is_signed else 1.0)
    noise = noise_of_mean(budget, neighbours, share=share, num_rows=num_rows, max_rows=schema.privacy.max_rows)
    kept = places if looks else places[: enough_points(left, noise, seen=False)]
    settings: dict[str, Any] = {
        "generator": "weights",
        "training": {"seed": seed, "weights": weights, "bound": bound, "steps": steps},
        "points": "given" if public_points is not None else f"drawn ({draw})",
        "explanation": _explanation(own, layout, len(points), len(kept), weights, bound, looks=looks),
    }
    return Plan(
        schema=schema,
        method="balog-subspace",
        budget=budget,
        neighbours=neighbours,
        stages=_stages(own, points, kept, neighbours, looks=looks),
        num_rows=num_rows,
        settings=tuple(settings.items()),
    )


def _check(weights: str, bound: float, num_points: int) -> None:
    if weights not in WEIGHTS:
        raise UsageError("weights", "must be one of " + ", ".join(WEIGHTS))
    if not 1 <= bound < math.inf:
        raise UsageError("bound", "of the absolute weights must be a number of at least 1")
    if not 1 <= num_points <= MOST_SPANNING:
        raise UsageError("points", f"must be between 1 and {MOST_SPANNING}")


def _stages(
    kernel: Kernel, points: Points, kept: Integers, neighbours: Neighbours, *, looks: bool
) -> tuple[Stage, ...]:
    """Coordinates with the row count; or the count with a look, and then coordinates.

    The row count is constant, so it rides free where rows are replaced.
    """
    count_weight = math.sqrt(COUNT_SHARE)
    rest = 1.0 if neighbours is Neighbours.REPLACE_ONE else math.sqrt(1 - COUNT_SHARE)
    count = Block("count", Constant(), count_weight)
    if not looks:
        map_ = Landmarks(kernel, points, tuple(int(place) for place in kept))
        return (Stage("embedding", Embedding((count, Block(COORDINATES, map_, rest)))),)
    look = Block(LOOK, kernel_sums(kernel, points), rest)
    planned = Block(COORDINATES, spanned_by(kernel, points.take(kept)), 1.0)
    return (
        Stage("look", Embedding((count, look)), LOOK_SHARE),
        Stage("embedding", Embedding((planned,)), 1 - LOOK_SHARE, rule="choose-landmarks"),
    )


def _explanation(
    kernel: Kernel, layout: Layout, num_points: int, rank: int, weights: Weights, bound: float, *, looks: bool
) -> list[str]:
    """What the plan has chosen, for people."""
    found = [kernel_words(kernel, layout)]
    if looks:
        found.append(
            f"a noisy look at {num_points} public points: {100 * LOOK_SHARE:.0f} % of the budget; "
            f"at most {rank} of them, where rows are, span the space (its rank)"
        )
    else:
        found.append(f"{rank} of {num_points} public points span the space (its rank)")
    words = {
        "shrunk": "shrunk by the known noise",
        "plain": "as they come, noise and all (Algorithm 1, line 8)",
        "bounded": f"of absolute sum at most {bound:g} (Theorem 11)",
    }
    return [*found, f"weights {words[weights]}"]
