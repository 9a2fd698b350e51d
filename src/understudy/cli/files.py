"""Synthetic rows to files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def check_output(path: Path) -> None:
    """Refuse an output that exists, has an unknown type or cannot be written."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"output '{path}'", "must end in .csv or .parquet")
    if path.exists():
        raise InputError(f"output '{path}'", "exists already", "Choose another name, or remove it")
    parent = path.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(
            f"output '{path}'",
            "its directory does not exist or cannot be written",
            "Choose another",
        )


def write_rows(rows: pa.Table, path: Path) -> None:
    """Write synthetic rows, whole or not at all."""
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        if path.suffix.lower() == ".csv":
            csv.write_csv(rows, scratch, csv.WriteOptions(quoting_style="needed"))
        else:
            parquet.write_table(rows, scratch, compression="zstd")
        Path(scratch).chmod(0o644)
        Path(scratch).rename(path)
    except OSError:
        raise InputError(
            f"output '{path}'", "cannot be written", "Check space and permissions"
        ) from None
    finally:
        Path(scratch).unlink(missing_ok=True)
