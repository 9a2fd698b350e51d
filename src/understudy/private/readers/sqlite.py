"""Queries over SQLite files through the standard library, read-only and offline."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from understudy.errors import InputError, UnderstudyError
from understudy.private.readers.cells import raw_text
from understudy.private.readers.sql import NOT_ONE_SELECT, WITHHELD, named_in, quoted_name
from understudy.private.readers.stream import Batches, Field, explain_file, shielded

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
        with self._run(", ".join(quoted_name(column) for column in columns), "") as cursor:
            while rows := cursor.fetchmany(_FETCHED_ROWS):
                arrays = [
                    pa.array([raw_text(cell) for cell in column], pa.binary()) for column in zip(*rows, strict=True)
                ]
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
