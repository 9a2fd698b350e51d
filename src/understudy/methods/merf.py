"""DP-MERF: random Fourier mean embeddings (Harder, Adamczewski & Park, AISTATS 2021).

DP-MERF+AE makes the first version's images by way of codes, with a decoder that noisy descent trains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Literal

from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from understudy.accounting.dpsgd import calibrated_descent, slack_for
from understudy.accounting.mechanisms import Budget, Neighbours, mu_squared_of_budget
from understudy.errors import UsageError
from understudy.features import Block, Buckets, Embedding, FeatureMap, Fourier, Grid, OneHot, Scales, product
from understudy.fits.images import ImageTraining
from understudy.fits.network import Training
from understudy.generators.image_architectures import DECODED
from understudy.methods import common
from understudy.methods.common import Labels, LengthScale, Option, Steps, Terms, scale_in, terms_of
from understudy.networks.autoencoder import AutoEncoder
from understudy.plan.descent import DecoderPlan
from understudy.plan.plan import Plan, Stage
from understudy.plan.stage import epsilon_parts
from understudy.rules.clipping_norm import HISTOGRAMS
from understudy.schema import Schema

NumFeatures = Annotated[int | None, Option("Fourier features (default: by the error bound).", "--features")]
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
    num_features: NumFeatures = None,
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
    terms = terms_of(schema, budget, neighbours, num_rows, labels=labels)
    if num_features is not None and num_features < 2:
        raise UsageError("features", "must be at least 2", "Leave it out for the default")
    numbers = tuple(range(len(terms.layout.numbers)))
    image = common.image_set(schema) if labels != "none" else None
    if image is not None and length_scale is None:
        # Two pixels that are uniform between 0 and 1 are 1 / sqrt(6) apart in the root mean square. The paper takes
        # the median distance of private images instead.
        length_scale = math.sqrt(image.num_pixels / 6)
    if not 1 <= mini_batches <= MOST_BATCHES or (mini_batches > 1 and length_scale == "private"):
        raise UsageError("mini batches", f"must lie between 1 and {MOST_BATCHES}, with a public length scale")
    # Every column weighs the same, the row count a little; squares add up to one.
    counts = {"numbers": len(numbers), "choices": len(terms.spans)}
    per_column = (1 - common.COUNT_SHARE) / max(1, sum(counts.values()))
    weights = {"count": math.sqrt(common.COUNT_SHARE)} | {name: math.sqrt(per_column * counts[name]) for name in counts}
    share = 1.0 - HISTOGRAM_SHARE if length_scale == "private" else 1.0
    if num_features is None:
        squares = {name: share * weight**2 for name, weight in weights.items()}

        def noise(count: float) -> float:
            own = squares["numbers"]
            if budget.is_pure:
                bounds = [1.0, math.sqrt(count), math.sqrt(max(1, len(terms.spans)))]
                own = epsilon_parts(list(squares.values()), bounds)[1]
            return terms.noise(own, nonzeros=count) * mini_batches * (terms.num_labels if image is not None else 1)

        num_features = best_num_features(noise)
        num_features = min(num_features, MOST_IMAGE_FEATURES) if image is not None else num_features
    maps = _maps(terms, length_scale, num_features, seed)
    if mini_batches > 1 and numbers:
        maps["numbers"] = product(Buckets(numbers, mini_batches, seed), maps["numbers"])
    if separate_releases:
        weights["count"] = 1.0
    stages = [Stage("embedding", terms.embedding(maps, weights, separate=separate_releases))]
    if length_scale == "private" and numbers:
        histograms = Embedding((Block(HISTOGRAMS, Grid(numbers, HISTOGRAM_BINS), 1.0),))
        stages = [
            Stage(HISTOGRAMS, histograms, HISTOGRAM_SHARE),
            replace(stages[0], share=share, rule="scale-by-histograms"),
        ]
    planned = {"network": Training(seed=seed)} if image is None else {common.IMAGE_NETWORK: ImageTraining(seed=seed)}
    made = common.generator_settings(planned, generator=generator, training=training, steps=steps)
    return terms.plan("dp-merf", stages, {"labels": labels, **made})


def _maps(terms: Terms, length_scale: Scale, num_features: int, seed: int) -> dict[str, FeatureMap]:
    """Feature maps of numbers and choices; a numeric target multiplies the choices too.

    Among the numbers a target needs no product: a Gaussian kernel of all columns is one already.
    """
    maps: dict[str, FeatureMap] = {}
    names = terms.layout.numbers
    if names:
        scales, parts = _kernel(names, length_scale)
        maps["numbers"] = Fourier(tuple(range(len(names))), scales, parts, num_features + num_features % 2, seed)
    if terms.spans:
        maps["choices"] = OneHot(terms.spans)
    if terms.spans and terms.target is not None:
        position = names.index(terms.target)
        own_parts = (parts[0]._replace(size=1),)
        own = Fourier((position,), (scales[position],), own_parts, LABEL_FEATURES, seed + 1)
        maps["choices"] = product(maps["choices"], own)
    return maps


def _kernel(names: tuple[str, ...], length_scale: Scale) -> tuple[tuple[float, ...], tuple[Scales, ...]]:
    """Length scale of each number, and the parts of the kernel that they stretch."""
    if length_scale is not None and not isinstance(length_scale, str):
        return common.length_scales(names, length_scale), (Scales(len(names), 1.0, 1.0),)
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


EMBEDDING_SHARE = 0.3
"""Of mu squared, for the embedding; the rest trains the decoder, which has more to learn."""

FEWEST_CODES = 10
HIDDEN = 64
"""Units of the auto-encoder: of its code, if there are fewer classes, and of its wider hidden layer."""

BATCH = 500
"""Expected rows of a step of DP-SGD, which takes each row with probability ``BATCH / rows``."""

DESCENT_STEPS = 300  # of DP-SGD, by default
CLIP = 1.0
"""L2 norm that the gradient of one row is clipped to."""

LEARNING_RATE = 1e-2  # of Adam on noisy gradients


def dp_merf_ae(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    length_scale: LengthScale = None,
    num_features: NumFeatures = None,
    descent_steps: Annotated[
        int, Option("Steps of the descent that trains the decoder (default: 300).", least=1)
    ] = DESCENT_STEPS,
    embedding_share: float = EMBEDDING_SHARE,
    seed: int = 0,
    training: ImageTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a release of images with two mechanisms: noisy descent for a decoder, then DP-MERF's embedding.

    A generator of codes is then trained so that decoded codes have the embedding (Algorithm 2 of the first
    version). The epsilon is that of both together, by privacy loss distributions. Descent is accounted for
    with a delta above 0, add-remove neighbours and rows as units.

    Args:
        schema: images with at most one label of named classes.
        budget: the guarantee to meet; delta is above 0.
        neighbours: ``add-remove``, which descent is accounted for.
        num_rows: a public guess that sizes are planned for. By default what the schema says.
        labels: as for ``dp_merf``, but for ``none``: images alone, the label is neither read nor made.
        length_scale: as for ``dp_merf``, but for ``private``.
        num_features: as for ``dp_merf``.
        descent_steps: steps of the descent, each on about 500 images, or a tenth of all if they are few.
        embedding_share: of mu squared, for the embedding.
        seed: public seed of frequencies and first parameters.
        training: settings of the generator of codes.
        steps: its training steps, if only their number should differ.
    """
    schema = common.images_alone(schema) if labels == "none" else schema
    labels = "auto" if labels == "none" else labels
    image = common.images_of(schema, "dp-merf-ae", others="dp-merf")
    if not 0.01 <= embedding_share <= 0.99:
        raise UsageError("embedding share", "must lie between 0.01 and 0.99")
    terms = terms_of(schema, budget, neighbours, num_rows, labels=labels)
    if terms.neighbours is not Neighbours.ADD_REMOVE:
        raise UsageError("neighbours", "must be add-remove for dp-merf-ae")
    if isinstance(length_scale, str):
        raise UsageError("length scale", "must be a number for dp-merf-ae")
    rows, num_labels = terms.planned_rows, terms.num_labels
    network = AutoEncoder(image.num_pixels, num_labels, max(FEWEST_CODES, num_labels), (HIDDEN, HIDDEN // 2), HIDDEN)
    rate = min(0.1, BATCH / rows)
    spendable = Budget(budget.epsilon, float(Fraction(budget.delta) - slack_for(budget, rate)))
    beside = mu_squared_of_budget(spendable) * Fraction(embedding_share)
    cost = calibrated_descent(budget, sampling_rate=rate, steps=descent_steps, beside=(beside,))
    codes = training or ImageTraining(noise_dim=network.code_dim, seed=seed)
    codes = replace(codes, architecture=DECODED, channels=(network.code_dim, network.decoder))
    plan = dp_merf(
        schema,
        budget,
        num_rows=num_rows,
        labels=labels,
        length_scale=length_scale,
        num_features=num_features,
        seed=seed,
        training=codes,
        steps=steps,
    )
    explanation = [
        f"decoder: {descent_steps} steps, each on about {rate * rows:.0f} images, with noise of "
        f"{cost.noise_multiplier:.3g} clipping norms; all images are held in memory meanwhile",
        f"embedding: {embedding_share:.0%} of the budget",
    ]
    return replace(
        plan,
        settings=(*plan.settings, ("explanation", explanation)),
        method="dp-merf-ae",
        stages=tuple(replace(stage, share=embedding_share) for stage in plan.stages),
        descent=DecoderPlan(network, cost, CLIP, LEARNING_RATE, rows, seed),
    )
