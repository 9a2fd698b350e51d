"""DP-MEPF: mean embeddings of perceptual features (Harder, Jalali, Sutherland & Park, TMLR 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.errors import UsageError
from understudy.features import Block, Embedding, FeatureMap, Tensors, perceptual
from understudy.fits.images import FIRST, PRODUCTS, SECOND, STOPPING, PerceptualTraining
from understudy.methods import common
from understudy.methods.common import Labels, Option, Steps, names_in, terms_of
from understudy.networks.public import COMPONENTS, VISION, PublicNetwork, load_encoder, vision_network
from understudy.plan.plan import Plan, Stage
from understudy.schema import Schema

STOPPING_SHARE = 0.01
"""Of the budget, for the stage that chooses a checkpoint: noise ten times that of the moments, as in the paper."""


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
    schema = common.images_alone(schema) if labels == "none" else schema
    image = common.images_of(schema, "dp-mepf")
    terms = terms_of(schema, budget, neighbours, num_rows, labels=labels)
    network = find_network(encoder)
    if activation not in ("before", "after"):
        raise UsageError("activation", "must be before or after")
    if moments not in (1, 2):
        raise UsageError("moments", "must be 1 or 2")
    if not 0 <= stopping <= 0.5:
        raise UsageError("stopping", "must be a share of the budget from 0 to 0.5")
    rectified = activation == "after"
    first = perceptual(network, image, layers=tuple(layers) if layers else None, rectified=rectified)
    maps: dict[str, FeatureMap] = {FIRST: first}
    if moments == 2:
        maps[SECOND] = replace(first, moment=2)
    if not multiply and COMPONENTS in dict(network.module.named_modules()):
        multiply = COMPONENTS
    multiplied = None if multiply == "none" else multiply or None
    if multiplied is not None:
        factor = perceptual(network, image, layers=(multiplied,))
        maps[PRODUCTS] = Tensors((factor,), ((0, 0),))
    weight = math.sqrt((1 - common.COUNT_SHARE) / len(maps))
    stages = [Stage("moments", terms.embedding(maps, dict.fromkeys(maps, weight)), 1.0 - stopping)]
    if stopping:
        top = perceptual(network, image, layers=first.source.layers[-1:], rectified=rectified)
        embedding = Embedding((Block(STOPPING, top, 1.0, terms.classes is not None),), terms.classes)
        stages.append(Stage(STOPPING, embedding, stopping))
    settings = {
        "labels": labels,
        "encoder": {
            "name": network.name,
            "sha256": network.sha256,
            "trained_on": network.trained_on,
            "private_cost": network.private_cost,
        },
        **common.generator_settings(
            {"perceptual": PerceptualTraining(seed=seed)}, generator=generator, training=training, steps=steps
        ),
        "explanation": _explanation(network, first.source.layers, list(maps), multiplied, stopping),
    }
    return terms.plan("dp-mepf", stages, settings)


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
