"""What private steps hand over: found again by its key, written, and told to the ledger."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from understudy.files import write_directory
from understudy.private import ledger as ledgers


class Product(Protocol):
    """A release, a classifier or an encoder: a directory of files with a certificate."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over everything released."""

    @property
    def is_private(self) -> bool:
        """Whether all noise that it rests on was real."""

    def files(self) -> dict[str, bytes]:
        """Every file of its directory."""


P = TypeVar("P", bound=Product)


def stored(
    ledger: str | Path, *, key: str, plan_id: str, load: Callable[[str], P], directory: str | Path | None
) -> P | None:
    """What was paid for before under a key, if its directory is still there, unchanged and private.

    It is copied to ``directory``; giving out the same bits again costs nothing.
    """
    row = ledgers.find_published(ledger, key=key, plan_id=plan_id)
    if row is None or row.directory is None or not Path(row.directory).is_dir():
        return None
    found = load(row.directory)
    if found.fingerprint != row.fingerprint or not found.is_private:
        return None
    if directory is not None:
        write_directory(directory, found.files())
    return found


def publish(product: Product, *, directory: Path | str | None, ledger: Path | str | None, row: int | None) -> None:
    """Write a product, if it is to be kept, and tell the ledger's row what came of it."""
    if directory is not None:
        write_directory(directory, product.files())
    if ledger is not None and row is not None:
        where = str(Path(directory).resolve()) if directory is not None else None
        ledgers.mark_published(ledger, row, fingerprint=product.fingerprint, directory=where)
