"""DP-HP: Hermite mean embeddings under a sum and a product kernel (Vinaroz et al., ICML 2022).

The combined kernel is k_sum + gamma k_product. **Gamma has two meanings in the paper**: for tables
(eq. 16) it multiplies the loss of the *product* kernel, for images (App. H.2) that of the *sum*
kernel. Here it is always the weight of the product kernel, with the sum kernel at 1; an image
gamma g of the paper is 1 / g here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.errors import UsageError
from understudy.features import Block, Embedding, FeatureMap, Sign
from understudy.fits.images import ImageTraining
from understudy.fits.mixture import MixtureTraining
from understudy.fits.network import Training
from understudy.methods import common
from understudy.methods.common import Labels, LengthScale, Option, Steps, Terms, terms_of
from understudy.methods.hp_kernels import FRESH_RELEASES, IMAGE_KERNELS, PRESETS, Kernels, Wish, plan_kernels
from understudy.plan.plan import Plan, Stage
from understudy.plan.stage import weighed_for_laplace, with_epsilon_parts
from understudy.schema import Schema

IMAGE_STEPS = 1500
"""Training steps of an image network, as in the paper for Fashion-MNIST."""


def dp_hp(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    length_scale: LengthScale = None,
    order: Annotated[int | None, Option("Hermite order of the sum kernel, at most 300.")] = None,
    product_length_scale: float | None = None,
    product_order: Annotated[int | None, Option("Hermite order of the product kernel.")] = None,
    product_dim: Annotated[int | None, Option("Columns in a product (default: 2).")] = None,
    num_products: Annotated[
        int | None, Option("How many sets of columns (default: as many as the noise allows).", "--products")
    ] = None,
    gamma: Annotated[
        float | None, Option("Weight of the product kernel against 1 for the sum (default: by the noise).")
    ] = None,
    product_share: Annotated[
        float | None, Option("Share of the budget for the product kernel (default: least noise).")
    ] = None,
    fresh_products: Annotated[
        bool, Option("A noisy release of its own for each set of columns, as in the paper.")
    ] = False,
    preset: Annotated[str | None, Option("Settings of one of the paper's experiments, such as 'adult'.")] = None,
    generator: Annotated[
        str | None,
        Option("Tables: mixture (default) or network. Images: convolutional (default), connected, clouds or residual."),
    ] = None,
    seed: int = 0,
    training: MixtureTraining | Training | ImageTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a DP-HP release: Hermite features of numbers, one-hot features of choices.

    The *sum kernel* (sec. 3.2.2) sees every column by itself, the *product kernel* (sec. 3.2.1)
    subsets of ``product_dim`` columns together. Choices are one-hot factors of both. With a
    categorical label both are kept per class (sec. 3.3). What is not given is planned from the
    schema, the budget and the row count; every length scale is in units of a column's range.

    Args:
        schema: the public description of the table.
        budget: the guarantee to meet.
        neighbours: between which tables it holds.
        num_rows: the public row count (``replace-one``), or a public guess that sizes are
            planned for (``add-remove``). By default what the schema says.
        labels: as for ``dp_merf``; a numeric label is one more number.
        length_scale: of the sum kernel's Gaussians, for all numbers or by name.
        order: highest Hermite order of the sum kernel, at most 300; by default what the length
            scale needs, and both by default what the noise allows.
        product_length_scale: of the product kernel's Gaussians.
        product_order: highest order of each factor of the product kernel.
        product_dim: columns in a product; 2 by default.
        num_products: how many subsets; by default all, unless noise would drown them. Subsets
            are drawn with the public seed.
        gamma: weight of the product kernel in the loss, against 1 for the sum kernel. By
            default each kernel is trusted as its noise deserves.
        product_share: share of the budget (of mu squared, or of epsilon if delta is 0) for the
            product kernel. By default what minimises the noise of the combined kernel
            (proofs/hermite.md, laplace.md).
        fresh_products: release each subset by itself, as the paper does every epoch, and train
            on one at a time. Costs the same budget and a pass over the rows per subset.
        preset: settings of one of the paper's experiments, for what is not given.
        generator: ``mixture`` of products (the default: fast, keeps atoms), or the papers' ``network``;
            for images ``convolutional`` (the default) or ``connected``.
        seed: public seed of subsets and training.
        training: settings of the generator.
        steps: training steps, if only their number should differ.
    """
    terms = terms_of(schema, budget, neighbours, num_rows, labels=labels)
    wish = Wish(
        order, product_order, product_dim, num_products, gamma, product_share, length_scale, product_length_scale
    )
    has_images = labels != "none" and common.image_set(schema) is not None
    if preset is not None and preset not in PRESETS:
        raise UsageError("preset", f"'{preset}' is unknown", "Presets are " + ", ".join(PRESETS))
    if preset is not None:
        wish = wish.filled(PRESETS[preset].wish(budget))
    elif has_images:
        wish = wish.filled(IMAGE_KERNELS)
    if fresh_products:
        wish = wish.filled(Wish(num_products=FRESH_RELEASES))
    kernels = plan_kernels(terms, wish, seed=seed)
    make_stages = _fresh_stages if fresh_products else _one_stage
    stages, squares = make_stages(kernels, terms)
    if budget.is_pure:
        stages, squares = _for_laplace(stages, wish.product_share)
    planned: dict[str, Any] = {"mixture": MixtureTraining(seed=seed), "network": Training(seed=seed)}
    if has_images:
        planned = {common.IMAGE_NETWORK: ImageTraining(steps=IMAGE_STEPS, seed=seed)}
    settings: dict[str, Any] = {
        "labels": labels,
        **common.generator_settings(planned, generator=generator, training=training, steps=steps),
        "loss_weights": kernels.losses(squares),
        "turns": [stage.embedding.blocks[0].name for stage in stages[1:]],
        "explanation": kernels.explanation,
    }
    return terms.plan("dp-hp", stages, settings)


def _one_stage(kernels: Kernels, terms: Terms) -> tuple[tuple[Stage, ...], dict[str, float]]:
    """Everything in one vector: one pass, one noise, every subset at every step of training."""
    share = kernels.product_share
    squares = {name: (1 - share) * part for name, part in kernels.sum_parts.items()}
    maps: dict[str, FeatureMap] = dict(kernels.sum_maps)
    if kernels.products is not None:
        squares["products"], maps["products"] = share, kernels.products
    return (Stage("embedding", _embedding(maps, squares, terms)),), squares


def _fresh_stages(kernels: Kernels, terms: Terms) -> tuple[tuple[Stage, ...], dict[str, float]]:
    """The sum kernel first, then a release of its own for every subset, as in the paper."""
    share, squares = kernels.product_share, dict(kernels.sum_parts)
    stages = [Stage("sum", _embedding(kernels.sum_maps, squares, terms), 1 - share)]
    singles = kernels.products.apart() if kernels.products is not None else []
    for i, map_ in enumerate(singles):
        name = f"product {i + 1}"
        own = Embedding((Block(name, map_, 1.0, bool(terms.classes)),), terms.classes)
        stages.append(Stage(name, own, share / len(singles)))
        squares[name] = share / (1 - share)
    return tuple(stages), squares


def _for_laplace(stages: tuple[Stage, ...], product_share: float | None) -> tuple[tuple[Stage, ...], dict[str, float]]:
    """The same stages paid for in epsilon, and what goes as one over the variance of their noise."""
    stages = weighed_for_laplace(stages)
    parts = {name: part for stage in stages for name, part in stage.parts.items()}
    products = sum(part for name, part in parts.items() if name.startswith("product"))
    if product_share is not None and products > 0:
        others = sum(parts.values()) - products
        scale = {True: product_share / products, False: (1 - product_share) / others}
        parts = {name: part * scale[name.startswith("product")] for name, part in parts.items()}
        stages = with_epsilon_parts(stages, parts)
    blocks = [block for stage in stages for block in stage.embedding.blocks]
    trusts = {
        block.name: (parts[block.name] / block.map.l1_bound) ** 2
        for block in blocks
        if block.map.sign is not Sign.CONSTANT
    }
    return stages, {name: trust / sum(trusts.values()) for name, trust in trusts.items()}


def _embedding(maps: Mapping[str, FeatureMap], squares: Mapping[str, float], terms: Terms) -> Embedding:
    """Blocks with these shares of the squared norm, after a small one for the row count."""
    return terms.embedding(maps, {name: math.sqrt((1 - common.COUNT_SHARE) * squares[name]) for name in maps})
