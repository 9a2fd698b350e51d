"""DP-Spectrum: first and second moments of the low frequencies of images, class by class."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from understudy.accounting import Budget, Neighbours, neighbours_by_name
from understudy.errors import UsageError
from understudy.features import Block, Embedding, Lengths, Spectrum, Tensors, Weighted
from understudy.features.reaching import LENGTHS
from understudy.features.spectrum import MOST_COEFFICIENTS
from understudy.generators.spectral_fit import MEANS, SECONDS, SpectralFit
from understudy.methods.common import ROWS_IF_UNSAID, labelled_columns, noise_of_mean
from understudy.plan import Plan, Stage
from understudy.schema import Schema

FIRST_SHARE, COUNT_PART = 0.04, 0.5
"""Share of the budget for row counts and lengths, and of that for row counts."""

MEANS_PART = 0.2
"""Share of the rest for first moments."""

TILT = 1.0
FEWEST, MOST = 30, 400
NOISE_EXPONENT, COEFFICIENTS_AT_ONE = 0.25, 24.0
"""Coefficients: so many for a mean image measured to within 1, and more as noise falls."""


def dp_spectrum(
    schema: Schema,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    num_rows: int | None = None,
    num_coefficients: int | None = None,
    tilt: float = TILT,
    seed: int = 0,
    training: SpectralFit | None = None,
) -> Plan:
    """Plan a release of images: moments of their lowest cosine coefficients, by class.

    A first, small stage counts images by class and by the length of their weighted coefficients, which
    decides what lengths the second stage reaches to.

    Args:
        schema: the public description; it has images, and at most a categorical label beside them.
        budget: the guarantee to meet.
        neighbours: between which sets it holds.
        num_rows: the public number of images (``replace-one``), or a public guess that sizes are
            planned for. By default what the schema says.
        num_coefficients: how many; by default what the noise allows.
        tilt: weights are frequency to this power.
        seed: public seed of fitting and samples.
        training: settings of the generator.
    """
    image, label = schema.image, schema.label
    others = len(schema.used) - (image.num_pixels if image else 0) - (label is not None)
    if image is None or others or (label is not None and not label.is_choice):
        raise UsageError(
            "method", "dp-spectrum is for images with at most one label of named classes",
            "Use the default method for other tables, or drop the other columns",
        )  # fmt: skip
    if not 0 <= tilt <= 4:
        raise UsageError("tilt", "must lie between 0 and 4")
    num_rows = num_rows if num_rows is not None else schema.rows
    neighbours = neighbours_by_name(neighbours)
    columns = labelled_columns(schema, "auto")
    most = min(image.num_pixels, MOST_COEFFICIENTS)
    if num_coefficients is None:
        share = (1 - FIRST_SHARE) * (1 - MEANS_PART)
        noise = noise_of_mean(
            budget, neighbours, share=share, num_rows=num_rows, max_rows=schema.privacy.max_rows
        )
        wanted = COEFFICIENTS_AT_ONE * (noise * columns.num_labels) ** -NOISE_EXPONENT
        num_coefficients = min(most, int(np.clip(round(wanted), FEWEST, MOST)))
    if not 1 <= num_coefficients <= most:
        raise UsageError("num coefficients", f"must lie between 1 and {most}")
    weighted = Weighted(image, num_coefficients, tilt)
    spectrum = Spectrum(weighted, weighted.longest)
    by_class = columns.classes is not None
    first = Embedding(
        (
            columns.count_block(math.sqrt(COUNT_PART)),
            Block(LENGTHS, Lengths(weighted), math.sqrt(1 - COUNT_PART)),
        ),
        columns.classes,
    )
    second = Embedding(
        (
            Block(MEANS, spectrum, math.sqrt(MEANS_PART), by_class),
            Block(SECONDS, Tensors((spectrum,), ((0, 0),)), math.sqrt(1 - MEANS_PART), by_class),
        ),
        columns.classes,
    )
    settings = {
        "generator": "spectral",
        "training": asdict(training or SpectralFit(seed=seed)),
        "explanation": [
            f"{num_coefficients} of {image.num_pixels} cosine coefficients, weighted by frequency to the {tilt:g}",
            f"planned for {num_rows or ROWS_IF_UNSAID:,} images of {columns.num_labels} class(es)",
            f"a histogram of lengths ({FIRST_SHARE:.0%} of the budget, counts included) decides what is cut",
        ],
    }
    return Plan(
        schema=schema, method="dp-spectrum", budget=budget, neighbours=neighbours, num_rows=num_rows,
        stages=(
            Stage("lengths", first, FIRST_SHARE),
            Stage("moments", second, 1 - FIRST_SHARE, rule="place-reach"),
        ),
        settings=tuple(settings.items()),
    )  # fmt: skip
