"""Spark against the local engine: the same integers. Needs pyspark and a Java runtime."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from conftest import plan_of, work_of
from understudy.arrays import Integers
from understudy.errors import InputError, UsageError
from understudy.private.engines import spark
from understudy.private.passes import Run, sum_table
from understudy.private.release import release_table
from understudy.private.release import work_of as first_work
from understudy.private.sums import Work

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS = [("dp-anova", "row"), ("dp-merf", "row"), ("dp-merf", "person")]
ENCRYPTION = "spark.io.encryption.enabled"


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2,4]").config("spark.task.maxFailures", "4")
    for name, value in {
        ENCRYPTION: "true",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.speculation": "true",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "700m",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize(("method", "unit"), WAYS)
def test_a_data_frame_and_files_have_the_integers_of_the_local_engine(
    session: Any, table: pa.Table, folder: Path, expected: Callable[[Work], Integers], method: str, unit: str
) -> None:
    work = work_of(method, unit)
    frame = session.createDataFrame(table)
    for split in (frame.repartition(3), frame.coalesce(1)):
        found = sum_table(split, work, query=None, run=Run())
        assert np.array_equal(found, expected(work))
    found = sum_table(folder, work, query=None, run=Run(engine="spark"))
    assert np.array_equal(found, expected(work))


def test_a_killed_worker_and_a_second_try_count_once(
    session: Any, folder: Path, tmp_path: Path, expected: Callable[[Work], Integers]
) -> None:
    work = work_of("dp-merf", "row")
    marks = str(tmp_path)

    def dies_once(batches: Any) -> Any:
        """Sum everything, then kill the worker, the first time."""
        from pyspark import TaskContext

        rows = list(batches)
        mark = f"{marks}/{TaskContext.get().partitionId()}"
        if rows and not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(1)
        yield from rows

    frame = session.read.parquet(str(folder)).repartition(3)
    shaky = frame.mapInArrow(dies_once, frame.schema)
    assert np.array_equal(sum_table(shaky, work, query=None, run=Run()), expected(work))
    assert len(list(tmp_path.iterdir())) > 1


def test_a_whole_release_is_made_of_a_data_frame(session: Any, folder: Path) -> None:
    plan = plan_of("dp-anova", "row")
    release = release_table(session.read.parquet(str(folder)), plan)
    assert len(release.vectors) == len(plan.stages)
    assert abs(release.sums("count").sum() - 3000) < 500


def test_a_refusal_comes_back_in_words_and_a_surprise_by_its_type(session: Any) -> None:
    work = work_of("dp-merf", "row")
    columns = {name: [["SECRET"]] for name in work.columns}
    frame = session.createDataFrame(pa.table(columns))
    with pytest.raises(InputError, match="column 'age'") as caught:
        sum_table(frame, work, query=None, run=Run())
    assert "SECRET" not in str(caught.value)
    with pytest.raises(InputError, match="has no column 'dose given'"):
        sum_table(frame.drop("dose given"), work, query=None, run=Run())


class Unencrypted:
    """A session whose own settings were changed after its context was made."""

    class Context:
        def getConf(self) -> dict[str, str]:  # noqa: N802
            return {}

    sparkContext, conf = Context(), {ENCRYPTION: "true"}  # noqa: N815


def test_rows_are_not_shuffled_without_encryption(folder: Path) -> None:
    for method, unit, files in (("dp-merf", "person", 1), ("dp-anova", "row", 1000)):
        with pytest.raises(InputError, match="unencrypted on workers' disks"):
            spark.sum_files([str(folder)] * files, work_of(method, unit), Unencrypted())


def test_a_short_first_stage_is_refused_for_a_long_later_one_before_anything_is_charged(folder: Path) -> None:
    plan = plan_of("dp-anova", "row")
    assert plan.stages[0].embedding.dim == 1
    with pytest.raises(InputError, match="sums are long"):
        spark.sum_files([str(folder)] * 1000, first_work(plan, ()), Unencrypted())


def test_data_of_one_engine_is_not_given_to_another(session: Any, folder: Path) -> None:
    frame, work = session.read.parquet(str(folder)), work_of("dp-merf", "row")
    with pytest.raises(UsageError, match="is local, and the data is for spark"):
        sum_table(frame, work, query=None, run=Run(engine="local"))
    with pytest.raises(UsageError, match="no query"):
        sum_table(frame, work, query="SELECT 1", run=Run())
