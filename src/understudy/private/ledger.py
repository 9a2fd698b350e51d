"""The privacy budget ledger (a privacy filter): one SQLite file that caps the total cost of all releases of a data set.

A Gaussian mechanism of sensitivity s and noise_std t has mu = s / t, and mu^2 adds up even if each
cost is chosen after earlier releases were seen (Smith & Thakurta 2022). Costs are whole units of
mu^2 / 2^40: a spend is rounded up and the cap down, in exact arithmetic (``Fraction`` of a float is
that float, bit for bit). A pure ledger, whose delta is 0, counts epsilon in the same way. A ledger
with a reserve has set a part of delta aside for the slack of sampled descents (proofs/descent.md).
The file holds public facts: plan names, noise costs, times, and fingerprints of published
files. No row count, no cell and no hash of private data enters it. Proof: ``proofs/ledger.md``.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from numbers import Rational
from pathlib import Path
from typing import Any, Literal

from understudy.accounting.mechanisms import UNITS_PER_COST, Budget, Neighbours, mechanism_for, neighbours_by_name
from understudy.errors import BudgetError, InputError, UsageError

APPLICATION_ID = 0x554E4453  # "UNDS"
GAUSSIAN_VERSION = 4
PURE_VERSION = 5
SLACK_VERSION = 6
"""Which kind of ledger a file is: one that counts mu squared, or epsilon at a delta of 0, or mu
squared and slack, for which it has set a part of delta aside.
"""

OLDER_VERSIONS = {1: GAUSSIAN_VERSION, 2: PURE_VERSION, 3: SLACK_VERSION}
"""The same kinds without a column for the unit of privacy, and what they become at the next spend."""

# Append-only: triggers keep charges as they are. Those on insert also stop INSERT OR REPLACE, which deletes past the
# delete triggers.
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


BUSY_SECONDS = 120.0  # that SQLite waits for another writer; a commit takes milliseconds

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
def transaction(path: Path | str, *, writes: bool = False) -> Iterator[tuple[sqlite3.Connection, LedgerState]]:
    """The ledger at one moment, locked if it is to be changed. Commit if the body ends well; an exception rolls back.

    An older file that is changed gets its column of units in the same commit.
    """
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
        connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        state, version = _load(connection, path), version_of(connection)
        if writes and version in OLDER_VERSIONS:
            connection.execute(UNIT_COLUMN)
            named = [(row.unit, row.number) for row in state.rows]
            connection.executemany("UPDATE releases SET unit = ? WHERE number = ?", named)
            for trigger in UNIT_TRIGGERS:
                connection.execute(trigger)
            connection.execute(f"PRAGMA user_version = {OLDER_VERSIONS[version]}")
        yield connection, state
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


# How older ledgers wrote the unit of privacy (a row, or a person with several) into the description of a release.
PER = "; per "
OF = " of at most "


def unit_in(description: str) -> str:
    """Whom a line of an older ledger counts for: before units had a column, its words told them."""
    if PER not in description:
        return "row"
    return description.rpartition(PER)[2].rpartition(OF)[0]


Cost = Fraction | float
UNITS_PER_SLACK = 2**62
_MOST_UNITS = 2**63 - 1  # SQLite integers are signed and 64 bits wide


@dataclass(frozen=True)
class LedgerRow:
    """One spend; `published` once its release was handed over, in `directory` or in memory.

    `unit` is whose privacy it counts for: `row`, or the column of ids.
    """

    number: int
    key: str
    plan_id: str
    description: str
    units: int
    state: Literal["spent", "published"]
    fingerprint: str | None
    directory: str | None
    spent_at: str
    slack_units: int = 0
    unit: str = "row"


@dataclass(frozen=True)
class LedgerState:
    """What a ledger held at one moment."""

    epsilon: float
    delta: float
    cap_units: int
    neighbours: Neighbours
    note: str
    spent_units: int
    rows: tuple[LedgerRow, ...]
    slack_cap_units: int = 0

    @property
    def units(self) -> list[str]:
        """Whose privacy its rows count for."""
        return [row.unit for row in self.rows]

    @property
    def remaining_units(self) -> int:
        return self.cap_units - self.spent_units

    @property
    def remaining_slack_units(self) -> int:
        return self.slack_cap_units - sum(row.slack_units for row in self.rows)

    @property
    def is_pure(self) -> bool:
        """Whether units are of epsilon, at a delta of 0, and not of mu squared."""
        return self.delta == 0

    def epsilon_of(self, units: int) -> float:
        """What so many units allow, at the ledger's delta without its reserve."""
        spendable = Budget(self.epsilon, _without_reserve(self.delta, self.slack_cap_units))
        return mechanism_for(spendable).epsilon([Fraction(units, UNITS_PER_COST)], spendable.delta)


def create_ledger(
    path: Path | str,
    budget: Budget,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    note: str = "",
    reserve: float = 0.0,
) -> None:
    """Make a new ledger whose releases, together, meet a budget; a pure one if its delta is 0.

    All costs in one ledger are for the same `neighbours`, whatever a release's own plan says:
    costs of different notions have no meaningful sum. `reserve` is the part of delta that is set
    aside, for good, for descents that sample rows; each takes a hundredth of its own delta from it.
    """
    if not 0 <= reserve < 1 or (reserve and budget.is_pure):
        raise UsageError("reserve", "must be a part of delta, from 0 to below 1", "0.1 is enough")
    slack_units = math.floor(Fraction(budget.delta) * Fraction(reserve) * UNITS_PER_SLACK)
    spendable = Budget(budget.epsilon, _without_reserve(budget.delta, slack_units))
    cap = mechanism_for(spendable).total(spendable)
    create_capped_ledger(path, budget, cap=cap, neighbours=neighbours, note=note, slack_units=slack_units)


def create_capped_ledger(
    path: Path | str,
    budget: Budget,
    *,
    cap: Cost,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    note: str = "",
    slack_units: int = 0,
) -> None:
    """Make a ledger whose spends may total `cap`, rounded down; `budget` is a label.

    The cap is a mu squared, or an epsilon if the budget's delta is 0.

    The tables and the marks that make the file a ledger arrive in one commit: a creation that is
    cut short leaves a file that every function here refuses.
    """
    neighbours = neighbours_by_name(neighbours)
    cap_units = _units("cap", cap, rounded=math.floor)
    version = PURE_VERSION if budget.is_pure else GAUSSIAN_VERSION
    if slack_units:
        version = SLACK_VERSION
    _check_texts({"note": note or None})
    try:
        Path(path).touch(exist_ok=False)  # O_EXCL: of two creators, one is refused
    except FileExistsError:
        remedy = "Use it as it is, or choose another path"
        raise InputError(f"ledger '{path}'", "the file exists already", remedy) from None
    except OSError:
        raise InputError(f"ledger '{path}'", *SHUT) from None
    with open_ledger(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
        connection.executescript("BEGIN IMMEDIATE;" + SCHEMAS[version] + marks)
        row = [1, budget.epsilon, budget.delta, cap_units, neighbours.value, note]
        _insert(connection, "budget", row + ([slack_units] if slack_units else []))
        connection.execute("COMMIT")


def read_ledger(path: Path | str) -> LedgerState:
    """Read the ledger as of one moment, and check that its parts agree."""
    with transaction(path) as (_, state):
        return state


def spend(
    path: Path | str, *, key: str, plan_id: str, description: str, unit: str, costs: Sequence[Cost], slack: Cost = 0
) -> int:
    """Record what one release costs, mechanism by mechanism, and return its row number.

    Costs are mu squared, or epsilons in a pure ledger, for the `unit` of privacy that all rows of the
    ledger share. `slack` is the chance up to which they hold, and comes out of the ledger's reserve.

    A key belongs to one plan. Spending again under the same key and plan, as after a crash between
    spend and publication, is charged again: the first noise may have been seen.

    Guarantee:
        If this returns, the cost is on disk and all costs so far are within the cap. If it
        raises, no noise may be drawn; a BudgetError has written nothing. So noise drawn only
        after this returns is always paid for (proofs/ledger.md).
    """
    _check_texts({"key": key, "plan_id": plan_id, "description": description, "unit": unit})
    with transaction(path, writes=True) as (connection, state):
        units, slack_units = _granted(state, path, key=key, plan_id=plan_id, unit=unit, costs=costs, slack=slack)
        number = len(state.rows) + 1
        spent_at = datetime.now(UTC).isoformat(timespec="minutes")
        row = [number, key, plan_id, description, sum(units), "spent", None, None, spent_at]
        row += [slack_units] if state.slack_cap_units else []
        _insert(connection, "releases", [*row, unit])
        items = [(number, position, own) for position, own in enumerate(units)]
        connection.executemany("INSERT INTO mechanisms VALUES (?, ?, ?)", items)
    return number


def check_affordable(
    path: Path | str, costs: Sequence[Cost], *, key: str, plan_id: str, unit: str, slack: Cost = 0
) -> None:
    """Refuse early what `spend` would refuse now, before rows are read."""
    _granted(read_ledger(path), path, key=key, plan_id=plan_id, unit=unit, costs=costs, slack=slack)


def mark_published(path: Path | str, number: int, *, fingerprint: str, directory: str | None) -> None:
    """Record which release row `number` led to, and its directory unless it stayed in memory."""
    _check_texts({"fingerprint": fingerprint, "directory": directory})
    with transaction(path, writes=True) as (connection, state):
        if number not in {row.number for row in state.rows if row.state == "spent"}:
            rule = f"row {number} is not a spend that awaits publication"
            raise UsageError(f"ledger '{path}'", rule, "Pass, once, the number that spend returned")
        change = "UPDATE releases SET state = ?, fingerprint = ?, directory = ? WHERE number = ?"
        connection.execute(change, ("published", fingerprint, directory, number))


def find_published(path: Path | str, *, key: str, plan_id: str) -> LedgerRow | None:
    """The newest published row of `key`, one with a directory first; its release is free to reuse."""
    state = read_ledger(path)
    _check_plan(state, key, plan_id)
    published = [row for row in state.rows if row.key == key and row.state == "published"]
    return max(published, key=lambda row: (row.directory is not None, row.number), default=None)


def _units(name: str, value: Cost, *, rounded: Callable[[Fraction], int]) -> int:
    if not isinstance(value, float | Rational) or not 0 <= value < math.inf:
        raise UsageError(name, "must be a number, finite and not negative", "Pass mu squared, or an epsilon")
    units = rounded(Fraction(value) * UNITS_PER_COST)
    if units > _MOST_UNITS:
        raise UsageError(name, "must stay below 2^23, far past any privacy", "Add more noise")
    return units


def _whole(costs: Sequence[Cost]) -> list[int]:
    if not costs:
        raise UsageError("costs", "must list at least one mechanism", "Pass a cost for each")
    for value in costs:
        _units("costs", value, rounded=math.ceil)
    # The running total is rounded up, so that many small mechanisms are not many times rounded.
    totals = accumulate((Fraction(value) for value in costs), initial=Fraction(0))
    units = [math.ceil(total * UNITS_PER_COST) for total in totals]
    return [after - before for before, after in pairwise(units)]


def _granted(
    state: LedgerState,
    path: Path | str,
    *,
    key: str,
    plan_id: str,
    unit: str,
    costs: Sequence[Cost],
    slack: Cost,
) -> tuple[list[int], int]:
    """A spend in whole units, rounded up: those of each mechanism, and the slack; or why the ledger refuses it."""
    ledger, units = f"ledger '{path}'", _whole(costs)
    _check_plan(state, key, plan_id)
    others = set(state.units) - {unit}
    if others:
        raise InputError(
            ledger,
            f"holds releases per {min(others)}, and a cost per {unit} does not add to theirs",
            "Keep a ledger for each unit of privacy",
        )
    if sum(units) > state.remaining_units:
        asked, left = (state.epsilon_of(total) for total in (sum(units), state.remaining_units))
        raise BudgetError(
            ledger,
            f"the release costs epsilon {asked:.4f}, and what is left of the cap of epsilon "
            f"{state.epsilon:g} allows {math.floor(left * 1e4) / 1e4:.4f} (delta {state.delta:g}, "
            f"{state.neighbours.value})",
            "Ask for a smaller epsilon, or reuse a published release",
        )
    if not isinstance(slack, float | Rational) or not 0 <= slack <= 1:
        raise UsageError("slack", "must be a chance, from 0 to 1")
    slack_units = math.ceil(Fraction(slack) * UNITS_PER_SLACK)
    if slack_units > state.remaining_slack_units:
        raise BudgetError(
            ledger,
            "has no delta left in reserve for a descent that samples rows",
            "Look at all rows in every step (a sampling rate of 1), or make a ledger with a --reserve",
        )
    return units, slack_units


def _without_reserve(delta: float, slack_units: int) -> float:
    """A delta less its reserve; rounded down."""
    if not slack_units:
        return delta
    left = Fraction(delta) - Fraction(slack_units, UNITS_PER_SLACK)
    return math.nextafter(float(left), 0.0)


def _insert(connection: sqlite3.Connection, table: Literal["budget", "releases"], row: list[Any]) -> None:
    places = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608


def _check_texts(texts: dict[str, str | None]) -> None:
    for name, text in texts.items():
        is_text = text is None or (isinstance(text, str) and text.strip())
        if not is_text or (text and text.encode(errors="ignore").decode() != text):
            raise UsageError(name, "must be text in UTF-8, not blank", "Use plain letters")


def _check_plan(state: LedgerState, key: str, plan_id: str) -> None:
    if any(row.key == key and row.plan_id != plan_id for row in state.rows):
        raise InputError(f"key '{key}'", "was used for another plan", "Choose a new key")


def _load(connection: sqlite3.Connection, path: Path | str) -> LedgerState:
    """Read everything; refuse unless rows count 1, 2, ... and each is the sum of its mechanisms."""
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    budget = connection.execute("SELECT * FROM budget").fetchone()
    found = connection.execute("SELECT * FROM releases ORDER BY 1")
    names = [column for column, *_ in found.description]
    listed = [dict(zip(names, row, strict=True)) for row in found]
    if "unit" not in names:  # of an older version
        listed = [row | {"unit": unit_in(row["description"])} for row in listed]
    rows = tuple(LedgerRow(**row) for row in listed)
    (spent,) = connection.execute("SELECT coalesce(sum(units), 0) FROM releases").fetchone()
    items = connection.execute("SELECT release, sum(units) FROM mechanisms GROUP BY 1 ORDER BY 1")
    expected = [(number, row.units) for number, row in enumerate(rows, start=1)]
    if verdict != "ok" or budget is None or items.fetchall() != expected:
        raise InputError(f"ledger '{path}'", *DAMAGED)
    _, epsilon, delta, cap_units, neighbours, note, *slack_cap = budget
    return LedgerState(epsilon, delta, cap_units, Neighbours(neighbours), note, spent, rows, *slack_cap)
