"""Rows that anybody may see, ready to be turned into the features of a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.features import Block, Tensors
from understudy.schema import Layout, Schema
from understudy.schema.encode import encode_batch


@dataclass(frozen=True)
class PublicRows:
    """Rows as codes, and as cells and features for the maps that read those."""

    layout: Layout
    codes: Integers  # (num_rows, num_used)
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def cells(self) -> Floats:
        """Positions and memberships.  # (num_rows, width)"""
        return self.layout.expand(self.codes)

    def slots(self, label: tuple[int, int] | None) -> Integers:
        """Which label value each row has; one past the last if it has none; 0 without a label."""
        if label is None:
            return np.zeros(len(self), dtype=np.int64)
        members = self.cells[:, slice(*label)]
        return np.asarray(np.where(members.any(axis=1), members.argmax(axis=1), members.shape[1]))

    def features(self, block: Block) -> Floats:
        """Features of a plain block, which are kept: several parts share them."""
        if block.name not in self._kept:
            self._kept[block.name] = np.asarray(block.map(self.cells), dtype=np.float64)
        return np.asarray(self._kept[block.name])

    def factors(self, block: Block, map_: Tensors) -> dict[int, Floats]:
        """Features of every factor of a block of products."""
        if block.name not in self._kept:
            self._kept[block.name] = map_.single(self.cells)
        return dict(self._kept[block.name])

    def some(self, count: int, rng: np.random.Generator) -> PublicRows:
        """At most so many of the rows, drawn without repetition."""
        if len(self) <= count:
            return self
        return PublicRows(self.layout, self.codes[rng.choice(len(self), count, replace=False)])


def code_rows(schema: Schema, data: Any) -> Integers:
    """Codes of an Arrow, pandas or polars table that has the schema's columns; codes stay codes.

    Raises:
        InputError: a column is missing, or there are no rows.
    """
    if isinstance(data, np.ndarray):
        return np.asarray(data, dtype=np.int64)
    table = data if isinstance(data, pa.Table) else pa.table(data)
    absent = next((c.name for c in schema.used if c.name not in table.column_names), None)
    if absent is not None:
        raise InputError(f"column '{absent}'", "is not among the other rows", "Compare rows of the same schema")
    batches = table.select([column.name for column in schema.used]).to_batches()
    found = [encode_batch(schema, batch) for batch in batches if batch.num_rows]
    if not found:
        raise InputError("the other rows", "there are none", "Check the file")
    return np.concatenate(found)
