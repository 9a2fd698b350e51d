"""Small pictures as data in a page: PNG files written by hand, so that no library is needed."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from understudy.arrays import Bytes, Floats

FOR, AGAINST = (47, 111, 191), (201, 60, 50)
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


def plain_picture(image: Floats) -> str:
    """An image as it is, values from 0 to 255.  # (height, width, channels)"""
    colours = np.broadcast_to(image, (*image.shape[:2], 3))
    opaque = np.full((*image.shape[:2], 1), 255)
    return picture(np.concatenate([np.clip(colours, 0, 255), opaque], axis=2).astype(np.uint8))
