"""Distributed aggregation: the tasks of remote workers, and how their partial sums are added up.

A worker is told a public description of the work, as text, and builds the work from it. It sends back partial
sums as bytes, or the words of a refusal: an exception would be written into the worker's log with whatever cell its
message quotes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Integers
from understudy.errors import InputError, UnderstudyError
from understudy.private.contribution_bounding import People, batch_of_people, chosen_codes
from understudy.private.sealed import sealed
from understudy.private.sums import Work, check_row_independence, made_up_codes, one_blas_thread, work_from_json
from understudy.readers import open_parts

SUMS = pa.schema({"part": pa.int64(), "sums": pa.binary(), "refusal": pa.string()})
"""What comes back. Sums end with a digest of what the worker's machine makes of made-up rows."""

PEOPLE = pa.schema({"bucket": pa.int32(), "person": pa.binary(), "codes": pa.binary()})


def check_columns(where: str, names: Sequence[str], work: Work) -> None:
    """Refuse a frame or dataset that lacks a column of the schema."""
    missing = [name for name in work.columns if name not in names]
    if missing:
        raise InputError(where, f"has no column '{missing[0]}'", "Mend the schema")


@lru_cache(maxsize=4)
def known_work(described: str) -> Work:
    """The work that a description asks for, once this machine has been probed."""
    work = work_from_json(described)
    check_row_independence(work.layout, work.embedding, work.lattice)
    return work


def digest_of_probe(work: Work) -> bytes:
    """What this machine makes of made-up rows: machines that share a table must agree on it."""
    return hashlib.sha256(work.partial_of_codes(made_up_codes(work.layout.schema)).tobytes()).digest()


def answer(part: int, task: Callable[[Any, str], Integers], given: Any, described: str) -> pa.RecordBatch:
    """The sum that a task makes of a part, as one row, or why there is none."""
    sums, words = b"", ""
    try:
        total = sealed(lambda: task(given, described))
        sums = total.astype("<i8").tobytes() + digest_of_probe(known_work(described))
    except UnderstudyError as refusal:
        words = json.dumps([refusal.where, refusal.rule, refusal.remedy])
    return pa.RecordBatch.from_pydict({"part": [part], "sums": [sums], "refusal": [words]}, SUMS)


def sum_batches(batches: Iterable[pa.RecordBatch], described: str) -> Integers:
    """The sum over rows.  # (dim + 1,)"""
    return known_work(described).sum(batches)


def sum_file(path: str, described: str) -> Integers:
    """The sum over one file of rows, read as this machine's own engine reads it.  # (dim + 1,)"""
    return sum_batches(batches_of_file(path, described), described)


def batches_of_file(path: str, described: str) -> Iterator[pa.RecordBatch]:
    for part in open_parts(path, columns=known_work(described).columns):
        with part:
            yield from part


def encoded_people(batch: pa.RecordBatch, described: str, *, buckets: int) -> pa.RecordBatch:
    """Rows that belong to somebody, as codes, on their way to the other rows of that person.

    People fall into ``buckets``; all rows of a person are in one.
    """
    schema = known_work(described).layout.schema
    people = sealed(lambda: batch_of_people(schema, batch))
    rows = np.ascontiguousarray(people.codes.astype("<i8"))
    width = 8 * rows.shape[1]
    cells = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), [None, pa.py_buffer(rows.tobytes())])
    columns = {"bucket": people.groups() % buckets, "person": people.ids, "codes": cells.cast(pa.binary())}
    return pa.RecordBatch.from_pydict(columns, PEOPLE)


def sum_people(batches: Iterable[pa.RecordBatch], described: str) -> Integers:
    """The sum over encoded rows of people all of whose rows are there.  # (dim + 1,)"""
    work = known_work(described)
    schema = work.layout.schema
    held = [People(batch["person"].cast(pa.binary()), _codes_in(batch, len(schema.used))) for batch in batches]
    with one_blas_thread():
        return work.partial_of_codes(chosen_codes(held, schema))


def _codes_in(batch: pa.RecordBatch, width: int) -> Integers:
    content = b"".join(batch["codes"].to_pylist())
    return np.frombuffer(content, "<i8").reshape(-1, width).astype(np.int64)


def added(work: Work, answers: Iterable[Any], *, parts: int | None) -> Integers:
    """The total of answers, rows of ``SUMS``, each part once.

    ``parts`` is how many there must be, numbered from 0, if that is known.

    Guarantee:
        An answer that came twice, as a task that was tried twice might give it, is refused, and so is a missing one,
        and one of a machine that makes something else of made-up rows: which machine has a row must not matter
        (proofs/lattice.md).
    """
    total, seen, digest = work.zero_sum(), set(), digest_of_probe(work)
    for answer in answers:
        part, sums = answer["part"], bytes(answer["sums"])
        if answer["refusal"]:
            raise InputError(*json.loads(answer["refusal"]))
        if part in seen:
            raise InputError("engine", "a part of the table came back twice", "Run this again")
        seen.add(part)
        if not sums.endswith(digest):
            raise InputError(
                "engine",
                "a worker's machine computes features differently from this one",
                "Use workers with the same processors and the same build of NumPy",
            )
        work.add(total, np.frombuffer(sums.removesuffix(digest), "<i8").astype(np.int64))
    if parts is not None and seen != set(range(parts)):
        raise InputError("engine", "a part of the table did not come back", "Run this again")
    return total
