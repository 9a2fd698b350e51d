"""Encrypted checkpoints of a pass over many files: one that was interrupted resumes after the files it had summed.

No privacy is spent by stopping or resuming: the ledger is charged later, before noise is drawn.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from understudy.arrays import Integers
from understudy.errors import InputError
from understudy.private.secret_files import read_secret, write_secret
from understudy.private.sums import Work
from understudy.readers import RowStream

SECONDS_BETWEEN_SAVES = 10.0
"""A crash loses at most this much work; encrypting a long sum after every small file would slow the pass."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a pass keeps the sum of the files that it is done with, encrypted."""

    path: Path
    key: bytes

    def begin(self, work: Work, parts: list[RowStream], query: str | None) -> Progress:
        """Resume: the files that are left to read, and the sum of those that are not.

        A file counts as done if its path, length and time of change are what they were. If the work
        is another, or a file that was summed is gone or has changed, the pass starts anew.
        """
        if query is not None or not all(part.paths for part in parts):
            raise InputError(
                "checkpoint",
                "is kept by file, and this source is not read by files",
                "Leave out --checkpoint, or pass a directory of Parquet or text files",
            )
        names = {name_of_part(part): part for part in parts}
        progress = Progress(self, work, {part: name for name, part in names.items()})
        stored = self._load(work)
        if stored is None or stored[0] != progress.work_name or not set(stored[1]) <= set(names):
            progress.left = list(names.values())
            return progress
        _, done, total = stored
        progress.summed = Summed(total, tuple(done))
        progress.left = [part for name, part in names.items() if name not in set(done)]
        return progress

    def _load(self, work: Work) -> tuple[str, list[str], Integers] | None:
        if not self.path.exists():
            return None
        header, content = read_secret(self.path, [self.key])
        size = int(header.get("size", 0))
        total = np.frombuffer(content[:size], dtype=np.int64).copy()
        if header.get("kind") != "checkpoint" or total.shape != work.zero_sum().shape:
            return None
        return str(header["work"]), json.loads(content[size:]), total


class Summed(NamedTuple):
    """A sum, and the files that are in it."""

    total: Integers
    files: tuple[str, ...]


class Progress:
    """The files that have been summed so far, and their sum. PRIVATE.

    Guarantee:
        ``summed`` is replaced whole. Whenever an interrupt or another thread looks at it, and so in every
        checkpoint, the sum is that of just the files that are named with it (proofs/parties.md).
    """

    def __init__(self, checkpoint: Checkpoint, work: Work, names: dict[RowStream, str]) -> None:
        self.work_name, self.summed = _name_of(work), Summed(work.zero_sum(), ())
        self.left: list[RowStream] = []
        self._names = names  # as files were before they were read: a change while reading is one
        self._checkpoint, self._work, self._saved = checkpoint, work, time.monotonic()

    def part_done(self, part: RowStream, partial: Integers) -> None:
        """Note a part, and save every few seconds."""
        total = self.summed.total.copy()
        self._work.add(total, partial)
        self.summed = Summed(total, (*self.summed.files, self._names[part]))
        if time.monotonic() - self._saved >= SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        """Encrypt the current sum and its file names, and replace the checkpoint."""
        summed = self.summed
        sums = summed.total.tobytes()
        header = {"kind": "checkpoint", "work": self.work_name, "size": len(sums)}
        content = sums + json.dumps(summed.files).encode()
        write_secret(self._checkpoint.path, header, content, key=self._checkpoint.key)
        self._saved = time.monotonic()

    def finish(self) -> None:
        """Delete the checkpoint: the pass is complete."""
        self._checkpoint.path.unlink(missing_ok=True)


def name_of_part(part: RowStream) -> str:
    """A digest that identifies a file by path, size and modification time."""
    facts = [(str(path), (s := path.stat()).st_size, s.st_mtime_ns) for path in part.paths]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _name_of(work: Work) -> str:
    return hashlib.sha256(work.to_json().encode()).hexdigest()
