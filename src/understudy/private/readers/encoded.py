"""Parquet files whose column ``image`` holds PNG or JPEG files, as dataset hubs keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.arrays import Bytes
from understudy.errors import InputError, UnderstudyError
from understudy.private.readers.files import ParquetFiles
from understudy.private.readers.pictures import BATCH_IMAGES, explain_pictures, picture_pixels, picture_shape
from understudy.private.readers.stream import Batches, Field, shielded
from understudy.schema.images import ImageShape, is_pixel, shape_of
from understudy.schema.pixels import pixel_columns

IMAGE, BYTES = "image", "bytes"


@dataclass(frozen=True)
class EncodedImages:
    """Parquet files with the pixels of their images in place of the column of images.

    Where no shape is given, the first image's is the shape of all.
    """

    where: str
    files: ParquetFiles
    shape: ImageShape | None = None

    def for_columns(self, columns: Sequence[str]) -> EncodedImages | ParquetFiles:
        """The same set in the shape that the columns have; the files as they are if no pixel is asked for."""
        if not any(is_pixel(column) for column in columns):
            return self.files
        return replace(self, shape=shape_of(columns))

    def fields(self) -> list[Field]:
        """The files' columns, with a column per pixel where the images stand."""
        fields = self.files.fields()
        position = [name for name, _ in fields].index(IMAGE)
        pixels = [(name, pa.uint8()) for name in self._shape().names]
        return [*fields[:position], *pixels, *fields[position + 1 :]]

    def batches(self, columns: list[str]) -> Batches:
        """A few thousand rows at a time, their images decoded."""
        shape = self._shape()
        others = [column for column in columns if not is_pixel(column)]
        for batch in self.files.batches([self._stored(), *others], BATCH_IMAGES):
            pixels = self._pixels(batch.column(IMAGE), shape)
            arrays = {name: batch.column(name) for name in others}
            yield pa.RecordBatch.from_pydict(pixel_columns(pixels, shape, columns) | arrays)

    def explain(self, error: Exception) -> UnderstudyError:
        """Damage to the files, or to an image in them."""
        if isinstance(error, pa.ArrowException):
            return self.files.explain(error)
        return explain_pictures(self.where, error)

    def _stored(self) -> str:
        """Where the bytes lie; beside them a structure may have paths, which are not read."""
        kind = dict(self.files.fields())[IMAGE]
        return f"{IMAGE}.{BYTES}" if pa.types.is_struct(kind) else IMAGE

    def _shape(self) -> ImageShape:
        if self.shape is not None:
            return self.shape
        for batch in self.files.batches([self._stored()], 1):
            (content,) = self._contents(batch.column(IMAGE))
            return picture_shape(self.where, content)
        raise self._no_image()

    def _pixels(self, cells: Any, shape: ImageShape) -> Bytes:
        contents = self._contents(cells)
        return np.stack([picture_pixels(self.where, content, shape) for content in contents])

    def _contents(self, cells: Any) -> list[bytes]:
        found = pc.struct_field(cells, BYTES) if pa.types.is_struct(cells.type) else cells
        if found.null_count:
            raise self._no_image()
        contents: list[bytes] = found.to_pylist()
        return contents

    def _no_image(self) -> InputError:
        return InputError(
            self.where,
            f"every cell of column '{IMAGE}' must hold a PNG or JPEG file",
            "Leave out the rows without an image",
        )


def is_encoded(name: str, kind: pa.DataType | None) -> bool:
    """Whether a column is one of encoded images, told by its name and type."""
    if name != IMAGE or kind is None:
        return False
    if pa.types.is_struct(kind):
        position = kind.get_field_index(BYTES)
        return position >= 0 and _is_bytes(kind.field(position).type)
    return _is_bytes(kind)


def with_images(files: ParquetFiles) -> ParquetFiles | EncodedImages:
    """Parquet files, seen as an image set if they have a column of images."""
    schema = shielded(lambda: pq.read_schema(files.paths[0]), files.explain)
    has_images = any(is_encoded(field.name, field.type) for field in schema)
    return EncodedImages(files.where, files) if has_images else files


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
