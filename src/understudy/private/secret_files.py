"""Encrypted files for what has no noise yet: partial sums of one site, and checkpoints of a pass over many files.

A pass that was interrupted resumes after the files it had summed. No privacy is spent by stopping or resuming: the
ledger is charged later, before noise is drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from understudy.arrays import Integers
from understudy.errors import InputError, MissingExtraError, UsageError
from understudy.files import MOST_TENSOR_BYTES, parse_json, read_file
from understudy.private.sums import Work
from understudy.readers import RowStream

MAGIC = b"UNDERSTUDY SECRET 1\n"
KEY_BYTES = 32  # AES-256
NONCE_BYTES = 12  # what GCM is specified for
LENGTH_BYTES = 4  # of the header, big-endian
KEY_VARIABLE = "UNDERSTUDY_KEY"
MOST_KEY_BYTES = 2**10
HOW_TO_MAKE = "Make one: openssl rand -hex 32 > FILE, and chmod 600 FILE"


def read_key(path: Path | str | None) -> bytes:
    """A key of 32 bytes in hexadecimal, from a file, or else from the variable UNDERSTUDY_KEY."""
    where = f"key file '{path}'" if path is not None else f"variable {KEY_VARIABLE}"
    if path is None and KEY_VARIABLE not in os.environ:
        raise UsageError(where, "is not set, and no key file was given", f"Add --key-file FILE. {HOW_TO_MAKE}")
    if path is not None and not Path(path).is_file():
        raise UsageError(where, "is not there", HOW_TO_MAKE)
    key = b""
    with suppress(InputError, ValueError):
        found = os.environ[KEY_VARIABLE] if path is None else read_file(path, most=MOST_KEY_BYTES, follow=True).decode()
        key = bytes.fromhex(found.strip())
    if len(key) != KEY_BYTES:
        raise UsageError(where, f"must hold a key of {2 * KEY_BYTES} hexadecimal digits", HOW_TO_MAKE)
    return key


def check_secret_target(path: Path | str, key: bytes) -> None:
    """Refuse what would keep an encrypted file from being written, before anything is paid for it."""
    if Path(path).exists():
        raise InputError(f"file '{path}'", "exists already", "Choose another name")
    if not os.access(Path(path).absolute().parent, os.W_OK | os.X_OK):
        raise InputError(f"file '{path}'", "its directory is not there, or not to be written to", "Make it first")
    if len(key) != KEY_BYTES:
        raise UsageError("key", f"must have {KEY_BYTES} bytes", HOW_TO_MAKE)
    _cipher(key)


def write_secret(path: Path | str, header: dict[str, Any], content: bytes, *, key: bytes) -> None:
    """Encrypt content with AES-256-GCM into a file that only its owner may read.

    Guarantee:
        The file tells the header and the length of the content. Nobody without the key can read the content,
        or change either unnoticed (NIST SP 800-38D; every file has a random nonce of its own) (proofs/parties.md).
    """
    cipher, encoded_header = _cipher(key), json.dumps(header, sort_keys=True).encode()
    front = MAGIC + len(encoded_header).to_bytes(LENGTH_BYTES, "big") + encoded_header
    nonce = secrets.token_bytes(NONCE_BYTES)
    whole = front + nonce + cipher.encrypt(nonce, content, front)
    beside = Path(f"{path}.{secrets.token_hex(4)}.part")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)  # there only if this was cut short


def read_secret(path: Path | str, keys: Sequence[bytes]) -> tuple[dict[str, Any], bytes]:
    """The header and content of an encrypted file, by whichever key fits it.

    Raises:
        InputError: it is not such a file, it was changed, or no key fits.
    """
    where = f"file '{Path(path).name}'"
    try:
        whole = read_file(path, most=MOST_TENSOR_BYTES, follow=True)
        start = len(MAGIC) + LENGTH_BYTES
        end = start + int.from_bytes(whole[len(MAGIC) : start], "big")
        header = parse_json(whole[start:end])
        if not whole.startswith(MAGIC) or not isinstance(header, dict):
            raise ValueError
    except (InputError, ValueError):
        raise InputError(where, "is not a secret file of this program", "Check the path") from None
    front, nonce, sealed = whole[:end], whole[end : end + NONCE_BYTES], whole[end + NONCE_BYTES :]
    ciphers = [_cipher(key) for key in keys]
    from cryptography.exceptions import InvalidTag

    for cipher in ciphers:
        with suppress(InvalidTag, ValueError):
            return header, bytes(cipher.decrypt(nonce, sealed, front))
    raise InputError(where, "no key given opens it, or it was changed", "Use the key that it was written with")


def _cipher(key: bytes) -> Any:
    if find_spec("cryptography") is None:
        raise MissingExtraError("cryptography", "parties")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


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
