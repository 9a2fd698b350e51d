"""One PNG or JPEG as bytes of its pixels, by rules that look at that picture alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from understudy.arrays import Bytes
from understudy.errors import InputError, UnderstudyError
from understudy.private.readers.stream import explain_file
from understudy.schema.images import MOST_PIXELS, ImageShape
from understudy.schema.pixels import require_pillow

BATCH_IMAGES = 2_000
"""Images are decoded and handed on in batches of this many."""

LARGEST_PICTURE = 16 << 20
"""Bytes that an encoded picture may have; a decoded one has at most MOST_PIXELS."""

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
# How a picture is stored, and as what it is taken: palettes are looked up, transparency is left out.
_TAKEN_AS = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}
_CHANNELS = {"L": 1, "RGB": 3}


def picture_shape(where: str, content: bytes) -> ImageShape:
    """Size and channels of a picture, from its header alone."""
    picture = _opened(where, content)
    shape = ImageShape(picture.height, picture.width, _CHANNELS[_TAKEN_AS[picture.mode]])
    if shape.num_pixels > MOST_PIXELS:
        raise _too_large(where)
    return shape


def picture_pixels(where: str, content: bytes, shape: ImageShape) -> Bytes:
    """The bytes of a picture's pixels, turned to grey (ITU-R 601 luma) or to colours if need be.

    Guarantee:
        They depend on this picture and the shape alone. A picture of another size is refused
        before it is decoded, so none takes more memory than the shape says.
    """
    picture = _opened(where, content)
    if (picture.height, picture.width) != (shape.height, shape.width):
        raise wrong_size(where, shape)
    own, wanted = _TAKEN_AS[picture.mode], "L" if shape.channels == 1 else "RGB"
    picture.info.pop("transparency", None)
    return np.asarray(picture.convert(own).convert(wanted), dtype=np.uint8).reshape(-1)


def wrong_size(where: str, shape: ImageShape) -> InputError:
    """The refusal of images that are not as large as the others or as the schema says."""
    return InputError(
        where,
        f"every image must have {shape.height} rows and {shape.width} columns of pixels",
        "Bring all images to one size, and write it under image: in the schema",
    )


def explain_pictures(where: str, error: Exception) -> UnderstudyError:
    """What Pillow says of a picture is withheld; that it cannot be decoded is all that is told."""
    return explain_file(where, error, rule="an image is damaged or cut short", remedy="Write it again from its source")


def _opened(where: str, content: bytes) -> Any:
    """A picture whose header was read, and no pixel.

    Not by ``Image.open``, which knows dozens of formats and prints warnings with sizes in them.
    """
    require_pillow()
    from PIL.JpegImagePlugin import JpegImageFile
    from PIL.PngImagePlugin import PngImageFile

    if not content.startswith((_PNG, _JPEG)):
        raise InputError(where, "an image is neither PNG nor JPEG", "Convert it to PNG")
    if len(content) > LARGEST_PICTURE:
        raise _too_large(where)
    is_png = content.startswith(_PNG)
    picture = (PngImageFile if is_png else JpegImageFile)(io.BytesIO(content))
    if picture.mode not in _TAKEN_AS:
        raise InputError(
            where, "an image must be grey or coloured, with 8 bits per value", "Convert it to PNG of mode L or RGB"
        )
    return picture


def _too_large(where: str) -> InputError:
    return InputError(
        where,
        f"images may have at most {MOST_PIXELS} numbers and {LARGEST_PICTURE >> 20} MB each",
        "Make them smaller first",
    )
