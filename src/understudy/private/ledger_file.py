"""A ledger as an SQLite file: opened so that nothing is lost or half done, refused in words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from understudy.errors import InputError

# The tables of a ledger, and the triggers that keep what was spent spent.

APPLICATION_ID = 0x554E4453  # "UNDS"
GAUSSIAN_VERSION = 4
PURE_VERSION = 5
SLACK_VERSION = 6
"""Which kind of ledger a file is: one that counts mu squared, or epsilon at a delta of 0, or mu
squared and slack, for which it has set a part of delta aside.
"""

OLDER_VERSIONS = {1: GAUSSIAN_VERSION, 2: PURE_VERSION, 3: SLACK_VERSION}
"""The same kinds without a column for the unit of privacy, and what they become at the next spend."""

# The insert triggers also stop INSERT OR REPLACE, which deletes past the delete triggers.
_TABLES = """
CREATE TABLE budget (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  epsilon REAL NOT NULL CHECK (epsilon > 0), delta REAL NOT NULL CHECK ({delta}),
  cap_units INTEGER NOT NULL CHECK (typeof(cap_units) = 'integer' AND cap_units >= 0),
  neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
  note TEXT NOT NULL{slack_cap});
CREATE TABLE releases (
  number INTEGER PRIMARY KEY,
  key TEXT NOT NULL, plan_id TEXT NOT NULL, description TEXT NOT NULL,
  units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
  state TEXT NOT NULL CHECK (state IN ('spent', 'published')),
  fingerprint TEXT CHECK ((fingerprint IS NULL) = (state = 'spent')),
  directory TEXT CHECK (directory IS NULL OR state = 'published'),
  spent_at TEXT NOT NULL{slack});
CREATE TABLE mechanisms (
  release INTEGER NOT NULL, position INTEGER NOT NULL,
  units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
  PRIMARY KEY (release, position));
CREATE TRIGGER budget_is_set_once BEFORE INSERT ON budget WHEN EXISTS (SELECT 1 FROM budget)
  BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER budget_is_kept BEFORE UPDATE ON budget BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER budget_stays BEFORE DELETE ON budget BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER releases_stay BEFORE DELETE ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
CREATE TRIGGER releases_are_appended BEFORE INSERT ON releases
  WHEN NEW.state <> 'spent' OR NEW.number <> (SELECT count(*) + 1 FROM releases)
  OR NEW.units > (SELECT cap_units FROM budget) - (SELECT coalesce(sum(units), 0) FROM releases){within_slack}
  BEGIN SELECT RAISE(ABORT, 'a release is appended as spent, within the cap'); END;
CREATE TRIGGER releases_are_kept BEFORE UPDATE OF number, key, plan_id, description, units, spent_at{kept}
  ON releases BEGIN SELECT RAISE(ABORT, 'final'); END;
"""

_WITHOUT_SLACK = {"slack_cap": "", "slack": "", "within_slack": "", "kept": ""}
_WITH_SLACK = {
    "slack_cap": ",\n  slack_cap_units INTEGER NOT NULL CHECK "
    "(typeof(slack_cap_units) = 'integer' AND slack_cap_units > 0)",
    "slack": ",\n  slack_units INTEGER NOT NULL CHECK (typeof(slack_units) = 'integer' AND slack_units >= 0)",
    "within_slack": "\n  OR NEW.slack_units > (SELECT slack_cap_units FROM budget)"
    " - (SELECT coalesce(sum(slack_units), 0) FROM releases)",
    "kept": ", slack_units",
}

UNIT_COLUMN = "ALTER TABLE releases ADD COLUMN unit TEXT NOT NULL DEFAULT 'row' CHECK (trim(unit) <> '')"
UNIT_TRIGGERS = (
    "CREATE TRIGGER units_are_kept BEFORE UPDATE OF unit ON releases BEGIN SELECT RAISE(ABORT, 'final'); END",
    "CREATE TRIGGER units_are_one BEFORE INSERT ON releases"
    " WHEN EXISTS (SELECT 1 FROM releases WHERE unit <> NEW.unit)"
    " BEGIN SELECT RAISE(ABORT, 'a ledger counts for one unit of privacy'); END",
)
"""Whose privacy a row counts for. New files and older ones get it by the same statements, and so look alike."""

_OLDER_SCHEMAS = {
    1: _TABLES.format(delta="delta > 0 AND delta < 1", **_WITHOUT_SLACK),
    2: _TABLES.format(delta="delta = 0", **_WITHOUT_SLACK),
    3: _TABLES.format(delta="delta > 0 AND delta < 1", **_WITH_SLACK),
}
SCHEMAS = _OLDER_SCHEMAS | {
    version: _OLDER_SCHEMAS[older] + ";\n".join((UNIT_COLUMN, *UNIT_TRIGGERS, ""))
    for older, version in OLDER_VERSIONS.items()
}
"""The tables of each kind of ledger."""


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
