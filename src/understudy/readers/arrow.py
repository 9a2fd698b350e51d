"""Parquet and Arrow IPC files: the columns asked for and no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from understudy.errors import InputError, UnderstudyError
from understudy.readers.stream import MAX_BATCH_ROWS, Batches, Field, explain_damage, fields_of, listed

# Per column; a column chunk is otherwise held whole, and a file may have one row group.
_PARQUET_BUFFER_BYTES = 1 << 16

# Their old files hold rows that were deleted or rewritten since: reading all would count them.
_TABLE_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata/*.metadata.json": "Iceberg"}


@dataclass(frozen=True)
class ParquetFiles:
    """One Parquet file, or the files of a directory in the order of their paths."""

    where: str
    paths: tuple[Path, ...]

    def fields(self) -> list[Field]:
        """The schema that all the files share."""
        first = fields_of(pq.read_schema(self.paths[0]))
        for path in self.paths[1:]:
            other = fields_of(pq.read_schema(path))
            differing = {name for name, _ in set(first) ^ set(other)}
            if differing:
                raise InputError(
                    self.where, f"its files differ in column {listed(sorted(differing))}", "Write them with one schema"
                )
        return first

    def batches(self, columns: list[str], batch_rows: int = MAX_BATCH_ROWS) -> Batches:
        """Pages of the columns asked for, a file at a time."""
        for path in self.paths:
            with pq.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False) as parquet:
                yield from parquet.iter_batches(batch_rows, columns=columns)

    def count_rows(self) -> int:
        """Rows of all files, by their footers."""
        return sum(pq.read_metadata(path).num_rows for path in self.paths)

    def attach(self, connection: Any) -> None:
        """Show the files to DuckDB as a view, once they are known to share a schema."""
        self.fields()
        connection.register("data", ds.dataset([str(path) for path in self.paths]))

    def explain(self, error: Exception) -> UnderstudyError:
        """Damage is the only thing left to go wrong."""
        return explain_damage(self.where, error, "a Parquet file")


def refuse_table_log(where: str, folder: Path) -> None:
    """Refuse the folder of a table format that keeps files it no longer means."""
    for log, name in _TABLE_LOGS.items():
        if any(folder.glob(log)):
            raise InputError(
                where,
                f"it is a {name} table, whose old files hold rows that it no longer has",
                "Pass its current rows as an Arrow dataset, or export them to one Parquet file",
            )


def files_under(folder: Path) -> Iterator[Path]:
    """The files of a folder and of those in it; hidden and underscored names are not data."""
    # Strict, unlike glob, which would leave out a folder that this user may not read.
    for path in folder.iterdir():
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            yield from files_under(path)
        else:
            yield path


@dataclass(frozen=True)
class ArrowFile:
    """An Arrow IPC file (also known as Feather 2), or a saved IPC stream."""

    where: str
    path: Path
    random_access: bool

    def fields(self) -> list[Field]:
        with pa.memory_map(str(self.path)) as mapped, self._reader(mapped, []) as reader:
            return fields_of(reader.schema)

    def batches(self, columns: list[str]) -> Batches:
        """The file's own batches, checked, because a bad offset would read foreign memory."""
        names = [name for name, _ in self.fields()]
        wanted = sorted(names.index(column) for column in columns)
        with pa.memory_map(str(self.path)) as mapped, self._reader(mapped, wanted) as reader:
            in_order = map(reader.get_batch, range(reader.num_record_batches)) if self.random_access else reader
            for batch in in_order:
                batch.validate(full=True)
                yield batch

    def attach(self, connection: Any) -> None:
        """Show the file to DuckDB as a view; a saved stream is held in memory for it."""
        if self.random_access:
            connection.register("data", ds.dataset(str(self.path), format="ipc"))
            return
        with pa.memory_map(str(self.path)) as mapped, self._reader(mapped, []) as reader:
            connection.register("data", reader.read_all())

    def explain(self, error: Exception) -> UnderstudyError:
        """Damage is the only thing left to go wrong."""
        return explain_damage(self.where, error, "an Arrow IPC file")

    def _reader(self, mapped: Any, wanted: list[int]) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        return (pa.ipc.open_file if self.random_access else pa.ipc.open_stream)(mapped, options=options)


def arrow_file(where: str, path: Path, head: bytes) -> ArrowFile:
    """An Arrow file, whose first bytes tell the two formats apart."""
    if head.startswith(b"FEA1"):
        raise InputError(where, "it is in the old Feather format", "Write it again as Feather 2")
    return ArrowFile(where, path, random_access=head.startswith(b"ARROW1"))
