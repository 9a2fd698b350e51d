"""Tables in memory: those of pyarrow and of Python, and whatever offers an Arrow stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from understudy.errors import UnderstudyError
from understudy.private.readers.python_rows import PythonRecords, explain_frame, python_source
from understudy.private.readers.stream import MAX_BATCH_ROWS, Batches, Field, Viewable


def frame_source(where: str, source: Any) -> Viewable | ArrowStream | PythonRecords | None:
    """The reader for an object in memory, or None if it is not a table."""
    if isinstance(source, pa.RecordBatch):
        return ArrowTable(where, pa.Table.from_batches([source]))
    if isinstance(source, pa.Table):
        return ArrowTable(where, source)
    if isinstance(source, ds.Dataset):
        return ArrowDataset(where, source)
    if isinstance(source, pa.RecordBatchReader):
        return ArrowStream(where, source.schema, source)
    if isinstance(source, ds.Scanner):
        return ArrowStream(where, source.projected_schema, source)
    found = python_source(where, source)
    if found is not None:
        return found
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return ArrowStream(where, reader.schema, reader)
    return None


@dataclass(frozen=True)
class ArrowTable:
    """A pyarrow table; nothing is copied."""

    where: str
    table: pa.Table

    def fields(self) -> list[Field]:
        """The table's schema."""
        return [(field.name, field.type) for field in self.table.schema]

    def batches(self, columns: list[str]) -> Batches:
        """Slices of the table."""
        yield from self.table.select(columns).to_reader(max_chunksize=MAX_BATCH_ROWS)

    def attach(self, connection: Any) -> None:
        """Show the table to DuckDB as a view."""
        connection.register("data", self.table)

    def explain(self, error: Exception) -> UnderstudyError:
        """As for any frame."""
        return explain_frame(self.where, error)


@dataclass(frozen=True)
class ArrowDataset:
    """A pyarrow dataset; it reads ahead a little, and holds one row group at a time."""

    where: str
    dataset: ds.Dataset

    def fields(self) -> list[Field]:
        """The dataset's schema."""
        return [(field.name, field.type) for field in self.dataset.schema]

    def batches(self, columns: list[str]) -> Batches:
        """A scan of the columns asked for."""
        scanner = self.dataset.scanner(
            columns=columns, batch_size=MAX_BATCH_ROWS, batch_readahead=2, fragment_readahead=1
        )
        yield from scanner.to_batches()

    def attach(self, connection: Any) -> None:
        """Show the dataset to DuckDB as a view."""
        connection.register("data", self.dataset)

    def explain(self, error: Exception) -> UnderstudyError:
        """As for any frame."""
        return explain_frame(self.where, error)


@dataclass(frozen=True)
class ArrowStream:
    """A stream that can be read once, so a query, which may read twice, is refused."""

    where: str
    schema: pa.Schema
    stream: Any

    def fields(self) -> list[Field]:
        """The stream's schema."""
        return [(field.name, field.type) for field in self.schema]

    def batches(self, columns: list[str]) -> Batches:
        """The stream's own batches."""
        if isinstance(self.stream, ds.Scanner):
            yield from self.stream.to_batches()
        else:
            yield from self.stream

    def explain(self, error: Exception) -> UnderstudyError:
        """As for any frame."""
        return explain_frame(self.where, error)
