"""Spark with executors of its own, Spark Connect and the command line. Needs pyspark and a Java runtime.

Each runs in a process of its own, since a process has one kind of session.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import ON_THIS_MACHINE, work_of
from understudy.arrays import Integers
from understudy.private.sums import Work

SUMS = """
import sys
import warnings
warnings.simplefilter("ignore")
from conftest import work_of
from pyspark.sql import SparkSession
from understudy.private.passes import Run, sum_table
{session}
for name, value in {settings}.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
frame = session.read.parquet(sys.argv[1]).repartition(3)
{before}
for method, unit in [("dp-merf", "row"), ("dp-merf", "person")]:
    found = sum_table(frame, work_of(method, unit), query=None, run=Run())
    found.tofile(sys.argv[2] + "/" + unit)
session.stop()
"""
CONNECT = 'builder = SparkSession.builder.remote("local[2]")'
CLUSTER = 'builder = SparkSession.builder.master("local-cluster[2,1,1024]")'
KILLED = """
mark = sys.argv[2] + "/killed"
def kills_its_executor_once(batches):
    import os, signal, time
    rows = list(batches)
    if rows and not os.path.exists(mark):
        with open(f"/proc/{os.getppid()}/stat") as status:  # the parent's parent is the executor
            executor = int(status.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{executor}/cmdline") as command:
            assert "CoarseGrainedExecutorBackend" in command.read()
        open(mark, "w").close()
        os.kill(executor, signal.SIGKILL)
        time.sleep(60)
    yield from rows
frame = frame.mapInArrow(kills_its_executor_once, frame.schema)
"""
SETTINGS = {
    "spark.io.encryption.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "700m",
    "spark.executor.memory": "600m",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.mark.parametrize(
    ("session", "settings", "before"),
    [
        pytest.param(CONNECT, {}, "", id="Spark Connect"),
        pytest.param(CLUSTER, SETTINGS, KILLED, id="a killed executor"),
    ],
)
def test_the_integers_are_those_of_the_local_engine(
    folder: Path,
    tmp_path: Path,
    expected: Callable[[Work], Integers],
    session: str,
    settings: dict[str, str],
    before: str,
) -> None:
    script = SUMS.format(session=session, settings=settings, before=before)
    here = ON_THIS_MACHINE | {"PYTHONPATH": str(Path(__file__).parent)}
    if not settings:  # a server of Spark Connect takes its settings from where it starts
        options = [f"--conf {name}={value}" for name, value in SETTINGS.items()]
        here["PYSPARK_SUBMIT_ARGS"] = " ".join([*options, "pyspark-shell"])
    command = [sys.executable, "-c", script, str(folder), str(tmp_path)]
    done = subprocess.run(command, env=os.environ | here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    for unit in ("row", "person"):
        found = np.fromfile(tmp_path / unit, dtype=np.int64)
        assert np.array_equal(found, expected(work_of("dp-merf", unit)))
    assert (tmp_path / "killed").exists() == bool(before)


AFTER_AN_OPEN_SESSION = """
import sys
from conftest import work_of
from pyspark.sql import SparkSession
from understudy.errors import InputError
from understudy.private.passes import Run, sum_table
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = builder.config("spark.driver.memory", "700m").getOrCreate()
work, refused = work_of("dp-merf", "person"), 0
for data, run in [(sys.argv[1], Run(engine="spark")), (session.read.parquet(sys.argv[1]), Run())] * 2:
    try:
        sum_table(data, work, query=None, run=run)
    except InputError as refusal:
        refused += "unencrypted on workers' disks" in str(refusal)
sys.exit(refused)
"""


def test_a_session_that_was_open_before_without_encryption_is_not_taken_for_encrypted(folder: Path) -> None:
    here = os.environ | ON_THIS_MACHINE | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", AFTER_AN_OPEN_SESSION, str(folder)]
    done = subprocess.run(command, env=here, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr[-3000:]


def test_the_command_line_releases_a_directory(released_by: Callable[[str], tuple[str, Path]]) -> None:
    printed, release = released_by("spark")
    assert json.loads(printed)["release"] == str(release)
