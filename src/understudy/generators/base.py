"""What a generator is, and how one is kept in a directory of inert files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa
import safetensors.numpy

from understudy.errors import InputError
from understudy.files import read_json, read_tensors, to_json, write_directory
from understudy.generators.conditioning import Balance, Given
from understudy.schema import Schema
from understudy.schema.table import parse_schema

DOCUMENT = "generator.json"
WEIGHTS = "generator.safetensors"
SCHEMA = "schema.yaml"
Tensors = dict[str, npt.NDArray[Any]]


class Generator(Protocol):
    """Draws synthetic rows.

    Guarantee:
        It is made from a release and public settings alone, so its rows cost no privacy.
    """

    @property
    def schema(self) -> Schema:
        """The schema that every row obeys."""

    @property
    def default_num_rows(self) -> int:
        """The (noisy or public) number of rows of the private table."""

    def sample(
        self, num_rows: int, *, seed: int = 0, given: Given | None = None, balance: Balance | None = None
    ) -> pa.Table:
        """Draw rows that obey the schema's rules; the same seed gives the same rows.

        Args:
            num_rows: how many rows.
            seed: the public seed.
            given: what rows must have: column names with a value, a list of values, or for numbers
                and dates a range ``(low, high)``.
            balance: shares of the label's classes: ``kept``, ``equal``, or a share for each.
        """

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights."""

    def tensors(self) -> Tensors:
        """The weights."""


GENERATOR_KINDS: dict[str, Callable[[Schema, dict[str, Any], Tensors], Generator]] = {}
"""Every kind of generator by the name it has in files."""


AGAIN = "Make it: understudy fit RELEASE -o MODEL"
"""What to do about a generator that is damaged."""


def save_generator(generator: Generator, directory: str | Path, *, release: str) -> Path:
    """Write a generator; ``release`` is the fingerprint of the release it was fitted to."""
    document = {"format": 1, "release": release, "schema": generator.schema.to_dict(), "generator": generator.to_dict()}
    return write_directory(
        directory,
        {
            DOCUMENT: to_json(document),
            WEIGHTS: bytes(safetensors.numpy.save(generator.tensors())),
            SCHEMA: generator.schema.to_yaml().encode(),
        },
    )


def load_generator(directory: str | Path) -> Generator:
    """Read a generator back; it samples without torch."""
    folder = Path(directory)
    try:
        document, tensors = read_json(folder / DOCUMENT), read_tensors(folder / WEIGHTS)
        schema = parse_schema(document["schema"], name="table")
        kind = GENERATOR_KINDS[document["generator"]["kind"]]
        found: Generator | None = kind(schema, document["generator"], tensors)
    except Exception:  # files may say anything
        found = None
    if found is None:
        raise InputError(f"generator '{folder}'", "is missing or damaged", AGAIN)
    return found


def release_of(directory: str | Path) -> str | None:
    """The fingerprint of the release that a stored generator was fitted to; none if it is damaged."""
    try:
        return str(read_json(Path(directory) / DOCUMENT)["release"])
    except (InputError, ValueError, KeyError, TypeError):
        return None
