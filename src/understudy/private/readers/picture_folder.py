"""Folders of PNG and JPEG files, with labels in a file, in the names of sub-folders, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import numpy as np
import pyarrow as pa

from understudy.arrays import Bytes
from understudy.errors import InputError, UnderstudyError
from understudy.private.readers.delimited import DelimitedFile
from understudy.private.readers.files import files_under
from understudy.private.readers.pictures import (
    BATCH_IMAGES,
    LARGEST_PICTURE,
    explain_pictures,
    picture_pixels,
    picture_shape,
)
from understudy.private.readers.stream import Batches, Field, RowStream, require_columns
from understudy.schema.images import LABEL, ImageShape, is_pixel, shape_of
from understudy.schema.pixels import pixel_columns

LABELS_FILE, FILE = "labels.csv", "file"
_PICTURES = (".png", ".jpg", ".jpeg")
_OTHER_PICTURES = (".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class PictureFolder:
    """Pictures in the order of their paths; the paths are held in memory, the pictures are not.

    Where no shape is given, the first picture's is the shape of all.
    """

    where: str
    folder: Path
    shape: ImageShape | None = None

    def for_columns(self, columns: Sequence[str]) -> PictureFolder:
        """The same set, whose pictures must have the shape that the columns have."""
        return replace(self, shape=shape_of(columns))

    def fields(self) -> list[Field]:
        """A column per pixel, and the label if there are labels."""
        paths, labels = self._listing()
        pixels: list[Field] = [(name, pa.uint8()) for name in self._shape(paths).names]
        if labels is None:
            return pixels
        return [*pixels, (LABEL, labels.type if pa.types.is_string(labels.type) else None)]

    def batches(self, columns: list[str]) -> Batches:
        """A few thousand pictures at a time, decoded if pixels are asked for."""
        paths, labels = self._listing()
        shape = self._shape(paths)
        for start in range(0, len(paths), BATCH_IMAGES):
            chosen = slice(start, start + BATCH_IMAGES)
            arrays = {}
            if any(is_pixel(column) for column in columns):
                arrays = pixel_columns(self._pixels(paths[chosen], shape), shape, columns)
            if labels is not None:
                arrays[LABEL] = labels[chosen]
            yield pa.RecordBatch.from_pydict(arrays)

    def explain(self, error: Exception) -> UnderstudyError:
        """A picture that Pillow cannot decode, or a file that is gone."""
        return explain_pictures(self.where, error)

    def _shape(self, paths: list[PurePath]) -> ImageShape:
        return self.shape or picture_shape(self.where, self._content(paths[0]))

    def _pixels(self, paths: list[PurePath], shape: ImageShape) -> Bytes:
        return np.stack(
            [picture_pixels(self.where, self._content(path), shape) for path in paths]
        )  # (num_pictures, num_pixels)

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
        source = DelimitedFile(f"{self.where}, {LABELS_FILE}", self.folder / LABELS_FILE, ",", gzipped=False)
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


def picture_folder(where: str, folder: Path) -> PictureFolder | None:
    """A folder with pictures in it; None if it has none."""
    known = (*_PICTURES, *_OTHER_PICTURES)
    has_pictures = any(path.suffix.lower() in known for path in files_under(folder))
    return PictureFolder(where, folder) if has_pictures else None
