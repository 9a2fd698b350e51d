"""In-memory Python tables: dictionaries of columns, lists of records, and scikit-learn's features and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import ArrayError, InputError, UnderstudyError
from understudy.readers.cells import arrow_column, has_objects, is_of
from understudy.readers.stream import MAX_BATCH_ROWS, Batches, Field, explain_file

_TABLES = "Pass lists of rows, an array with two axes, or a frame of pandas, polars or pyarrow"


def explain_frame(where: str, error: Exception) -> UnderstudyError:
    """A frame whose columns have types that Arrow has not, or whose producer failed."""
    return explain_file(
        where,
        error,
        rule="its columns cannot be turned into Arrow columns, or its producer failed",
        remedy="Give every column one plain type, such as numbers, text or dates",
    )


def python_source(where: str, source: Any) -> PythonColumns | PythonRecords | None:
    """The reader for a table of pandas or polars, or one made of dictionaries; None for anything else."""
    if is_of(source, "pandas", "DataFrame"):
        names = [str(name) for name in source.columns]
        columns = [source.iloc[:, place] for place in range(len(names))]
        return PythonColumns(where, tuple(zip(names, columns, strict=True)))
    if is_of(source, "polars", "DataFrame"):
        columns = source.get_columns()
        return PythonColumns(where, tuple((column.name, column) for column in columns))
    if isinstance(source, Examples):
        return PythonColumns("X and y", tuple(source.columns().items()))
    if isinstance(source, dict):
        return PythonColumns(where, tuple((str(name), each) for name, each in source.items()))
    if isinstance(source, list | tuple) and all(isinstance(row, dict) for row in source[:1]):
        return PythonRecords(where, source)
    return None


@dataclass(frozen=True, repr=False)
class PythonColumns:
    """Columns in memory: series, arrays and lists; cells without a type become raw text, one at a time."""

    where: str
    columns: tuple[tuple[str, Any], ...]

    def fields(self) -> list[Field]:
        """The types that columns declare; lists and columns of objects have none."""
        return [(name, _declared_type(_as_array(column))) for name, column in self.columns]

    def batches(self, columns: list[str]) -> Batches:
        chosen = {name: _as_array(each) for name, each in self.columns if name in set(columns)}
        lengths = {len(column) for column in chosen.values()}
        if len(lengths) > 1:
            raise ArrayError(self.where, "its columns differ in length", "Give every row all cells")
        for start in range(0, lengths.pop(), MAX_BATCH_ROWS):
            parts = {
                name: arrow_column(_part(column, start, start + MAX_BATCH_ROWS)) for name, column in chosen.items()
            }
            yield from pa.table(parts).combine_chunks().to_batches()

    def attach(self, connection: Any) -> None:
        """Show the columns to DuckDB as a view, in which cells without a type are text."""
        columns = [(name, _as_array(column)) for name, column in self.columns]
        shown = {
            name: _utf8(arrow_column(column)) if has_objects(column) else arrow_column(column)
            for name, column in columns
        }
        connection.register("data", pa.table(shown))

    def explain(self, error: Exception) -> UnderstudyError:
        return explain_frame(self.where, error)


@dataclass(frozen=True, repr=False)
class PythonRecords:
    """Rows as dictionaries, each with all columns of the table."""

    where: str
    rows: Sequence[Any]
    names: tuple[str, ...] = ()

    def for_columns(self, columns: Sequence[str]) -> PythonRecords:
        """The same rows, which must have these columns; so a table without rows has them, too."""
        return replace(self, names=tuple(columns))

    def fields(self) -> list[Field]:
        """The columns asked for; cells have no declared type."""
        return [(name, None) for name in self.names]

    def batches(self, columns: list[str]) -> Batches:
        cells = tuple((name, list(self._cells(name))) for name in columns)
        yield from PythonColumns(self.where, cells).batches(columns)

    def explain(self, error: Exception) -> UnderstudyError:
        return explain_frame(self.where, error)

    def _cells(self, name: str) -> Iterator[object]:
        for row in self.rows:
            if not isinstance(row, dict) or not dict.__contains__(row, name):
                raise InputError(
                    self.where,
                    f"every row must be a dictionary that has '{name}'",
                    "Spell keys as the schema does, and write None where a row has no cell",
                )
            yield dict.__getitem__(row, name)


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
        is_column = isinstance(labels, list | tuple | pa.Array | pa.ChunkedArray)
        is_series = is_of(labels, "pandas", "Series") or is_of(labels, "polars", "Series")
        if not (is_column or is_series or (isinstance(labels, np.ndarray) and labels.ndim == 1)):
            raise ArrayError("y", "must hold one label per row", "Pass a list, an array or a column")
        return labels


def count_features(rows: Any) -> int | None:
    """How many features rows have, told by their form alone; None if they are a list without rows."""
    rows = _as_array(rows)
    if isinstance(rows, list | tuple):
        if not rows:
            return None
        if not isinstance(rows[0], list | tuple | np.ndarray):
            raise _no_table()
        return _at_least_one(len(rows[0]))
    shape: tuple[int, ...] = getattr(rows, "shape", ())
    if not _is_frame(rows) or len(shape) != 2:
        raise _no_table()
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "cmV":
        raise ArrayError("X", "Complex data not supported, nor are durations and records", "Pass numbers")
    return _at_least_one(shape[1])


def _at_least_one(count: int) -> int:
    if count < 1:
        raise ArrayError("X", "has no features", "Give every row at least one")
    return count


def feature_names(rows: Any) -> list[str] | None:
    """What a frame calls its features, if it calls them by words."""
    if not _is_frame(rows) or isinstance(rows, np.ndarray):
        return None
    is_arrow = isinstance(rows, pa.Table | pa.RecordBatch)
    names = list(rows.schema.names if is_arrow else rows.columns)
    return names if all(isinstance(name, str) for name in names) else None


def feature_columns(rows: Any, count: int) -> list[Any]:
    """Rows of so many features as columns, cells untouched. PRIVATE."""
    rows = _as_array(rows)
    if count_features(rows) not in (None, count):
        raise ArrayError("X", "has another number of features than bounds were given for", "Mend bounds")
    if isinstance(rows, np.ndarray):
        return [rows[:, place] for place in range(count)]
    if is_of(rows, "pandas", "DataFrame"):
        return [rows.iloc[:, place] for place in range(count)]
    if isinstance(rows, list | tuple):
        if not all(isinstance(row, list | tuple | np.ndarray) and len(row) == count for row in rows):
            raise ArrayError("X", "its rows differ in length", "Give every row all features")
        return [[row[place] for row in rows] for place in range(count)]
    return list(rows.get_columns() if is_of(rows, "polars", "DataFrame") else rows.columns)


def _declared_type(column: Any) -> pa.DataType | None:
    return None if has_objects(column) else arrow_column(_part(column, 0, 0)).type


def _utf8(cells: Any) -> Any:
    """Bytes as text that DuckDB takes; what is no UTF-8 in a cell is replaced, in that cell."""
    texts = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells.to_pylist()]
    return pa.array(texts, pa.string())


def _is_frame(rows: Any) -> bool:
    is_arrow = isinstance(rows, np.ndarray | pa.Table | pa.RecordBatch)
    return is_arrow or is_of(rows, "pandas", "DataFrame") or is_of(rows, "polars", "DataFrame")


def _no_table() -> ArrayError:
    return ArrayError(
        "X",
        "must be rows of features. Sparse data, and arrays of one axis or of three, are none",
        f"{_TABLES}. Reshape your data, or convert it with .toarray()",
    )


def _as_array(value: Any) -> Any:
    """What hands out an array of its own, such as a tensor, as that array."""
    if isinstance(value, np.matrix):  # whose columns have two axes
        return np.asarray(value)
    known = isinstance(value, list | tuple | np.ndarray | pa.Array | pa.ChunkedArray)
    is_table = _is_frame(value) or is_of(value, "pandas", "Series") or is_of(value, "polars", "Series")
    if known or is_table or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def _part(column: Any, start: int, stop: int) -> Any:
    return column.iloc[start:stop] if hasattr(column, "iloc") else column[start:stop]
