from __future__ import annotations

import itertools
import math
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import NO_CHARGE, UNITS_PER_COST, Budget, Charge, mu_squared_of_budget
from understudy.errors import BudgetError, InputError, UsageError
from understudy.private import ledger
from understudy.private.ledger import (
    UNITS_PER_SLACK,
    LedgerRow,
    check_affordable,
    create_capped_ledger,
    create_ledger,
    find_published,
    mark_published,
    read_ledger,
    spend,
)

UNIT = Fraction(1, UNITS_PER_COST)
costs_costs = st.one_of(
    st.fractions(min_value=0, max_value=4),
    st.floats(min_value=0, max_value=4),
    st.integers(0, 1000).map(lambda units: units * UNIT),
)
counter = itertools.count()


def new_ledger(folder: Path, cap: Fraction | float) -> Path:
    path = folder / f"{next(counter)}.ledger"
    create_capped_ledger(path, Budget(1.0, 1e-5), cap=cap)
    return path


def pay(path: Path, *costs: Fraction | float, key: str = "k", plan_id: str = "p") -> int:
    return spend(path, key=key, plan_id=plan_id, description="test", unit="row", costs=costs)


def raw(path: Path, script: str) -> None:
    """Run SQL as another program would, past this library."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)


def run_script(script: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, text=True, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledgers")


# Rounding and the cap


@settings(max_examples=40, deadline=None)
@given(cap=costs_costs)
def test_a_cap_is_rounded_down_by_less_than_a_unit(folder: Path, cap: Fraction | float) -> None:
    state = read_ledger(new_ledger(folder, cap))
    assert state.cap_units * UNIT <= Fraction(cap) < (state.cap_units + 1) * UNIT


@settings(max_examples=40, deadline=None)
@given(costs=st.lists(costs_costs, min_size=1, max_size=4))
def test_the_mechanisms_of_a_release_are_rounded_up_together_by_less_than_a_unit(
    folder: Path, costs: list[Fraction | float]
) -> None:
    path = new_ledger(folder, 100)
    pay(path, *costs)
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT units FROM mechanisms ORDER BY position").fetchall()
    for count in range(1, len(costs) + 1):
        units, cost = sum(units for (units,) in found[:count]), sum(map(Fraction, costs[:count]))
        assert (units - 1) * UNIT < cost <= units * UNIT
    assert all(units >= 0 for (units,) in found)
    assert read_ledger(path).spent_units == sum(units for (units,) in found)


def test_a_float_counts_as_its_exact_binary_value(folder: Path) -> None:
    path = new_ledger(folder, 1)
    pay(path, math.nextafter(float(3 * UNIT), 1))
    pay(path, float(3 * UNIT))
    pay(path, math.nextafter(float(3 * UNIT), 0))
    pay(path, 5e-324)
    assert [row.units for row in read_ledger(path).rows] == [4, 3, 3, 1]


@settings(max_examples=30, deadline=None)
@given(cap=st.integers(0, 60), asks=st.lists(st.integers(0, 25), max_size=8))
def test_spends_are_granted_exactly_while_they_fit(folder: Path, cap: int, asks: list[int]) -> None:
    path = new_ledger(folder, cap * UNIT)
    left = cap
    for ask in asks:
        if ask <= left:
            pay(path, ask * UNIT)
            left -= ask
        else:
            with pytest.raises(BudgetError):
                pay(path, ask * UNIT)
        assert read_ledger(path).remaining_units == left


def test_the_cap_is_reached_to_the_unit_and_not_passed(folder: Path) -> None:
    path = new_ledger(folder, 7 * UNIT)
    pay(path, 4 * UNIT, 3 * UNIT)
    with pytest.raises(BudgetError):
        pay(path, UNIT / 1000)
    pay(path, 0)
    assert read_ledger(path).remaining_units == 0


def test_the_largest_cap_that_can_be_stored_is_exact(folder: Path) -> None:
    path = new_ledger(folder, (2**63 - 1) * UNIT)
    pay(path, (2**63 - 3) * UNIT)
    with pytest.raises(BudgetError):
        pay(path, 3 * UNIT)
    with pytest.raises(BudgetError):
        pay(path, 2**22, 2**22)
    pay(path, 2 * UNIT)
    assert read_ledger(path).spent_units == 2**63 - 1


def test_a_refused_spend_names_the_numbers_and_writes_nothing(folder: Path) -> None:
    path = new_ledger(folder, 10 * UNIT)
    pay(path, 8 * UNIT)
    before = read_ledger(path), path.read_bytes()
    with pytest.raises(BudgetError, match=r"costs epsilon .* cap of epsilon 1 allows") as refusal:
        pay(path, 3 * UNIT)
    assert refusal.value.exit_code == 3
    assert (read_ledger(path), path.read_bytes()) == before


class InterruptedRow:
    def __init__(self, **_: object) -> None: ...

    @property
    def units(self) -> int:
        raise KeyboardInterrupt


def test_an_interrupted_spend_frees_the_lock_even_if_its_traceback_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new_ledger(folder, 1)
    pay(path, UNIT)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "LedgerRow", InterruptedRow)
        with pytest.raises(KeyboardInterrupt) as kept:
            pay(path, UNIT)
    monkeypatch.setattr(ledger, "BUSY_SECONDS", 0.0)
    assert pay(path, UNIT) == 2
    assert kept.value.__traceback__ is not None


# What a ledger remembers


def test_a_ledger_gives_back_what_was_put_in(folder: Path) -> None:
    path = folder / "a name? with #odd%20 signs.ledger"
    create_capped_ledger(path, Budget(2.0, 1e-6), cap=0.5, note="board, é, 2031")
    number = spend(path, key="k", plan_id="p", description="two\nlines", unit="row", costs=[UNIT, UNIT])
    state = read_ledger(str(path))
    assert (state.epsilon, state.delta, state.note) == (2.0, 1e-6, "board, é, 2031")
    assert (state.cap_units, state.spent_units) == (2**39, 2)
    (row,) = state.rows
    assert row == LedgerRow(number, "k", "p", "two\nlines", 2, "spent", None, None, row.spent_at)
    assert row.unit == "row"
    assert row.spent_at.endswith("+00:00")


def test_a_pure_ledger_counts_epsilon_and_a_gaussian_one_mu_squared(folder: Path) -> None:
    pure, gaussian = folder / "pure", new_ledger(folder, 1)
    create_capped_ledger(pure, Budget(2.0, 0), cap=2)
    for path, version in ((pure, 5), (gaussian, 4)):
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    assert read_ledger(pure).is_pure
    assert not read_ledger(gaussian).is_pure
    pay(pure, Fraction(1, 3), Fraction(1, 3))
    state = read_ledger(pure)
    assert state.spent_units == math.ceil(Fraction(2, 3) * UNITS_PER_COST)
    assert state.epsilon_of(state.spent_units) == pytest.approx(2 / 3)
    with pytest.raises(BudgetError, match=r"epsilon 1\.3334.*allows 1\.3333 \(delta 0"):
        pay(pure, 1.3334)
    assert pay(pure, 1.3333) == 2


@pytest.mark.parametrize(("kind", "version"), [("pure", 4), ("gaussian", 5), ("gaussian", 1), ("gaussian", 6)])
def test_neither_kind_of_ledger_is_taken_for_the_other(folder: Path, kind: str, version: int) -> None:
    path = folder / f"{kind} {version}"
    create_capped_ledger(path, Budget(2.0, 0 if kind == "pure" else 1e-5), cap=2)
    raw(path, f"PRAGMA user_version = {version}")
    with pytest.raises(InputError, match="not a ledger"):
        read_ledger(path)


@pytest.mark.parametrize("slack", [[], ["slack"]], ids=["plain", "reserve"])
def test_the_file_has_no_column_for_anything_private(folder: Path, slack: list[str]) -> None:
    path = folder / f"{next(counter)}.ledger"
    create_capped_ledger(path, Budget(1.0), cap=1, slack_units=10 * len(slack))
    with closing(sqlite3.connect(path)) as connection:
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
    assert columns == {
        "budget": [
            "only_row",
            "epsilon",
            "delta",
            "cap_units",
            "neighbours",
            "note",
            *(f"{name}_cap_units" for name in slack),
        ],
        "releases": [name for name in LedgerRow.__dataclass_fields__ if slack or name != "slack_units"],
        "mechanisms": ["release", "position", "units"],
    }


def test_a_spend_locks_then_adds_up_then_writes_then_commits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = new_ledger(folder, 1)
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **settings)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    pay(path, 0.1)
    marks = (
        "PRAGMA synchronous = EXTRA",
        "BEGIN IMMEDIATE",
        "SELECT coalesce(sum(units), 0) FROM releases",
        "INSERT INTO releases",
    )
    order = [next(i for i, text in enumerate(statements) if mark in text) for mark in marks]
    assert order == sorted(order)
    assert statements[-1] == "COMMIT"
    assert path.read_bytes()[18:20] == b"\x02\x02"  # the header's mark of WAL mode


# Keys and publication


def test_a_published_release_is_found_again_by_key_and_plan(folder: Path) -> None:
    path = new_ledger(folder, 1)
    assert find_published(path, key="k", plan_id="p") is None
    number = pay(path, 0.1)
    assert find_published(path, key="k", plan_id="p") is None
    mark_published(path, number, fingerprint="f", directory="out/1")
    row = find_published(path, key="k", plan_id="p")
    assert row is not None
    assert (row.number, row.state, row.fingerprint, row.directory) == (1, "published", "f", "out/1")
    assert find_published(path, key="other", plan_id="p") is None


def test_a_retry_after_a_crash_is_charged_again_and_the_newest_is_found(folder: Path) -> None:
    path = new_ledger(folder, 1)
    numbers = [pay(path, UNIT) for _ in range(4)]
    mark_published(path, numbers[0], fingerprint="old", directory="d")
    mark_published(path, numbers[2], fingerprint="new", directory="d")
    row = find_published(path, key="k", plan_id="p")
    assert row is not None
    assert row.fingerprint == "new"
    assert read_ledger(path).spent_units == 4


def test_a_key_is_refused_for_a_second_plan(folder: Path) -> None:
    path = new_ledger(folder, 1)
    pay(path, UNIT, plan_id="first")
    with pytest.raises(InputError, match="Choose a new key"):
        find_published(path, key="k", plan_id="second")
    with pytest.raises(InputError, match="Choose a new key"):
        pay(path, UNIT, plan_id="second")
    assert read_ledger(path).spent_units == 1


def test_a_release_that_stays_in_memory_is_published_without_a_directory(folder: Path) -> None:
    path = new_ledger(folder, 1)
    mark_published(path, pay(path, UNIT), fingerprint="f", directory=None)
    row = find_published(path, key="k", plan_id="p")
    assert row is not None
    assert row.directory is None


@pytest.mark.parametrize("number", [0, 2, -1, 2**70])
def test_only_a_spent_row_can_be_published(folder: Path, number: int) -> None:
    path = new_ledger(folder, 1)
    pay(path, UNIT)
    with pytest.raises(UsageError, match="awaits publication"):
        mark_published(path, number, fingerprint="f", directory="d")


def test_a_row_is_published_once(folder: Path) -> None:
    path = new_ledger(folder, 1)
    mark_published(path, pay(path, UNIT), fingerprint="f", directory="d")
    with pytest.raises(UsageError, match="awaits publication"):
        mark_published(path, 1, fingerprint="g", directory="d")


# Arguments


@pytest.mark.parametrize("cost", [math.nan, math.inf, -math.inf, -1e-300, Fraction(-1), "1", 2**23])
def test_a_cost_must_be_a_storable_number(folder: Path, cost: Any) -> None:
    path = new_ledger(folder, 1)
    with pytest.raises(UsageError, match="costs"):
        pay(path, cost)
    with pytest.raises(UsageError, match="cap"):
        new_ledger(folder, cost)
    assert read_ledger(path).rows == ()


def test_a_spend_without_mechanisms_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="at least one"):
        pay(new_ledger(folder, 1))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0.1), (math.inf, 0.1), (math.nan, 0.1), (1, 1e-16), (1, -0.1), (1, 1), (1, math.nan)]
)
def test_a_budget_must_be_valid(tmp_path: Path, epsilon: float, delta: float) -> None:
    with pytest.raises(UsageError):
        create_capped_ledger(tmp_path / "l", Budget(epsilon, delta), cap=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", " \n", "\ud800", 0, 7, b"key", [1]])
def test_blank_or_broken_text_is_refused(folder: Path, text: Any) -> None:
    path = new_ledger(folder, 1)
    with pytest.raises(UsageError, match="key"):
        pay(path, UNIT, key=text)
    with pytest.raises(UsageError, match="directory"):
        mark_published(path, pay(path, UNIT), fingerprint="f", directory=text)


# Accidents with other tools


@pytest.mark.parametrize(
    "accident",
    [
        "DELETE FROM releases",
        "UPDATE releases SET units = 1 WHERE number = 2",
        "UPDATE OR REPLACE releases SET number = 1 WHERE number = 2",
        "UPDATE releases SET key = 'other'",
        "UPDATE releases SET plan_id = 'other'",
        "REPLACE INTO releases VALUES (2, 'k', 'p', '', 0, 'spent', NULL, NULL, '', 'row')",
        "INSERT INTO releases VALUES (NULL, 'k', 'p', '', 0, 'spent', NULL, NULL, '', 'row')",
        "INSERT INTO releases VALUES (3, 'k', 'p', '', -5, 'spent', NULL, NULL, '', 'row')",
        "INSERT INTO releases VALUES (3, 'k', 'p', '', 0.5, 'spent', NULL, NULL, '', 'row')",
        "INSERT INTO releases VALUES (3, 'k', 'p', '', 96, 'spent', NULL, NULL, '', 'row')",
        "UPDATE budget SET cap_units = 1000",
        "DELETE FROM budget",
        "REPLACE INTO budget VALUES (1, 1, 0.1, 1000, 'add-remove', '')",
        "INSERT INTO budget VALUES (2, 1, 0.1, 1000, 'add-remove', '')",
    ],
)
def test_the_file_itself_refuses_to_forget_a_spend(folder: Path, accident: str) -> None:
    path = new_ledger(folder, 100 * UNIT)
    pay(path, 2 * UNIT)
    pay(path, 3 * UNIT)
    before = read_ledger(path)
    with pytest.raises(sqlite3.IntegrityError):
        raw(path, accident)
    assert read_ledger(path) == before


def past_trigger(path: Path, name: str, change: str) -> None:
    """Make a change that a trigger forbids, and leave the schema as it was."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        (trigger,) = connection.execute(query, (name,)).fetchone()
        connection.executescript(f"DROP TRIGGER {name}; {change}; {trigger}")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "emptied": lambda path: path.write_bytes(b""),
    "overwritten": lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 12288),
    "not a database": lambda path: path.write_text("epsilon: 1\n" * 500),
    "other version": lambda path: raw(path, "PRAGMA user_version = 99"),
    "other program": lambda path: raw(path, "PRAGMA application_id = 7"),
    "trigger dropped": lambda path: raw(path, "DROP TRIGGER releases_stay"),
    "mechanism lost": lambda path: raw(path, "DELETE FROM mechanisms"),
    "mechanism added": lambda path: raw(path, "INSERT INTO mechanisms VALUES (1, 1, 5)"),
    "row lowered": lambda path: past_trigger(path, "releases_are_kept", "UPDATE releases SET units = 1"),
    "budget lost": lambda path: past_trigger(path, "budget_stays", "DELETE FROM budget"),
    "rule broken": lambda path: raw(path, "PRAGMA ignore_check_constraints = ON; UPDATE releases SET state = 'lost'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_ledger_is_refused_and_left_alone(folder: Path, damage: str) -> None:
    path = new_ledger(folder, 1)
    pay(path, 0.1)
    DAMAGES[damage](path)
    before = path.read_bytes()
    for use in (read_ledger, lambda path: pay(path, UNIT)):
        with pytest.raises(InputError, match=r"is damaged or is not a ledger") as refusal:
            use(path)
        assert refusal.value.__cause__ is None
        assert refusal.value.__context__ is None or refusal.value.__suppress_context__
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    raw(path, "CREATE TABLE releases (units INTEGER)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a ledger"):
        pay(path, UNIT)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_ledger_is_not_made_by_using_it(tmp_path: Path) -> None:
    for use in (read_ledger, lambda path: pay(path, UNIT)):
        with pytest.raises(InputError, match="understudy ledger init"):
            use(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_creation_never_replaces_a_file(folder: Path, tmp_path: Path) -> None:
    path = new_ledger(folder, 1)
    pay(path, UNIT)
    with pytest.raises(InputError, match="exists already"):
        create_capped_ledger(path, Budget(1, 0.1), cap=9)
    assert read_ledger(path).spent_units == 1
    with pytest.raises(InputError, match="cannot be written"):
        create_capped_ledger(tmp_path / "no folder" / "l", Budget(1, 0.1), cap=9)


def test_a_write_ahead_log_of_a_deleted_ledger_does_not_enter_a_new_one(folder: Path) -> None:
    path = new_ledger(folder, 1)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT * FROM budget").fetchall()  # stays open, so the log stays too
        pay(path, 0.5)
        log = Path(f"{path}-wal").read_bytes()
    path.unlink()
    Path(f"{path}-wal").write_bytes(log)
    create_capped_ledger(path, Budget(3, 0.1), cap=2)
    assert read_ledger(path).rows == ()
    assert read_ledger(path).epsilon == 3


# Disks, locks and permissions


def test_a_locked_ledger_is_refused_after_the_wait(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "BUSY_SECONDS", 0.05)
    path = new_ledger(folder, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="another process holds it"):
            pay(path, UNIT)
        assert read_ledger(path).rows == ()
    assert pay(path, UNIT) == 1


@pytest.mark.parametrize(
    ("limit", "rule"), [("PRAGMA max_page_count = 1", "disk is full"), ("PRAGMA query_only = ON", "cannot be written")]
)
def test_a_full_disk_or_a_read_only_file_is_refused_and_nothing_is_spent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, rule: str
) -> None:
    path = new_ledger(folder, 1)
    before = read_ledger(path)
    connect = sqlite3.connect

    def limited(*args: Any, **settings: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **settings)
        connection.execute(limit)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", limited)
        with pytest.raises(InputError, match=rule) as refusal:
            spend(path, key="k", plan_id="p", description="long" * 5000, unit="row", costs=[UNIT])
    assert refusal.value.__suppress_context__
    assert read_ledger(path) == before


def test_a_ledger_in_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        pay(tmp_path / "nowhere" / "ledger", UNIT)
    with pytest.raises(InputError, match="cannot be written"):
        new_ledger(tmp_path / "nowhere", 1)


# Many processes, and sudden death

HAMMER = """
import sys
from fractions import Fraction
from understudy.errors import BudgetError
from understudy.private.ledger import spend
path, unit, name = sys.argv[1], Fraction(1, 2**40), sys.argv[2]
sys.stdin.readline()
try:
    while True:
        number = spend(path, key=name, plan_id="p", description="d", unit="row", costs=[2 * unit, unit])
        print(number, flush=True)
except BudgetError:
    pass
"""


def test_eight_processes_together_are_granted_exactly_the_cap(folder: Path) -> None:
    path = new_ledger(folder, (3 * 200 + 2) * UNIT)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    workers = [run_script(HAMMER, path, name, **pipes) for name in range(8)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    grants = [int(line) for worker in workers for line in worker.communicate()[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert sorted(grants) == list(range(1, 201))
    assert read_ledger(path).remaining_units == 2


# One process starts victims by fork, so that each is killed at work and not while it imports.
KILLER = """
import os, random, signal, sys, time
from fractions import Fraction
from understudy.accounting.mechanisms import Budget
from understudy.errors import BudgetError
from understudy.private.ledger import create_capped_ledger, mark_published, spend
task, folder, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])

def release(trial):
    path = folder + "/ledger"
    try:
        while True:
            cost = [Fraction(1, 2**40)]
            number = spend(path, key=str(trial), plan_id="p", description="d", unit="row", costs=cost)
            open(f"{folder}/release-{number}", "x").close()
            mark_published(path, number, fingerprint="f", directory=f"release-{number}")
    except BudgetError:
        time.sleep(60)

def create(trial):
    for number in range(10**6):
        create_capped_ledger(f"{folder}/{trial}-{number}", Budget(1, 0.1), cap=1)

for trial in range(kills):
    victims = []
    for victim in range(2):
        pid = os.fork()
        if pid == 0:
            try:
                globals()[task](f"{trial}.{victim}")
            finally:
                os._exit(1)
        victims.append(pid)
    for pid in victims:
        time.sleep(random.uniform(0.001, 0.03))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "a victim ended by itself"
"""


@pytest.mark.parametrize("cap", [10**6, 10])
def test_no_release_lacks_its_row_after_a_hundred_kills(tmp_path: Path, cap: int) -> None:
    path = tmp_path / "ledger"
    create_capped_ledger(path, Budget(1, 1e-5), cap=cap * UNIT)
    assert run_script(KILLER, "release", tmp_path, 50).wait() == 0
    state = read_ledger(path)
    released = {int(file.name.removeprefix("release-")) for file in tmp_path.glob("release-*")}
    published = {row.number for row in state.rows if row.state == "published"}
    assert published <= released <= {row.number for row in state.rows}
    assert 0 < len(released) <= len(state.rows) == state.spent_units <= cap
    assert len(state.rows) - len(published) <= 100  # a kill wastes one spend at most
    assert cap > 10 or state.remaining_units == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_creation_that_is_killed_leaves_a_whole_ledger_or_none(tmp_path: Path) -> None:
    assert run_script(KILLER, "create", tmp_path, 15).wait() == 0
    refused = 0
    for path in tmp_path.iterdir():
        if path.name.endswith(("-wal", "-shm", "-journal")):
            continue
        try:
            assert read_ledger(path).cap_units == UNITS_PER_COST
        except InputError:
            refused += 1
    assert refused <= 30


def test_many_small_mechanisms_are_rounded_up_once(tmp_path: Path) -> None:
    path = new_ledger(tmp_path, 1)
    pay(path, *[UNIT / 3] * 10)
    assert read_ledger(path).spent_units == 4  # ten thirds


# Slack


def with_reserve(folder: Path, reserve: float, epsilon: float = 2.0) -> Path:
    path = folder / f"{next(counter)}.ledger"
    create_ledger(path, Budget(epsilon, 1e-5), reserve=reserve)
    return path


def test_a_reserve_is_taken_from_delta_for_good(folder: Path) -> None:
    plain, kept = (read_ledger(with_reserve(folder, reserve)) for reserve in (0.0, 0.1))
    assert plain.slack_cap_units == 0
    reserve = Fraction(kept.slack_cap_units, UNITS_PER_SLACK)
    assert reserve <= Fraction(1e-5) * Fraction(0.1)
    assert float(reserve) == pytest.approx(1e-6)
    spendable = Budget(2.0, math.nextafter(float(Fraction(1e-5) - reserve), 0.0))
    assert kept.cap_units == mu_squared_of_budget(spendable) * UNITS_PER_COST < plain.cap_units
    # What the whole cap and the whole reserve allow together is the budget on the label.
    charges = [Charge(Fraction(kept.cap_units, UNITS_PER_COST), reserve)]
    assert sum(charges, NO_CHARGE).epsilon(1e-5) <= 2.0
    assert kept.epsilon_of(kept.cap_units) <= 2.0


def test_slack_is_granted_exactly_while_the_reserve_holds_it(folder: Path) -> None:
    path = with_reserve(folder, 0.1)
    slack = Fraction(1e-5) * Fraction(0.1) / 4
    for _ in range(3):
        spend(path, key="k", plan_id="p", description="test", unit="row", costs=[0.001], slack=slack)
    # Each was rounded up, so that four together no longer fit.
    with pytest.raises(BudgetError, match="reserve"):
        spend(path, key="k", plan_id="p", description="test", unit="row", costs=[0.001], slack=slack)
    with pytest.raises(BudgetError, match="reserve"):
        check_affordable(path, [0.001], key="k", plan_id="p", unit="row", slack=slack)
    check_affordable(path, [0.001], key="k", plan_id="p", unit="row", slack=slack / 2)
    state = read_ledger(path)
    assert len(state.rows) == 3
    assert all(row.slack_units * Fraction(1, UNITS_PER_SLACK) >= slack for row in state.rows)
    assert pay(path, 0.001) == 4  # what has no slack needs no reserve


def test_a_ledger_without_a_reserve_refuses_slack_and_takes_the_rest(folder: Path) -> None:
    path = new_ledger(folder, 1)
    with pytest.raises(BudgetError, match="sampling rate of 1"):
        spend(path, key="k", plan_id="p", description="test", unit="row", costs=[0.5], slack=1e-9)
    assert read_ledger(path).rows == ()
    assert pay(path, 0.5) == 1


@pytest.mark.parametrize("slack", [-1e-9, 2.0, math.nan, "much"])
def test_a_slack_that_is_no_chance_is_refused(folder: Path, slack: Any) -> None:
    with pytest.raises(UsageError, match="slack"):
        check_affordable(with_reserve(folder, 0.1), [0.1], key="k", plan_id="p", unit="row", slack=slack)


@pytest.mark.parametrize(("reserve", "delta"), [(1.0, 1e-5), (-0.1, 1e-5), (0.1, 0.0)])
def test_a_reserve_that_is_no_part_of_delta_is_refused(folder: Path, reserve: float, delta: float) -> None:
    with pytest.raises(UsageError, match="reserve"):
        create_ledger(folder / "never.ledger", Budget(1.0, delta), reserve=reserve)
    assert not (folder / "never.ledger").exists()


def test_the_file_itself_refuses_more_slack_than_there_is(folder: Path) -> None:
    path = with_reserve(folder, 0.1)
    row = "(1, 'k', 'p', 'd', 0, 'spent', NULL, NULL, 'now', {}, 'row')"
    cap = read_ledger(path).slack_cap_units
    with pytest.raises(sqlite3.IntegrityError, match="within the cap"):
        raw(path, f"INSERT INTO releases VALUES {row.format(cap + 1)}")
    raw(path, f"INSERT INTO releases VALUES {row.format(cap)}")
    with pytest.raises(sqlite3.IntegrityError, match="final"):
        raw(path, "UPDATE releases SET slack_units = 0")
