"""One machine: threads over the files of a table, and over the batches of a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from threading import Event, Lock

import pyarrow as pa

from understudy.arrays import Integers, ReadProgress
from understudy.private.sums import Work, one_blas_thread
from understudy.readers import RowStream

MOST_THREADS = 16
REPORT_SECONDS = 0.25


PartDone = Callable[[RowStream, Integers], None]
"""Told when a part has been summed, with its sum; one call at a time."""


def sum_parts(
    parts: Sequence[RowStream],
    work: Work,
    *,
    threads: int | None = None,
    progress: ReadProgress | None = None,
    part_done: PartDone | None = None,
) -> Integers:
    """The sum over all rows of all parts, and how many rows there are.  # (dim + 1,)

    Each thread holds one batch at a time and starts on a part of its own; when there are no more, it helps
    with the others. Memory does not depend on the number of rows.

    Guarantee:
        Every batch is summed once, and sums are exact, so the result is the same for any number
        of threads and however rows are split into parts.
    """
    number = threads or usable_threads()
    shelf = _Shelf(parts, work, _Reporter(parts, progress), part_done)
    with one_blas_thread():
        if number == 1:
            shelf.work_through()
        else:
            with ThreadPoolExecutor(number) as pool, shelf.stopped_by_errors():
                for each in [pool.submit(shelf.work_through) for _ in range(number)]:
                    each.result()
    return shelf.total


def usable_threads() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    cores = len(allowed(0)) if allowed is not None else os.cpu_count() or 1
    return min(cores, MOST_THREADS)


class _Part:
    """A stream that threads take batches from in turn, and the sum of what they found in it."""

    def __init__(self, stream: RowStream, work: Work) -> None:
        self.stream, self.total = stream, work.nothing()
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


class _Shelf:
    """The parts of a table that threads work through, and the sum of those that are done."""

    def __init__(
        self, streams: Sequence[RowStream], work: Work, reporter: _Reporter, part_done: PartDone | None
    ) -> None:
        self.total = work.nothing()
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
