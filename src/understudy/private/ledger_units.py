"""Whose privacy a ledger counts for: rows, or people who may have several."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from understudy.errors import InputError
from understudy.schema import Schema

PER, OF = "; per ", " of at most "


def described(method: str, schema: Schema) -> str:
    """What a ledger's line says of a release, for people alone."""
    return f"{method} on {schema.name}"


def unit_in(description: str) -> str:
    """Whom a line of an older ledger counts for: before units had a column, its words told them."""
    if PER not in description:
        return "row"
    return description.rpartition(PER)[2].rpartition(OF)[0]


def check_unit(path: str | Path, units: Iterable[str], unit: str) -> None:
    """Refuse a ledger that counts for others than a release does."""
    others = set(units) - {unit}
    if others:
        raise InputError(
            f"ledger '{path}'",
            f"holds releases per {min(others)}, and a cost per {unit} does not add to theirs",
            "Keep a ledger for each unit of privacy",
        )
