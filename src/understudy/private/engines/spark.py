"""Spark: rows stay where they are, and every task sends back one vector.

Works on data frames of Spark itself and of Spark Connect. Workers need Understudy installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from understudy.arrays import Integers
from understudy.errors import InputError, MissingExtraError
from understudy.private.engines import remote
from understudy.private.sums import Work

DIRECT_BYTES = 2**20 - 2**16
"""Results of tasks up to about a megabyte come straight back; longer ones go through block storage."""

BUCKETS = 4096
"""Groups that people are brought together in; a partition gets several."""

_SUMS = "part bigint, sums binary, refusal string"
_PEOPLE = "bucket int, person binary, codes binary"
_ENCRYPTION = "spark.io.encryption.enabled"

Batches = Iterator[pa.RecordBatch]
Task = Callable[..., Batches]
"""From the batches of a partition to those that Spark goes on with."""


def sum_frame(frame: Any, work: Work) -> Integers:
    """The sum over the rows of a data frame.  # (dim + 1,)"""
    remote.check_columns("data frame", frame.columns, work)
    _check_storage(frame.sparkSession, work)
    chosen = frame.select(*(f"`{name.replace('`', '``')}`" for name in work.columns))
    return _sum(chosen, work, _sum_partition, _encode_partition, parts=None)


def sum_files(paths: list[str], work: Work, session: Any = None) -> Integers:
    """The sum over the rows of files that every worker can open.  # (dim + 1,)"""
    session = session or new_session()
    _check_storage(session, work, sums=len(paths))  # a task may get them all
    files = session.createDataFrame(list(enumerate(paths)), "part bigint, path string")
    return _sum(files.repartition(len(paths), "part"), work, _sum_files, _encode_files, parts=len(paths))


def _sum(frame: Any, work: Work, sum_task: Task, encode_task: Task, *, parts: int | None) -> Integers:
    """The sum that tasks make of a frame, row by row or person by person, of so many parts if that is known."""
    described, is_row = work.to_json(), work.layout.schema.privacy.is_row
    if is_row:
        sums = frame.mapInArrow(partial(sum_task, described=described), _SUMS)
    else:
        coded = frame.mapInArrow(partial(encode_task, described=described), _PEOPLE)
        sums = coded.repartition("bucket").mapInArrow(partial(_sum_people, described=described), _SUMS)
    # Of several tries of a task Spark collects one; accumulators would count each.
    return remote.added(work, sums.collect(), parts=parts if is_row else None)


def new_session() -> Any:
    """A session that keeps what has no noise yet out of logs and, unencrypted, off disks."""
    if find_spec("pyspark") is None:
        raise MissingExtraError("pyspark", "spark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or workers here are of another Python
    builder = SparkSession.builder.appName("understudy").config(_ENCRYPTION, "true")
    builder = builder.config("spark.eventLog.enabled", "false").config("spark.ui.enabled", "false")
    builder = builder.config("spark.log.level", "ERROR")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _check_storage(session: Any, work: Work, *, sums: int = 1) -> None:
    """Refuse to let rows, or so many sums of one task, lie unencrypted on workers' disks."""
    shuffles = not work.layout.schema.privacy.is_row
    if not shuffles and sums * work.most_bytes <= DIRECT_BYTES:
        return
    # A session's own settings can be changed after its context was made, which changes nothing about it. Those of a
    # server of Spark Connect are the server's.
    has_context = not type(session).__module__.startswith("pyspark.sql.connect")
    settings = session.sparkContext.getConf() if has_context else session.conf
    if settings.get(_ENCRYPTION, "false") != "true":
        what = "rows are brought together by person" if shuffles else "sums are long"
        raise InputError(
            "Spark session", f"{what}, and would lie unencrypted on workers' disks", f"Start it with {_ENCRYPTION}=true"
        )


def _partition() -> int:
    from pyspark import TaskContext

    return int(TaskContext.get().partitionId())


def _sum_partition(batches: Batches, *, described: str) -> Batches:
    yield remote.answer(_partition(), remote.sum_batches, batches, described)


def _sum_files(batches: Batches, *, described: str) -> Batches:
    for batch in batches:
        for row in batch.to_pylist():
            yield remote.answer(row["part"], remote.sum_file, row["path"], described)


def _encode_partition(batches: Batches, *, described: str) -> Batches:
    for batch in batches:
        yield remote.encoded_people(batch, described, buckets=BUCKETS)


def _encode_files(batches: Batches, *, described: str) -> Batches:
    for batch in batches:
        for path in batch["path"].to_pylist():
            yield from _encode_partition(remote.batches_of_file(path, described), described=described)


def _sum_people(batches: Batches, *, described: str) -> Batches:
    yield remote.answer(_partition(), remote.sum_people, batches, described)
