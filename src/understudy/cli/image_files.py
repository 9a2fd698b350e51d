"""Synthetic images to files: an .npz archive, or a folder of PNG files with a sub-folder per class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.files import PUBLIC, ROWS, check_output, scratch_file, write_rows
from understudy.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.arrays import Bytes
    from understudy.schema import Column, Schema

ARCHIVE, FOLDER = ".npz", ""
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="New .csv or .parquet file; for images also .npz, or a name without suffix: a folder of PNG files.",
    ),
]
_PLAIN_NAME = re.compile(r"[^\s._/\\][^/\\]{0,99}(?<![\s.])")


def check_sample_output(path: Path, schema: Schema) -> None:
    """Refuse an output that cannot be written, or whose kind cannot hold what a schema has."""
    suffix = path.suffix.lower()
    if schema.image is None or suffix in ROWS:
        check_output(path)
        return
    if suffix not in (ARCHIVE, FOLDER):
        raise UsageError(
            f"output '{path}'",
            f"must end in {', '.join(ROWS)} or {ARCHIVE}, or have no suffix to be a folder of PNG files",
        )
    check_output(path, kinds=(suffix,))
    _check_fits(path, schema, is_folder=suffix == FOLDER)


def write_sample(rows: pa.Table, path: Path, schema: Schema) -> None:
    """Write synthetic rows, as images if the output's name says so."""
    from understudy.schema.images import LABEL
    from understudy.schema.pixels import pixel_array

    suffix = path.suffix.lower()
    if schema.image is None or suffix in ROWS:
        write_rows(rows, path)
        return
    labels = rows[LABEL].to_pylist() if LABEL in rows.column_names else None
    write = _write_archive if suffix == ARCHIVE else _write_folder
    write(pixel_array(rows, schema.image), labels, path)


def _check_fits(path: Path, schema: Schema, *, is_folder: bool) -> None:
    from understudy.schema import Kind
    from understudy.schema.images import LABEL, without_pixels
    from understudy.schema.pixels import require_pillow

    others = without_pixels(schema.image, schema.used)
    is_plain = all(
        column.name == LABEL and not column.nullable and column.kind is not Kind.DATETIME for column in others
    )
    if not is_plain:
        raise UsageError(
            f"output '{path}'",
            f"holds images and a column '{LABEL}' without nulls, and nothing else",
            "Write a .parquet file",
        )
    if is_folder:
        require_pillow()
        if not all(_names_folders(column) for column in others):
            raise UsageError(
                f"output '{path}'",
                "has a folder per label, and the labels cannot all be names of folders",
                "Write an .npz file",
            )


def _names_folders(label: Column) -> bool:
    """Whether every label can be a folder that readers take for data, on any file system."""
    names = [str(category) for category in label.categories]
    return (
        label.is_choice
        and len({name.casefold() for name in names}) == len(names)
        and all(name.isprintable() and _PLAIN_NAME.fullmatch(name) for name in names)
    )


def _write_archive(images: Bytes, labels: list[Any] | None, path: Path) -> None:
    import numpy as np

    arrays = {"x": images} if labels is None else {"x": images, "y": np.asarray(labels)}
    with scratch_file(path, mode=PUBLIC) as scratch, Path(scratch).open("wb") as opened:
        np.savez_compressed(opened, **arrays)


def _write_folder(images: Bytes, labels: list[Any] | None, path: Path) -> None:
    """Files are numbered in the order of the rows, over all classes."""
    from PIL import Image

    from understudy.published.directories import new_directory

    folders = [""] * len(images) if labels is None else [str(label) for label in labels]
    digits = max(6, len(str(len(images))))
    with new_directory(path) as scratch:
        for folder in set(folders):
            (scratch / folder).mkdir(exist_ok=True)
        for number, (folder, image) in enumerate(zip(folders, images, strict=True)):
            Image.fromarray(image).save(scratch / folder / f"{number:0{digits}d}.png")
