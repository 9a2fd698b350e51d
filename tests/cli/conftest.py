"""The program in this process, and a folder with a small private table to run it on."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer.main

from understudy.accounting.mechanisms import Budget, mu_squared_of_budget
from understudy.cli import main
from understudy.cli.output import AS_JSON
from understudy.private.ledger import create_capped_ledger, read_ledger

SCHEMA = """\
columns:
- {name: bmi, kind: continuous, bounds: [10, 80], nullable: true, bounds_from: convention}
- {name: age, kind: integer, bounds: [0, 120], bounds_from: definition}
- {name: sex, kind: categorical, categories: [f, m], bounds_from: codebook}
- {name: seen, kind: datetime, bounds: [2000-01-01, 2030-12-31], nullable: true, bounds_from: definition}
- {name: ill, kind: binary, role: label, categories: [no, yes], bounds_from: codebook}
"""


@dataclass(frozen=True)
class Outcome:
    """How a run ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def refusal(self) -> dict[str, str]:
        """The refusal of a run with --json."""
        assert self.out == ""
        (line,) = self.err.splitlines()
        fields = json.loads(line)["error"]
        assert set(fields) == {"where", "rule", "remedy"}
        return {key: str(value) for key, value in fields.items()}


Run = Callable[..., Outcome]


@pytest.fixture(scope="session")
def commands() -> Callable[[typer.Typer], Any]:
    """Commands as typer builds them from signatures, which takes a tenth of a second, built once."""
    return functools.cache(typer.main.get_command)


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch, commands: Callable[[typer.Typer], Any]) -> None:
    monkeypatch.setattr(typer.main, "get_command", commands)


@pytest.fixture(autouse=True)
def _for_people() -> None:
    """What an earlier run was asked for is forgotten."""
    AS_JSON.set(False)


@pytest.fixture
def with_json() -> None:
    AS_JSON.set(True)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["understudy", *(str(each) for each in arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Outcome(int(ended.value.code or 0), said.out, said.err)

    return run


@dataclass(frozen=True)
class Office:
    """A folder with a schema, the same small table as CSV and Parquet, and a ledger."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.path(name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    @property
    def schema(self) -> Path:
        return self.path("schema.yaml")

    @property
    def csv(self) -> Path:
        return self.path("rows.csv")

    @property
    def parquet(self) -> Path:
        return self.path("rows.parquet")

    @property
    def ledger(self) -> Path:
        return self.path("ledger.db")

    def write(self, num_rows: int, path: Path) -> None:
        """A table of the same form with more rows."""
        pq.write_table(small_table(num_rows), path)

    def spent(self) -> tuple[Any, ...]:
        state = read_ledger(self.ledger)
        return (state.spent_units, state.rows)

    def files(self) -> dict[str, bytes]:
        """Every file but the ledger's own, hidden ones too."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.startswith("ledger.db")
        }


def small_table(num_rows: int = 60) -> pa.Table:
    return pa.table(
        {
            "nr": pa.array([f"SECRET-7f3a-{i}" for i in range(num_rows)]),
            "bmi": pa.array([None if i % 7 == 0 else 20.0 + i % 30 for i in range(num_rows)]),
            "age": pa.array([i % 90 for i in range(num_rows)]),
            "sex": pa.array(["f" if i % 3 else "m" for i in range(num_rows)]),
            "seen": pa.array([None if i % 5 == 0 else 11_000 + i for i in range(num_rows)], pa.int32()).cast(
                pa.date32()
            ),
            "ill": pa.array(["yes" if i % 4 == 0 else "no" for i in range(num_rows)]),
        }
    )


@pytest.fixture
def office(tmp_path: Path) -> Office:
    made = Office(tmp_path)
    made.put("schema.yaml", SCHEMA)
    table = small_table()
    pq.write_table(table, made.parquet)
    pa.csv.write_csv(table, made.csv)
    cap = mu_squared_of_budget(Budget(3.0))
    create_capped_ledger(made.ledger, Budget(3.0, 1e-5), cap=cap)
    return made


@pytest.fixture
def quick() -> tuple[str, ...]:
    """Options that make a run take no time."""
    return ("--steps", "3")
