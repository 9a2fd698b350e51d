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
        """Resume: the files that are left to read, and the sum of those that are not."""
        if query is not None or not all(part.paths for part in parts):
            raise InputError(
                "checkpoint",
                "is kept by file, and this source is not read by files",
                "Leave out --checkpoint, or pass a directory of Parquet or text files",
            )
        return Progress(self, work, parts)


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

    def __init__(self, checkpoint: Checkpoint, work: Work, parts: list[RowStream]) -> None:
        self._checkpoint, self._work, self._saved = checkpoint, work, time.monotonic()
        self._work_name = hashlib.sha256(work.to_json().encode()).hexdigest()
        # As files were before they were read: a change while reading is one.
        self._names = {part: name_of_part(part) for part in parts}
        self.summed = self._stored() or Summed(work.zero_sum(), ())
        done = set(self.summed.files)
        self.left = [part for part, name in self._names.items() if name not in done]

    def _stored(self) -> Summed | None:
        """What was summed before; none if the work is another, or a file that was summed is gone or has changed.

        A file is the same if its path, length and time of change are what they were.
        """
        if not self._checkpoint.path.exists():
            return None
        header, content = read_secret(self._checkpoint.path, [self._checkpoint.key])
        if header.get("kind") != "checkpoint" or header["work"] != self._work_name:
            return None
        size = int(header["size"])
        total, files = np.frombuffer(content[:size], dtype=np.int64).copy(), json.loads(content[size:])
        is_same = total.shape == self._work.zero_sum().shape and set(files) <= set(self._names.values())
        return Summed(total, tuple(files)) if is_same else None

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
        header = {"kind": "checkpoint", "work": self._work_name, "size": len(sums)}
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
