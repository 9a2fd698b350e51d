"""DP-Spectrum: first and second moments of the low frequencies of images, class by class."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import numpy as np

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.errors import InputError, UsageError
from understudy.features import Block, Embedding, FeatureMap, Lengths, Sides, Spectrum, Tensors, Weighted, product
from understudy.features.image_bases import Principal, principal_of
from understudy.features.spectrum import MOST_COEFFICIENTS
from understudy.fits.images import ImageTraining
from understudy.fits.spectral import MEANS, PARTS, SECONDS, SpectralFit
from understudy.methods import common
from understudy.methods.common import Option, PublicFile, Steps, Terms, terms_of
from understudy.plan.plan import Plan, Stage
from understudy.rules.clipping_norm import LENGTHS, LOOK_MEANS, LOOK_SECONDS
from understudy.schema import Schema
from understudy.schema.encode import pixel_array
from understudy.schema.images import ImageShape

FIRST_SHARE = 0.04
COUNT_PART = 0.5
"""Share of the budget for row counts and lengths, and of that for row counts."""

MEANS_PART = 0.2
PARTS_PART = 0.02
"""Shares of the rest for first moments, and for counts of the parts of classes."""

TILT = 1.0
"""Power of the frequency that weighs a coefficient."""

FEWEST = 30
MOST = 400
NOISE_EXPONENT = 0.25
COEFFICIENTS_AT_ONE = 24.0
"""Coefficients: so many for a mean image measured to within 1, and more as noise falls."""

LOOK_SHARE = 0.05
LOOK_COEFFICIENTS = 40
"""What a look at classes may cost, before they are split, and how many coefficients it sees."""

SPLIT_BELOW = 1.5e-4
USUAL_COMPONENTS = 4
"""Classes are split if noise on the mean image of one is below this."""

COMPONENTS = (1, 2, 4, 8, 16)
SPECTRAL = "spectral"


def _pixels(schema: Schema) -> tuple[str, ...]:
    if schema.image is None:
        raise UsageError("basis", "is of images, and the schema has none", "Leave --basis out")
    return schema.image.names


PUBLIC_IMAGES = PublicFile(_pixels, "Give images that anybody may see, or none: cosines need no images")


def dp_spectrum(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    num_coefficients: Annotated[
        int | None, Option("Cosine coefficients to measure (default: as many as the noise allows).", "--coefficients")
    ] = None,
    tilt: Annotated[float, Option("Coefficients are weighted by frequency to this power (default: 1).")] = TILT,
    components: Annotated[
        int | None, Option("Gaussian spectra of a class: 1, 2, 4, 8 or 16 (default: 1, and 4 once noise is small).")
    ] = None,
    basis: Annotated[
        object, Option("Set of PUBLIC images whose principal directions take the place of cosines.", file=PUBLIC_IMAGES)
    ] = None,
    generator: Annotated[
        str | None, Option("spectral (default), or for one component convolutional, connected, clouds or residual.")
    ] = None,
    seed: int = 0,
    training: SpectralFit | ImageTraining | None = None,
    steps: Steps = None,
) -> Plan:
    """Plan a release of images: moments of their lowest cosine coefficients, by class.

    A first, small stage counts images by class and by the length of their weighted coefficients, which
    decides what lengths the last stage reaches to. With several components a second small stage looks
    at the lowest coefficients, and each class is split across the directions in which it varies most.

    Args:
        schema: the public description; it has images, and at most a categorical label beside them.
        budget: the guarantee to meet.
        neighbours: between which sets it holds.
        num_rows: the public number of images (``replace-one``), or a public guess that sizes are
            planned for. By default what the schema says.
        num_coefficients: how many; by default what the noise allows.
        tilt: weights are frequency to this power.
        components: Gaussian spectra of a class, a power of 2; by default 1, and 4 once noise is small.
        basis: public images, none of them private, whose principal directions take the place of cosines:
            an Arrow table, a data frame or a mapping with the schema's pixels.
        generator: ``spectral``, or an image network trained on the same release: ``convolutional`` or
            ``connected``, for one component.
        seed: public seed of fitting and samples.
        training: settings of the generator.
        steps: training steps of a network, if only their number should differ.
    """
    image = common.images_of(schema, "dp-spectrum")
    if not 0 <= tilt <= 4:
        raise UsageError("tilt", "must lie between 0 and 4")
    terms = terms_of(schema, budget, neighbours, num_rows, labels="auto")
    most = min(image.num_pixels, MOST_COEFFICIENTS)
    share = (1 - FIRST_SHARE) * (1 - MEANS_PART)
    noise = terms.num_labels * terms.noise(share)
    is_network = generator not in (None, SPECTRAL)
    if components is None:
        components = USUAL_COMPONENTS if noise < SPLIT_BELOW and not is_network else 1
    if components not in COMPONENTS or (is_network and components > 1):
        raise UsageError("components", f"must be one of {', '.join(map(str, COMPONENTS))}, and 1 for a network")
    if num_coefficients is None:
        wanted = COEFFICIENTS_AT_ONE * noise**-NOISE_EXPONENT
        num_coefficients = min(most, int(np.clip(round(wanted), FEWEST, MOST)))
    if not 1 <= num_coefficients <= most:
        raise UsageError("num coefficients", f"must lie between 1 and {most}")
    principal = None if basis is None else _public_basis(basis, image, num_coefficients)
    weighted = Weighted(image, num_coefficients, tilt, principal)
    first = Embedding(
        (terms.count_block(math.sqrt(COUNT_PART)), Block(LENGTHS, Lengths(weighted), math.sqrt(1 - COUNT_PART))),
        terms.classes,
    )
    stages = [Stage("lengths", first, FIRST_SHARE)]
    if components == 1:
        second = _moments(weighted, terms, None)
        stages.append(Stage("moments", second, 1 - FIRST_SHARE, rule="place-reach"))
    else:
        coarse = replace(weighted, count=min(LOOK_COEFFICIENTS, num_coefficients))
        look = _moments(coarse, terms, None, names=(LOOK_MEANS, LOOK_SECONDS))
        count = terms.num_labels * int(math.log2(components))
        planes = Sides(coarse, terms.classes, ((0.0,) * coarse.count,) * count, (0.0,) * count)  # settled later
        split = _moments(weighted, terms, planes)
        stages += [
            Stage("look", look, LOOK_SHARE, rule="place-reach"),
            Stage("moments", split, 1 - FIRST_SHARE - LOOK_SHARE, rule="split-classes"),
        ]
    planned = {common.IMAGE_NETWORK: ImageTraining(seed=seed)} if is_network else {SPECTRAL: SpectralFit(seed=seed)}
    settings = {
        **common.generator_settings(planned, generator=generator, training=training, steps=steps),
        "components": components,
        "explanation": [
            f"{num_coefficients} of {image.num_pixels} {'principal' if principal else 'cosine'} coefficients, "
            f"weighted by frequency to the {tilt:g}",
            f"planned for {terms.planned_rows:,} images of {terms.num_labels} class(es), "
            f"{components} component(s) each",
            f"a histogram of lengths ({FIRST_SHARE:.0%} of the budget, counts included) decides what is cut",
        ],
    }
    return terms.plan("dp-spectrum", stages, settings)


def _public_basis(rows: object, image: ImageShape, count: int) -> Principal:
    """Principal directions of public images; as many images as directions make some of each."""
    table = common.public_table(rows)
    missing = [name for name in image.names if name not in table.column_names]
    if missing or table.num_rows <= count:
        raise InputError(
            "basis",
            f"needs more than {count} public images of {image.height} x {image.width} x {image.channels}",
            "Give more images of the same size, or fewer --coefficients",
        )
    return principal_of(pixel_array(table, image), image, count)


def _moments(
    weighted: Weighted, terms: Terms, sides: Sides | None, *, names: tuple[str, str] = (MEANS, SECONDS)
) -> Embedding:
    """First and second moments of every class, or of every part of it."""
    spectrum = Spectrum(weighted, weighted.longest)
    first: FeatureMap = spectrum
    second, own, by_class = Tensors((spectrum,), ((0, 0),)), 1.0, terms.classes is not None
    if sides is not None:
        first, own = product(sides, spectrum), 1 - PARTS_PART
        second = Tensors((sides, spectrum), ((0, 1, 1),))
    blocks = [
        Block(names[0], first, math.sqrt(own * MEANS_PART), by_class),
        Block(names[1], second, math.sqrt(own * (1 - MEANS_PART)), by_class),
    ]
    if sides is not None:
        blocks.append(Block(PARTS, sides, math.sqrt(PARTS_PART), by_class))
    return Embedding(tuple(blocks), terms.classes)
