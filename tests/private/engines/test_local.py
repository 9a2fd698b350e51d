from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.methods import make_plan
from understudy.private import passes as local
from understudy.private import sums as summing
from understudy.private.passes import Run, sum_table
from understudy.private.sums import Work, work_from_json
from understudy.schema import load_schema
from understudy.schema.encode import encode_batch

SCHEMA = load_schema(
    {
        "name": "visits",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 100]},
            {"name": "dose", "kind": "continuous", "bounds": [0, 2], "nullable": True},
            {"name": "ward", "kind": "categorical", "categories": ["north", "south", "west"]},
            {"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"},
        ],
    }
)
OPTIONS: dict[str, dict[str, Any]] = {
    "dp-anova": {"pairs": True},
    "dp-merf": {"num_features": 20},
    "dp-hp": {"num_products": 2},
}


def table_of(count: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    dose = np.where(rng.random(count) < 0.1, np.nan, rng.uniform(0, 2, count))
    return pa.table(
        {
            "age": rng.integers(0, 101, count),
            "dose": pa.array(dose, from_pandas=True),
            "ward": rng.choice(["north", "south", "west", "moon"], count).tolist(),
            "ill": rng.integers(0, 2, count),
        }
    )


def work_of(method: str) -> Work:
    plan = make_plan(SCHEMA, Budget(1.0), method=method, options=OPTIONS[method])
    return Work(plan.layout, plan.stages[0].embedding, plan.lattice)


def expected(table: pa.Table, work: Work) -> Integers:
    return work.sum(table.to_batches())


def write_split(table: pa.Table, folder: Path, cuts: list[int], kind: str) -> Path:
    folder.mkdir()
    edges = [0, *cuts, table.num_rows]
    for number, (start, stop) in enumerate(pairwise(edges)):
        part, path = table.slice(start, stop - start), folder / f"{number}.{kind}"
        (pq.write_table if kind == "parquet" else pa.csv.write_csv)(part, path)
    return folder


@pytest.mark.parametrize("method", OPTIONS)
def test_any_split_order_and_number_of_threads_gives_the_same_integers(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.readers.stream.MAX_BATCH_ROWS", 100)
    table, work = table_of(1500), work_of(method)
    wanted = expected(table, work)
    shuffled = table.take(np.random.default_rng(1).permutation(1500))
    sources = {
        "one table": table,
        "another order": shuffled,
        "many files": write_split(shuffled, tmp_path / "many", [1, 7, 7, 900, 1499], "parquet"),
        "text files": write_split(table, tmp_path / "text", [400], "csv"),
    }
    for name, source in sources.items():
        for threads in (1, 2, 5):
            found = sum_table(source, work, query=None, run=Run(threads=threads))
            assert np.array_equal(found, wanted), (name, threads)


def test_a_worker_elsewhere_does_the_same_work() -> None:
    work = work_of("dp-anova")
    (batch,) = table_of(50).to_batches()
    assert np.array_equal(work_from_json(work.to_json()).partial(batch), work.partial(batch))


def test_a_part_is_told_of_once_with_its_own_sum(tmp_path: Path) -> None:
    table, work = table_of(300), work_of("dp-merf")
    folder = write_split(table, tmp_path / "parts", [100, 120], "parquet")
    parts = local_parts(folder, work)
    told: list[tuple[str, Integers]] = []
    total = local.sum_parts(
        parts, work, Run(threads=3), part_done=lambda part, own: told.append((part.paths[0].name, own))
    )
    assert sorted(name for name, _ in told) == ["0.parquet", "1.parquet", "2.parquet"]
    assert np.array_equal(sum(own for _, own in told), total)
    assert sorted(int(own[-1]) for _, own in told) == [20, 100, 180]


def local_parts(source: object, work: Work) -> Any:
    from understudy.readers import open_parts

    return open_parts(source, columns=work.columns)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_one_thread_ends_the_pass(tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    work = work_of("dp-merf")
    folder = write_split(table_of(300), tmp_path / "parts", [100, 120], "parquet")

    def fails(schema: Any, batch: pa.RecordBatch, **options: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr(summing, "encode_batch", fails)
    with pytest.raises(RuntimeError):
        sum_table(folder, work, query=None, run=Run(threads=threads))


def test_more_rows_than_integers_hold_are_refused_before_they_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    work = work_of("dp-merf")
    monkeypatch.setattr(summing, "LARGEST_SUM", 99 * work.lattice)
    assert sum_table(table_of(99), work, query=None, run=Run(threads=2))[-1] == 99
    with pytest.raises(InputError, match="more rows than one release can hold"):
        sum_table(table_of(100), work, query=None, run=Run(threads=2))


def test_a_sum_of_something_else_is_not_added() -> None:
    one, other = work_of("dp-merf"), work_of("dp-anova")
    with pytest.raises(ValueError, match="something else"):
        one.add(one.zero_sum(), other.zero_sum())


def test_progress_tells_a_share_in_whole_percent_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.readers.stream.MAX_BATCH_ROWS", 100)
    monkeypatch.setattr(local, "REPORT_SECONDS", 0.0)
    ticks: Iterator[float] = iter(np.arange(0.0, 1e4, 0.37))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    told: list[tuple[float | None, ...]] = []
    run = Run(threads=1, progress=lambda *each: told.append(each))
    folder = write_split(table_of(1003), tmp_path / "parts", [300], "parquet")
    sum_table(folder, work_of("dp-merf"), query=None, run=run)
    assert told == [(i / 100,) for i in (9, 19, 29, 39, 49, 59, 69, 79, 89, 99, 100)]


def test_an_unknown_engine_and_no_threads_are_refused() -> None:
    with pytest.raises(UsageError, match="engine"):
        Run(engine="abacus")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="threads"):
        Run(threads=0)


def test_an_interrupt_ends_the_pass_after_the_batches_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise people press Ctrl-C again, while threads are still adding."""
    for number in range(60):
        pq.write_table(table_of(3, number), tmp_path / f"{number}.parquet")
    read: list[int] = []

    def slow(schema: Any, batch: pa.RecordBatch, **options: Any) -> Any:
        read.append(batch.num_rows)
        time.sleep(0.05)
        return encode_batch(schema, batch, **options)

    class Interrupted(ThreadPoolExecutor):
        def submit(self, *given: Any, **named: Any) -> Any:
            future = super().submit(*given, **named)

            def result() -> None:
                raise KeyboardInterrupt

            future.result = result  # type: ignore[method-assign, assignment]
            return future

    monkeypatch.setattr(summing, "encode_batch", slow)
    monkeypatch.setattr(local, "ThreadPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        sum_table(tmp_path, work_of("dp-merf"), query=None, run=Run(threads=2))
    assert len(read) < 10
