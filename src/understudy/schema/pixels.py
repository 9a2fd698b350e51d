"""Images as arrays of bytes, and as the columns that a table has for their pixels."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Bytes
from understudy.errors import MissingExtraError
from understudy.schema.encode import encode_column
from understudy.schema.images import ImageShape


def pixel_columns(images: Bytes, shape: ImageShape, wanted: Iterable[str] | None = None) -> dict[str, Any]:
    """Arrow columns of images, all of them or those that are wanted.

    Args:
        images: of this shape, with or without an axis for channels.  # (num_images, ...)
        shape: what every image looks like.
        wanted: names of pixels.
    """
    chosen = frozenset(shape.names if wanted is None else wanted)
    by_pixel = np.ascontiguousarray(images.reshape(len(images), shape.num_pixels).T)
    return {name: pa.array(cells) for name, cells in zip(shape.names, by_pixel, strict=True) if name in chosen}


def pixel_array(rows: Any, shape: ImageShape) -> Bytes:
    """Images of a table or batch that has their pixels, in any type that a schema reads.

    Returns:
        Whole numbers from 0 to 255, and 0 for null.  # (num_rows, height, width[, channels])
    """
    flat = np.empty((rows.num_rows, shape.num_pixels), dtype=np.uint8)
    for position, column in enumerate(shape.columns):
        flat[:, position] = encode_column(column, rows.column(column.name)).clip(min=0)
    return flat.reshape(rows.num_rows, *shape.axes)


def require_pillow() -> None:
    """Refuse what needs Pillow, before it is begun, where there is none."""
    if importlib.util.find_spec("PIL") is None:
        raise MissingExtraError("pillow", "images")
