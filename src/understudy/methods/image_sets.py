"""What the methods that train networks share: which schemas are images, and the generators' settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from understudy.errors import UsageError
from understudy.fits.images import DECODED, ImageTraining
from understudy.fits.perceptual import PerceptualTraining
from understudy.generators.image_architectures import ARCHITECTURES
from understudy.schema import Schema
from understudy.schema.columns import Role
from understudy.schema.images import ImageShape

AnyTraining = TypeVar("AnyTraining", ImageTraining, PerceptualTraining)

IMAGE_NETWORK = "image-network"
"""The name that plans give image networks, of whatever architecture."""


def image_set(schema: Schema) -> ImageShape | None:
    """The shape of images with at most one label of named classes; None for any other table."""
    image, label = schema.image, schema.label
    others = len(schema.used) - (image.num_pixels if image else 0) - (label is not None)
    return None if others or (label is not None and not label.is_choice) else image


def images_alone(schema: Schema) -> Schema:
    """The same images without their label, which is then neither read nor made."""
    columns = (replace(column, role=Role.AUX) if column.role is Role.LABEL else column for column in schema.columns)
    return replace(schema, columns=tuple(columns))


def image_length_scale(image: ImageShape) -> float:
    """The public length scale: the root of the mean squared distance of two images of pure chance.

    Two pixels that are uniform between 0 and 1 are 1 / sqrt(6) apart in the root mean square. The paper
    takes the median distance of private images instead.
    """
    return math.sqrt(image.num_pixels / 6)


def image_generator(
    planned: ImageTraining, *, generator: str | None, training: object, steps: int | None
) -> dict[str, Any]:
    """What a plan says of an image network: what is ``planned``, but for what was asked for."""
    found = _checked(planned if training is None else training, ImageTraining)
    found = with_architecture(found, generator)
    found = found if steps is None else replace(found, steps=steps)
    return {"generator": IMAGE_NETWORK, "training": asdict(found)}


def with_architecture(training: AnyTraining, generator: str | None) -> AnyTraining:
    """The same settings for a kind of image network, or a refusal that lists the kinds."""
    names = [name for name in ARCHITECTURES if name != DECODED]
    if generator is not None and generator not in names:
        raise UsageError("generator", "must be one of " + ", ".join(names) + " for images")
    return training if generator is None else replace(training, architecture=generator)


def table_generator(
    kinds: Mapping[str, type[Any]], *, generator: str | None, training: object, steps: int | None, seed: int
) -> dict[str, Any]:
    """What a plan says of a table's generator, by default the first of several kinds."""
    name = generator or next(iter(kinds))
    if name not in kinds:
        raise UsageError("generator", "must be one of " + ", ".join(kinds))
    found = _checked(kinds[name](seed=seed) if training is None else training, kinds[name])
    found = found if steps is None else replace(found, steps=steps)
    return {"generator": name, "training": asdict(found)}


def _checked(training: Any, kind: type[Any]) -> Any:
    if not isinstance(training, kind):
        raise UsageError("training", "is that of another kind of generator")
    return training
