"""Column grids: every column cut into cells of codes, and inverse-transform sampling of cells and codes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.schema import NULL, Column, Schema
from understudy.schema.columns import from_position

MOST_CELLS_PER_NUMBER = 128
FEWEST_CELLS_PER_NUMBER = 16
MOST_CELLS_OF_NUMBERS = 2**13
"""Cells of all numbers of a table together, which a component has probabilities of."""

GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
"""The number whose multiples, modulo 1, have the lowest discrepancy."""


@dataclass(frozen=True)
class ColumnGrid:
    """The cells of one column, each made of pieces: runs of codes from a low to a high.

    ``cells`` says which cell each piece belongs to, and ``shares`` which part of the cell's rows it
    has; by default every piece is a cell. Codes of a piece are equally likely. A null has a cell
    of its own, the last.
    """

    lows: Integers
    highs: Integers
    has_null: bool
    cells: Integers | None = None
    shares: Floats | None = None

    @cached_property
    def cell_of_piece(self) -> Integers:
        """The cell that each piece belongs to."""
        return np.arange(len(self.lows)) if self.cells is None else self.cells

    @cached_property
    def share_of_piece(self) -> Floats:
        """The part of its cell's rows that each piece has."""
        return np.ones(len(self.lows)) if self.shares is None else self.shares

    @cached_property
    def num_known(self) -> int:
        """Number of cells that are not null."""
        return int(self.cell_of_piece.max()) + 1

    @property
    def width(self) -> int:
        """Number of cells, with that of nulls."""
        return self.num_known + self.has_null

    def codes(self, cells: Integers, rng: np.random.Generator) -> Integers:
        """A code in each given cell.  # (num_rows,) -> (num_rows,)"""
        known = np.minimum(cells, self.num_known - 1)
        order = np.argsort(self.cell_of_piece, kind="stable")
        pieces = order[known]
        if len(order) > self.num_known:
            within = np.zeros((self.num_known, len(order)))
            within[self.cell_of_piece[order], np.arange(len(order))] = self.share_of_piece[order]
            # In random order: marks in the rows' order would tie this column's pieces to others'.
            by_cell = np.lexsort((rng.random(len(cells)), known))
            marks = np.empty(len(cells))
            marks[by_cell] = even_marks(len(cells), rng)
            pieces = order[pick(within, known, marks)]
        spans = self.highs[pieces] - self.lows[pieces] + 1
        codes = self.lows[pieces] + np.floor(rng.random(len(cells)) * spans).astype(np.int64)
        return np.where(cells == self.num_known, NULL, codes)


def pick(probabilities: Floats, chosen: Integers, marks: Floats) -> Integers:
    """Inverse-transform sampling: where marks in [0, 1) fall in the cumulated probabilities of the chosen rows.

    Row k of the cumulated probabilities is moved to [k, k + 1), so that all rows form one increasing line and one
    binary search in it serves every mark.

    # (components, width), (num_rows,), (num_rows,) -> (num_rows,)
    """
    cumulative = np.cumsum(probabilities, axis=1)
    cumulative /= cumulative[:, -1:]
    line = (cumulative + np.arange(len(cumulative))[:, None]).ravel()
    width = probabilities.shape[1]
    inside = np.minimum(marks + chosen, np.nextafter(chosen + 1.0, 0.0))  # sums may round up
    found = np.searchsorted(line, inside, side="right") - chosen * width
    return np.asarray(np.clip(found, 0, width - 1))


def even_marks(count: int, rng: np.random.Generator) -> Floats:
    """A randomised low-discrepancy sequence: each number is uniform in [0, 1), and every stretch is spread evenly.

    Multiples of the golden ratio from a random start (a Kronecker sequence with the Cranley-Patterson shift): n of them
    miss the length of an interval by O(log n / n), independent draws by O(1 / sqrt(n)), so that counts of
    drawn rows stay nearer to their expectations.
    """
    return np.asarray((rng.random() + np.arange(count) * GOLDEN_RATIO) % 1.0)


def column_grid(column: Column, most_cells: int) -> ColumnGrid:
    """Cut a column into about ``most_cells`` cells at most.

    A choice has a cell per category. A number with few values has a cell per value; one with many
    has cells of about equal width on the column's scale, and one for each bound, where values
    often pile up (most capital gains are 0).
    """
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
        most = int(np.clip(MOST_CELLS_OF_NUMBERS // max(1, numbers), FEWEST_CELLS_PER_NUMBER, MOST_CELLS_PER_NUMBER))
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
