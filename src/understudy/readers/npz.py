"""Image sets in NumPy's .npz archives, streamed: neither array is ever held whole."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib import format as npy

from understudy.errors import InputError, UnderstudyError
from understudy.readers.cells import arrow_column
from understudy.readers.pictures import BATCH_IMAGES, wrong_size
from understudy.readers.stream import Batches, Field, explain_file
from understudy.schema.images import LABEL, MOST_PIXELS, ImageShape, shape_of
from understudy.schema.pixels import pixel_columns

MEMBERS = (("x", "y"), ("images", "labels"), ("x_train", "y_train"))
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
_LONGEST_LABEL = 4096  # bytes
_SAVE = "Save it with numpy.savez_compressed(file, x=images, y=labels)"


@dataclass(frozen=True)
class NpzImages:
    """An archive with an array of images and, if there are labels, an array of those.

    The first pair of ``MEMBERS`` whose images are there is read, other members are ignored.

    Guarantee:
        Nothing is unpickled: only arrays of bytes, numbers and text are read, and objects refused (proofs/cells.md).
    """

    where: str
    path: Path
    shape: ImageShape | None = None

    def for_columns(self, columns: Sequence[str]) -> NpzImages:
        """The same set, whose images must have the shape that the columns have."""
        return replace(self, shape=shape_of(columns))

    def fields(self) -> list[Field]:
        """A column per pixel, and the label; read from the arrays' headers."""
        with self._arrays() as (shape, _, labels):
            pixels: list[Field] = [(name, pa.uint8()) for name in shape.names]
            return pixels if labels is None else [*pixels, (LABEL, _label_type(labels.dtype))]

    def batches(self, columns: list[str]) -> Batches:
        """A few thousand images at a time."""
        with self._arrays() as (shape, images, labels):
            for start in range(0, images.length, BATCH_IMAGES):
                count = min(BATCH_IMAGES, images.length - start)
                arrays = pixel_columns(images.take(count), shape, columns)
                if labels is not None:
                    cells = arrow_column(labels.take(count))
                    arrays[LABEL] = cells.view(_label_type(labels.dtype))
                yield pa.RecordBatch.from_pydict(arrays)
            for array in (images, labels):
                if array is not None:
                    array.end()

    def explain(self, error: Exception) -> UnderstudyError:
        """Damage is the only thing left to go wrong."""
        return explain_file(
            self.where, error, rule="it is damaged, or not an .npz archive", remedy="Write it again from its source"
        )

    @contextlib.contextmanager
    def _arrays(self) -> Iterator[tuple[ImageShape, _Array, _Array | None]]:
        with zipfile.ZipFile(self.path) as archive, contextlib.ExitStack() as opened:
            names = archive.namelist()
            pair = next((pair for pair in MEMBERS if f"{pair[0]}.npy" in names), None)
            if pair is None:
                looked_for = ", ".join(f"'{images}' and '{labels}'" for images, labels in MEMBERS)
                raise InputError(self.where, f"it has no array of images; looked for are {looked_for}", _SAVE)
            images = self._array(archive, pair[0], opened)
            labels = self._array(archive, pair[1], opened) if f"{pair[1]}.npy" in names else None
            shape = self._checked_shape(images)
            if labels is not None:
                self._check_labels(images, labels)
            yield shape, images, labels

    def _array(self, archive: zipfile.ZipFile, name: str, opened: contextlib.ExitStack) -> _Array:
        member = archive.getinfo(f"{name}.npy")
        if member.compress_type not in _COMPRESSIONS:
            raise InputError(self.where, "it is compressed in a way that is not known here", _SAVE)
        stream = opened.enter_context(archive.open(member))
        read_header = _HEADERS[npy.read_magic(stream)]
        sizes, by_columns, dtype = read_header(stream)
        if by_columns:
            raise InputError(
                self.where, "its arrays must lie in C order, image by image", "Save numpy.ascontiguousarray of them"
            )
        return _Array(stream, dtype, sizes)

    def _checked_shape(self, images: _Array) -> ImageShape:
        if images.dtype != np.uint8:
            raise InputError(
                self.where,
                "its images must be bytes (uint8) from 0 to 255",
                "Scale them to 0..255 and convert them with .astype('uint8')",
            )
        sizes = images.sizes
        if len(sizes) not in (3, 4) or min(sizes[1:]) < 1 or sizes[3:] not in ((), (1,), (3,)):
            raise InputError(
                self.where,
                "its images must have axes (images, rows, columns) or "
                "(images, rows, columns, channels) with 1 or 3 channels",
                "Reshape them",
            )
        found = ImageShape(*sizes[1:])
        if found.num_pixels > MOST_PIXELS:
            raise InputError(self.where, f"images have more than {MOST_PIXELS} numbers", "Make them smaller first")
        if self.shape is not None and found != self.shape:
            if found.channels == self.shape.channels:
                raise wrong_size(self.where, self.shape)
            raise InputError(
                self.where,
                f"every image must have {self.shape.channels} channel(s)",
                "Mend channels under image: in the schema",
            )
        return found

    def _check_labels(self, images: _Array, labels: _Array) -> None:
        kind, size = labels.dtype.kind, labels.dtype.itemsize
        if kind not in "biufUS" or size > (_LONGEST_LABEL if kind in "US" else 8):
            raise InputError(self.where, "its labels must be numbers or text, not objects", "Convert them first")
        if len(labels.sizes) != 1 or labels.length != images.length:
            raise InputError(self.where, "it must have one label per image, along one axis", "Reshape the labels")


@dataclass(frozen=True)
class _Array:
    """What an array's header says, and its entries, read in order as they are asked for."""

    stream: IO[bytes]
    dtype: np.dtype[Any]
    sizes: tuple[int, ...]

    @property
    def length(self) -> int:
        """Entries along the first axis."""
        return self.sizes[0]

    def take(self, count: int) -> npt.NDArray[Any]:
        """The next entries."""
        sizes = (count, *self.sizes[1:])
        wanted = int(np.prod(sizes)) * self.dtype.itemsize
        content = self.stream.read(wanted)
        if len(content) < wanted:
            raise EOFError
        return np.frombuffer(content, self.dtype).reshape(sizes)

    def end(self) -> None:
        """Refuse what follows the last entry; the archive's checksum is compared here."""
        if self.stream.read(1):
            raise ValueError


def _label_type(dtype: np.dtype[Any]) -> pa.DataType:
    text = {"U": pa.string(), "S": pa.binary()}
    return text.get(dtype.kind) or pa.from_numpy_dtype(dtype.newbyteorder("="))
