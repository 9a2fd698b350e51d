"""One pass over a table, by whichever engine suits it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from understudy.arrays import Integers, ReadProgress
from understudy.errors import InputError, UsageError
from understudy.private.checkpoints import Checkpoint
from understudy.private.contribution_bounding import kept_rows
from understudy.private.engines.local import sum_parts, usable_threads
from understudy.private.sums import Work, one_blas_thread
from understudy.readers import is_one_pass, open_parts, open_source

ENGINES = ("auto", "local", "spark", "ray")
PIECE_ROWS = 2**15


MOST_ASKED = 1024
"""Threads that a person may ask for."""


@dataclass(frozen=True)
class Run:
    """How a pass is run. Nothing here changes a number that comes out of it."""

    engine: str = "auto"
    threads: int | None = None
    progress: ReadProgress | None = None
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UsageError("engine", "must be one of " + ", ".join(ENGINES))
        if self.threads is not None and not 1 <= self.threads <= MOST_ASKED:
            raise UsageError("threads", f"must lie between 1 and {MOST_ASKED}")

    def check(self, work: Work) -> None:
        """Refuse what a pass could not do, before rows are read."""
        if self.checkpoint is not None and not work.layout.schema.privacy.is_row:
            raise UsageError(
                "checkpoint", "is kept by file, and a person's rows may lie in several", "Leave out --checkpoint"
            )


def can_be_read_again(data: object) -> bool:
    """Whether a second pass would find the rows again."""
    return engine_of(data) is not None or not is_one_pass(data)


def sum_table(data: object, work: Work, *, query: str | None, run: Run) -> Integers:
    """The sum over the rows of a table, and how many count. PRIVATE.  # (dim + 1,)"""
    run.check(work)
    elsewhere = _sum_elsewhere(data, work, query=query, run=run)
    if elsewhere is not None:
        return elsewhere
    if work.layout.schema.privacy.is_row:
        return _sum_rows(data, work, query=query, run=run)
    return _sum_persons(data, work, query=query, run=run)


def engine_of(data: object) -> str | None:
    """The cluster engine whose frame or dataset it is, told without importing that engine."""
    kind = type(data)
    if kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql"):
        return "spark"
    return "ray" if any(each.__module__.startswith("ray.data") for each in kind.__mro__) else None


def _sum_elsewhere(data: object, work: Work, *, query: str | None, run: Run) -> Integers | None:
    """The sum by Spark or Ray, if the data is theirs or they were asked for."""
    own = engine_of(data)
    engine = own or run.engine
    if engine in ("auto", "local"):
        return None
    from understudy.private.engines.ray import sum_files_by_ray, sum_ray_dataset
    from understudy.private.engines.spark import sum_files_by_spark, sum_spark_frame

    if run.engine not in ("auto", engine):
        raise UsageError("engine", f"is {run.engine}, and the data is for {engine}", "Leave it out")
    if query is not None or run.checkpoint is not None:
        raise UsageError("engine", f"{engine} takes no query and no checkpoint", "Select rows before")
    if own is not None:
        return (sum_spark_frame if own == "spark" else sum_ray_dataset)(data, work)
    parts = open_parts(data, columns=work.columns)
    paths = [str(path) for part in parts for path in part.paths]
    if len(paths) != len(parts):
        raise UsageError(
            "engine",
            f"{engine} reads files of rows, and this source is not read by files",
            "Pass a directory of Parquet or text files, or a data frame of the engine",
        )
    return (sum_files_by_spark if engine == "spark" else sum_files_by_ray)(paths, work)


def _sum_rows(data: object, work: Work, *, query: str | None, run: Run) -> Integers:
    with ExitStack() as stack:
        parts = open_parts(data, columns=work.columns, query=query)
        for part in parts:
            stack.enter_context(part)
        if run.checkpoint is None:
            return sum_parts(parts, work, threads=run.threads, progress=run.progress)
        noted = run.checkpoint.begin(work, parts, query)
        try:
            sum_parts(noted.left, work, threads=run.threads, progress=run.progress, part_done=noted.part_done)
        except BaseException:
            noted.save()
            raise
        noted.finish()
        return noted.summed.total


def _sum_persons(data: object, work: Work, *, query: str | None, run: Run) -> Integers:
    if not can_be_read_again(data):
        raise InputError(
            "data",
            "rows of one person may lie anywhere in it, and a stream can be read once",
            "Pass a file, a table or a dataset",
        )

    def batches() -> Iterator[pa.RecordBatch]:
        with open_source(data, columns=work.columns, query=query) as stream:
            yield from stream

    total = work.nothing()
    with one_blas_thread(), ThreadPoolExecutor(run.threads or usable_threads()) as pool:
        for codes in kept_rows(batches, work):
            pieces = [codes[i : i + PIECE_ROWS] for i in range(0, len(codes), PIECE_ROWS)]
            for partial in pool.map(work.partial_of_codes, pieces):
                work.add(total, partial)
    return total
