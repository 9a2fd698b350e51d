"""Tables in memory: pyarrow, pandas, polars, and whatever offers an Arrow stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from understudy.errors import InputError, UnderstudyError
from understudy.private.readers.cells import raw_text
from understudy.private.readers.stream import (
    MAX_BATCH_ROWS,
    Batches,
    Field,
    Viewable,
    explain_file,
    listed,
)


def frame_source(where: str, source: Any) -> Viewable | ArrowStream | None:
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
    if _is_frame(source, "pandas"):
        return PandasFrame(where, source)
    if _is_frame(source, "polars"):
        return PolarsFrame(where, source)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return ArrowStream(where, reader.schema, reader)
    return None


def explain_frame(where: str, error: Exception) -> UnderstudyError:
    """A frame whose cells or whose producer failed."""
    return explain_file(
        where,
        error,
        rule="its columns cannot be turned into Arrow columns, or its producer failed",
        remedy="Give every column one plain type, such as numbers, text or dates",
    )


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


@dataclass(frozen=True)
class PolarsFrame:
    """A polars frame, in the Arrow types that every consumer knows (no string views).

    Columns of Python objects are refused, because polars exports their memory addresses.
    """

    where: str
    frame: Any

    def fields(self) -> list[Field]:
        """The types of an empty frame of the same schema; a column of objects has none."""
        schema = self._arrow(self.frame.clear()).schema
        opaque = self._opaque()
        return [(field.name, None if field.name in opaque else field.type) for field in schema]

    def batches(self, columns: list[str]) -> Batches:
        """Slices of the columns asked for."""
        opaque = [column for column in columns if column in self._opaque()]
        if opaque:
            raise InputError(
                self.where,
                f"column {listed(opaque)} holds Python objects",
                "Turn them into text, numbers or dates",
            )
        for part in self.frame.select(columns).iter_slices(MAX_BATCH_ROWS):
            yield from self._arrow(part).combine_chunks().to_batches()

    def attach(self, connection: Any) -> None:
        """Show the frame to DuckDB as a view, without columns of objects."""
        connection.register("data", self._arrow(self.frame.drop(self._opaque())))

    def explain(self, error: Exception) -> UnderstudyError:
        """As for any frame."""
        return explain_frame(self.where, error)

    def _arrow(self, frame: Any) -> pa.Table:
        return frame.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())

    def _opaque(self) -> list[str]:
        opaque = sys.modules["polars"].Object
        return [name for name, dtype in self.frame.schema.items() if dtype == opaque]


@dataclass(frozen=True)
class PandasFrame:
    """A pandas frame; columns of Python objects become raw text, a cell at a time."""

    where: str
    frame: Any

    def fields(self) -> list[Field]:
        """The types of the dtypes; a column of objects has none."""
        return [
            (name, None if _is_object(column) else pa.array(column, from_pandas=True).type)
            for name, column in self._columns(self.frame.iloc[:0])
        ]

    def batches(self, columns: list[str]) -> Batches:
        """Slices of the columns asked for."""
        names = [str(name) for name in self.frame.columns]
        chosen = self.frame.iloc[:, [names.index(column) for column in columns]]
        for start in range(0, len(chosen), MAX_BATCH_ROWS):
            part = chosen.iloc[start : start + MAX_BATCH_ROWS]
            table = pa.table({name: _as_arrow(column) for name, column in self._columns(part)})
            yield from table.combine_chunks().to_batches()

    def attach(self, connection: Any) -> None:
        """Show the frame to DuckDB as a view, in which columns of objects are text."""
        connection.register(
            "data",
            pa.table(
                {
                    name: _as_arrow(column).cast(pa.string())
                    if _is_object(column)
                    else _as_arrow(column)
                    for name, column in self._columns(self.frame)
                }
            ),
        )

    def explain(self, error: Exception) -> UnderstudyError:
        """As for any frame, but cells that have no text form are told apart."""
        if isinstance(error, TypeError) and not isinstance(error, pa.ArrowException):
            return InputError(
                self.where,
                "a column of objects holds cells that are not text, numbers or dates",
                "Turn such columns into text, or leave them out",
            )
        return explain_frame(self.where, error)

    def _columns(self, frame: Any) -> Iterator[tuple[str, Any]]:
        return ((str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns))


def _is_frame(source: object, package: str) -> bool:
    """Whether it is a frame of a package, told without importing the package."""
    module = sys.modules.get(package)
    return module is not None and isinstance(source, module.DataFrame)


def _is_object(column: Any) -> bool:
    return bool(column.dtype == object)


def _as_arrow(column: Any) -> pa.Array | pa.ChunkedArray:
    if not _is_object(column):
        return pa.array(column, from_pandas=True)
    absent = column.isna()
    cells = [None if null else raw_text(cell) for cell, null in zip(column, absent, strict=True)]
    return pa.array(cells, pa.binary())
