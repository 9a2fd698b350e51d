"""One ledger counts for one unit of privacy, which is a column of its own in the file."""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from understudy import Budget, create_ledger, load_schema, make_plan
from understudy.errors import InputError
from understudy.private import ledger as ledgers
from understudy.private.ledger import OLDER_VERSIONS, SCHEMAS, unit_in
from understudy.private.spending import charge, release_bill
from understudy.schema import Schema

NUMBER = {"name": "a", "kind": "integer", "bounds": [0, 9]}


def schema_of(name: str = "visits", unit: str | None = None) -> Schema:
    if unit is None:
        return load_schema({"name": name, "columns": [NUMBER]})
    columns = [{"name": unit, "kind": "id"}, NUMBER]
    return load_schema({"name": name, "privacy": {"unit": unit, "max_rows": 3}, "columns": columns})


ROWS, PEOPLE = schema_of(), schema_of(unit="patient")


def pay(path: Path, schema: Schema, key: str) -> int:
    plan = make_plan(schema, Budget(0.5), method="dp-merf", options={"num_features": 4})
    row = charge(release_bill(plan), ledger=path, key=key).row
    assert row is not None
    return row


@pytest.mark.parametrize(("first", "second"), [(ROWS, PEOPLE), (PEOPLE, ROWS)])
def test_a_spend_for_others_is_refused_in_the_moment_of_spending(tmp_path: Path, first, second):
    """Two releases at once may both have found the ledger empty before."""
    path = tmp_path / "ledger.db"
    create_ledger(path, Budget(3.0))

    def spend(schema: Schema, key: str) -> int:
        return ledgers.spend(
            path, key=key, plan_id=key, description="d", unit=schema.privacy.unit, costs=[Fraction(1, 50)]
        )

    spend(first, "one")
    with pytest.raises(InputError, match="does not add to theirs"):
        spend(second, "two")
    assert len(ledgers.read_ledger(path).rows) == 1
    assert spend(first, "three") == 2


@pytest.mark.parametrize(
    "forged",
    [
        schema_of("x; per patient of at most 3 rows"),
        schema_of("; ; per per patient of at most 3 rows"),
        schema_of("visits", "visit; per patient"),
        schema_of("visits", "visit; per patient of at most 5 rows"),
    ],
    ids=lambda schema: f"{schema.name}, {schema.privacy.unit}",
)
def test_no_name_of_a_table_or_unit_passes_for_another_unit(tmp_path: Path, forged: Schema):
    path = tmp_path / "ledger.db"
    create_ledger(path, Budget(3.0))
    pay(path, forged, "forged")
    assert ledgers.read_ledger(path).rows[0].unit == forged.privacy.unit
    for honest in (ROWS, PEOPLE):
        if honest.privacy.unit != forged.privacy.unit:
            with pytest.raises(InputError, match="does not add to theirs"):
                pay(path, honest, "honest")
    assert len(ledgers.read_ledger(path).rows) == 1


def test_the_file_itself_keeps_units_and_refuses_a_second_one(tmp_path: Path):
    path = tmp_path / "ledger.db"
    create_ledger(path, Budget(3.0))
    pay(path, PEOPLE, "one")
    other = "INSERT INTO releases VALUES (2, 'k', 'p', '', 0, 'spent', NULL, NULL, '', {})"
    for accident in ("UPDATE releases SET unit = 'row'", other.format("'row'"), other.format("' '")):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection, pytest.raises(sqlite3.IntegrityError):
            connection.execute(accident)
    assert [row.unit for row in ledgers.read_ledger(path).rows] == ["patient"]


# Ledgers from before there was a column


def older(path: Path, version: int, descriptions: list[str]) -> None:
    """A ledger of an earlier format, as the version that wrote it did."""
    slack = version == max(OLDER_VERSIONS)
    delta = 0 if version == 2 else 1e-5
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMAS[version])
        connection.execute(f"PRAGMA application_id = {0x554E4453}")
        connection.execute(f"PRAGMA user_version = {version}")
        budget = [1, 3.0, delta, 2**41, "add-remove", "kept", *([2**20] if slack else [])]
        places = ", ".join("?" * len(budget))
        connection.execute(f"INSERT INTO budget VALUES ({places})", budget)
        for number, words in enumerate(descriptions, start=1):
            row = [number, "k", "p", words, 2**30, "spent", None, None, "then", *([7] if slack else [])]
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO releases VALUES ({places})", row)
            connection.execute("INSERT INTO mechanisms VALUES (?, 0, ?)", (number, 2**30))
        connection.execute("UPDATE releases SET state = 'published', fingerprint = 'f'")


@pytest.mark.parametrize("version", OLDER_VERSIONS)
@pytest.mark.parametrize(
    ("words", "unit"), [("dp-merf on visits", "row"), ("dp-merf on visits; per patient of at most 3 rows", "patient")]
)
def test_older_ledgers_are_read_as_they_are_and_get_the_column_at_the_next_spend(
    tmp_path: Path, version: int, words: str, unit: str
):
    path = tmp_path / "ledger.db"
    older(path, version, [words, words])
    before = ledgers.read_ledger(path)
    assert [row.unit for row in before.rows] == [unit, unit]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    mine, other = (ROWS, PEOPLE) if unit == "row" else (PEOPLE, ROWS)

    def spend(schema: Schema) -> int:
        return ledgers.spend(
            path,
            key="new",
            plan_id="q",
            description=f"dp-merf on {schema.name}",
            unit=schema.privacy.unit,
            costs=[Fraction(1, 50)],
        )

    with pytest.raises(InputError, match="does not add to theirs"):
        spend(other)
    assert ledgers.read_ledger(path) == before
    assert spend(mine) == 3
    after = ledgers.read_ledger(path)
    assert after.rows[:2] == before.rows
    assert (after.rows[2].unit, after.cap_units, after.note) == (unit, before.cap_units, "kept")
    assert after.slack_cap_units == before.slack_cap_units
    ledgers.mark_published(path, 3, fingerprint="f", directory=None)
    with closing(sqlite3.connect(path)) as connection:
        (now,) = connection.execute("PRAGMA user_version").fetchone()
    assert now not in OLDER_VERSIONS
    assert now in SCHEMAS


def test_an_older_ledger_gets_its_column_once_though_many_spend_at_once(tmp_path: Path):
    path = tmp_path / "ledger.db"
    older(path, 1, ["dp-merf on visits; per patient of at most 3 rows"])

    def spend(number: int) -> int:
        named = {"key": str(number), "plan_id": "q", "description": "d", "costs": [0.001]}
        if number % 2:
            return ledgers.spend(path, unit="patient", **named)
        with pytest.raises(InputError, match="does not add to theirs"):
            ledgers.spend(path, unit="row", **named)
        return 0

    with ThreadPoolExecutor(8) as pool:
        granted = sorted(pool.map(spend, range(16)))
    assert granted == [0] * 8 + list(range(2, 10))
    assert {row.unit for row in ledgers.read_ledger(path).rows} == {"patient"}


def test_words_are_read_for_a_unit_in_older_ledgers_alone(tmp_path: Path):
    path, words = tmp_path / "ledger.db", "dp-merf on visits; per patient of at most 3 rows"
    assert unit_in(words) == "patient"
    create_ledger(path, Budget(3.0))
    ledgers.spend(path, key="k", plan_id="p", description=words, unit="row", costs=[0.01])
    assert ledgers.read_ledger(path).rows[0].unit == "row"


def test_a_spend_that_is_refused_leaves_an_older_file_as_it_was(tmp_path: Path):
    path = tmp_path / "ledger.db"
    older(path, 1, ["dp-merf on visits"])
    ledgers.read_ledger(path)
    kept = shutil.copy(path, tmp_path / "kept.db")
    with pytest.raises(InputError, match="another plan"):
        ledgers.spend(path, key="k", plan_id="other", description="d", unit="row", costs=[0.01])
    assert ledgers.read_ledger(path) == ledgers.read_ledger(kept)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
