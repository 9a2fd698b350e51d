"""Whose privacy a ledger counts for: rows, or people who may have several. Lines of it say so in words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from understudy.errors import InputError
from understudy.schema import Schema

PER, OF = "; per ", " of at most "


def described(method: str, schema: Schema) -> str:
    """What a ledger's line says of a release; whose privacy it is counted for is read back from it."""
    words, unit = f"{method} on {schema.name}".replace(PER, "; "), schema.privacy
    return words if unit.is_row else f"{words}{PER}{unit.unit}{OF}{unit.max_rows} rows"


def unit_in(description: str) -> str:
    """Whom a line counts for."""
    if PER not in description:
        return "row"
    return description.rpartition(PER)[2].rpartition(OF)[0]


def check_unit(path: str | Path, descriptions: Iterable[str], unit: str) -> None:
    """Refuse a ledger that counts for others than a release does."""
    others = {unit_in(description) for description in descriptions} - {unit}
    if others:
        raise InputError(
            f"ledger '{path}'", f"holds releases per {min(others)}, and a cost per {unit} does not add to theirs",
            "Keep a ledger for each unit of privacy",
        )  # fmt: skip
