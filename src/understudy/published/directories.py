"""New directories, which are whole or not there at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from understudy.errors import InputError

LONGEST_PREFIX = 40


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
