"""SQL queries: by DuckDB over its files or over any table as a view called data, and by SQLite over its files.

Both are read-only and offline, and an engine's message, which may quote a cell, is withheld.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.errors import InputError, MissingExtraError, UnderstudyError
from understudy.readers.cells import raw_column
from understudy.readers.stream import MAX_BATCH_ROWS, Batches, Field, Viewable, explain_file, shielded

WITHHELD = "the query failed, and the engine's message is withheld because it may quote a cell"
NOT_ONE_SELECT = "the query must be one SELECT statement"

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # Nothing is fetched from the network. Both are needed: DuckDB 1.1 downloads what it loads.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # A query sees its source: no other file, and not the variables of this program. Set on opening
    # rather than later, because two connections to one database file share one configuration.
    "enable_external_access": "false",
    "lock_configuration": "true",
    "python_enable_replacements": "false",
    # Rows are never spilled to disk.
    "temp_directory": "",
}
_PLANNING = ("Parser Error", "Binder Error", "Catalog Error")
_KINDS = [
    ("Parser Error", "the query is not valid SQL", "Mend the query"),
    (
        "Binder Error",
        "the query does not fit the columns of the source",
        "Check its names and types against the source",
    ),
    ("Catalog Error", "the query does not fit the tables of the source", "A file or a frame is the table called data"),
    (
        "Out of Memory Error",
        "the query needs more memory than there is; rows are never spilled to disk",
        "Avoid sorting, and join or group less at once",
    ),
    ("Connection Error", "the database is open in this process in another way", "Close the other connection first"),
    ("IO Error", "DuckDB cannot read it: it is in use, damaged or of a newer version", "Close other connections to it"),
    (
        "Permission Error",
        "a query sees the source only; other files cannot be opened",
        "Join the files first, or put them in one DuckDB database",
    ),
    (
        r"Invalid Input Error: .*(CSV parse error|In CSV column|straddling object)",
        "a row has too few or too many cells, is too long, or holds text that is not UTF-8",
        "Mend the file; quotes go around cells that hold the delimiter",
    ),
]
_NAMED = re.compile(r'"([^"\n]+)"|(?:with name|no such \w+:) (\S+)')


@dataclass(frozen=True)
class DuckQuery:
    """A query over a DuckDB file (a path), or over another source; it opens no other file."""

    where: str
    table: Path | Viewable
    query: str

    def fields(self) -> list[Field]:
        """Names and types of the result, from a plan that reads no rows."""
        with self._relation() as relation:
            # Arrow's names are not used: DuckDB renames the second of two equal ones there.
            return list(zip(relation.columns, _reader(relation.limit(0)).schema.types, strict=True))

    def batches(self, columns: list[str]) -> Batches:
        """The result, streamed; columns not asked for are left out of the plan."""
        with self._relation() as relation:
            yield from _reader(relation.project(_selected(columns)))

    def explain(self, error: Exception) -> UnderstudyError:
        """The kind of error, told by how the message opens, and names that the query holds."""
        message = str(error)
        for opening, rule, remedy in _KINDS:
            if re.match(opening, message):
                named = named_in(self.query, message) if opening in _PLANNING else ""
                return InputError(self.where, rule + named, remedy)
        return InputError(self.where, WITHHELD, "Run it in DuckDB itself to see why")

    @contextlib.contextmanager
    def _relation(self) -> Iterator[Any]:
        if importlib.util.find_spec("duckdb") is None:
            raise MissingExtraError("duckdb", "sql")
        import duckdb

        file = self.table if isinstance(self.table, Path) else None
        with duckdb.connect(str(file or ":memory:"), read_only=file is not None, config=_SETTINGS) as connection:
            statements = connection.extract_statements(self.query)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise InputError(self.where, NOT_ONE_SELECT, "Leave out all others")
            if not isinstance(self.table, Path):
                view = self.table
                shielded(lambda: view.attach(connection), view.explain)
            yield connection.sql(self.query)


def _selected(columns: list[str]) -> str:
    """Column names as SQL identifiers."""
    return ", ".join('"' + column.replace('"', '""') + '"' for column in columns)


def named_in(query: str, message: str) -> str:
    """The name that an engine complains of, if the query holds it; a cell is never repeated."""
    for quoted, bare in _NAMED.findall(message.partition("\n")[0]):
        name = quoted or bare
        if name in query:
            return f" (see '{name}')"
    return ""


def _reader(relation: Any) -> Any:
    # DuckDB renamed this; the old name warns where the new one exists.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(MAX_BATCH_ROWS)


SQLITE_MAGIC = b"SQLite format 3\0"

# Cells pass through Python objects, which take several times the memory of Arrow's.
_FETCHED_ROWS = 8_192

_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_BROKEN = ("SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_CORRUPT", "SQLITE_IOERR", "SQLITE_NOTADB")


@dataclass(frozen=True)
class SqliteQuery:
    """A query over an SQLite file.

    SQLite types each cell, not each column, so every column is raw text: one text cell in a
    column of numbers then changes nothing for the other rows.
    """

    where: str
    path: Path
    query: str

    def fields(self) -> list[Field]:
        """Names of the result; no row is read and no type is promised."""
        return shielded(self._planned, self._explain_plan)

    def batches(self, columns: list[str]) -> Batches:
        """The result, a few thousand rows at a time."""
        with self._run(_selected(columns), "") as cursor:
            while rows := cursor.fetchmany(_FETCHED_ROWS):
                arrays = [raw_column(column) for column in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    def explain(self, error: Exception) -> UnderstudyError:
        """A broken file, or a query that failed on some row."""
        if str(getattr(error, "sqlite_errorname", "")).startswith(_BROKEN):
            return InputError(
                self.where,
                "SQLite cannot read it: it is in use or damaged",
                "Close other programs that write to it, or copy it",
            )
        return explain_file(self.where, error, rule=WITHHELD, remedy="Run it in SQLite itself to see why")

    def _planned(self) -> list[Field]:
        with self._run("*", "LIMIT 0") as cursor:
            return [(column[0], None) for column in cursor.description]

    def _explain_plan(self, error: Exception) -> UnderstudyError:
        refusal = self.explain(error)
        if refusal.rule != WITHHELD:
            return refusal
        named = named_in(self.query, str(error))
        rule = f"{NOT_ONE_SELECT} that fits this database{named}"
        return InputError(self.where, rule, "Mend the query")

    @contextlib.contextmanager
    def _run(self, columns: str, tail: str) -> Iterator[sqlite3.Cursor]:
        """The query inside an outer one, so that SQLite skips columns not asked for."""
        inner = self.query.strip().rstrip(";")
        address = self.path.absolute().as_uri() + "?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            connection.text_factory = bytes
            connection.execute("PRAGMA temp_store = MEMORY")  # sorted cells never lie in a file
            connection.set_authorizer(_only_reading)
            yield connection.execute("\n".join(["SELECT", columns, "FROM (", inner, ")", tail]))


def _only_reading(action: int, *details: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
