"""Kills at chosen moments of every verb that pays: what is left counts, and nothing half-made passes for a release.

Run as a program, this file forks a child for each moment, and the child kills itself there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import files
from understudy.accounting.mechanisms import Budget
from understudy.classifier.model import load_classifier, verify_classifier
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.errors import UnderstudyError
from understudy.methods import make_plan
from understudy.plan.plan import Plan, plan_from_dict
from understudy.plan.request import Request
from understudy.private import ledger as ledgers
from understudy.private import secret_files
from understudy.private.dpsgd.classifier import train_classifier
from understudy.private.noise import ExactNoise, SeededNoise
from understudy.private.parties import merge_partials, write_partial
from understudy.private.release import append_rows, release_table
from understudy.private.spending import Receipt
from understudy.released import Release, load_release, verify_release
from understudy.schema import load_schema

SCHEMA = load_schema(
    {
        "name": "tiny",
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
ROWS = pa.table({"x": [0.1, 0.5, 0.9] * 7, "y": ["no", "yes", "yes"] * 7})
KEY, NAME = bytes(32), "census"


@cache
def plan_for(parties: int = 1) -> Plan:
    plan = make_plan(SCHEMA, Budget(1.0), method="dp-anova")
    return plan_from_dict(plan.to_dict() | {"parties": parties})


def released(folder: Path, target: str, noise: Any) -> object:
    paid = {"ledger": folder / "ledger.db", "key": NAME}
    return release_table(ROWS, plan_for(), directory=folder / target, noise=noise, **paid)


def trained(folder: Path, target: str, noise: Any) -> object:
    plan = ClassifierPlan(SCHEMA, Budget(1.0), Training(steps=3))
    paid = {"ledger": folder / "ledger.db", "key": NAME}
    return train_classifier(ROWS, plan, directory=folder / target, noise=noise, **paid)


@cache
def earlier_release() -> Release:
    return release_table(ROWS, plan_for(), noise=SeededNoise(0))


def appended(folder: Path, target: str, noise: Any) -> object:
    paid = {"ledger": folder / "ledger.db", "key": NAME}
    return append_rows(ROWS, earlier_release(), directory=folder / target, noise=noise, **paid)


def answered(folder: Path, target: str, noise: Any) -> object:
    request = Request(plan_for(parties=2))
    answer = {"party": "a", "path": folder / target, "key": KEY}
    return write_partial(ROWS, request, ledger=folder / "ledger.db", noise=noise, **answer)


def merged(folder: Path, target: str, noise: Any) -> object:
    request: Any = Request(plan_for())
    paid = {"ledger": folder / "ledger.db", "key": NAME}
    while isinstance(request, Request):  # each round is paid for by itself
        path = folder / f"sum for {target} {request.round}"
        write_partial(ROWS, request, party="a", path=path, key=KEY)
        request = merge_partials(request, [path], keys=[KEY], directory=folder / target, noise=noise, **paid)
    return request


VERBS: dict[str, Callable[[Path, str, Any], object]] = {
    "release": released,
    "classify": trained,
    "append": appended,
    "partial": answered,
    "merge": merged,
}
BEFORE = "before the charge"
AFTER = ["after the charge", "after noise", "between stages", "in a file"]
WHOLE = "before the ledger is told"
SINGLE = ("partial", "classify")  # a party's file has one noise, and a descent has many
MOMENTS = [
    (verb, moment)
    for verb in VERBS
    for moment in [BEFORE, *AFTER, WHOLE]
    if (verb == "release" or moment != BEFORE)
    and (verb in SINGLE or moment != "after noise")
    and (verb != "partial" or moment not in ("between stages", WHOLE))  # no ledger is told of it
]


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly(ExactNoise):
    """Noise that kills after so many draws, or before the next."""

    def __init__(self, draws: int, *, afterwards: bool) -> None:
        self.left, self.afterwards = draws, afterwards

    def add_noise(self, sums: Any, noise_std: int, receipt: Receipt) -> Any:
        if self.left == 0:
            die()
        self.left -= 1
        found = super().add_noise(sums, noise_std, receipt)
        if self.left == 0 and self.afterwards:
            die()
        return found


def run_until(moment: str, verb: str, folder: Path) -> None:
    """Run a verb in this process, which dies at a moment."""
    noise: Any = None
    spend, mark = ledgers.spend, ledgers.mark_published
    write = files._write_durably
    if moment == BEFORE:
        ledgers.spend = die
    elif moment == "after the charge":
        ledgers.spend = lambda *args, **named: (spend(*args, **named), die())[0]
    elif moment == "after noise":
        noise = Deadly(1, afterwards=True)
    elif moment == "between stages":
        noise = Deadly(1, afterwards=False)
    elif moment == "in a file" and verb == "partial":
        secret_files.os.fsync = die
    elif moment == "in a file":
        left = [2]

        def half_written(path: Path, content: bytes) -> None:
            if not left[0]:
                path.write_bytes(content[: len(content) // 2])
                die()
            left[0] -= 1
            write(path, content)

        files._write_durably = half_written
    else:
        ledgers.mark_published = lambda *args, directory, **named: (
            die() if directory else mark(*args, directory=directory, **named)
        )
    VERBS[verb](folder, "out", noise)


def kill_at_every_moment(folder: Path) -> None:
    for verb in VERBS:  # so that children find imports and compiled sums in place
        VERBS[verb](_with_ledger(folder / verb), "out", None)
    for verb, moment in MOMENTS:
        own = _with_ledger(folder_of(folder, verb, moment))
        child = os.fork()
        if child == 0:
            try:
                run_until(moment, verb, own)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{verb} did not reach the moment {moment}"


def _with_ledger(folder: Path) -> Path:
    folder.mkdir()
    ledgers.create_ledger(folder / "ledger.db", Budget(4.0))
    return folder


def folder_of(folder: Path, verb: str, moment: str) -> Path:
    return folder / f"{verb} {moment}".replace(" ", "-")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=300)
    return folder


def verified(path: Path, verb: str) -> str:
    check = verify_classifier if verb == "classify" else verify_release
    return check(path).fingerprint


def rounds_before(moment: str) -> int:
    """Rounds of a merge that were merged whole before it was killed."""
    last = len(plan_for().stages) - 1
    return {"between stages": 1, "in a file": last, WHOLE: last}.get(moment, 0)


@pytest.mark.parametrize(("verb", "moment"), MOMENTS)
def test_a_kill_is_counted_and_leaves_nothing_that_passes_for_a_release(killed: Path, verb: str, moment: str) -> None:
    folder = folder_of(killed, verb, moment)
    state = ledgers.read_ledger(folder / "ledger.db")
    *earlier, last = [row.state for row in state.rows] or [None]
    assert last == (None if moment == BEFORE else "spent")
    assert len(earlier) == (rounds_before(moment) if verb == "merge" else 0)
    assert set(earlier) <= {"published"}
    paid, num_paid = state.spent_units, len(state.rows)
    left = {path for path in folder.iterdir() if path.name.startswith((".out", "out"))}
    if moment == WHOLE:
        assert left == {folder / "out"}
        row = state.rows[-1]
        load = load_classifier if verb == "classify" else load_release
        verified(folder / "out", verb)
        assert dict(load(folder / "out").facts)["ledger"] == {"key": row.key, "row": row.number}
    else:
        assert folder / "out" not in left
        assert bool(left) is (moment == "in a file")
        for path in left:
            with pytest.raises(UnderstudyError):
                verified(path, verb)

    # Noise that was drawn may have been seen, so that the same key is charged again.
    VERBS[verb](folder, "second", None)
    state = ledgers.read_ledger(folder / "ledger.db")
    whole = ledgers.read_ledger(killed / verb / "ledger.db")
    assert len(state.rows) == num_paid + len(whole.rows)
    assert state.spent_units == paid + whole.spent_units
    if verb == "partial":
        return
    assert state.rows[-1].state == "published"
    assert verified(folder / "second", verb) == state.rows[-1].fingerprint
    if verb in ("release", "classify"):  # which give a stored one back
        VERBS[verb](folder, "third", None)
        assert verified(folder / "third", verb) == state.rows[-1].fingerprint
        assert ledgers.read_ledger(folder / "ledger.db").spent_units == state.spent_units


if __name__ == "__main__":
    kill_at_every_moment(Path(sys.argv[1]))
