"""A one-pass stream of Arrow record batches, and the sanitising of errors so that none quotes a cell."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa

from understudy.errors import InputError, UnderstudyError, UsageError

MAX_BATCH_ROWS = 65_536
"""No batch is longer than this; longer ones are sliced, without a copy."""

_MAX_LISTED_NAMES = 40  # columns that a refusal names

Field = tuple[str, pa.DataType | None]
"""A column's name and its declared type, or None where cells are raw text."""

Batches = Generator[pa.RecordBatch, None, None]

T = TypeVar("T")


class Source(Protocol):
    """A table that can be read once its columns are known."""

    @property
    def where(self) -> str:
        """The public name that refusals use."""

    def fields(self) -> list[Field]:
        """Names and declared types, read without reading rows."""

    def batches(self, columns: list[str]) -> Batches:
        """At least the columns asked for, in any order; closing it lets the source go."""

    def explain(self, error: Exception) -> UnderstudyError:
        """The refusal that stands for an error of an engine, without its message."""


class Viewable(Source, Protocol):
    """A source that DuckDB can read as often as a query needs."""

    def attach(self, connection: Any) -> None:
        """Make the view called data."""


def shielded(action: Callable[[], T], explain: Callable[[Exception], UnderstudyError]) -> T:
    """Run an action; whatever it raises leaves as a refusal that holds no cell.

    Guarantee:
        The messages of pyarrow, DuckDB and SQLite may quote cells. The refusal is raised after
        the handler has ended, so the original is neither its cause nor its context (proofs/encoder.md).
    """
    try:
        return action()
    except (UnderstudyError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        refusal = explain(error if isinstance(error, Exception) else RuntimeError())
    raise refusal from None


def explain_file(where: str, error: Exception, *, rule: str, remedy: str) -> UnderstudyError:
    """The refusals that all files share; otherwise the given rule and remedy."""
    if isinstance(error, FileNotFoundError):
        return InputError(where, "there is no such file", "Check the path")
    if isinstance(error, PermissionError):
        return InputError(where, "this user may not read it", "Ask its owner for read access")
    if isinstance(error, MemoryError):
        return InputError(where, "there is not enough memory to read it", "Free some memory")
    return InputError(where, rule, remedy)


def explain_damage(where: str, error: Exception, kind: str) -> UnderstudyError:
    """The refusal of a file that cannot be read to its end."""
    return explain_file(where, error, rule=f"it is damaged, or not {kind}", remedy="Write it again from its source")


class RowStream:
    """Batches of exactly the columns asked for, in that order, read in one pass.

    Args:
        source: the table.
        columns: names that the table is known to have.
    """

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self._source = source
        self._batches = _exact(source, list(columns))
        self._closed = False

    @property
    def known_rows(self) -> int | None:
        """How many rows there are, if the source can tell without reading them. It is private."""
        count = getattr(self._source, "count_rows", None)
        return None if count is None else shielded(count, self._source.explain)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that it reads, if they are files of one table each."""
        path = getattr(self._source, "path", None)
        return getattr(self._source, "paths", () if path is None else (path,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        if self._closed:
            raise UsageError(self._source.where, "a row stream is read in one pass", "Open the source again")
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = shielded(lambda: next(self._batches, None), self._source.explain)
        if batch is None:
            self.close()
            raise StopIteration
        return batch

    def close(self) -> None:
        """Let go of the file or connection; a closed stream has no more rows."""
        self._closed = True
        shielded(self._batches.close, self._source.explain)


def _exact(source: Source, columns: list[str]) -> Batches:
    with contextlib.closing(source.batches(columns)) as batches:
        for batch in batches:
            chosen = batch if batch.schema.names == columns else batch.select(columns)
            for start in range(0, chosen.num_rows, MAX_BATCH_ROWS):
                yield chosen.slice(start, MAX_BATCH_ROWS)


def fields_of(schema: pa.Schema) -> list[Field]:
    return [(field.name, field.type) for field in schema]


def checked_fields(source: Source) -> list[Field]:
    """The fields of a source whose names are all different.

    A repeated name is told by position, since a file without a header has cells for names.
    """
    fields = shielded(source.fields, source.explain)
    first_seen: dict[str, int] = {}
    for position, (name, _) in enumerate(fields, start=1):
        earlier = first_seen.setdefault(name, position)
        if earlier != position:
            raise InputError(
                source.where, f"columns {earlier} and {position} have the same name", "Give every column its own name"
            )
    return fields


def require_columns(source: Source, columns: Sequence[str]) -> None:
    """Refuse unless the source has every column.

    Its names are listed only when one of them is recognised: if none is, they may be the first
    row of a file without a header.
    """
    if not columns or len(set(columns)) < len(columns):
        raise UsageError("columns", "they must be different names, at least one", "")
    names = [name for name, _ in checked_fields(source)]
    missing = [column for column in columns if column not in names]
    if not missing:
        return
    known = {name.casefold() for name in names}
    if not any(column.casefold() in known for column in columns):
        raise InputError(
            source.where,
            f"it names none of the columns asked for ({listed(missing)})",
            "Check that its first line or its schema holds column names, spelt as in the schema file",
        )
    raise InputError(
        source.where,
        f"it has no column {listed(missing)}; its columns are {listed(names)}",
        "Spell the name as the source does, or leave the column out of the schema file",
    )


def listed(names: Sequence[str]) -> str:
    """Names in quotes, cut short after the first few dozen."""
    shown = ", ".join(f"'{name}'" for name in names[:_MAX_LISTED_NAMES])
    more = len(names) - _MAX_LISTED_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
