"""Files that somebody else wrote: read as bytes, numbers and words, within bounds, and never acted on.

Only regular files are opened: a pipe would wait for ever, a device never ends, and a link in a directory that came
from elsewhere points at files of whoever reads it. Sizes are looked at before anything is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from understudy.errors import InputError, UnderstudyError

MOST_DOCUMENT_BYTES = 2**26
"""A description in JSON, or a page: 64 MiB."""

MOST_YAML_BYTES = 2**23
"""A schema: 8 MiB."""

MOST_TENSOR_BYTES = 2**31
"""Numbers: 2 GiB."""

MOST_HEADER_BYTES = 2**22
"""What a file of numbers says of itself: 4 MiB."""

MOST_ENTRIES = 1000
"""Files in a directory."""

DEEPEST = 64
"""Lists and tables inside one another."""

MOST_DIGITS = 40
"""Digits of a whole number; those of this program have 20 at most."""

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
CERTIFICATE = "certificate.json"
CERTIFICATE_PAGE = "certificate.html"


@contextmanager
def refusing_damage(what: str, remedy: str = "See whether it is whole: understudy verify DIRECTORY") -> Iterator[None]:
    """Work, also as a decorator, on what files of somebody else say: where it stumbles, they are to blame.

    Raises:
        InputError: what they say is well formed, and yet nothing that this work can be done on.
    """
    try:
        yield
    except (UnderstudyError, MemoryError):
        raise
    except Exception as error:
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        if isinstance(error, TypeError) and frames[-1].f_globals.get("__name__") == "contextlib":
            raise  # of the call itself, whose arguments do not fit: no work was begun
        rule = "its description and its numbers are not what this is done with"
        raise InputError(what, rule, remedy) from error


def read_file(path: str | Path, *, most: int, follow: bool = False) -> bytes:
    """The bytes of a regular file of ``most`` bytes; with ``follow``, for names that a person gave, through links.

    Raises:
        InputError: it is a link, a pipe, a device or a directory, too large, or cannot be read.
    """
    where, remedy = f"file '{path}'", "Do not rely on it; fetch it again from its owner"
    try:
        link = 0 if follow else os.O_NOFOLLOW
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | link)
    except FileNotFoundError:
        raise InputError(where, "is missing", "Check the path") from None
    except (OSError, ValueError):
        is_link = not follow and Path(path).is_symlink()
        rule = "is a link, not a file of its own" if is_link else "cannot be read"
        raise InputError(where, rule, remedy) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise InputError(where, "is not a regular file", remedy)
        if status.st_size <= most:
            with os.fdopen(handle, "rb", closefd=False) as file:
                content = file.read(most + 1)
            if len(content) <= most:
                return content
    except OSError:
        raise InputError(where, "cannot be read", remedy) from None
    finally:
        os.close(handle)
    raise InputError(where, f"is larger than {most} bytes", remedy)


def is_file_of(path: str | Path, content: bytes) -> bool:
    """Whether a regular file holds these bytes and no others.

    Raises:
        InputError: it is no regular file.
    """
    most = max(len(content), MOST_DOCUMENT_BYTES)
    return read_file(path, most=most) == content


def has_file(directory: str | Path, name: str) -> bool:
    """Whether a directory has a regular file of that name."""
    path = os.path.join(directory, name)
    return os.path.isfile(path) and not os.path.islink(path)


def names_in(directory: str | Path) -> set[str]:
    """The names of all that a directory holds, if they are not too many."""
    try:
        with os.scandir(directory) as entries:
            found = {entry.name for entry in islice(entries, MOST_ENTRIES + 1)}
    except (OSError, ValueError):
        raise InputError(f"directory '{directory}'", "cannot be read", "Check the path") from None
    if len(found) > MOST_ENTRIES:
        raise InputError(
            f"directory '{directory}'", f"holds more than {MOST_ENTRIES} files", "Fetch it again from its owner"
        )
    return found


def read_json(path: str | Path, *, follow: bool = False) -> Any:
    """A document in JSON from a regular file.

    Raises:
        InputError: the file cannot be read.
        ValueError: it is no JSON, or goes beyond the bounds.
    """
    return parse_json(read_file(path, most=MOST_DOCUMENT_BYTES, follow=follow))


def parse_json(content: bytes) -> Any:
    """JSON without repeated keys, deep nesting, and numbers that are not finite or have no end of digits."""
    steps = _STEPS[np.frombuffer(_STRING.sub(b"", content), dtype=np.uint8)]
    if steps.cumsum(dtype=np.int64).max(initial=0) > DEEPEST:
        raise ValueError(f"more than {DEEPEST} lists inside one another")
    try:
        return json.loads(
            content, object_pairs_hook=_table, parse_int=_whole, parse_float=_finite, parse_constant=_finite
        )
    except RecursionError:
        raise ValueError("too many lists inside one another") from None


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def _finite(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def read_tensors(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """Named arrays from a regular file.

    Raises:
        InputError: the file cannot be read.
        ValueError: it holds no arrays.
    """
    return parse_tensors(read_file(path, most=MOST_TENSOR_BYTES))


def parse_tensors(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Named arrays, which take no more memory than their bytes."""
    if int.from_bytes(content[:8], "little") > MOST_HEADER_BYTES:
        raise ValueError("the header of a file of numbers is too long")
    try:
        return dict(safetensors.numpy.load(content))
    except (SafetensorError, KeyError, TypeError, ValueError):
        raise ValueError("not a file of numbers") from None


def to_json(document: dict[str, Any]) -> bytes:
    """JSON for people and diffs: sorted, indented, plain ASCII."""
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def canonical_sha256(document: dict[str, Any]) -> str:
    """SHA-256 of a document's canonical form: sorted JSON in plain ASCII."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


# New directories, which are whole or not there at all.

LONGEST_PREFIX = 40  # characters of the name that a scratch directory keeps; names have 255 bytes


def check_new_directory(directory: str | Path) -> Path:
    """Refuse, before anything is spent, a directory that exists or cannot be made."""
    target = Path(directory)
    try:
        is_taken = target.exists()
        has_parent = target.parent.is_dir() and os.access(target.parent, os.W_OK)
    except (OSError, ValueError):
        rule = "cannot be the name of a directory"
        raise InputError(f"directory '{target}'", rule, "Choose another") from None
    if is_taken:
        raise InputError(f"directory '{target}'", "exists already", "Choose another, or remove it")
    if not has_parent:
        raise InputError(f"directory '{target}'", "its parent does not exist or cannot be written", "Choose another")
    return target


def write_directory(directory: str | Path, files: dict[str, bytes]) -> Path:
    """Write files next to their place and move them there in one step."""
    target = check_new_directory(directory)
    with new_directory(target) as scratch:
        for name, content in files.items():
            _write_durably(scratch / name, content)
    return target


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory beside its place, moved there once it is whole."""
    try:
        prefix = f".{target.name[:LONGEST_PREFIX]}."
        scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
        try:
            yield scratch
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError:
        raise InputError(f"directory '{target}'", "cannot be written", "Check space and permissions") from None


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
