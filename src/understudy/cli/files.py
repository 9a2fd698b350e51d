"""Synthetic rows and pages to files, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa


ROWS, PAGES = (".csv", ".parquet"), (".html",)
PUBLIC, INTERNAL = 0o644, 0o600
"""Who may read a file: everybody, or its owner alone."""


def check_output(path: Path, *, kinds: tuple[str, ...] = ROWS) -> None:
    """Refuse an output that exists, has an unknown type or cannot be written."""
    if path.suffix.lower() not in kinds:
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
    """Write synthetic rows."""
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    with scratch_file(path, mode=PUBLIC) as scratch:
        if path.suffix.lower() == ".csv":
            csv.write_csv(rows, scratch, csv.WriteOptions(quoting_style="needed"))
        else:
            parquet.write_table(rows, scratch, compression="zstd")


def write_page(text: str, path: Path, *, mode: int) -> None:
    """Write a report; ``mode`` says who may read it."""
    write_bytes(text.encode(), path, mode=mode)


def write_bytes(content: bytes, path: Path, *, mode: int) -> None:
    """Write a picture; ``mode`` says who may read it."""
    with scratch_file(path, mode=mode) as scratch:
        Path(scratch).write_bytes(content)


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
