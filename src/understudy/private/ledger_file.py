"""A ledger as an SQLite file: opened so that nothing is lost or half done, refused in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.private.ledger_tables import APPLICATION_ID, SCHEMAS

BUSY_SECONDS = 120.0

SHUT = (
    "it does not exist or cannot be written",
    "Make one with: understudy ledger init; its directory must be writable, for two files beside it",
)
_DISK = ("the disk is full or failing", "Make room, then run this again")
DAMAGED = (
    "it is damaged or is not a ledger of this version of understudy",
    "Check the path; restore a copy no older than the last release, or make a new ledger elsewhere",
)
_REFUSALS = {
    sqlite3.SQLITE_BUSY: ("another process holds it", "Wait for that process, then run this again"),
    sqlite3.SQLITE_READONLY: SHUT,
    sqlite3.SQLITE_CANTOPEN: SHUT,
    sqlite3.SQLITE_FULL: _DISK,
    sqlite3.SQLITE_IOERR: _DISK,
}


@contextmanager
def transaction(path: Path | str, *, begin: str) -> Iterator[sqlite3.Connection]:
    """Commit if the body ends well; an exception rolls back."""
    with open_ledger(path) as connection:
        # Before any write: a file of another program must stay as it is.
        connection.execute("BEGIN")  # one moment: another process may be adding the column of units
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        version = version_of(connection)
        known = mark == APPLICATION_ID and version in SCHEMAS
        if not known or _objects(connection) != _expected_objects(version):
            raise InputError(f"ledger '{path}'", *DAMAGED)
        connection.execute("ROLLBACK")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(begin)
        yield connection
        connection.execute("COMMIT")


@contextmanager
def open_ledger(path: Path | str) -> Iterator[sqlite3.Connection]:
    """A connection whose errors are said in words, and whose unfinished work is undone."""
    uri = Path(path).resolve().as_uri() + "?mode=rw"  # rw: never create a file by opening it
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        with closing(connection):
            # EXTRA is FULL in WAL mode, and as durable where a file system cannot do WAL.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone stops at the drive
            try:
                yield connection
            finally:
                connection.rollback()  # after COMMIT there is nothing left to undo
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary code
        raise InputError(f"ledger '{path}'", *_REFUSALS.get(code, DAMAGED)) from None


def version_of(connection: sqlite3.Connection) -> int:
    """The kind of a ledger, as its file says."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _objects(connection: sqlite3.Connection) -> list[Any]:
    query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    return connection.execute(query).fetchall()


@cache
def _expected_objects(version: int) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMAS[version])
        return _objects(connection)
