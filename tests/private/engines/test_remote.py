"""What workers of Spark and Ray do, without either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from understudy.accounting.mechanisms import Budget
from understudy.errors import InputError
from understudy.methods import make_plan
from understudy.private.engines import remote
from understudy.private.passes import Run, sum_table
from understudy.private.sums import Work
from understudy.schema import load_schema

COLUMNS = [
    {"name": "age", "kind": "integer", "bounds": [0, 9]},
    {"name": "city", "kind": "categorical", "categories": ["Bonn", "Lima"]},
]


def work_per(privacy: dict[str, Any]) -> Work:
    schema = load_schema({"privacy": privacy, "columns": COLUMNS})
    plan = make_plan(schema, Budget(1.0), method="dp-merf", options={"num_features": 6})
    return Work(plan.layout, plan.stages[0].embedding, plan.lattice)


ROWS, PEOPLE = work_per({"unit": "row"}), work_per({"unit": "person", "max_rows": 2})


def table_of(count: int = 900) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {
            "person": [f"p{n}" if n else None for n in rng.zipf(1.5, count) % 90],
            "age": rng.integers(0, 10, count),
            "city": rng.choice(["Bonn", "Lima"], count).tolist(),
        }
    )


def test_a_worker_s_sums_of_batches_and_files_are_those_of_the_local_engine(tmp_path: Path) -> None:
    table, text = table_of(), ROWS.to_json()
    wanted = sum_table(table, ROWS, query=None, run=Run())
    batches = table.to_batches(max_chunksize=70)
    assert np.array_equal(remote.sum_batches(batches, text), wanted)
    pq.write_table(table, tmp_path / "rows.parquet")
    assert np.array_equal(remote.sum_file(str(tmp_path / "rows.parquet"), text), wanted)


def test_people_who_are_brought_together_by_bucket_count_as_on_one_machine() -> None:
    table, text = table_of(), PEOPLE.to_json()
    coded = pa.Table.from_batches(
        [remote.encoded_people(b, text, buckets=5) for b in table.to_batches(max_chunksize=70)]
    )
    groups = [coded.filter(pc.equal(coded["bucket"], number)) for number in range(5)]
    assert all(group.num_rows for group in groups)
    answers = [
        remote.answer(number, remote.sum_people, group.to_batches(), text).to_pylist()[0]
        for number, group in enumerate(groups)
    ]
    wanted = sum_table(table, PEOPLE, query=None, run=Run())
    assert np.array_equal(remote.added(PEOPLE, answers, parts=5), wanted)


def test_no_people_sum_to_nothing() -> None:
    assert not remote.sum_people([], PEOPLE.to_json()).any()


def test_an_answer_that_comes_twice_or_not_at_all_is_refused() -> None:
    sums = ROWS.zero_sum().tobytes() + remote.digest_of_probe(ROWS)
    answer = {"part": 0, "sums": sums, "refusal": ""}
    with pytest.raises(InputError, match="came back twice"):
        remote.added(ROWS, [answer, answer], parts=None)
    with pytest.raises(InputError, match="did not come back"):
        remote.added(ROWS, [answer], parts=2)


def test_a_refusal_travels_as_words_and_a_surprise_as_its_type() -> None:
    def refuses(*_: Any) -> Any:
        raise InputError("column 'age'", "is wrong", "Mend it")

    def fails(*_: Any) -> Any:
        raise ValueError("cannot convert SECRET")

    for step, words in ((refuses, "column 'age': is wrong. Mend it."), (fails, "(ValueError)")):
        (row,) = remote.answer(3, step, None, ROWS.to_json()).to_pylist()
        assert "SECRET" not in str(row)
        with pytest.raises(InputError) as caught:
            remote.added(ROWS, [row], parts=None)
        assert words in str(caught.value)


def test_a_worker_that_computes_features_in_its_own_way_is_refused() -> None:
    sums = ROWS.zero_sum().tobytes() + remote.digest_of_probe(PEOPLE)[::-1]
    with pytest.raises(InputError, match="computes features differently"):
        remote.added(ROWS, [{"part": 0, "sums": sums, "refusal": ""}], parts=None)
