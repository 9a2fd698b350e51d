"""Column grids: every column cut into cells of codes, and where their probabilities lie."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.schema import NULL, Column, Schema
from understudy.schema.layout import from_position

Integers = npt.NDArray[np.int64]
MOST_CELLS, FEWEST_CELLS, MOST_WIDTH = 128, 16, 2**13


@dataclass(frozen=True, slots=True)
class ColumnGrid:
    """The cells of one column; cell i holds the codes from ``lows[i]`` to ``highs[i]``.

    A choice has a cell per category. A number with few values has a cell per value; one with many
    has cells of about equal width on the column's scale, and one for each bound, where values
    often pile up (most capital gains are 0). A null has a cell of its own, the last.
    """

    lows: Integers
    highs: Integers
    has_null: bool

    @property
    def width(self) -> int:
        """Number of cells, with that of nulls."""
        return len(self.lows) + self.has_null

    def draw(
        self, probabilities: npt.NDArray[np.float64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """A code for each row: a cell by its probability, and any of its codes.

        # (num_rows, width) -> (num_rows,)
        """
        cumulative = np.cumsum(probabilities, axis=1)
        marks = rng.random((len(probabilities), 1)) * cumulative[:, -1:]
        cells = np.minimum((cumulative <= marks).sum(axis=1), self.width - 1)
        known = np.minimum(cells, len(self.lows) - 1)
        spans = self.highs[known] - self.lows[known] + 1
        codes = self.lows[known] + np.floor(rng.random(len(cells)) * spans).astype(np.int64)
        return np.where(cells == len(self.lows), NULL, codes)


def column_grid(column: Column, most_cells: int) -> ColumnGrid:
    """Cut a column into about ``most_cells`` cells at most (a choice: one per category)."""
    if column.is_choice:
        values = np.arange(len(column.categories))
        return ColumnGrid(values, values, column.nullable)
    if column.num_steps < most_cells:
        values = np.arange(column.num_steps + 1)
        return ColumnGrid(values, values, column.nullable)
    edges = from_position(column, np.arange(most_cells) / most_cells)
    lows = np.unique([*edges, 1, column.num_steps])
    return ColumnGrid(lows, np.append(lows[1:] - 1, column.num_steps), column.nullable)


@dataclass(frozen=True)
class Runs:
    """The grids of all used columns of a schema, side by side."""

    schema: Schema

    @cached_property
    def grids(self) -> tuple[ColumnGrid, ...]:
        """A grid per used column; wide tables get fewer cells per number."""
        numbers = sum(not column.is_choice for column in self.schema.used)
        most = int(np.clip(MOST_WIDTH // max(1, numbers), FEWEST_CELLS, MOST_CELLS))
        return tuple(column_grid(column, most) for column in self.schema.used)

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where each column's cells lie."""
        edges = np.cumsum([0, *(grid.width for grid in self.grids)]).tolist()
        return tuple(pairwise(edges))

    @property
    def width(self) -> int:
        """Cells of all columns."""
        return self.spans[-1][1]
