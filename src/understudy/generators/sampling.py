"""From a generator's draws to a table: rows that obey the rules and are what was asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.errors import UsageError
from understudy.generators.conditioning import Balance, Condition, Given, class_shares, condition_of, rows_per_class
from understudy.generators.rejection import CHUNK, Source, rejection_sample
from understudy.schema import NULL, Schema
from understudy.schema.layout import decode_table
from understudy.schema.values import CodeSet

MOST_CELLS = 2**23
FEWEST_ROWS = 2**10
"""Cells that are drawn at a time: tables with a thousand columns are drawn in shorter parts."""

MOST_DRAWN = 2**31
"""Cells of a table that is drawn: 16 GiB of codes."""


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
    step = min(CHUNK, max(FEWEST_ROWS, MOST_CELLS // len(schema.used)))
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
    most = MOST_DRAWN // len(schema.used)
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
