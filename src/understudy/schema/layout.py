"""From codes to cells and back: the matrix that feature maps and generators speak.

A row's *cells* are one position in [0, 1] per number, then one membership vector per choice.
On the private side memberships are 0 or 1; a generator puts probabilities there, and because
the features of a choice are linear in its membership, that gives expected features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.schema.columns import NULL, Column, Resolution
from understudy.schema.table import Schema
from understudy.schema.values import number_values


def decode_table(schema: Schema, codes: npt.NDArray[np.int64]) -> pa.Table:
    """Turn codes into an Arrow table: integers stay integers, nulls stay nulls, dates stay dates."""
    arrays = [decode_column(column, codes[:, i]) for i, column in enumerate(schema.used)]
    return pa.table(dict(zip((column.name for column in schema.used), arrays, strict=True)))


def decode_column(column: Column, codes: npt.NDArray[np.int64]) -> Any:
    """Decode one column; a code outside ``0..`` is null."""
    missing = codes == NULL
    known = np.where(missing, 0, codes)
    if column.is_choice:
        return _categories(column).take(pa.array(known, mask=missing))
    values = pa.array(number_values(column, known), mask=missing)
    if column.resolution is None:
        return values
    moments = values.cast(pa.timestamp("us"))
    return moments.cast(pa.date32()) if column.resolution is Resolution.DAY else moments


def _categories(column: Column) -> Any:
    first = column.categories[0]
    if isinstance(first, bool):
        return pa.array(column.categories, type=pa.bool_())
    if isinstance(first, str):
        return pa.array(column.categories, type=pa.string())
    whole = all(isinstance(category, int) for category in column.categories)
    return pa.array(
        [float(c) if not whole else c for c in column.categories], type=pa.int64() if whole else pa.float64()
    )


POSITION_BITS = 16
"""Positions lie on multiples of 2^-16, so that phases are exact (see proofs/lattice.md)."""

Cells = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A run of cells that holds one membership vector.

    ``flags_null`` marks the two-way choice (present, null) that goes with a nullable number.
    """

    column: str
    start: int
    width: int
    flags_null: bool = False

    @property
    def stop(self) -> int:
        """One past the last cell."""
        return self.start + self.width


@dataclass(frozen=True)
class Layout:
    """Where each used column of a schema lies among the cells."""

    schema: Schema

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers; the i-th has cell i."""
        return tuple(column.name for column in self.schema.used if not column.is_choice)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """The membership vectors, in the schema's order."""
        start, found = len(self.numbers), []
        for column in self.schema.used:
            width = column.num_choices if column.is_choice else 2 if column.nullable else 0
            if width:
                found.append(Choice(column.name, start, width, flags_null=not column.is_choice))
                start += width
        return tuple(found)

    def column_at(self, cell: int) -> str:
        """The name of the column that a cell belongs to."""
        if cell < len(self.numbers):
            return self.numbers[cell]
        return next(choice.column for choice in self.choices if choice.start <= cell < choice.stop)

    @cached_property
    def width(self) -> int:
        """Number of cells per row."""
        return self.choices[-1].stop if self.choices else len(self.numbers)

    def expand(self, codes: npt.NDArray[np.int64]) -> Cells:
        """Codes to cells.  # (num_rows, num_used) -> (num_rows, width)

        Guarantee:
            A row's cells depend on its codes alone; positions are multiples of 2^-16 in
            [0, 1]; a membership vector is zero or one-hot (proofs/lattice.md).
        """
        cells = np.zeros((len(codes), self.width))
        rows = np.arange(len(codes))
        number_cell = {name: i for i, name in enumerate(self.numbers)}
        choice_of = {choice.column: choice for choice in self.choices}
        for i, column in enumerate(self.schema.used):
            code = codes[:, i]
            if column.name in number_cell:
                cells[:, number_cell[column.name]] = to_position(column, code)
            choice = choice_of.get(column.name)
            if choice is None:
                continue
            slot = (code < 0).astype(np.int64) if choice.flags_null else code
            slot = np.where(slot < 0, len(column.categories), slot)  # the null slot, if any
            listed = slot < choice.width
            cells[rows[listed], choice.start + slot[listed]] = 1.0
        return cells

    def collapse(self, cells: Cells, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Cells with probabilities to codes: positions are rounded, choices are drawn."""
        codes = np.empty((len(cells), len(self.schema.used)), dtype=np.int64)
        drawn = {choice.column: _draw(cells[:, choice.start : choice.stop], rng) for choice in self.choices}
        number_cell = {name: i for i, name in enumerate(self.numbers)}
        for i, column in enumerate(self.schema.used):
            if column.is_choice:
                slot = drawn[column.name]
                codes[:, i] = np.where(slot == len(column.categories), NULL, slot)
                continue
            codes[:, i] = from_position(column, cells[:, number_cell[column.name]])
            if column.nullable:
                codes[drawn[column.name] == 1, i] = NULL
        return codes


def to_position(column: Column, codes: npt.NDArray[np.int64]) -> Cells:
    """Codes of a number to positions; a null lies in the middle."""
    missing = codes < 0
    share: Cells = codes / (column.num_steps or 1)
    if column.scale_hint == "log1p":
        share[missing] = 0.0
        share = np.log1p(share * _span(column)) / np.log1p(_span(column))
    share[missing] = 0.5
    share *= 2**POSITION_BITS
    np.rint(share, out=share)
    share /= 2**POSITION_BITS
    return share


def from_position(column: Column, positions: Cells) -> npt.NDArray[np.int64]:
    """Positions to the nearest codes."""
    share = np.clip(positions, 0.0, 1.0)
    if column.scale_hint == "log1p":
        share = np.expm1(share * np.log1p(_span(column))) / _span(column)
    return np.clip(np.rint(share * column.num_steps), 0, column.num_steps).astype(np.int64)


def _span(column: Column) -> float:
    low, high = column.low_high
    return (high - low) or 1.0


def _draw(probabilities: Cells, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    cumulative = np.cumsum(probabilities, axis=1)
    uniforms = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
    slots: npt.NDArray[np.int64] = np.minimum((cumulative <= uniforms).sum(axis=1), probabilities.shape[1] - 1)
    return slots
