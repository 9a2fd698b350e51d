"""One pass over a table: exact integer aggregation by local threads, Spark or Ray."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Event, Lock

import pyarrow as pa

from understudy.arrays import Integers, ReadProgress
from understudy.errors import InputError, UsageError
from understudy.private.contribution_bounding import kept_rows
from understudy.private.sealed import sealed
from understudy.private.secret_files import Checkpoint
from understudy.private.sums import Work, one_blas_thread
from understudy.readers import RowStream, is_one_pass, open_parts, open_source
from understudy.schema import Schema
from understudy.schema.encode import Misfits, batch_misfits

MOST_THREADS = 16
"""Threads by default, however many cores there are; more must be asked for."""

REPORT_SECONDS = 0.25
"""Shortest time between two reports of progress."""

PartDone = Callable[[RowStream, Integers], None]
"""Told when a part has been summed, with its sum; one call at a time."""


def sum_parts(parts: Sequence[RowStream], work: Work, run: Run, *, part_done: PartDone | None = None) -> Integers:
    """The sum over all rows of all parts, and how many rows there are.  # (dim + 1,)

    Each thread holds one batch at a time and starts on a part of its own; when there are no more, it helps
    with the others. Memory does not depend on the number of rows.

    Guarantee:
        Every batch is summed once, and sums are exact, so the result is the same for any number
        of threads and however rows are split into parts (proofs/lattice.md).
    """
    number = run.threads or usable_threads()
    queue = _PartQueue(parts, work, _Reporter(parts, run.progress), part_done)
    with one_blas_thread():
        if number == 1:
            queue.work_through()
        else:
            with ThreadPoolExecutor(number) as pool, queue.stopped_by_errors():
                for each in [pool.submit(queue.work_through) for _ in range(number)]:
                    each.result()
    return queue.total


def usable_threads() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    cores = len(allowed(0)) if allowed is not None else os.cpu_count() or 1
    return min(cores, MOST_THREADS)


class _Part:
    """A stream that threads take batches from in turn, and the sum of what they found in it."""

    def __init__(self, stream: RowStream, work: Work) -> None:
        self.stream, self.total = stream, work.zero_sum()
        self._work, self._lock = work, Lock()
        self._taken, self._ended, self._told = 0, False, False

    def take(self) -> pa.RecordBatch | None:
        with self._lock:
            batch = None if self._ended else next(self.stream, None)
            if batch is None:
                self._ended = True
            else:
                self._taken += 1
            return batch

    def give(self, partial: Integers) -> None:
        with self._lock:
            self._work.add(self.total, partial)
            self._taken -= 1

    def is_summed(self) -> bool:
        """Whether its last batch has been added; true once, for whoever asks first."""
        with self._lock:
            summed = self._ended and self._taken == 0 and not self._told
            self._told = self._told or summed
            return summed


class _PartQueue:
    """A work queue of the parts of a table, which threads share, and the sum of those that are done."""

    def __init__(
        self, streams: Sequence[RowStream], work: Work, reporter: _Reporter, part_done: PartDone | None
    ) -> None:
        self.total = work.zero_sum()
        self._work, self._reporter, self._part_done = work, reporter, part_done
        self._parts = [_Part(stream, work) for stream in streams]
        self._turn, self._failed, self._lock = count(), Event(), Lock()

    @contextmanager
    def stopped_by_errors(self) -> Iterator[None]:
        """Let all threads end after their batch if one fails, or if the pass is interrupted."""
        try:
            yield
        except BaseException:
            self._failed.set()
            raise

    def work_through(self) -> None:
        with self.stopped_by_errors():
            for part in self._in_turn():
                self._sum(part)

    def _in_turn(self) -> Iterator[_Part]:
        """Parts that nobody has begun, then all others, which may need help."""
        while (index := next(self._turn)) < len(self._parts):
            yield self._parts[index]
        yield from self._parts

    def _sum(self, part: _Part) -> None:
        while not self._failed.is_set() and (batch := part.take()) is not None:
            partial = self._work.partial(batch)
            part.give(partial)
            self._reporter.add(int(partial[-1]))
        if not self._failed.is_set() and part.is_summed():
            with self._lock:
                self._work.add(self.total, part.total)
                if self._part_done is not None:
                    self._part_done(part.stream, part.total)


class _Reporter:
    """Tells how far the pass is, a few times a second."""

    def __init__(self, parts: Sequence[RowStream], progress: ReadProgress | None) -> None:
        self._progress, self._lock = progress, Lock()
        self._done, self._told = 0, time.monotonic()
        known = [part.known_rows for part in parts] if progress is not None else []
        self._expected = None if None in known else sum(filter(None, known))

    def add(self, num_rows: int) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done += num_rows
            now = time.monotonic()
            if now - self._told < REPORT_SECONDS:
                return
            self._told = now
            percent = min(100, 100 * self._done // self._expected) if self._expected else None
            self._progress(None if percent is None else percent / 100)


ENGINES = ("auto", "local", "spark", "ray")
PIECE_ROWS = 2**15
"""Encoded rows of a piece that a thread sums at a time, where contributions are bounded."""

MOST_REQUESTED_THREADS = 1024
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
        if self.threads is not None and not 1 <= self.threads <= MOST_REQUESTED_THREADS:
            raise UsageError("threads", f"must lie between 1 and {MOST_REQUESTED_THREADS}")


def check_read_again(data: object, why: str) -> None:
    """Refuse a stream, where a second pass would not find the rows again, though ``why`` needs one."""
    if engine_of(data) is None and is_one_pass(data):
        raise InputError("data", f"{why}, and a stream can be read once", "Pass a file, a table or a dataset")


def sum_table(data: object, work: Work, *, query: str | None, run: Run) -> Integers:
    """The sum over the rows of a table, and how many count. PRIVATE.  # (dim + 1,)"""
    is_row, engine = work.layout.schema.privacy.is_row, engine_of(data) or run.engine
    if run.checkpoint is not None and not is_row:
        raise UsageError(
            "checkpoint", "is kept by file, and a person's rows may lie in several", "Leave out --checkpoint"
        )
    if engine in ("spark", "ray"):
        return _sum_elsewhere(data, work, engine, query=query, run=run)
    return (_sum_rows if is_row else _sum_persons)(data, work, query=query, run=run)


def engine_of(data: object) -> str | None:
    """The cluster engine whose frame or dataset it is, told without importing that engine."""
    kind = type(data)
    if kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql"):
        return "spark"
    return "ray" if any(each.__module__.startswith("ray.data") for each in kind.__mro__) else None


def _sum_elsewhere(data: object, work: Work, engine: str, *, query: str | None, run: Run) -> Integers:
    """The sum by Spark or Ray, whose data it is, or who were asked for."""
    from understudy.private.engines import ray, spark

    sum_frame, sum_files = (spark.sum_frame, spark.sum_files) if engine == "spark" else (ray.sum_frame, ray.sum_files)
    if run.engine not in ("auto", engine):
        raise UsageError("engine", f"is {run.engine}, and the data is for {engine}", "Leave it out")
    if query is not None or run.checkpoint is not None:
        raise UsageError("engine", f"{engine} takes no query and no checkpoint", "Select rows before")
    if engine_of(data) is not None:
        return sum_frame(data, work)
    parts = open_parts(data, columns=work.columns)
    paths = [str(path) for part in parts for path in part.paths]
    if len(paths) != len(parts):
        raise UsageError(
            "engine",
            f"{engine} reads files of rows, and this source is not read by files",
            "Pass a directory of Parquet or text files, or a data frame of the engine",
        )
    return sum_files(paths, work)


def _sum_rows(data: object, work: Work, *, query: str | None, run: Run) -> Integers:
    with ExitStack() as stack:
        parts = open_parts(data, columns=work.columns, query=query)
        for part in parts:
            stack.enter_context(part)
        if run.checkpoint is None:
            return sum_parts(parts, work, run)
        noted = run.checkpoint.begin(work, parts, query)
        try:
            sum_parts(noted.left, work, run, part_done=noted.part_done)
        except BaseException:
            noted.save()
            raise
        noted.finish()
        return noted.summed.total


def _sum_persons(data: object, work: Work, *, query: str | None, run: Run) -> Integers:
    check_read_again(data, "rows of one person may lie anywhere in it")

    def batches() -> Iterator[pa.RecordBatch]:
        with open_source(data, columns=work.columns, query=query) as stream:
            yield from stream

    total = work.zero_sum()
    with one_blas_thread(), ThreadPoolExecutor(run.threads or usable_threads()) as pool:
        for codes in kept_rows(batches, work):
            pieces = [codes[i : i + PIECE_ROWS] for i in range(0, len(codes), PIECE_ROWS)]
            for partial in pool.map(work.partial_of_codes, pieces):
                work.add(total, partial)
    return total


def misfits_of(data: object, schema: Schema, *, query: str | None = None) -> dict[str, Misfits]:
    """For every column and one-hot group in use, how many cells are no value of it. PRIVATE: exact counts of rows."""
    found = {column.name: Misfits() for column in (*schema.in_files, *schema.used)}

    def count_cells() -> None:
        with open_source(data, columns=schema.file_names, query=query) as batches:
            for batch in batches:
                for name, count in batch_misfits(schema, batch).items():
                    found[name] += count

    sealed(count_cells)
    return found
