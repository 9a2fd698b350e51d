"""Synthetic rows and pages to files, whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.errors import InputError, MissingExtraError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.arrays import Bytes
    from understudy.schema import Column, Schema

ROWS = (".csv", ".parquet")
PAGES = (".html",)
PICTURES = (".png",)
PUBLIC = 0o644
INTERNAL = 0o600
"""Who may read a file: everybody, or its owner alone."""


def check_output(path: Path, *, kinds: tuple[str, ...] | None = ROWS) -> None:
    """Refuse an output that exists, has an unknown type or cannot be written."""
    if kinds is not None and path.suffix.lower() not in kinds:
        raise UsageError(f"output '{path}'", f"must end in {' or '.join(kinds)}")
    try:
        is_taken, parent = path.exists(), path.parent
    except OSError:
        raise InputError(f"output '{path}'", "cannot be the name of a file", "Choose a shorter, plainer one") from None
    if is_taken:
        raise InputError(f"output '{path}'", "exists already", "Choose another name, or remove it")
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"output '{path}'", "its directory does not exist or cannot be written", "Choose another")


def write_rows(rows: pa.Table, path: Path) -> None:
    """Write synthetic rows as CSV, or as Parquet with Zstandard."""
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    with scratch_file(path, mode=PUBLIC) as scratch:
        if path.suffix.lower() == ".csv":
            csv.write_csv(rows, scratch, csv.WriteOptions(quoting_style="needed"))
        else:
            parquet.write_table(rows, scratch, compression="zstd")


def write_page(page: str | bytes, path: Path, *, mode: int) -> None:
    """Write a report or a picture; ``mode`` says who may read it."""
    with scratch_file(path, mode=mode) as scratch:
        Path(scratch).write_bytes(page.encode() if isinstance(page, str) else page)


@contextmanager
def scratch_file(path: Path, *, mode: int) -> Iterator[str]:
    """A file beside its place, moved there once it is whole."""
    try:
        handle, scratch = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
        os.close(handle)
        try:
            yield scratch
            Path(scratch).chmod(mode)
            Path(scratch).rename(path)
        finally:
            Path(scratch).unlink(missing_ok=True)
    except OSError:
        raise InputError(f"output '{path}'", "cannot be written", "Check space and permissions") from None


def read_rows(source: str | Path, columns: Iterable[str], *, what: str | None = None) -> pa.Table:
    """Some columns of a file, as they stand in it; refusals never quote a cell."""
    import pyarrow as pa

    from understudy.readers import open_source

    with open_source(str(source), columns=list(columns)) as stream:
        batches = list(stream)
    if not batches:
        raise InputError(what or f"'{source}'", "has no rows", "Check the file")
    return pa.Table.from_batches(batches)


def read_frame(path: Path, schema: Schema) -> Any:
    """The schema's columns of a file, as a pandas data frame."""
    import pyarrow as pa

    rows = read_rows(path, schema.file_names)
    typed = {column.name: _typed(column, rows[column.name]) for column in schema.in_files}
    try:
        return pa.table(typed).to_pandas()
    except ModuleNotFoundError:
        raise MissingExtraError("pandas", "evaluation") from None


def _typed(column: Column, cells: Any) -> Any:
    """Raw text as text, or as numbers where the schema has numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from understudy.schema.encode import parse_numbers

    if not (pa.types.is_binary(cells.type) or pa.types.is_large_binary(cells.type)):
        return cells
    try:
        text = pc.utf8_trim_whitespace(cells.cast(pa.string()))
        if column.is_choice or column.resolution is not None:
            return pc.if_else(pc.equal(text, ""), None, text)
        # As in a release: what is no number is missing, and refuses nothing.
        numbers = [pa.array(parse_numbers(chunk), from_pandas=True) for chunk in text.chunks]
        return pa.chunked_array(numbers, pa.float64())
    except pa.ArrowException:
        pass
    wanted = "UTF-8 text" if column.is_choice else f"{column.kind} cells"
    raise InputError(f"column '{column.name}'", f"must hold {wanted}", "Mend the column, or the schema's kind")


ARCHIVE = ".npz"
FOLDER = ""
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
        kinds = f"{', '.join(ROWS)} or {ARCHIVE}, or have no suffix to be a folder of PNG files"
        raise UsageError(f"output '{path}'", f"must end in {kinds}")
    check_output(path, kinds=(suffix,))
    _check_fits(path, schema, is_folder=suffix == FOLDER)


def write_sample(rows: pa.Table, path: Path, schema: Schema) -> None:
    """Write synthetic rows, as images if the output's name says so."""
    import numpy as np

    from understudy.schema.encode import pixel_array
    from understudy.schema.images import LABEL

    suffix = path.suffix.lower()
    if schema.image is None or suffix in ROWS:
        write_rows(rows, path)
        return
    images = pixel_array(rows, schema.image)
    labels = rows[LABEL].to_pylist() if LABEL in rows.column_names else None
    if suffix == FOLDER:
        _write_folder(images, [""] * len(images) if labels is None else [str(label) for label in labels], path)
        return
    arrays = {"x": images} if labels is None else {"x": images, "y": np.asarray(labels)}
    with scratch_file(path, mode=PUBLIC) as scratch, Path(scratch).open("wb") as opened:
        np.savez_compressed(opened, **arrays)


def _check_fits(path: Path, schema: Schema, *, is_folder: bool) -> None:
    from understudy.schema import Kind
    from understudy.schema.images import LABEL, require_pillow, without_pixels

    where, others = f"output '{path}'", without_pixels(schema.image, schema.in_files)
    if any(column.name != LABEL or column.nullable or column.kind is Kind.DATETIME for column in others):
        rule = f"holds images and a column '{LABEL}' without nulls, and nothing else"
        raise UsageError(where, rule, "Write a .parquet file")
    if is_folder:
        require_pillow()
        if not all(_names_folders(column) for column in others):
            rule = "has a folder per label, and the labels cannot all be names of folders"
            raise UsageError(where, rule, "Write an .npz file")


def _names_folders(label: Column) -> bool:
    """Whether every label can be a folder that readers take for data, on any file system."""
    names = [str(category) for category in label.categories]
    return (
        label.is_choice
        and len({name.casefold() for name in names}) == len(names)
        and all(name.isprintable() and _PLAIN_NAME.fullmatch(name) for name in names)
    )


def _write_folder(images: Bytes, folders: list[str], path: Path) -> None:
    """Files are numbered in the order of the rows, over all classes."""
    from PIL import Image

    from understudy.files import new_directory

    digits = max(6, len(str(len(images))))
    with new_directory(path) as scratch:
        for folder in set(folders):
            (scratch / folder).mkdir(exist_ok=True)
        for number, (folder, image) in enumerate(zip(folders, images, strict=True)):
            Image.fromarray(image).save(scratch / folder / f"{number:0{digits}d}.png")
