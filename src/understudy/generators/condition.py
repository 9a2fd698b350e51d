"""Conditions on columns, and what they leave of a mixture: Bayes' rule, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.generators.grids import ColumnGrid, even_marks, pick
from understudy.schema.codesets import CodeSet


@dataclass(frozen=True)
class Condition:
    """The codes that columns may have, by the columns' places; other columns are free."""

    allowed: Mapping[int, CodeSet] = field(default_factory=dict)

    def holds(self, codes: Integers) -> npt.NDArray[np.bool_]:
        """Which rows meet it.  # (num_rows, num_used) -> (num_rows,)"""
        found = np.ones(len(codes), dtype=bool)
        for place, kept in self.allowed.items():
            found &= kept.contains(codes[:, place])
        return found

    def and_also(self, allowed: Mapping[int, CodeSet]) -> Condition:
        """This condition and another."""
        both = dict(self.allowed)
        for place, kept in allowed.items():
            both[place] = both[place] & kept if place in both else kept
        return Condition(both)

    @property
    def emptied(self) -> int | None:
        """The place of a column that it leaves nothing at all."""
        return next((place for place, kept in self.allowed.items() if kept.is_empty), None)


@dataclass(frozen=True)
class Components:
    """Weighted products over column grids, with everything that drawing rows needs."""

    weights: Floats  # (components,), of sum 1
    probabilities: Floats  # (components, cells of all columns)
    grids: tuple[ColumnGrid, ...]

    def codes(self, num_rows: int, rng: np.random.Generator) -> Integers:
        """Codes of new rows, in random order.  # (num_rows, num_used)

        Components get rows in proportion to their weights, to the nearest row, and so do cells
        as far as may be; inside a component columns are drawn independently.
        """
        marks = (np.arange(num_rows) + rng.random()) / max(1, num_rows)
        zeros = np.zeros(num_rows, dtype=np.int64)
        chosen = pick(self.weights[None, :], zeros, marks)
        found = np.empty((num_rows, len(self.grids)), dtype=np.int64)
        for place, (grid, (start, stop)) in enumerate(zip(self.grids, spans_of(self.grids), strict=True)):
            # Components in an order of each column's own, and rows of a component too: even
            # marks in one order for all would tie columns together.
            turns = rng.permutation(len(self.weights))[chosen]
            marks = np.empty(num_rows)
            marks[np.lexsort((rng.random(num_rows), turns))] = even_marks(num_rows, rng)
            cells = pick(self.probabilities[:, start:stop], chosen, marks)
            found[:, place] = grid.codes(cells, rng)
        return rng.permutation(found)


def spans_of(grids: tuple[ColumnGrid, ...]) -> list[tuple[int, int]]:
    """Where each column's cells lie among those of all columns."""
    return list(pairwise(np.cumsum([0, *(grid.width for grid in grids)]).tolist()))


def restrict(components: Components, condition: Condition) -> Components | None:
    """What a mixture is, given a condition; None if it gives the condition no probability.

    Columns are independent inside a component, so a condition on several columns has the product
    of their probabilities there. Components are weighted by it, and their cells cut to what is
    allowed; codes of a piece are equally likely, so a part of it has its share of the codes.
    """
    with np.errstate(divide="ignore"):  # log 0 is a component that cannot meet the condition
        scores = np.log(components.weights)
        grids, pieces = list(components.grids), []
        for place, (start, stop) in enumerate(spans_of(components.grids)):
            piece = components.probabilities[:, start:stop]
            if place in condition.allowed:
                whole = piece.sum(axis=1)
                grids[place], piece = cut_cells(grids[place], piece, condition.allowed[place])
                scores = scores + np.log(piece.sum(axis=1) / whole)
            pieces.append(piece)
    if np.isneginf(scores).all():
        return None
    possible = ~np.isneginf(scores)
    weights = np.exp(scores[possible] - scores.max())
    return Components(weights / weights.sum(), np.concatenate(pieces, axis=1)[possible], tuple(grids))


def cut_cells(grid: ColumnGrid, probabilities: Floats, allowed: CodeSet) -> tuple[ColumnGrid, Floats]:
    """The cells of a column cut to the allowed codes, and the probabilities that are left."""
    first, last = np.asarray(allowed.ranges, dtype=np.int64).reshape(-1, 2).T
    overlaps = (grid.highs[:, None] >= first) & (grid.lows[:, None] <= last)
    pieces, parts = np.nonzero(overlaps & (grid.share_of_piece > 0)[:, None])
    lows = np.maximum(grid.lows[pieces], first[parts])
    highs = np.minimum(grid.highs[pieces], last[parts])
    kept = (highs - lows + 1) / (grid.highs - grid.lows + 1)[pieces]
    cells, shares = grid.cell_of_piece[pieces], grid.share_of_piece[pieces] * kept
    left = np.bincount(cells, weights=shares, minlength=grid.num_known)
    used, places = np.unique(cells, return_inverse=True)
    probabilities, null = probabilities[:, : grid.num_known], probabilities[:, grid.num_known :]
    probabilities = (probabilities * left)[:, used]
    shares = shares / left[cells]
    if not len(cells):  # a column keeps one cell beside that of nulls, if only to be never drawn
        lows, highs, places, shares = grid.lows[:1], grid.highs[:1], np.zeros(1, int), np.ones(1)
        probabilities = np.zeros((len(probabilities), 1))
    has_null = grid.has_null and allowed.has_null
    if has_null:
        probabilities = np.concatenate([probabilities, null], axis=1)
    return ColumnGrid(lows, highs, has_null, places, shares), probabilities
