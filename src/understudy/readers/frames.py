"""Tables in memory: frames of pandas, polars and pyarrow, Arrow streams, dictionaries of columns, lists of records,
and scikit-learn's features and labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from understudy.errors import ArrayError, InputError, UnderstudyError
from understudy.readers.cells import arrow_column, has_objects, is_of
from understudy.readers.stream import MAX_BATCH_ROWS, Batches, Field, explain_file, fields_of

_TABLES = "Pass lists of rows, an array with two axes, or a frame of pandas, polars or pyarrow"


def explain_frame(where: str, error: Exception) -> UnderstudyError:
    """A frame whose columns have types that Arrow has not, or whose producer failed."""
    return explain_file(
        where,
        error,
        rule="its columns cannot be turned into Arrow columns, or its producer failed",
        remedy="Give every column one plain type, such as numbers, text or dates",
    )


def frame_source(where: str, source: Any, columns: Sequence[str]) -> PythonColumns | ArrowStream | None:
    """The reader for an object in memory, or None if it is not a table.

    Records have the columns that are asked for; so a list without records has them, too.
    """
    if isinstance(source, Examples):
        return PythonColumns("X and y", tuple(source.columns().items()))
    if isinstance(source, ds.Dataset | ds.Scanner | pa.RecordBatchReader):
        return ArrowStream(where, source)
    named = source.items() if isinstance(source, dict) else _named_columns(source)
    if isinstance(source, list | tuple) and all(isinstance(row, dict) for row in source[:1]):
        named = [(name, _cells(where, source, name)) for name in columns]
    if named is not None:
        return PythonColumns(where, tuple((str(name), column) for name, column in named))
    if hasattr(source, "__arrow_c_stream__"):
        return ArrowStream(where, pa.RecordBatchReader.from_stream(source))
    return None


def _named_columns(frame: Any) -> list[tuple[Any, Any]] | None:
    """Names and columns of a table of pandas, polars or pyarrow; None for anything else."""
    if is_of(frame, "pandas", "DataFrame"):
        return [(name, frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    if is_of(frame, "polars", "DataFrame"):
        return [(column.name, column) for column in frame.get_columns()]
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return list(zip(frame.schema.names, frame.columns, strict=True))
    return None


@dataclass(frozen=True)
class ArrowStream:
    """A dataset, of which one row group is held at a time, or a stream that can be read once."""

    where: str
    source: ds.Dataset | ds.Scanner | pa.RecordBatchReader

    def fields(self) -> list[Field]:
        is_scanner = isinstance(self.source, ds.Scanner)
        return fields_of(self.source.projected_schema if is_scanner else self.source.schema)

    def batches(self, columns: list[str]) -> Batches:
        """A scan of a dataset, which reads ahead a little, or all that the stream has."""
        source = self.source
        if isinstance(source, ds.Dataset):
            source = source.scanner(columns=columns, batch_size=MAX_BATCH_ROWS, batch_readahead=2, fragment_readahead=1)
        yield from source.to_batches() if isinstance(source, ds.Scanner) else source

    def attach(self, connection: Any) -> None:
        connection.register("data", self.source)

    def explain(self, error: Exception) -> UnderstudyError:
        return explain_frame(self.where, error)


@dataclass(frozen=True, repr=False)
class PythonColumns:
    """Columns in memory: series, arrays and lists. Typed ones are not copied, cells without a type become raw text."""

    where: str
    columns: tuple[tuple[str, Any], ...]

    def fields(self) -> list[Field]:
        """The types that columns declare; lists and columns of objects have none."""
        columns = [(name, _as_array(each)) for name, each in self.columns]
        return [(name, None if has_objects(each) else arrow_column(_part(each, 0, 0)).type) for name, each in columns]

    def batches(self, columns: list[str]) -> Batches:
        chosen = {name: _as_array(each) for name, each in self.columns if name in set(columns)}
        lengths = {len(column) for column in chosen.values()}
        if len(lengths) > 1:
            raise ArrayError(self.where, "its columns differ in length", "Give every row all cells")
        for start in range(0, lengths.pop(), MAX_BATCH_ROWS):
            parts = {
                name: arrow_column(_part(column, start, start + MAX_BATCH_ROWS)) for name, column in chosen.items()
            }
            yield from pa.table(parts).to_batches()

    def attach(self, connection: Any) -> None:
        """Show the columns to DuckDB as a view, in which cells without a type are text."""
        shown = [_shown(_as_array(column)) for _, column in self.columns]
        connection.register("data", pa.Table.from_arrays(shown, names=[name for name, _ in self.columns]))

    def explain(self, error: Exception) -> UnderstudyError:
        return explain_frame(self.where, error)


def _cells(where: str, records: Sequence[Any], name: str) -> list[object]:
    if not all(isinstance(record, dict) and dict.__contains__(record, name) for record in records):
        raise InputError(
            where,
            f"every row must be a dictionary that has '{name}'",
            "Spell keys as the schema does, and write None where a row has no cell",
        )
    return [dict.__getitem__(record, name) for record in records]


@dataclass(frozen=True)
class Examples:
    """Features and labels as scikit-learn's callers have them, not yet looked at.

    Args:
        features: rows of features: lists, an array or a frame.
        num_features: how many there are, by the schema.
        labels: a label per row, or None.
        label: the name of the label's column; features are called x0, x1 and so on.
    """

    features: Any = field(repr=False)
    num_features: int
    labels: Any = field(default=None, repr=False)
    label: str = "label"

    @property
    def names(self) -> list[str]:
        """What the columns of features are called."""
        return [f"x{place}" for place in range(self.num_features)]

    def columns(self) -> dict[str, Any]:
        """Columns by name; a row without all features is refused."""
        columns = feature_columns(self.features, self.num_features)
        found = dict(zip(self.names, columns, strict=True))
        if self.labels is None:
            return found
        labels = self._label_column()
        if any(len(column) != len(labels) for column in columns):
            raise ArrayError("X and y", "differ in their number of rows", "Give every row a label")
        return found | {self.label: labels}

    def _label_column(self) -> Any:
        labels = _as_array(self.labels)
        if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if is_of(labels, "pandas", "DataFrame") and labels.shape[1] == 1:
            labels = labels.iloc[:, 0]
        if not _is_column(labels) or getattr(labels, "ndim", 1) != 1:
            raise ArrayError("y", "must hold one label per row", "Pass a list, an array or a column")
        return labels


def count_features(rows: Any) -> int | None:
    """How many features rows have, told by their form alone; None if they are a list without rows."""
    rows = _as_array(rows)
    is_list = isinstance(rows, list | tuple)
    if is_list and not rows:
        return None
    if is_list and isinstance(rows[0], list | tuple | np.ndarray):
        count = len(rows[0])
    elif _is_frame(rows) and len(rows.shape) == 2:
        count = rows.shape[1]
    else:
        raise ArrayError(
            "X",
            "must be rows of features. Sparse data, and arrays of one axis or of three, are none",
            f"{_TABLES}. Reshape your data, or convert it with .toarray()",
        )
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "cmV":
        raise ArrayError("X", "Complex data not supported, nor are durations and records", "Pass numbers")
    if count < 1:
        raise ArrayError("X", "has no features", "Give every row at least one")
    return count


def feature_names(rows: Any) -> list[str] | None:
    """What a frame calls its features, if it calls them by words."""
    names = [name for name, _ in _named_columns(rows) or ()]
    return names if names and all(isinstance(name, str) for name in names) else None


def feature_columns(rows: Any, count: int) -> list[Any]:
    """Rows of so many features as columns, cells untouched. PRIVATE."""
    rows = _as_array(rows)
    if count_features(rows) not in (None, count):
        raise ArrayError("X", "has another number of features than bounds were given for", "Mend bounds")
    if isinstance(rows, np.ndarray):
        return [rows[:, place] for place in range(count)]
    if isinstance(rows, list | tuple):
        if not all(isinstance(row, list | tuple | np.ndarray) and len(row) == count for row in rows):
            raise ArrayError("X", "its rows differ in length", "Give every row all features")
        return [[row[place] for row in rows] for place in range(count)]
    return [column for _, column in _named_columns(rows) or ()]


def _shown(column: Any) -> Any:
    """A column that DuckDB takes; bytes are text there, and what is no UTF-8 in a cell is replaced, in that cell."""
    cells = arrow_column(column)
    if not has_objects(column):
        return cells
    texts = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells.to_pylist()]
    return pa.array(texts, pa.string())


def _is_frame(rows: Any) -> bool:
    is_arrow = isinstance(rows, np.ndarray | pa.Table | pa.RecordBatch)
    return is_arrow or is_of(rows, "pandas", "DataFrame") or is_of(rows, "polars", "DataFrame")


def _is_column(value: Any) -> bool:
    is_plain = isinstance(value, list | tuple | np.ndarray | pa.Array | pa.ChunkedArray)
    return is_plain or is_of(value, "pandas", "Series") or is_of(value, "polars", "Series")


def _as_array(value: Any) -> Any:
    """What hands out an array of its own, such as a tensor, as that array."""
    if isinstance(value, np.matrix):  # whose columns have two axes
        return np.asarray(value)
    if _is_column(value) or _is_frame(value) or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def _part(column: Any, start: int, stop: int) -> Any:
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]
