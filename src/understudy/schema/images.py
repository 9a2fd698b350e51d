"""Image sets: tables with a column per pixel, which a schema declares in one line."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from understudy.errors import InputError, MissingExtraError
from understudy.schema.columns import Column, Kind

MOST_PIXELS = 2**14
LIGHTEST = 255
LABEL = "label"
"""The column of labels that files of images have."""

_PIXEL = re.compile(r"pixel_(\d{1,5})_(\d{1,5})(?:_(\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ImageShape:
    """Height, width and channels of every image of a set; values are whole numbers from 0 to 255."""

    height: int
    width: int
    channels: int = 1

    @property
    def num_pixels(self) -> int:
        """Numbers that an image has."""
        return self.height * self.width * self.channels

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of an image's array; grey images have none for channels."""
        grey = (self.height, self.width)
        return grey if self.channels == 1 else (*grey, self.channels)

    @property
    def names(self) -> tuple[str, ...]:
        """The pixels' columns: row by row, in a row from left to right, channels of a place together."""
        places = [f"pixel_{row}_{column}" for row in range(self.height) for column in range(self.width)]
        if self.channels == 1:
            return tuple(places)
        return tuple(f"{place}_{channel}" for place in places for channel in range(self.channels))

    @property
    def columns(self) -> tuple[Column, ...]:
        """A column per pixel, whose bounds are those of a byte."""
        return tuple(
            Column(name=name, kind=Kind.INTEGER, bounds=(0.0, float(LIGHTEST)), bounds_from="image format")
            for name in self.names
        )

    @classmethod
    def from_dict(cls, document: Any, where: str = "images") -> ImageShape:
        """A shape from its public description, within the bounds of a schema's."""
        if document is None:
            raise InputError(where, "have no shape", "Fetch the file again")
        sizes = document if isinstance(document, dict) else {}
        shape = [sizes.get("height"), sizes.get("width"), sizes.get("channels", 1)]
        whole = all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in shape)
        if set(sizes) - {"height", "width", "channels"} or not whole or shape[2] not in (1, 3):
            rule = "image must hold height, width and channels (1 or 3)"
            raise InputError(where, rule, "Write, say, image: {height: 28, width: 28}")
        found = cls(*shape)
        if found.num_pixels > MOST_PIXELS:
            raise InputError(where, f"images have more than {MOST_PIXELS} numbers", "Make them smaller first")
        return found


def is_pixel(name: str) -> bool:
    """Whether a column is called like a pixel."""
    return _PIXEL.fullmatch(name) is not None


def shape_of(names: Iterable[str]) -> ImageShape | None:
    """The shape whose pixels are among some names; None if there are none, or some are missing."""
    pixels = {name: match for name in names if (match := _PIXEL.fullmatch(name))}
    if not pixels or len(pixels) > MOST_PIXELS:
        return None
    rows, columns, channels = zip(*(match.groups() for match in pixels.values()), strict=True)
    sizes = [1 + max(int(place or 0) for place in places) for places in (rows, columns, channels)]
    shape = ImageShape(*sizes)
    is_whole = shape.num_pixels == len(pixels) and set(shape.names) == set(pixels)
    return shape if is_whole and shape.channels in (1, 3) else None


def without_pixels(shape: ImageShape | None, columns: Iterable[Column]) -> list[Column]:
    """The columns that are no pixels."""
    pixels = frozenset(shape.names) if shape is not None else frozenset()
    return [column for column in columns if column.name not in pixels]


def require_pillow() -> None:
    """Refuse what needs Pillow, before it is begun, where there is none."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtraError("pillow", "images")
