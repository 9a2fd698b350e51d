"""Ray Data: every block of a dataset becomes one vector, where the block is.

Workers need Understudy installed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.arrays import Integers
from understudy.errors import InputError, MissingExtraError
from understudy.private.engines import remote
from understudy.private.sums import Work

BUCKETS = 64
"""Groups that people are brought together in; each is held whole by a worker, and has its costs."""


MEMORY = Path("/dev/shm")  # noqa: S108
STORE_BYTES = 2**31
LEAST_STORE_BYTES = 2**27
"""Ray's object store, if Understudy starts it."""


def sum_frame(dataset: Any, work: Work) -> Integers:
    """The sum over the rows of a dataset.  # (dim + 1,)"""
    start()
    _silence(dataset.context)
    remote.check_columns("dataset", dataset.schema().names, work)
    chosen = dataset.select_columns(work.columns)
    if not work.layout.schema.privacy.is_row:
        return _sum_people(chosen, work, _encode_block, batch_size=None)
    sums = chosen.map_batches(partial(_sum_block, described=work.to_json()), batch_format="pyarrow", batch_size=None)
    # Blocks have no numbers of their own: they get some here, and what is known, their rows, is counted instead.
    answers = (answer | {"part": number} for number, answer in enumerate(_answers(sums)))
    total = remote.added(work, answers, parts=None)
    if int(total[-1]) != chosen.count():
        raise InputError("engine", "the rows that came back are not those that there are", "Run this again")
    return total


def sum_files(paths: list[str], work: Work) -> Integers:
    """The sum over the rows of files that every worker can open.  # (dim + 1,)"""
    ray, described = start(), work.to_json()
    if not work.layout.schema.privacy.is_row:
        files = ray.data.from_items([{"path": path} for path in paths])
        return _sum_people(files, work, _encode_files, batch_size=1)
    task = ray.remote(_sum_file)
    waiting = [task.remote(part, path, described) for part, path in enumerate(paths)]
    answers = (row for each in waiting for row in ray.get(each).to_pylist())
    return remote.added(work, answers, parts=len(paths))


def _sum_people(dataset: Any, work: Work, encode: Callable[..., pa.Table], *, batch_size: int | None) -> Integers:
    """The sum over people, whose rows are encoded batch by batch and then brought together."""
    described = work.to_json()
    coded = dataset.map_batches(partial(encode, described=described), batch_format="pyarrow", batch_size=batch_size)
    sums = coded.groupby("bucket").map_groups(partial(_sum_group, described=described), batch_format="pyarrow")
    return remote.added(work, _answers(sums), parts=None)


def start() -> Any:
    """Ray as it runs, or on this machine alone: no dashboard, and objects and logs in memory until it ends."""
    if find_spec("ray") is None:
        raise MissingExtraError("ray", "ray")
    import ray
    import ray.data

    if not ray.is_initialized():
        store = min(STORE_BYTES, _free_memory() // 2)
        # Objects that do not fit the store go into files of this folder, and Ray Data's logs tell row counts.
        folder = tempfile.mkdtemp(prefix="us-", dir=MEMORY)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        atexit.register(ray.shutdown)  # what was registered last is called first
        ray.init(
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            object_store_memory=store,
            _plasma_directory=str(MEMORY),
            _temp_dir=folder,
            _system_config={"automatic_object_spilling_enabled": False},
        )
    _silence(ray.data.DataContext.get_current())
    return ray


def _free_memory() -> int:
    """Bytes that a file system in memory has left for Ray's objects, which must not lie on disks."""
    free = shutil.disk_usage(MEMORY).free if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else 0
    if free < 2 * LEAST_STORE_BYTES:
        raise InputError(
            "Ray",
            f"needs {2 * LEAST_STORE_BYTES >> 20} MB of memory in {MEMORY}, or rows would lie on disks",
            "Give it more (a container: --shm-size), use --engine local, or start Ray on encrypted disks yourself",
        )
    return free


def _silence(context: Any) -> None:
    """Bars of Ray Data tell how many rows there are, which is private."""
    context.enable_progress_bars = False
    context.print_on_execution_start = False


def _answers(sums: Any) -> Iterator[dict[str, Any]]:
    for batch in sums.iter_batches(batch_format="pyarrow", batch_size=None):
        yield from batch.to_pylist()


def _sum_block(block: pa.Table, *, described: str) -> pa.Table:
    return pa.Table.from_batches([remote.answer(0, remote.sum_batches, block.to_batches(), described)])


def _sum_file(part: int, path: str, described: str) -> pa.RecordBatch:
    return remote.answer(part, remote.sum_file, path, described)


def _encode_block(block: pa.Table, *, described: str) -> pa.Table:
    return _encoded(block.to_batches(), described)


def _encode_files(block: pa.Table, *, described: str) -> pa.Table:
    files = (remote.batches_of_file(path, described) for path in block["path"].to_pylist())
    return _encoded(chain.from_iterable(files), described)


def _encoded(batches: Iterable[pa.RecordBatch], described: str) -> pa.Table:
    coded = [remote.encoded_people(batch, described, buckets=BUCKETS) for batch in batches]
    return pa.Table.from_batches(coded, remote.PEOPLE)


def _sum_group(group: pa.Table, *, described: str) -> pa.Table:
    part = group["bucket"][0].as_py() if group.num_rows else 0
    batches = group.combine_chunks().to_batches()
    return pa.Table.from_batches([remote.answer(part, remote.sum_people, batches, described)])
