"""DP-MERF: random Fourier mean embeddings (Harder, Adamczewski & Park, AISTATS 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from understudy.accounting import Budget, Neighbours
from understudy.errors import UsageError
from understudy.features import Block, Buckets, Embedding, FeatureMap, Fourier, Grid, OneHot, Scales, product
from understudy.fits.images import ImageTraining
from understudy.fits.network import Training
from understudy.methods.common import (
    COUNT_SHARE,
    Labels,
    Option,
    Steps,
    checked_scale,
    image_generator,
    image_length_scale,
    image_set,
    labelled_columns,
    scale_in,
    scales_by_name,
    table_generator,
    terms_of,
)
from understudy.plan.plan import Plan, Stage
from understudy.plan.stage import epsilon_parts
from understudy.rules import HISTOGRAMS
from understudy.schema import Layout, Schema

Scale = float | Mapping[str, float] | Literal["private"] | None

SHORTEST_ALONE = 0.004
SHORTEST = 0.015
LONGEST = 0.5
"""Public default: a mixture of Gaussian kernels on single columns, pairs of columns and all
columns, with length scales from the finest detail to half a column's range (times the root of
the number of columns, as distances grow with it)."""

HISTOGRAM_BINS = 64
HISTOGRAM_SHARE = 0.1
"""Bins per column, and share of the budget, of the histograms that private length scales are chosen from."""

LABEL_FEATURES = 20
"""Random Fourier features of a numeric label."""

FEWEST_FEATURES = 200
MOST_FEATURES = 20_000
"""Between which the number of random Fourier features is planned: more as noise falls."""

MOST_IMAGE_FEATURES = 10_000
MOST_BATCHES = 1000
"""Parts that rows may be dealt into, each with a noisy embedding of its own."""


def dp_merf(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    length_scale: Annotated[
        Scale,
        Option(
            "A number in units of each column's range, or 'private' to pay for it (default: a mixture of scales).",
            takes=str,
            read=scale_in,
        ),
    ] = None,
    num_features: Annotated[int | None, Option("Fourier features (default: by the error bound).", "--features")] = None,
    separate_releases: Annotated[bool, Option("Charge each class apart, as the first DP-MERF did (looser).")] = False,
    mini_batches: Annotated[
        int, Option("A noisy embedding for each of so many parts of the rows, as the first DP-MERF had.")
    ] = 1,
    generator: Annotated[
        str | None, Option("Tables: network. Images: convolutional (default), connected, clouds or residual.")
    ] = None,
    seed: int = 0,
    training: Training | ImageTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a DP-MERF release: Fourier features of numbers, one-hot features of choices.

    Numbers enter through Fourier features of Gaussian kernels, choices through one-hot
    features (sec. 4.3, heterogeneous data), and both are multiplied by the one-hot label
    (sec. 4.1) when the schema has one. The number of rows, or of rows per label value
    (sec. 4.2, imbalanced data), is one more block of the same vector. Images with at most a
    label of named classes have one Gaussian kernel of all pixels, and an image network.

    Args:
        schema: the public description of the table.
        budget: the guarantee to meet.
        neighbours: between which tables it holds.
        num_rows: the public row count (``replace-one``), or a public guess that sizes are
            planned for (``add-remove``). By default what the schema says.
        labels: ``imbalanced`` releases noisy class counts, ``balanced`` takes classes as
            equally frequent, ``none`` treats the label as any other column. ``auto`` is
            ``imbalanced`` for a categorical label; a numeric label gets a Gaussian kernel.
        length_scale: of the Gaussian kernel, in units of each column's public range: one
            number for all, or a number per column name, or ``private`` to spend a tenth of
            the budget on noisy histograms that set it. By default a mixture of scales, and for
            images the root of the mean squared distance of two images of pure chance.
        num_features: how many Fourier features; by default the minimiser of the error bound
            of Prop. 3.1, at most 20,000 (past that the bound is flat and time is not). For images
            the bound of a class, and at most 10,000.
        separate_releases: charge class embeddings and counts as C + 1 separate releases, as
            the first version of the paper did. Looser; for comparison.
        mini_batches: deal rows into so many batches, each with a noisy embedding of its own,
            which training takes in turn, as the first version of the paper did. For comparison.
        generator: ``network`` for tables; ``convolutional`` (the default) or ``connected`` for images.
        seed: public seed of frequencies and training.
        training: settings of the network.
        steps: training steps, if only their number should differ.
    """
    terms = terms_of(schema, budget, neighbours, num_rows)
    if num_features is not None and num_features < 2:
        raise UsageError("features", "must be at least 2", "Leave it out for the default")
    columns = labelled_columns(schema, labels)
    image = image_set(schema) if labels != "none" else None
    if image is not None and length_scale is None:
        length_scale = image_length_scale(image)
    if not 1 <= mini_batches <= MOST_BATCHES or (mini_batches > 1 and length_scale == "private"):
        raise UsageError("mini batches", f"must lie between 1 and {MOST_BATCHES}, with a public length scale")
    layout = Layout(schema)
    weights = _block_weights(num_numbers=len(layout.numbers), num_choices=len(columns.spans))
    share = 1.0 - HISTOGRAM_SHARE if length_scale == "private" else 1.0
    if num_features is None:
        squares = {name: share * weight**2 for name, weight in weights.items()}

        def noise(count: float) -> float:
            own = squares["numbers"]
            if budget.is_pure:
                bounds = [1.0, math.sqrt(count), math.sqrt(max(1, len(columns.spans)))]
                own = epsilon_parts(list(squares.values()), bounds)[1]
            return terms.noise(own, nonzeros=count) * mini_batches * (columns.num_labels if image is not None else 1)

        num_features = best_num_features(noise)
        num_features = min(num_features, MOST_IMAGE_FEATURES) if image is not None else num_features
    maps = _maps(layout, columns.spans, columns.target, length_scale, num_features, seed)
    if mini_batches > 1 and layout.numbers:
        batches = Buckets(tuple(range(len(layout.numbers))), mini_batches, seed)
        maps["numbers"] = product(batches, maps["numbers"])
    if separate_releases:
        weights["count"] = 1.0
    blocks = [
        columns.count_block(weights["count"]),
        *(columns.feature_block(name, map_, weights[name]) for name, map_ in maps.items()),
    ]
    embedding = Embedding(tuple(blocks), label=columns.classes, separate=separate_releases)
    stages = [Stage("embedding", embedding)]
    if length_scale == "private" and layout.numbers:
        grid = Grid(tuple(range(len(layout.numbers))), HISTOGRAM_BINS)
        stages = [
            Stage(HISTOGRAMS, Embedding((Block(HISTOGRAMS, grid, 1.0),)), HISTOGRAM_SHARE),
            Stage("embedding", embedding, share, rule="scale-by-histograms"),
        ]
    wish: dict[str, Any] = {"generator": generator, "training": training, "steps": steps}
    if image is not None:
        made = image_generator(ImageTraining(seed=seed), **wish)
    else:
        made = table_generator({"network": Training}, **wish, seed=seed)
    settings = {"labels": labels, **made}
    return terms.plan("dp-merf", tuple(stages), settings)


def _maps(
    layout: Layout,
    spans: tuple[tuple[int, int], ...],
    target: str | None,
    length_scale: Scale,
    num_features: int,
    seed: int,
) -> dict[str, FeatureMap]:
    """Feature maps of numbers and choices; a numeric ``target`` multiplies the choices too.

    Among the numbers a target needs no product: a Gaussian kernel of all columns is one already.
    """
    maps: dict[str, FeatureMap] = {}
    if layout.numbers:
        scales, parts = _kernel(layout.numbers, length_scale)
        numbers = tuple(range(len(layout.numbers)))
        maps["numbers"] = Fourier(numbers, scales, parts, num_features + num_features % 2, seed)
    if spans:
        maps["choices"] = OneHot(spans)
    if spans and target is not None:
        position = layout.numbers.index(target)
        own_parts = (parts[0]._replace(size=1),)
        own = Fourier((position,), (scales[position],), own_parts, LABEL_FEATURES, seed + 1)
        maps["choices"] = product(maps["choices"], own)
    return maps


def _block_weights(*, num_numbers: int, num_choices: int) -> dict[str, float]:
    """Every column weighs the same, the row count a little; squares add up to one."""
    share = (1 - COUNT_SHARE) / max(1, num_numbers + num_choices)
    return {
        "count": math.sqrt(COUNT_SHARE),
        "numbers": math.sqrt(share * num_numbers),
        "choices": math.sqrt(share * num_choices),
    }


def _kernel(names: tuple[str, ...], length_scale: Scale) -> tuple[tuple[float, ...], tuple[Scales, ...]]:
    """Length scale of each number, and the parts of the kernel that they stretch."""
    plain = (Scales(len(names), 1.0, 1.0),)
    if isinstance(length_scale, Mapping):
        return scales_by_name(names, length_scale), plain
    if isinstance(length_scale, int | float):
        return (checked_scale(float(length_scale)),) * len(names), plain
    sizes = sorted({1, min(2, len(names)), len(names)})
    ranges = [(SHORTEST_ALONE if size == 1 else SHORTEST, math.sqrt(size)) for size in sizes]
    parts = (Scales(size, low * root, LONGEST * root) for size, (low, root) in zip(sizes, ranges, strict=True))
    return (1.0,) * len(names), tuple(parts)


def error_bound(num_features: float, noise_std: float) -> float:
    """Prop. 3.1: expected error of the squared MMD, for noise of that deviation on the mean.

    noise_std = 2 sigma / m gives the proposition's own terms.
    """
    ratio = math.exp(gammaln((num_features + 1) / 2) - gammaln(num_features / 2))
    private = num_features * noise_std**2 + 4 * math.sqrt(2) * noise_std * ratio
    return float(private + 8 * math.sqrt(2 * math.pi / num_features))


def best_num_features(noise_std: Callable[[float], float]) -> int:
    """The number of features that minimises ``error_bound`` (even, within limits).

    ``noise_std`` tells the noise on a mean feature for each number of them.
    """
    limits = math.log(FEWEST_FEATURES), math.log(MOST_FEATURES)
    found = minimize_scalar(
        lambda log_count: error_bound(math.exp(log_count), noise_std(math.exp(log_count))),
        bounds=limits,
        method="bounded",
    )
    return 2 * round(math.exp(found.x) / 2)
