"""DP-MEPF: mean embeddings of perceptual features (Harder, Jalali, Sutherland & Park, TMLR 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Literal

from understudy.accounting import Budget, Neighbours
from understudy.errors import UsageError
from understudy.features import Block, Embedding, FeatureMap, Tensors, perceptual
from understudy.fits.perceptual import FIRST, PRODUCTS, SECOND, STOPPING, PerceptualTraining
from understudy.methods.common import (
    COUNT_SHARE,
    Labels,
    Option,
    Steps,
    image_set,
    images_alone,
    labelled_columns,
    names_in,
    terms_of,
    with_architecture,
)
from understudy.networks import VISION, load_encoder, vision_network
from understudy.networks.form import COMPONENTS
from understudy.networks.public import PublicNetwork
from understudy.plan.plan import Plan, Stage
from understudy.schema import Schema

STOPPING_SHARE = 0.01
"""Of the budget, for the stage that chooses a checkpoint: noise ten times that of the moments, as in the paper."""

ACTIVATIONS = ("before", "after")


def dp_mepf(
    schema: Schema,
    budget: Budget,
    *,
    encoder: Annotated[
        PublicNetwork | str | Path | None,
        Option("Public network: a directory made by 'encoder train', or vgg19 or resnet18 of torchvision.", takes=str),
    ] = None,
    layers: Annotated[
        Sequence[str] | None,
        Option(
            "Its layers, parted by commas; pixels is the image itself (default: those it was made for).",
            takes=str,
            read=names_in,
        ),
    ] = None,
    activation: Annotated[
        Literal["before", "after"], Option("Whether layers count before (default) or after a rectified unit.")
    ] = "before",
    moments: Annotated[int, Option("1: means. 2 (default): also means of squares.", least=1, most=2)] = 2,
    multiply: Annotated[
        str | None,
        Option("Layer whose numbers are also multiplied two by two, or none (default: components, if there is one)."),
    ] = None,
    stopping: Annotated[
        float, Option("Share of the budget that chooses the checkpoint (default: 0.01; 0 keeps the last one).")
    ] = STOPPING_SHARE,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    labels: Labels = "auto",
    generator: Annotated[str | None, Option("clouds (default), convolutional, connected or residual.")] = None,
    seed: int = 0,
    training: PerceptualTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a release of images: moments of what a public network makes of them, by class.

    Args:
        schema: the public description; it has images, and at most a categorical label beside them.
        budget: the guarantee to meet.
        encoder: the public network: a directory made by ``understudy encoder train``, ``vgg19`` or ``resnet18``
            of torchvision, or any torch module through ``network_of_module``.
        layers: names of its modules; ``pixels`` is the image itself. By default those it was made for.
        activation: whether layers count ``before`` or ``after`` a rectified unit.
        moments: 1 for means, 2 also for means of squares.
        multiply: a layer whose numbers are also multiplied two by two, which makes a full second moment;
            ``none`` for no such layer. By default the linear components that our encoders have.
        stopping: share of the budget for a noisier embedding of the last layer, which chooses among
            checkpoints of training; 0 keeps the last one.
        neighbours: between which sets it holds.
        num_rows: the public number of images (``replace-one``), or a public guess. By default what the
            schema says.
        labels: ``imbalanced`` releases noisy class counts, ``balanced`` takes classes as equally frequent,
            ``none`` is for images alone: the label is neither read nor made. ``auto`` is ``imbalanced``.
        generator: ``clouds`` (default), or any other architecture of image networks, such as ``residual``.
        seed: public seed of training and samples.
        training: settings of the generator.
        steps: training steps, if only their number should differ.
    """
    schema = images_alone(schema) if labels == "none" else schema
    image = image_set(schema)
    if image is None:
        raise UsageError(
            "method",
            "dp-mepf is for images with at most one label of named classes",
            "Use the default method for other tables, or drop the other columns",
        )
    terms = terms_of(schema, budget, neighbours, num_rows)
    network = find_network(encoder)
    _check(activation, moments, stopping)
    rectified = activation == "after"
    columns = labelled_columns(schema, labels)
    by_class, chosen = columns.classes is not None, tuple(layers) if layers else None
    first = perceptual(network, image, layers=chosen, rectified=rectified)
    maps: dict[str, FeatureMap] = {FIRST: first}
    if moments == 2:
        maps[SECOND] = replace(first, moment=2)
    multiplied = _multiplied(network, multiply)
    if multiplied is not None:
        factor = perceptual(network, image, layers=(multiplied,))
        maps[PRODUCTS] = Tensors((factor,), ((0, 0),))
    weight = math.sqrt((1 - COUNT_SHARE) / len(maps))
    blocks = (
        columns.count_block(math.sqrt(COUNT_SHARE)),
        *(Block(name, map_, weight, by_class) for name, map_ in maps.items()),
    )
    stages = [Stage("moments", Embedding(blocks, columns.classes), 1.0 - stopping)]
    if stopping:
        top = perceptual(network, image, layers=first.layers[-1:], rectified=rectified)
        embedding = Embedding((Block(STOPPING, top, 1.0, by_class),), columns.classes)
        stages.append(Stage(STOPPING, embedding, stopping))
    settings = {
        "labels": labels,
        "encoder": {
            "name": network.name,
            "sha256": network.sha256,
            "trained_on": network.trained_on,
            "private_cost": network.private_cost,
        },
        "generator": "perceptual",
        "training": asdict(_training(training, generator, steps, seed)),
        "explanation": _explanation(network, first.layers, list(maps), multiplied, stopping),
    }
    return terms.plan("dp-mepf", tuple(stages), settings)


def find_network(encoder: PublicNetwork | str | Path | None) -> PublicNetwork:
    """A public network by its directory or its name, registered for feature maps."""
    if encoder is None:
        raise UsageError(
            "encoder",
            "dp-mepf needs a public network",
            "Give --encoder DIR (make one: understudy encoder train), or --encoder vgg19; "
            "--method dp-spectrum needs none",
        )
    if isinstance(encoder, PublicNetwork):
        return encoder
    if str(encoder) in VISION:
        return vision_network(str(encoder))
    return load_encoder(encoder).network(Path(encoder).name)


def _multiplied(network: PublicNetwork, multiply: str | None) -> str | None:
    if multiply == "none":
        return None
    has_components = COMPONENTS in dict(network.module.named_modules())
    return multiply or (COMPONENTS if has_components else None)


def _check(activation: str, moments: int, stopping: float) -> None:
    if activation not in ACTIVATIONS:
        raise UsageError("activation", "must be before or after")
    if moments not in (1, 2):
        raise UsageError("moments", "must be 1 or 2")
    if not 0 <= stopping <= 0.5:
        raise UsageError("stopping", "must be a share of the budget from 0 to 0.5")


def _training(
    training: PerceptualTraining | None, generator: str | None, steps: int | None, seed: int
) -> PerceptualTraining:
    found = PerceptualTraining(seed=seed) if training is None else training
    if not isinstance(found, PerceptualTraining):
        raise UsageError("training", "is that of another kind of generator")
    found = with_architecture(found, generator)
    return found if steps is None else replace(found, steps=steps)


def _explanation(
    network: PublicNetwork, layers: Sequence[str], blocks: list[str], multiplied: str | None, stopping: float
) -> list[str]:
    learnt = f", trained on {network.trained_on}" if network.trained_on else ""
    kind = "public network" if network.private_cost is None else "privately learnt network"
    found = [
        f"{kind} '{network.name}'{learnt}, SHA-256 {network.sha256[:16]}...",
        f"{' and '.join(block for block in blocks if block != PRODUCTS)} moments of {', '.join(layers)}",
    ]
    if multiplied is not None:
        found.append(f"all products of two numbers of {multiplied}")
    if stopping:
        found.append(f"a noisier embedding of {layers[-1]} ({stopping:.1%} of the budget) chooses the checkpoint")
    return found
