from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.errors import InputError, UnderstudyError, UsageError
from understudy.methods import make_plan
from understudy.private import sums as summing
from understudy.private.ledger import create_ledger, read_ledger
from understudy.private.passes import Run, sum_table
from understudy.private.release import release_table
from understudy.private.secret_files import Checkpoint, write_secret
from understudy.private.sums import Work
from understudy.schema import load_schema
from understudy.schema.encode import encode_batch

COLUMNS = [{"name": "x", "kind": "continuous", "bounds": [0, 1]}]
PLAN = make_plan(load_schema({"columns": COLUMNS}), Budget(1.0), method="dp-merf", options={"num_features": 6})
WORK = Work(PLAN.layout, PLAN.stages[0].embedding, PLAN.lattice)
KEY = bytes(range(32))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(10):
        cells = np.random.default_rng(number).random(20)
        pq.write_table(pa.table({"x": cells}), folder / f"{number}.parquet")
    return folder


def run_with(folder: Path) -> Run:
    return Run(threads=1, checkpoint=Checkpoint(folder / "checkpoint", KEY))


def failing_after(count: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the encoder fail after so many batches; the list grows with every batch read."""
    read: list[int] = []

    def encode(schema: Any, batch: pa.RecordBatch, **options: Any) -> Any:
        if len(read) == count:
            raise KeyboardInterrupt
        read.append(batch.num_rows)
        return encode_batch(schema, batch, **options)

    monkeypatch.setattr(summing, "encode_batch", encode)
    return read


def test_a_pass_that_was_cut_short_reads_each_file_once_in_all(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = sum_table(files, WORK, query=None, run=Run(threads=1))
    failing_after(7, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        sum_table(files, WORK, query=None, run=run_with(tmp_path))
    assert wanted[:3].tobytes() not in (tmp_path / "checkpoint").read_bytes()
    read = failing_after(99, monkeypatch)
    assert np.array_equal(sum_table(files, WORK, query=None, run=run_with(tmp_path)), wanted)
    assert len(read) == 3
    assert not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("change", ["a file", "the files", "the work"])
def test_what_was_summed_of_something_else_is_not_used(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    failing_after(7, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        sum_table(files, WORK, query=None, run=run_with(tmp_path))
    work = WORK
    if change == "a file":
        pq.write_table(pa.table({"x": [0.5]}), files / "0.parquet")
        os.utime(files / "0.parquet", ns=(1, 1))
    if change == "the files":
        (files / "0.parquet").unlink()
    if change == "the work":
        plan = make_plan(PLAN.schema, Budget(1.0), method="dp-merf", options={"num_features": 6, "seed": 1})
        work = Work(plan.layout, plan.stages[0].embedding, plan.lattice)
    monkeypatch.undo()
    wanted = sum_table(files, work, query=None, run=Run(threads=1))
    assert np.array_equal(sum_table(files, work, query=None, run=run_with(tmp_path)), wanted)


def test_nothing_is_spent_by_a_pass_that_was_cut_short(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(1.01))

    def broken(schema: Any, batch: pa.RecordBatch, **options: Any) -> Any:
        raise OSError

    monkeypatch.setattr(summing, "encode_batch", broken)
    with pytest.raises(UnderstudyError):
        release_table(files, PLAN, ledger=ledger, run=run_with(tmp_path))
    assert read_ledger(ledger).rows == ()
    monkeypatch.undo()
    release_table(files, PLAN, ledger=ledger, run=run_with(tmp_path))
    assert len(read_ledger(ledger).rows) == 1


def test_a_checkpoint_needs_files_and_rows_that_stand_for_themselves(files: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not read by files"):
        sum_table(pa.table({"x": [0.5]}), WORK, query=None, run=run_with(tmp_path))
    per_person = load_schema({"columns": COLUMNS, "privacy": {"unit": "id"}})
    plan = make_plan(per_person, Budget(1.0), method="dp-merf", options={"num_features": 6})
    with pytest.raises(UsageError, match="a person's rows"):
        sum_table(files, Work(plan.layout, WORK.embedding, plan.lattice), query=None, run=run_with(tmp_path))


def test_another_key_is_refused(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_after(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        sum_table(files, WORK, query=None, run=run_with(tmp_path))
    run = Run(threads=1, checkpoint=Checkpoint(tmp_path / "checkpoint", bytes(32)))
    with pytest.raises(InputError, match="no key given opens it"):
        sum_table(files, WORK, query=None, run=run)


def test_a_file_that_changes_while_it_is_read_is_read_again(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = failing_after(7, monkeypatch)
    encode = summing.encode_batch

    def changing(schema: Any, batch: pa.RecordBatch, **options: Any) -> Any:
        if len(read) == 2:  # the third file gains rows after its own were taken
            cells = np.random.default_rng(99).random(50)
            pq.write_table(pa.table({"x": cells}), files / "2.parquet")
        return encode(schema, batch, **options)

    monkeypatch.setattr(summing, "encode_batch", changing)
    with pytest.raises(KeyboardInterrupt):
        sum_table(files, WORK, query=None, run=run_with(tmp_path))
    failing_after(99, monkeypatch)
    wanted = sum_table(files, WORK, query=None, run=Run(threads=1))
    assert np.array_equal(sum_table(files, WORK, query=None, run=run_with(tmp_path)), wanted)


@pytest.mark.parametrize("call", [1, 4])
def test_an_interrupt_between_a_sum_and_its_name_leaves_neither(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """Ctrl-C may fall anywhere: a checkpoint with a file's sum but not its name would count its rows twice."""
    begin = Checkpoint.begin

    class Interrupted:
        def __init__(self, calls: int = 0) -> None:
            self.calls = calls

        def add(self, total: Any, partial: Any) -> None:
            WORK.add(total, partial)
            self.calls += 1
            if self.calls == call:
                raise KeyboardInterrupt

    def begun(*given: Any) -> Any:
        progress = begin(*given)
        progress._work = Interrupted()
        return progress

    monkeypatch.setattr(Checkpoint, "begin", begun)
    with pytest.raises(KeyboardInterrupt):
        sum_table(files, WORK, query=None, run=run_with(tmp_path))
    assert (tmp_path / "checkpoint").exists()
    monkeypatch.setattr(Checkpoint, "begin", begin)
    wanted = sum_table(files, WORK, query=None, run=Run(threads=1))
    assert np.array_equal(sum_table(files, WORK, query=None, run=run_with(tmp_path)), wanted)


def test_a_checkpoint_that_cannot_be_finished_leaves_no_part_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        write_secret(tmp_path / "kept", {}, b"sum", key=KEY)
    assert list(tmp_path.iterdir()) == []
