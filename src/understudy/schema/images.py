"""Image sets: tables with a column per pixel, which a schema declares in one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from understudy.errors import InputError
from understudy.schema.columns import Column, Kind

MOST_PIXELS = 2**14
LIGHTEST = 255


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
    def names(self) -> tuple[str, ...]:
        """The pixels' columns: row by row, in a row from left to right, channels of a place together."""
        places = [
            f"pixel_{row}_{column}" for row in range(self.height) for column in range(self.width)
        ]
        if self.channels == 1:
            return tuple(places)
        return tuple(f"{place}_{channel}" for place in places for channel in range(self.channels))

    @property
    def columns(self) -> tuple[Column, ...]:
        """A column per pixel, whose bounds are those of a byte."""
        return tuple(
            Column(
                name=name, kind=Kind.INTEGER, bounds=(0.0, float(LIGHTEST)), bounds_from="image format"
            )
            for name in self.names
        )  # fmt: skip

    def to_dict(self) -> dict[str, int]:
        """As the YAML file has it."""
        return {"height": self.height, "width": self.width, "channels": self.channels}


def parse_image(document: Any, *, where: str) -> ImageShape | None:
    """Check what a schema says of its images."""
    if document is None:
        return None
    sizes = document if isinstance(document, dict) else {}
    shape = [sizes.get("height"), sizes.get("width"), sizes.get("channels", 1)]
    whole = all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in shape)
    if set(sizes) - {"height", "width", "channels"} or not whole or shape[2] not in (1, 3):
        raise InputError(
            where, "image must hold height, width and channels (1 or 3)",
            "Write, say, image: {height: 28, width: 28}",
        )  # fmt: skip
    found = ImageShape(*shape)
    if found.num_pixels > MOST_PIXELS:
        raise InputError(
            where, f"images have more than {MOST_PIXELS} numbers", "Make them smaller first"
        )
    return found


def without_pixels(shape: ImageShape | None, columns: Iterable[Column]) -> list[Column]:
    """The columns that are no pixels."""
    pixels = frozenset(shape.names) if shape is not None else frozenset()
    return [column for column in columns if column.name not in pixels]
