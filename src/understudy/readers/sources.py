"""Open any source: the reader follows from suffix, leading bytes or type (CSV, Parquet, Arrow, SQL, frames, images)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path

import pyarrow.dataset as ds

from understudy.errors import InputError
from understudy.readers.arrow import ParquetFiles, arrow_file, files_under, refuse_table_log
from understudy.readers.delimited import DelimitedFiles
from understudy.readers.frames import ArrowStream, explain_frame, frame_source
from understudy.readers.pictures import EncodedImages, NpzImages, PictureFolder, has_pictures, stored_in, with_images
from understudy.readers.sql import SQLITE_MAGIC, DuckQuery, SqliteQuery
from understudy.readers.stream import (
    Field,
    RowStream,
    Source,
    Viewable,
    checked_fields,
    explain_file,
    require_columns,
    shielded,
)
from understudy.schema.images import is_pixel, shape_of

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
_DATABASES = (".db", ".duckdb", ".sqlite", ".sqlite3")
_HEAD_BYTES = 16  # that tell what kind of database a file is
_DUCKDB_MAGIC = b"DUCK"
_DUCKDB_OFFSET = 8  # a checksum comes first
_LONGEST_NAME = 255  # characters of a file name on common file systems

ImageSet = NpzImages | EncodedImages
_Found = Viewable | DuckQuery | SqliteQuery | ImageSet


def open_source(source: object, *, columns: Sequence[str], query: str | None = None) -> RowStream:
    """Open a table for one pass over some of its columns.

    Args:
        source: a path to a .csv or .tsv (also .gz), .parquet, .arrow, .feather or .ipc file, a
            directory or a pattern (``2024-*.csv``) of Parquet files or of text files, a DuckDB or
            SQLite file; an image set in an .npz file, a
            folder of PNG or JPEG files, or a Parquet column called image; a pyarrow, pandas or
            polars table; a dictionary of columns or a list of dictionaries; or any object with an
            Arrow stream.
        columns: the columns to read, in the order wanted. Others are not read where the format
            lets them be skipped.
        query: one SELECT statement. A database needs it; any other source is then the table
            called data.

    Returns:
        A stream of batches of at most 65,536 rows. CSV, SQLite, lists and columns of objects come
        as bytes, all others in their own type. An empty table has no batches. Images come as a
        column per pixel; the columns asked for say which size and channels they must have.

    Raises:
        InputError: the source cannot be read as asked.

    Guarantee:
        No refusal, here or while reading, holds a cell, a row number or a count of rows (proofs/cells.md).
    """
    return RowStream(_checked(source, columns, query), columns)


def open_parts(source: object, *, columns: Sequence[str], query: str | None = None) -> list[RowStream]:
    """The same table as streams that may be read at once: one per file, if there are several.

    Guarantee:
        Every row is in one of them, once (proofs/cells.md).
    """
    return [RowStream(part, columns) for part in _split(_checked(source, columns, query))]


def _checked(source: object, columns: Sequence[str], query: str | None) -> Source:
    """The source that a path or frame is, once it is known to have the columns.

    These say which shape images must have, and what every record of a list must hold.
    """
    found = _find(source, query, columns)
    if isinstance(found, EncodedImages) and not _has_pixels(columns):
        found = found.files
    elif isinstance(found, ImageSet):
        found = replace(found, shape=shape_of(columns))
    elif query is not None and _has_pixels(columns) and any(stored_in(*field) for field in checked_fields(found)):
        raise _no_query(found.where)
    require_columns(found, columns)
    return found


def _has_pixels(columns: Sequence[str]) -> bool:
    return any(is_pixel(name) for name in columns)


def _split(found: Source) -> list[Source]:
    if isinstance(found, EncodedImages) and isinstance(found.files, ParquetFiles):
        return [replace(found, files=replace(found.files, paths=(path,))) for path in found.files.paths]
    if isinstance(found, ParquetFiles | DelimitedFiles):
        return [replace(found, paths=(path,)) for path in found.paths]
    return [found]


def source_columns(source: object, *, query: str | None = None) -> list[Field]:
    """Names and declared types of a table, without reading rows; a type is None for raw text."""
    return checked_fields(_find(source, query, ()))


def is_one_pass(source: object) -> bool:
    """Whether a source is a stream, which is gone once it has been read."""
    return not isinstance(source, str | os.PathLike) and _is_one_pass(_find_frame(source, ()))


def _is_one_pass(found: _Found) -> bool:
    return isinstance(found, ArrowStream) and not isinstance(found.source, ds.Dataset)


def _find(source: object, query: str | None, columns: Sequence[str]) -> Source | ImageSet:
    if isinstance(source, str | os.PathLike):
        found: _Found = _find_path(source, query)
    else:
        found = _find_frame(source, columns if query is None else ())
    if query is None or isinstance(found, DuckQuery | SqliteQuery):
        return found
    held = found.files if isinstance(found, EncodedImages) else found  # a query sees what the files hold
    if isinstance(held, NpzImages | PictureFolder):
        raise _no_query(held.where)
    if isinstance(source, list | tuple) or _is_one_pass(held):
        raise InputError(
            found.where,
            "a query may read its table twice and by columns, and this is a stream or a list of rows",
            "Pass a file, a table or a dataset, or leave out the query",
        )
    return DuckQuery(held.where, held, query)


def _find_frame(source: object, columns: Sequence[str]) -> Viewable:
    where = f"source of type '{type(source).__name__}'"
    found = shielded(lambda: frame_source(where, source, columns), lambda e: explain_frame(where, e))
    if found is None:
        raise InputError(
            where,
            "it is not a path and not a table",
            "Pass a file, a frame, a dictionary of columns or a list of dictionaries",
        )
    return found


def _no_query(where: str) -> InputError:
    return InputError(where, "a query cannot select images", "Leave it out, or put the images wanted in a set apart")


def _find_path(source: str | os.PathLike[str], query: str | None) -> Viewable | DuckQuery | SqliteQuery | ImageSet:
    path = Path(source).absolute()
    # A table's text that is passed by mistake must not be echoed.
    is_name = path.name.isprintable() and 0 < len(path.name) <= _LONGEST_NAME
    where = f"file '{path.name}'" if is_name else "source"
    if not os.fspath(source):
        raise InputError("source", "the path is empty", "Name a file")
    return shielded(
        lambda: _find_file(where, path, query),
        lambda error: explain_file(where, error, rule="it cannot be opened", remedy="Check the path"),
    )


def _find_file(where: str, path: Path, query: str | None) -> Viewable | DuckQuery | SqliteQuery | ImageSet:
    if has_magic(os.fspath(path)) and not path.exists():
        return _find_files(where, [Path(each) for each in glob(os.fspath(path), recursive=True)])
    if path.is_dir():
        return _find_directory(where, path)
    with path.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    if not head:
        raise InputError(where, "the file is empty (zero bytes)", "Write it again from its source")
    suffix = _suffix(path)
    if _is_table(path):
        return _find_files(where, [path])
    if suffix in _ARROW:
        return arrow_file(where, path, head)
    if suffix in _DATABASES:
        return _find_database(where, path, head, query)
    if suffix == ".npz":
        return NpzImages(where, path)
    raise InputError(
        where,
        "its kind is not known from its name",
        "Use .csv, .tsv (also .gz), .parquet, .arrow, .feather, .ipc, .duckdb, .sqlite, .db or .npz",
    )


def _suffix(path: Path) -> str:
    """What kind of file a name says it is; text files may be compressed."""
    suffix, inner = path.suffix.lower(), Path(path.stem).suffix.lower()
    return inner if suffix == ".gz" and inner in _DELIMITERS else suffix


def _find_directory(where: str, folder: Path) -> Viewable | ImageSet:
    refuse_table_log(where, folder)
    paths = [path for path in files_under(folder) if _is_table(path)]
    has_parquet = any(_suffix(path) == ".parquet" for path in paths)
    if not has_parquet and has_pictures(folder):  # which may have text files beside them
        return EncodedImages(where, PictureFolder(where, folder))
    if not paths:
        raise InputError(
            where,
            "it is a directory without Parquet files, text files and images",
            "Name a file, or a directory of .parquet, .csv, .png or .jpg files",
        )
    return _find_files(where, paths)


def _find_files(where: str, paths: Sequence[Path]) -> Viewable | ImageSet:
    """Several files as one table; they are all Parquet files, or all text files."""
    paths = _each_once(paths)
    kinds = {_suffix(path) for path in paths}
    if not paths:
        raise InputError(where, "it names no file", "Check the folder, or the pattern")
    if not all(_is_table(path) for path in paths) or len(kinds) > 1:
        remedy = "Name .parquet files only, or .csv files only, or .tsv files"
        raise InputError(where, "its files are not all of one kind", remedy)
    if kinds == {".parquet"}:
        return with_images(ParquetFiles(where, tuple(paths)))
    return DelimitedFiles(where, tuple(paths), _DELIMITERS[kinds.pop()])


def _each_once(paths: Sequence[Path]) -> list[Path]:
    """Files in order, each under one of its names.

    A pattern with ``**`` twice finds a file several times, and a link is the file that it leads to: a row would count
    more often than its sensitivity allows for.
    """
    found: dict[tuple[int, int], Path] = {}
    for path in sorted(paths):
        facts = path.stat()
        found.setdefault((facts.st_dev, facts.st_ino), path)
    return list(found.values())


def _is_table(path: Path) -> bool:
    return path.is_file() and _suffix(path) in (*_DELIMITERS, ".parquet")


def _find_database(where: str, path: Path, head: bytes, query: str | None) -> DuckQuery | SqliteQuery:
    """A database is known by its first bytes, because both kinds may be called .db."""
    is_duckdb = head[_DUCKDB_OFFSET:].startswith(_DUCKDB_MAGIC)
    if not is_duckdb and not head.startswith(SQLITE_MAGIC):
        raise InputError(where, "it is neither a DuckDB nor an SQLite database", "Check what wrote it")
    if query is None:
        raise InputError(where, "a database needs a query", "Add a query such as: SELECT * FROM patients")
    return DuckQuery(where, path, query) if is_duckdb else SqliteQuery(where, path, query)
