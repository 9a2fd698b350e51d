"""Image sets as tables with a column per pixel: folders of PNG and JPEG files, Parquet columns of them, .npz archives.

A picture becomes bytes of its pixels by rules that look at that picture alone; arrays are streamed, never held whole.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.lib import format as npy

from understudy.arrays import Bytes
from understudy.codec import encode
from understudy.errors import InputError, UnderstudyError
from understudy.readers.arrow import ParquetFiles, files_under
from understudy.readers.cells import arrow_column
from understudy.readers.delimited import DelimitedFiles
from understudy.readers.stream import Batches, Field, RowStream, explain_damage, explain_file, require_columns, shielded
from understudy.schema.encode import pixel_columns
from understudy.schema.images import LABEL, MOST_PIXELS, ImageShape, is_pixel, require_pillow

BATCH_IMAGES = 2_000
"""Images are decoded and handed on in batches of this many."""

BATCH_BYTES = 2**26
"""Encoded pictures of a folder that are in memory at once, unless a single one is larger."""

LARGEST_PICTURE = 16 << 20
"""Bytes that an encoded picture may have; a decoded one has at most MOST_PIXELS."""

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
# How a picture is stored, and as what it is taken: palettes are looked up, transparency is left out.
_TAKEN_AS = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}


def picture_shape(where: str, content: bytes) -> ImageShape:
    """Size and channels of a picture, from its header alone."""
    picture = _opened(where, content)
    shape = ImageShape(picture.height, picture.width, 1 if _TAKEN_AS[picture.mode] == "L" else 3)
    if shape.num_pixels > MOST_PIXELS:
        raise _too_large(where)
    return shape


def picture_pixels(where: str, content: bytes, shape: ImageShape) -> Bytes:
    """The bytes of a picture's pixels, turned to grey (ITU-R 601 luma) or to colours if need be.

    Guarantee:
        They depend on this picture and the shape alone. A picture of another size is refused
        before it is decoded, so none takes more memory than the shape says (proofs/cells.md).
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


def _explain(where: str, error: Exception) -> UnderstudyError:
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


IMAGE = "image"
BYTES = "bytes"
"""The column of images, and its field of encoded PNG or JPEG bytes, as Hugging Face datasets name them."""


@dataclass(frozen=True)
class EncodedImages:
    """Files with the pixels of their images in place of the column of images.

    ``stored`` is where the bytes of an image lie; beside them a structure may have paths, which are not read. Where no
    shape is given, the first image's is the shape of all.
    """

    where: str
    files: ParquetFiles | PictureFolder
    stored: str = IMAGE
    shape: ImageShape | None = None

    def fields(self) -> list[Field]:
        """The files' columns, with a column per pixel where the images stand."""
        fields = self.files.fields()
        position = next((place for place, (name, _) in enumerate(fields) if name == IMAGE), 0)
        after = [field for field in fields[position:] if field[0] != IMAGE]
        return [*fields[:position], *_pixel_fields(self._shape()), *after]

    def batches(self, columns: list[str]) -> Batches:
        """A few thousand rows at a time, their images decoded."""
        shape = self._shape()
        others = [column for column in columns if not is_pixel(column)]
        for batch in self.files.batches([self.stored, *others], BATCH_IMAGES):
            contents = self._contents(batch.column(IMAGE))
            pixels = np.stack([picture_pixels(self.where, content, shape) for content in contents])
            arrays = {name: batch.column(name) for name in others}
            yield pa.RecordBatch.from_pydict(pixel_columns(pixels, shape, columns) | arrays)

    def explain(self, error: Exception) -> UnderstudyError:
        """Damage to the files, or to an image in them."""
        if isinstance(error, pa.ArrowException):
            return self.files.explain(error)
        return _explain(self.where, error)

    def _shape(self) -> ImageShape:
        return self.shape or picture_shape(self.where, self._first())

    def _first(self) -> bytes:
        for batch in self.files.batches([self.stored], 1):
            return self._contents(batch.column(IMAGE))[0]
        raise self._no_image()

    def _contents(self, cells: Any) -> list[bytes]:
        found = pc.struct_field(cells, BYTES) if pa.types.is_struct(cells.type) else cells
        if found.null_count:
            raise self._no_image()
        return list(found.to_pylist())

    def _no_image(self) -> InputError:
        return InputError(
            self.where,
            f"every cell of column '{IMAGE}' must hold a PNG or JPEG file",
            "Leave out the rows without an image",
        )


def stored_in(name: str, kind: pa.DataType | None) -> str | None:
    """Where a column of encoded images, which is told by its name and type, has their bytes."""
    stored = name
    if kind is not None and pa.types.is_struct(kind):
        stored, position = f"{name}.{BYTES}", kind.get_field_index(BYTES)
        kind = kind.field(position).type if position >= 0 else None
    return stored if name == IMAGE and kind in (pa.binary(), pa.large_binary()) else None


def with_images(files: ParquetFiles) -> ParquetFiles | EncodedImages:
    """Parquet files, seen as an image set if they have a column of images."""
    schema = shielded(lambda: pq.read_schema(files.paths[0]), files.explain)
    stored = next(filter(None, (stored_in(field.name, field.type) for field in schema)), None)
    return files if stored is None else EncodedImages(files.where, files, stored)


def _pixel_fields(shape: ImageShape) -> list[Field]:
    return [(name, pa.uint8()) for name in shape.names]


# Labels of a folder are in this file, in the names of sub-folders, or nowhere.
LABELS_FILE = "labels.csv"
FILE = "file"
_PICTURES = (".png", ".jpg", ".jpeg")
_OTHER_PICTURES = (".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class PictureFolder:
    """Pictures in the order of their paths; all paths are held in memory, of the pictures one batch."""

    where: str
    folder: Path

    def fields(self) -> list[Field]:
        """The label if there are labels; encoded images are no column that a schema can ask for."""
        _, labels = self._listing()
        if labels is None:
            return []
        return [(LABEL, labels.type if pa.types.is_string(labels.type) else None)]

    def batches(self, columns: list[str], batch_rows: int = BATCH_IMAGES) -> Batches:
        paths, labels = self._listing()
        start = 0
        while start < len(paths):
            sizes = [(self.folder / path).stat().st_size for path in paths[start : start + batch_rows]]
            chosen = slice(start, start + max(1, int((np.cumsum(sizes) <= BATCH_BYTES).sum())))
            start = chosen.stop
            arrays = {} if labels is None else {LABEL: labels[chosen]}
            if IMAGE in columns:
                arrays[IMAGE] = pa.array([self._content(path) for path in paths[chosen]], pa.binary())
            yield pa.RecordBatch.from_pydict(arrays)

    def explain(self, error: Exception) -> UnderstudyError:
        """A file that is gone, or may not be read."""
        return _explain(self.where, error)

    def _content(self, path: PurePath) -> bytes:
        with (self.folder / path).open("rb") as opened:
            return opened.read(LARGEST_PICTURE + 1)

    def _listing(self) -> tuple[list[PurePath], pa.Array | None]:
        """The pictures' paths inside the folder in their order, and their labels."""
        files = [path.relative_to(self.folder) for path in files_under(self.folder)]
        if any(path.suffix.lower() in _OTHER_PICTURES for path in files):
            raise InputError(self.where, "it holds images that are neither PNG nor JPEG", "Convert them to PNG")
        paths: list[PurePath] = sorted(path for path in files if path.suffix.lower() in _PICTURES)
        if (self.folder / LABELS_FILE).exists():
            return paths, self._labels_in_file(paths)
        depths = {len(path.parts) for path in paths}
        if depths == {1}:
            return paths, None
        if depths != {2}:
            raise InputError(
                self.where,
                "its images must all lie in it, or all in sub-folders one level below, whose names are the labels",
                f"Move them, or write a {LABELS_FILE}",
            )
        labels = [path.parts[0].encode("utf-8", "surrogateescape") for path in paths]
        return paths, pa.array(labels, pa.binary()).view(pa.string())

    def _labels_in_file(self, paths: list[PurePath]) -> pa.Array:
        source = DelimitedFiles(f"{self.where}, {LABELS_FILE}", (self.folder / LABELS_FILE,), ",")
        require_columns(source, [FILE, LABEL])
        with RowStream(source, [FILE, LABEL]) as stream:
            listed = [row for batch in stream for row in zip(*batch.to_pydict().values(), strict=True)]
        labels = dict(listed)
        names = [path.as_posix().encode("utf-8", "surrogateescape") for path in paths]
        if len(labels) < len(listed) or set(labels) != set(names):
            raise InputError(
                source.where,
                "it must list every image of the folder once, by its path inside it",
                "Write it again with a header line: file,label",
            )
        return pa.array([labels[name] for name in names], pa.binary())


def has_pictures(folder: Path) -> bool:
    return any(path.suffix.lower() in (*_PICTURES, *_OTHER_PICTURES) for path in files_under(folder))


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

    def fields(self) -> list[Field]:
        """A column per pixel, and the label; read from the arrays' headers."""
        with self._arrays() as (shape, _, labels):
            pixels = _pixel_fields(shape)
            return pixels if labels is None else [*pixels, (LABEL, _label_type(labels.dtype))]

    def batches(self, columns: list[str]) -> Batches:
        with self._arrays() as (shape, images, labels):
            for start in range(0, images.length, BATCH_IMAGES):
                count = min(BATCH_IMAGES, images.length - start)
                arrays = pixel_columns(images.take(count), shape, columns)
                if labels is not None:
                    arrays[LABEL] = arrow_column(labels.take(count)).view(_label_type(labels.dtype))
                yield pa.RecordBatch.from_pydict(arrays)
            for array in (images, labels):
                if array is not None:
                    array.end()

    def explain(self, error: Exception) -> UnderstudyError:
        """Damage is the only thing left to go wrong."""
        return explain_damage(self.where, error, "an .npz archive")

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
        found = ImageShape.from_dict(encode(ImageShape(*sizes[1:])), where=self.where)
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
        return self.sizes[0]

    def take(self, count: int) -> npt.NDArray[Any]:
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
