"""Weighted databases: both algorithms of Balog, Tolstikhin & Schölkopf (ICML 2018).

Algorithm 1, ``balog_subspace``, puts weights on public points. The mean embedding of the private rows is projected
onto the span of the kernels of public points, its coordinates in an orthonormal basis get noise, and what comes out is
those points with weights. Only as many points as the noise deserves span the space (a pivoted Cholesky factorisation),
so that noise is spread over few coordinates. If public points lie all over the place, a tenth of the budget buys a
noisy look at where rows are, and the points there are kept.

Algorithm 2, ``balog_features``, moves rows. The mean of random Fourier features of all rows gets noise; rows and
weights are then sought whose own mean features are as near as can be (a reduced set). Features are pairs of a cosine
and a sine, of norm one. (The published code has cosines with a phase, whose norm reaches sqrt 2 where the sensitivity
assumes 1.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Literal

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.arrays import Integers
from understudy.errors import UsageError
from understudy.features import Block, Embedding, FeatureMap, Fourier, Kernel, Landmarks, Points, Scales, Term
from understudy.features.landmarks import SHAPES, kernel_sums
from understudy.features.points import Draw, drawn_points
from understudy.fits.reduced_set import EMBEDDING, ReducedSet
from understudy.methods import common
from understudy.methods.common import LengthScale, Option, PublicFile, Terms, numbers_by_column, terms_of
from understudy.plan.plan import Plan, Stage
from understudy.rules.pivots import COORDINATES, LOOK, enough_points, pivot_points, public_density, spanned_by
from understudy.schema import Layout, Schema

Join = Literal["product", "sum"]
Mismatch = Annotated[float | None, Option("Kernel value of two different categories.")]


def _by_column(name: str) -> Option:
    read = partial(numbers_by_column, name)
    return Option("COLUMN=VALUE of gaussian draws. Repeatable.", f"--{name}", takes=list[str], read=read)


Means = Annotated[Mapping[str, float] | None, _by_column("mean")]
Deviations = Annotated[Mapping[str, float] | None, _by_column("deviation")]

PRODUCT_SCALE = 0.25
SUM_SCALE = 0.1
"""Default length scales, in units of a column's range. In a product of d numbers it is times sqrt(d),
as distances grow with it: two rows drawn at random keep a kernel value of about a quarter."""

PointWeights = Literal["shrunk", "plain", "bounded"]

SPANNING = 512
MOST_SPANNING = 2048
CANDIDATES = 2000
"""Points that may span the space by default and at most, and points that are drawn by default."""

LOOK_SHARE = 0.1
"""Share of the budget that chooses, among public points, those that lie where rows are."""

FEW_POINTS = 256
CLOSE = 0.01
"""No look is needed if so few points leave others so close (mean squared distance) to their span."""


PUBLIC_POINTS = PublicFile(
    lambda schema: schema.file_names,
    "Give rows that anybody may see, or none: points are drawn then",
)

RowWeights = Literal["free", "uniform"]

FEATURES = 4000
MOST_FEATURES = 20_000
"""Random Fourier features by default and at most."""

MOST_ROWS = 10_000
"""Rows of the synthetic database that descent moves."""

SMALLEST_MISMATCH = 1e-6
"""Kernel value of two different categories, at least: that of a Gaussian kernel is never 0."""


def balog_subspace(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    public_points: Annotated[
        object, Option("File of rows that are public already; they become part of the release.", file=PUBLIC_POINTS)
    ] = None,
    draw: Annotated[
        Draw, Option("Without public points: uniform (default) or gaussian draws over the schema's domain.")
    ] = "uniform",
    means: Means = None,
    deviations: Deviations = None,
    num_candidates: Annotated[int | None, Option("Points to draw (default: 2,000).", "--candidates")] = None,
    num_points: Annotated[int, Option("Points that may span the space (default: 512).", "--points")] = SPANNING,
    kernel: Annotated[str, Option("gaussian (default), laplace, matern12, matern32 or matern52.")] = "gaussian",
    join: Annotated[Join, Option("product (default) or sum of the columns' kernels.")] = "product",
    length_scale: LengthScale = None,
    mismatch: Mismatch = None,
    look: Annotated[
        bool | None, Option("Pay for a noisy look at where rows are (default: if few points cannot stand for all).")
    ] = None,
    weights: Annotated[PointWeights, Option("shrunk (default), plain or bounded.")] = "shrunk",
    bound: Annotated[float, Option("Largest absolute sum of bounded weights (default: 1).")] = 1.0,
    seed: int = 0,
    steps: Annotated[int, Option("Of the search for bounded weights.", least=1)] = 2000,
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
    terms = terms_of(schema, budget, neighbours, num_rows)
    common.check_choice("weights", weights, PointWeights)
    if not 1 <= bound < math.inf:
        raise UsageError("bound", "of the absolute weights must be a number of at least 1")
    if not 1 <= num_points <= MOST_SPANNING:
        raise UsageError("points", f"must be between 1 and {MOST_SPANNING}")
    layout = Layout(schema)
    own = balog_kernel(layout, shape=kernel, join=join, length_scale=length_scale, mismatch=mismatch)
    if public_points is not None:
        points = common.given_points(schema, public_points)
    else:
        points = drawn_points(
            schema, num_candidates or CANDIDATES, draw=draw, means=means, deviations=deviations, seed=seed
        )
    places, left = pivot_points(own, points, public_density(own, points), most=num_points)
    looks = bool(left[min(FEW_POINTS, len(left)) - 1] > CLOSE) if look is None else look
    is_signed = terms.neighbours is Neighbours.ADD_REMOVE
    share = (1 - LOOK_SHARE if looks else 1.0) * (1 - common.COUNT_SHARE if is_signed else 1.0)
    kept = places if looks else places[: enough_points(left, terms.noise(share), seen=False)]
    settings: dict[str, Any] = {
        "generator": "weights",
        "training": {"seed": seed, "weights": weights, "bound": bound, "steps": steps},
        "points": "given" if public_points is not None else f"drawn ({draw})",
        "explanation": _subspace_words(own, layout, len(points), len(kept), weights, bound, looks=looks),
    }
    return terms.plan("balog-subspace", _subspace_stages(terms, own, points, kept, looks=looks), settings)


def _subspace_stages(terms: Terms, kernel: Kernel, points: Points, kept: Integers, *, looks: bool) -> tuple[Stage, ...]:
    """Coordinates with the row count; or the count with a look, and then coordinates."""
    if not looks:
        map_ = Landmarks(kernel, points, tuple(int(place) for place in kept))
        return (Stage("embedding", _with_count(terms, COORDINATES, map_)),)
    planned = Block(COORDINATES, spanned_by(kernel, points.take(kept)), 1.0)
    return (
        Stage("look", _with_count(terms, LOOK, kernel_sums(kernel, points)), LOOK_SHARE),
        Stage("embedding", Embedding((planned,)), 1 - LOOK_SHARE, rule="choose-landmarks"),
    )


def _with_count(terms: Terms, name: str, map_: FeatureMap) -> Embedding:
    """Features with the row count, which is constant and so rides free where rows are replaced."""
    rest = 1.0 if terms.neighbours is Neighbours.REPLACE_ONE else math.sqrt(1 - common.COUNT_SHARE)
    return terms.embedding({name: map_}, {name: rest})


def _subspace_words(
    kernel: Kernel, layout: Layout, num_points: int, rank: int, weights: PointWeights, bound: float, *, looks: bool
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


def balog_features(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    num_features: Annotated[
        int, Option("Random features, a cosine and a sine per frequency (default: 4,000).", "--features")
    ] = FEATURES,
    num_points: Annotated[int, Option("Rows of the database (default: 256).", "--points")] = 256,
    length_scale: LengthScale = None,
    mismatch: Mismatch = None,
    weights: Annotated[RowWeights, Option("free (default) or uniform.")] = "free",
    draw: Annotated[
        Draw, Option("Rows are looked for first by uniform (default) or gaussian draws over the schema's domain.")
    ] = "uniform",
    means: Means = None,
    deviations: Deviations = None,
    num_candidates: Annotated[int, Option("Rows that each search draws (default: 1,000).", "--candidates")] = 1000,
    steps: Annotated[int, Option("Of descent, in all (default: 800).", least=1)] = 800,
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
    terms = terms_of(schema, budget, neighbours, num_rows)
    common.check_choice("weights", weights, RowWeights)
    if not 2 <= num_features <= MOST_FEATURES:
        raise UsageError("features", f"must be between 2 and {MOST_FEATURES}")
    if not 1 <= num_points <= MOST_ROWS:
        raise UsageError("points", f"must be between 1 and {MOST_ROWS}")
    if steps < 1:
        raise UsageError("steps", "must be at least 1")
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
    return terms.plan("balog-features", [Stage("embedding", _with_count(terms, EMBEDDING, map_))], settings)


def balog_kernel(
    layout: Layout,
    *,
    shape: str = "gaussian",
    join: Join = "product",
    length_scale: float | Mapping[str, float] | None = None,
    mismatch: float | None = None,
) -> Kernel:
    """The kernel that the options describe.

    Args:
        layout: the columns.
        shape: of the kernel of numbers, one of ``SHAPES``.
        join: ``product`` of all columns, which sees everything they do together, or ``sum`` of
            single columns (a mean, so that k(x, x) stays 1).
        length_scale: in units of each column's range: one for all, or by column name.
        mismatch: kernel value of two different values of a choice. By default exp(-1 / c) in a
            product with c choices, so that rows differing in all of them keep 1 / e, and 0 in a sum.
    """
    if shape not in SHAPES:
        raise UsageError("kernel", f"'{shape}' is unknown", "Kernels are " + ", ".join(SHAPES))
    common.check_choice("join", join, Join)
    if mismatch is not None and not 0 <= mismatch < 1:
        raise UsageError("mismatch", "must be at least 0 and below 1", "0.5 is a common choice")
    if length_scale is None:
        length_scale = PRODUCT_SCALE * math.sqrt(len(layout.numbers)) if join == "product" else SUM_SCALE
    scales = common.length_scales(layout.numbers, length_scale)
    numbers = tuple(range(len(layout.numbers)))
    spans = {choice.column: (choice.start, choice.stop) for choice in layout.choices}
    if join == "product":
        apart = math.exp(-1 / max(1, len(spans))) if mismatch is None else mismatch
        return Kernel(shape, (Term(numbers, scales, tuple(spans.values()), apart),))
    terms = [
        Term((i,), (scales[i],), (spans.pop(name),) if name in spans else (), mismatch or 0.0)
        for i, name in enumerate(layout.numbers)
    ]
    terms += [Term((), (), (span,), mismatch or 0.0) for span in spans.values()]
    return Kernel(shape, tuple(terms))


def kernel_words(kernel: Kernel, layout: Layout) -> str:
    """A kernel in a few words."""
    scales = sorted({scale for term in kernel.terms for scale in term.length_scales})
    reach = f", length scale {scales[0]:.3g}" if scales else ""
    reach += f" to {scales[-1]:.3g}" if len(scales) > 1 else ""
    mismatch = max(term.mismatch for term in kernel.terms)
    choices = f", mismatch {mismatch:.3g}" if layout.choices else ""
    how = "product" if len(kernel.terms) == 1 else f"mean of {len(kernel.terms)}"
    return f"{kernel.shape} kernel, {how}{reach}{choices}"
