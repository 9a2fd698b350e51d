"""A table as numbers, which every metric reads: bins of all columns beside exact values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.evaluation.binning import bin_codes
from understudy.evaluation.cells import is_invalid, numbers
from understudy.schema.columns import Column
from understudy.schema.table import Schema

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Rows in the schema's terms. Nothing here is private by itself: it holds what it was given."""

    columns: tuple[Column, ...]
    bins: Integers
    """0 for null, then bins or categories from 1, then unlisted.  # (num_rows, num_columns)"""
    values: Floats
    """Numbers as they are with NaN for null, choices as in ``bins``.  # (num_rows, num_columns)"""

    def __len__(self) -> int:
        return len(self.bins)

    def take(self, rows: Integers | slice) -> CodedTable:
        """Some of the rows."""
        return CodedTable(self.columns, self.bins[rows], self.values[rows])

    def independent(self, num_rows: int, *, seed: int) -> CodedTable:
        """Rows whose columns are shuffled one by one, at most as many as there are."""
        rng = np.random.default_rng(seed)
        order = np.stack([rng.permutation(len(self)) for _ in self.columns], axis=1)[:num_rows]
        return CodedTable(
            self.columns, np.take_along_axis(self.bins, order, axis=0), np.take_along_axis(self.values, order, axis=0)
        )

    @property
    def numeric(self) -> list[int]:
        """Positions of the columns that hold numbers."""
        return [i for i, column in enumerate(self.columns) if not column.is_choice]


def code_table(schema: Schema, frame: pd.DataFrame, *, columns: tuple[Column, ...] | None = None) -> CodedTable:
    """Read the schema's used columns, or the given ones, of a data frame."""
    columns = schema.used if columns is None else columns
    absent = next((each.name for each in columns if each.name not in frame.columns), None)
    if absent is not None:
        raise InputError(f"column '{absent}'", "is not in the table", "Check the schema's names")
    twice = next((each.name for each in columns if list(frame.columns).count(each.name) > 1), None)
    if twice is not None:
        raise InputError(f"column '{twice}'", "is in the table more than once", "Give every column its own name")
    bins = np.stack([bin_codes(column, frame[column.name]) for column in columns], axis=1)
    values = bins.astype(np.float64)
    for position, column in enumerate(columns):
        if not column.is_choice:
            values[:, position] = numbers(column, frame[column.name])
    return CodedTable(columns, bins, values)


def invalid_cells(schema: Schema, frame: pd.DataFrame) -> int:
    """How many cells the schema does not allow."""
    return sum(int(is_invalid(column, frame[column.name]).sum()) for column in schema.used)
