"""What a generator is, how it draws a table of rows, and how one is kept in a directory of inert files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import safetensors.numpy

from understudy.arrays import Codes
from understudy.errors import InputError, UsageError
from understudy.files import read_json, read_tensors, to_json, write_directory
from understudy.generators.conditioning import (
    CHUNK,
    Balance,
    Condition,
    Given,
    Source,
    class_shares,
    condition_of,
    rejection_sample,
    restrict_label,
    rows_per_class,
)
from understudy.schema import NULL, Schema
from understudy.schema.encode import decode_table
from understudy.schema.images import ImageShape
from understudy.schema.table import parse_schema
from understudy.schema.values import CodeSet

DOCUMENT = "generator.json"
WEIGHTS = "generator.safetensors"
SCHEMA = "schema.yaml"
Tensors = dict[str, npt.NDArray[Any]]


class Generator(Protocol):
    """Draws synthetic rows.

    Guarantee:
        It is made from a release and public settings alone, so its rows cost no privacy (proofs/noise.md).
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


MOST_CELLS_AT_A_TIME = 2**23
"""Of 8 bytes each: tables with a thousand columns are drawn in shorter chunks, which seeds depend on."""

FEWEST_ROWS_AT_A_TIME = 2**10
MOST_CELLS_OF_A_TABLE = 2**31
"""16 GiB of codes."""


class Sampled(ABC):
    """A generator whose rows come from a source of codes for every condition."""

    schema: Schema

    @abstractmethod
    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition."""

    def sample(
        self, num_rows: int, *, seed: int = 0, given: Given | None = None, balance: Balance | None = None
    ) -> pa.Table:
        """Draw rows; the same seed gives the same rows."""
        return sample_table(self.schema, self.source, num_rows, seed=seed, given=given, balance=balance)


class LabelFirst(Sampled):
    """A dataclass of a generator that draws a row's class first, and all other cells given the class.

    A condition on the label is met by restricting ``label_shares``; the rest of it by rejection.
    """

    label_shares: tuple[float, ...]

    @abstractmethod
    def codes(self, num_rows: int, rng: np.random.Generator) -> Codes:
        """Codes of new rows.  # (num_rows, num_used)"""

    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition."""
        shares, left = restrict_label(self.schema, self.label_shares, condition)
        restricted: LabelFirst = replace(cast(Any, self), label_shares=shares)
        return Source(restricted.codes, left)


def image_shape(schema: Schema) -> ImageShape:
    """The shape of a schema's images."""
    if schema.image is None:
        raise ValueError("the schema has no images")
    return schema.image


def sample_table(
    schema: Schema,
    source_of: Callable[[Condition], Source],
    num_rows: int,
    *,
    seed: int,
    given: Given | None,
    balance: Balance | None,
) -> pa.Table:
    """Draw a table, chunk by chunk; the same seed gives the same rows.

    Args:
        schema: its rules are obeyed.
        source_of: gives what draws rows under a condition.
        num_rows: rows of the table.
        seed: the public seed.
        given: values that columns must have.
        balance: shares of the label's classes among the rows.
    """
    check_num_rows(schema, num_rows)
    rng = np.random.default_rng(seed)
    strata, members = _strata(schema, num_rows, rng, given=given, balance=balance)
    sources = [source_of(condition) for condition in strata]
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


def check_num_rows(schema: Schema, num_rows: int) -> None:
    """Refuse more rows than are drawn at a time, before anything is spent on them."""
    most = MOST_CELLS_OF_A_TABLE // len(schema.used)
    if not 0 <= num_rows <= most:
        raise UsageError(
            "rows",
            f"must be at most {most:,} of this table at a time",
            "Draw them in parts, each with a --seed of its own",
        )


def _strata(
    schema: Schema, num_rows: int, rng: np.random.Generator, *, given: Given | None, balance: Balance | None
) -> tuple[list[Condition], npt.NDArray[np.int64]]:
    """Conditions that rows are drawn under, and which of them each row is drawn under."""
    condition = condition_of(schema, given)
    shares = class_shares(schema, condition, balance)
    if shares is None or schema.label is None:
        return [condition], np.zeros(num_rows, dtype=np.int64)
    place = schema.used.index(schema.label)
    strata = [
        condition.and_also({place: CodeSet(() if code == NULL else ((code, code),), code == NULL)}) for code in shares
    ]
    members = np.repeat(np.arange(len(strata)), rows_per_class(shares, num_rows))
    return strata, rng.permutation(members)
