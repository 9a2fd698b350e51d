"""Images of every class in one picture, for people who would rather look than read."""

from __future__ import annotations

import base64
import importlib.util
import io
import struct
import zlib

import numpy as np
import pyarrow as pa

from understudy.arrays import Bytes, Floats, Integers
from understudy.schema import Schema
from understudy.schema.columns import Column
from understudy.schema.encode import encode_column, pixel_array
from understudy.schema.images import ImageShape

GAP = 2
PAPER = 255
LARGEST_ZOOMED = 56
"""Small images are enlarged by a whole number, at most to this many dots a side."""

SHOWN_PER_CLASS = 8  # images of a class in a row
LOOKED_AT = 4000  # images among which those of each class are looked for


def named_classes(schema: Schema) -> Column | None:
    """The label, if it has categories for images to be sorted by."""
    return schema.label if schema.label is not None and schema.label.is_choice else None


def images_by_class(rows: pa.Table | pa.RecordBatch, shape: ImageShape, label: Column | None) -> list[Bytes]:
    """The images of every class, in the order of the rows; without classes all of them."""
    images = pixel_array(rows, shape)
    if label is None:
        return [images]
    codes = encode_column(label, rows.column(label.name))
    return [images[codes == code] for code in range(len(label.categories))]


def picture_of(rows: pa.Table, schema: Schema, *, per_class: int = SHOWN_PER_CLASS) -> str | None:
    """A page's picture of the first images of every class, as a data address; none without Pillow."""
    if schema.image is None or importlib.util.find_spec("PIL") is None:
        return None
    found = images_by_class(rows.slice(0, LOOKED_AT), schema.image, named_classes(schema))
    shown = found if len(found) > 1 else in_rows(found[0][: per_class**2], per_class)
    content = draw_grid([images[:per_class] for images in shown], columns=per_class)
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def in_rows(images: Bytes, columns: int) -> list[Bytes]:
    """Images cut into rows of a grid."""
    return [images[start : start + columns] for start in range(0, len(images), columns)]


def draw_grid(rows: list[Bytes], *, columns: int) -> bytes:
    """A PNG file with the images of each array side by side, one array below the other."""
    from PIL import Image

    height, width, *channels = rows[0].shape[1:]
    zoom = max(1, LARGEST_ZOOMED // max(height, width))
    tall, wide = height * zoom + GAP, width * zoom + GAP
    paper = np.full((len(rows) * tall + GAP, columns * wide + GAP, *channels), PAPER, np.uint8)
    for i, images in enumerate(rows):
        for j, image in enumerate(images):
            top, left = GAP + i * tall, GAP + j * wide
            tile = image.repeat(zoom, axis=0).repeat(zoom, axis=1)
            paper[top : top + height * zoom, left : left + width * zoom] = tile
    content = io.BytesIO()
    Image.fromarray(paper).save(content, "PNG")
    return content.getvalue()


# Small pictures as data in a page: PNG files written by hand, so that no library is needed.

FOR = (47, 111, 191)
AGAINST = (201, 60, 50)
"""Colours of what speaks for a class and against it, clear on light and on dark ground."""


def picture(pixels: Bytes) -> str:
    """An image of red, green, blue and opacity as the address of a picture.  # (height, width, 4)"""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(content).decode()


def signed_picture(weights: Floats, largest: float) -> str:
    """Weights as colours, by sign, the more opaque the larger.  # (height, width)"""
    share = np.clip(np.abs(weights) / (largest or 1.0), 0.0, 1.0)
    pixels = np.zeros((*weights.shape, 4), np.uint8)
    pixels[..., :3] = np.where(weights[..., None] > 0, FOR, AGAINST)
    pixels[..., 3] = np.rint(255 * share)
    return picture(pixels)


def plain_picture(image: Integers | Floats) -> str:
    """An image as it is, values from 0 to 255.  # (height, width, channels)"""
    colours = np.broadcast_to(image, (*image.shape[:2], 3))
    opaque = np.full((*image.shape[:2], 1), 255)
    return picture(np.concatenate([np.clip(colours, 0, 255), opaque], axis=2).astype(np.uint8))
