"""What a generator is, how it draws a table of rows, and how one is kept in a directory of inert files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import safetensors.numpy

from understudy.arrays import Codes, Integers
from understudy.codec import Registry, encode
from understudy.errors import InputError, UsageError
from understudy.files import read_json, read_tensors, to_json, write_directory
from understudy.generators.conditioning import Balance, Condition, Given, find_strata
from understudy.generators.rejection import CHUNK, Source, rejection_sample
from understudy.schema import NULL, Schema
from understudy.schema.encode import decode_table
from understudy.schema.table import parse_schema

DOCUMENT = "generator.json"
WEIGHTS = "generator.safetensors"
SCHEMA = "schema.yaml"
Tensors = dict[str, npt.NDArray[Any]]

MOST_CELLS_AT_A_TIME = 2**23
"""Of 8 bytes each: tables with a thousand columns are drawn in shorter chunks, which seeds depend on."""

FEWEST_ROWS_AT_A_TIME = 2**10
MOST_CELLS_OF_A_TABLE = 2**31
"""16 GiB of codes."""


class Generator(ABC):
    """Draws synthetic rows that obey its ``schema``; by default as many as the private table has, or about so many.

    Kinds are frozen dataclasses. What is not compared of their fields, the schema and arrays, is no part of their
    document.

    Guarantee:
        It is made from a release and public settings alone, so its rows cost no privacy (proofs/noise.md).
    """

    schema: Schema
    default_num_rows: int

    @abstractmethod
    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition."""

    def sample(
        self, num_rows: int, *, seed: int = 0, given: Given | None = None, balance: Balance | None = None
    ) -> pa.Table:
        """Draw rows that obey the schema's rules, chunk by chunk; the same seed gives the same rows.

        Args:
            num_rows: how many rows.
            seed: the public seed.
            given: what rows must have: column names with a value, a list of values, or for numbers
                and dates a range ``(low, high)``.
            balance: shares of the label's classes: ``kept``, ``equal``, or a share for each.
        """
        schema, rng = self.schema, np.random.default_rng(seed)
        check_num_rows(schema, num_rows)
        strata, members = find_strata(schema, num_rows, rng, given=given, balance=balance)
        sources = [self.source(condition) for condition in strata]
        tables = []
        step = min(CHUNK, max(FEWEST_ROWS_AT_A_TIME, MOST_CELLS_AT_A_TIME // len(schema.used)))
        for start in range(0, max(num_rows, 1), step):
            part = members[start : start + step]
            codes = np.empty((len(part), len(schema.used)), dtype=np.int64)
            for i, (source, condition) in enumerate(zip(sources, strata, strict=True)):
                mine = part == i
                codes[mine] = rejection_sample(source, schema, condition, int(mine.sum()), rng)
            tables.append(decode_table(schema, codes))
        return pa.concat_tables(tables).combine_chunks()

    def to_dict(self) -> dict[str, Any]:
        """Everything but the schema and the arrays."""
        return encode(self)

    @abstractmethod
    def tensors(self) -> Tensors:
        """The arrays, as a file holds them."""

    @classmethod
    @abstractmethod
    def load(cls, schema: Schema, document: dict[str, Any], tensors: Tensors) -> Self:
        """The generator that ``to_dict`` and ``tensors`` describe; any exception says that they do not fit."""


GENERATOR_KINDS: Registry[Generator] = Registry(Generator)
"""Every kind of generator by the name it has in files."""


class LabelFirst(Generator):
    """A generator that draws a row's class first, and all other cells given the class.

    A condition on the label is met by restricting ``label_shares``; the rest of it by rejection.
    """

    label_shares: tuple[float, ...]

    @abstractmethod
    def codes_of(self, classes: Integers, rng: np.random.Generator) -> Codes:
        """Codes of new rows of these classes.  # (num_rows,) -> (num_rows, num_used)"""

    def codes(self, num_rows: int, rng: np.random.Generator) -> Codes:
        """Codes of new rows.  # (num_rows, num_used)"""
        shares = np.asarray(self.label_shares)
        return self.codes_of(rng.choice(len(shares), size=num_rows, p=shares), rng)

    def source(self, condition: Condition) -> Source:
        """What draws rows of the classes that a condition leaves.

        Raises:
            UsageError: no class is left.
        """
        label, shares = self.schema.label, np.asarray(self.label_shares)
        place = self.schema.used.index(label) if label is not None and len(shares) > 1 else None
        if label is None or place is None or place not in condition.allowed:
            return Source(self.codes, condition)
        codes = np.append(np.arange(len(label.categories)), NULL)[: len(shares)]
        kept = shares * condition.allowed[place].contains(codes)
        if not kept.any():
            raise UsageError("given", "no row has such a label", "Widen the condition")
        restricted: LabelFirst = replace(cast(Any, self), label_shares=tuple((kept / kept.sum()).tolist()))
        left = {other: codes for other, codes in condition.allowed.items() if other != place}
        return Source(restricted.codes, Condition(left))


def check_num_rows(schema: Schema, num_rows: int) -> None:
    """Refuse more rows than are drawn at a time, before anything is spent on them."""
    most = MOST_CELLS_OF_A_TABLE // len(schema.used)
    if not 0 <= num_rows <= most:
        raise UsageError(
            "rows",
            f"must be at most {most:,} of this table at a time",
            "Draw them in parts, each with a --seed of its own",
        )


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
        schema, own = parse_schema(document["schema"], name="table"), document["generator"]
        kind: type[Generator] = GENERATOR_KINDS[own.pop("kind")]
        return kind.load(schema, own, tensors)
    except Exception:  # files may say anything
        raise InputError(f"generator '{folder}'", "is missing or damaged", AGAIN) from None


def release_of(directory: str | Path) -> str | None:
    """The fingerprint of the release that a stored generator was fitted to; none if it is damaged."""
    try:
        return str(read_json(Path(directory) / DOCUMENT)["release"])
    except (InputError, ValueError, KeyError, TypeError):
        return None
