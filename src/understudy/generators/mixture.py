"""A mixture of products over column grids: the sampler, in NumPy alone, and its conditional law by Bayes' rule.

A grid cuts a column into cells of codes; cells and codes are drawn by inverse-transform sampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.codec import decode
from understudy.errors import UsageError
from understudy.generators.base import GENERATOR_KINDS, Generator, Tensors
from understudy.generators.conditioning import Condition
from understudy.generators.rejection import Source
from understudy.generators.swapping import exchange
from understudy.schema import NULL, Column, Schema
from understudy.schema.columns import from_position
from understudy.schema.rules import allowed_codes
from understudy.schema.values import CodeSet

MOST_CELLS_PER_NUMBER = 128
FEWEST_CELLS_PER_NUMBER = 16
MOST_CELLS_OF_NUMBERS = 2**13
"""Cells of all numbers of a table together, which a component has probabilities of."""

MOST_NUMBERS_AT_A_TIME = 2**21
"""Of 8 bytes each: probabilities of cells that differ from row to row."""

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
    num_values = len(column.categories) if column.is_choice else column.num_steps + 1
    if column.is_choice or num_values <= most_cells:
        values = np.arange(num_values)
        return ColumnGrid(values, values, column.nullable)
    edges = from_position(column, np.arange(most_cells) / most_cells)
    lows = np.unique([*edges, 1, column.num_steps])
    return ColumnGrid(lows, np.append(lows[1:] - 1, column.num_steps), column.nullable)


def grids_of(schema: Schema) -> tuple[ColumnGrid, ...]:
    """A grid per used column, from the schema alone; wide tables get fewer cells per number."""
    numbers = sum(not column.is_choice for column in schema.used)
    most = int(np.clip(MOST_CELLS_OF_NUMBERS // max(1, numbers), FEWEST_CELLS_PER_NUMBER, MOST_CELLS_PER_NUMBER))
    return tuple(column_grid(column, most) for column in schema.used)


def spans_of(grids: tuple[ColumnGrid, ...]) -> list[tuple[int, int]]:
    """Where each column's cells lie among those of all columns."""
    return list(pairwise(np.cumsum([0, *(grid.width for grid in grids)]).tolist()))


@dataclass(frozen=True)
class Tie:
    """A column that is drawn given another: its cells' probabilities inside a component times ``ratios``.

    Where two cells never go together the ratio is next to nothing, so that a column which another determines does not
    contradict it. Ties of a mixture form a forest: every component is then a tree-structured Bayesian network over the
    same trees (Meila & Jordan 2000).
    """

    parent: int
    child: int
    ratios: Floats  # (cells of the parent, cells of the child)


def check_ties(ties: Sequence[Tie], widths: Sequence[int]) -> None:
    """Refuse ties that are no forest in order: a parent's cells would be whatever memory held before they are drawn."""
    drawn = set(range(len(widths))) - {tie.child for tie in ties}
    for tie in ties:
        is_new = 0 <= tie.child < len(widths) and tie.child not in drawn
        if not is_new or tie.parent not in drawn or tie.ratios.shape != (widths[tie.parent], widths[tie.child]):
            raise ValueError("ties are of columns that there are, each child once and after its parent")
        if not (np.isfinite(tie.ratios).all() and (tie.ratios >= 0).all()):
            raise ValueError("ratios are finite and not negative")
        drawn.add(tie.child)


@dataclass(frozen=True)
class Components:
    """Weighted products over column grids, with everything that drawing rows needs.

    ``ties`` come in an order in which a parent's own tie precedes those to its children.
    """

    weights: Floats  # (components,), of sum 1
    probabilities: Floats  # (components, cells of all columns)
    grids: tuple[ColumnGrid, ...]
    ties: tuple[Tie, ...] = ()

    def __post_init__(self) -> None:
        check_ties(self.ties, [grid.width for grid in self.grids])

    def codes(self, num_rows: int, rng: np.random.Generator) -> Integers:
        """Codes of new rows, in random order.  # (num_rows, num_used)

        Components get rows in proportion to their weights, to the nearest row, and so do cells
        as far as may be; inside a component columns are drawn independently but for its ties,
        and exchanged so that pairs are spread evenly too.
        """
        marks = (np.arange(num_rows) + rng.random()) / max(1, num_rows)
        zeros = np.zeros(num_rows, dtype=np.int64)
        chosen = pick(self.weights[None, :], zeros, marks)
        spans, tied = spans_of(self.grids), {tie.child: tie for tie in self.ties}
        order = [*(j for j in range(len(self.grids)) if j not in tied), *tied]
        cells = np.zeros((num_rows, len(self.grids)), dtype=np.int64)
        for place in order:
            own = self.probabilities[:, slice(*spans[place])]
            tie = tied.get(place)
            given = cells[:, tie.parent] if tie else zeros
            # Components in an order of each column's own, and rows of a component too: even
            # marks in one order for all would tie columns together.
            turns = rng.permutation(len(self.weights))[chosen]
            marks = np.empty(num_rows)
            marks[np.lexsort((rng.random(num_rows), turns, given))] = even_marks(num_rows, rng)
            cells[:, place] = pick_tied(own, tie.ratios, chosen, given, marks) if tie else pick(own, chosen, marks)
        cells = exchange(cells, chosen, self.marginals, self._units, rng)
        codes = [grid.codes(own, rng) for grid, own in zip(self.grids, cells.T, strict=True)]
        return rng.permutation(np.stack(codes, axis=1))

    @cached_property
    def marginals(self) -> tuple[Floats, ...]:
        """Each column's law inside components.  # (components, cells) of each"""
        pieces = [self.probabilities[:, start:stop] for start, stop in spans_of(self.grids)]
        found = [own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300) for own in pieces]
        for tie in self.ties:
            met = pieces[tie.child] @ tie.ratios.T
            given = np.divide(found[tie.parent], met, out=np.zeros_like(met), where=met > 0)
            found[tie.child] = pieces[tie.child] * (given @ tie.ratios)
        return tuple(found)

    @property
    def _units(self) -> list[list[int]]:
        """Columns that are tied together, and each other one by itself."""
        root = list(range(len(self.grids)))
        for tie in self.ties:
            root[tie.child] = root[tie.parent]
        return [[j for j, own in enumerate(root) if own == unit] for unit in sorted(set(root))]


def pick_tied(probabilities: Floats, ratios: Floats, chosen: Integers, given: Integers, marks: Floats) -> Integers:
    """Inverse-transform sampling from the chosen rows of probabilities times the given rows of ratios.

    # (components, width), (cells, width), (num_rows,), (num_rows,), (num_rows,) -> (num_rows,)
    """
    found = np.empty(len(chosen), dtype=np.int64)
    step = max(1, MOST_NUMBERS_AT_A_TIME // ratios.shape[1])
    for start in range(0, len(chosen), step):
        part = slice(start, start + step)
        cumulative = np.cumsum(probabilities[chosen[part]] * ratios[given[part]], axis=1)
        found[part] = (cumulative <= (marks[part] * cumulative[:, -1])[:, None]).sum(axis=1)
    return np.asarray(np.minimum(found, ratios.shape[1] - 1))


def restrict(components: Components, condition: Condition) -> Components | None:
    """A mixture given a condition, by Bayes' rule; None if it gives the condition no probability.

    P(k | C) is in proportion to w_k P(C | k). Columns are independent inside a component k but for its ties, so
    P(C | k) is the product over trees of the probability that the tree meets its part of C, found from the leaves up
    (belief propagation, Pearl 1982): a cell of a parent is as likely as it was, times the probability that its children
    then meet theirs. Cells of a column, given C and k, are those it had, cut to what is allowed. Codes of a piece are
    equally likely, so a part of it has its share of them. Products are sums of logarithms: with a thousand columns they
    would underflow.
    """
    grids, scores = list(components.grids), np.zeros(len(components.weights))
    pieces = [components.probabilities[:, start:stop] for start, stop in spans_of(components.grids)]
    before, kept = list(pieces), [np.arange(grid.width) for grid in grids]
    tied, ties = {tie.child for tie in components.ties}, []
    for place, allowed in condition.allowed.items():
        grids[place], pieces[place], kept[place] = cut_cells(grids[place], pieces[place], allowed)
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0 is a component that cannot meet the condition
        for tie in reversed(components.ties):
            ratios = tie.ratios[kept[tie.parent]]
            met = pieces[tie.child] @ ratios[:, kept[tie.child]].T  # (components, cells of the parent)
            chance = np.nan_to_num(met / (before[tie.child] @ ratios.T))
            pieces[tie.parent] = pieces[tie.parent] * chance
            ties.append(replace(tie, ratios=ratios[:, kept[tie.child]]))
        scores = np.log(components.weights)
        for place, (own, whole) in enumerate(zip(pieces, before, strict=True)):
            if place not in tied:
                scores = scores + np.log(own.sum(axis=1) / whole.sum(axis=1))
    if np.isneginf(scores).all():
        return None
    possible = ~np.isneginf(scores)
    weights = np.exp(scores[possible] - scores.max())
    probabilities = np.concatenate(pieces, axis=1)[possible]
    return Components(weights / weights.sum(), probabilities, tuple(grids), tuple(reversed(ties)))


def cut_cells(grid: ColumnGrid, probabilities: Floats, allowed: CodeSet) -> tuple[ColumnGrid, Floats, Integers]:
    """The cells of a column cut to the allowed codes, the probabilities that are left, and which cells these are."""
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
        used = np.zeros(1, int)
        probabilities = np.zeros((len(probabilities), 1))
    has_null = grid.has_null and allowed.has_null
    if has_null:
        probabilities, used = np.concatenate([probabilities, null], axis=1), np.append(used, grid.num_known)
    return ColumnGrid(lows, highs, has_null, places, shares), probabilities, used


@GENERATOR_KINDS.register("mixture")
@dataclass(frozen=True, eq=False)
class Mixture(Generator):
    """Components with independent columns; each belongs to one label value.

    A row has a label by ``label_shares``, then one of that label's components, each as likely as
    the others, then every column's cell by the component's probabilities, and a code in it.
    ``sizes`` are the numbers of components of each label value, in order.
    """

    schema: Schema = field(compare=False)
    probabilities: Floats = field(compare=False)  # (components, cells of all columns)
    sizes: tuple[int, ...]
    default_num_rows: int
    label_shares: tuple[float, ...] = (1.0,)
    grids: tuple[ColumnGrid, ...] | None = field(default=None, compare=False)  # by default those of the schema alone
    ties: tuple[Tie, ...] = field(default=(), compare=False)

    @cached_property
    def components(self) -> Components:
        """The components with their weights: a label's share, split equally."""
        weights = np.repeat(np.divide(self.label_shares, self.sizes), self.sizes)
        grids = grids_of(self.schema) if self.grids is None else self.grids
        return Components(weights / weights.sum(), self.probabilities, grids, self.ties)

    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition, exactly by the model's conditional law.

        Rules about single columns are made part of the condition, so that no row is drawn in
        vain for them, unless the model gives them no probability at all.
        """
        ruled = condition.and_also(allowed_codes(self.schema.used, self.schema.rules))
        for wish in (ruled, condition):
            if not wish.allowed:
                return Source(self.components.codes)
            restricted = restrict(self.components, wish)
            if restricted is not None:
                return Source(restricted.codes)
        raise UsageError("given", "no row that this generator draws is such", "Widen the condition")

    def tensors(self) -> Tensors:
        """The probabilities in single precision, and the pieces of grids that are its own."""
        found: Tensors = {"probabilities": np.ascontiguousarray(self.probabilities, np.float32)}
        for place, grid in enumerate(self.grids or ()):
            found[f"pieces {place}"] = np.stack([grid.lows, grid.highs, grid.cell_of_piece])
            found[f"shares {place}"] = np.ascontiguousarray(grid.share_of_piece)
        if self.ties:
            found["ties"] = np.array([(tie.parent, tie.child) for tie in self.ties])
            found |= {f"ratios {tie.child}": np.ascontiguousarray(tie.ratios, np.float32) for tie in self.ties}
        return found

    @classmethod
    def load(cls, schema: Schema, document: dict[str, Any], tensors: Tensors) -> Self:
        """From a document and arrays."""
        probabilities, grids = tensors["probabilities"].astype(np.float64), None
        if "pieces 0" in tensors:
            grids = tuple(_grid(tensors, place, column) for place, column in enumerate(schema.used))
        ties = tuple(
            Tie(parent, child, tensors[f"ratios {child}"].astype(np.float64))
            for parent, child in (tensors["ties"].tolist() if "ties" in tensors else ())
        )
        check_ties(ties, [grid.width for grid in grids or grids_of(schema)])
        return decode(cls, document, schema=schema, probabilities=probabilities, grids=grids, ties=ties)


def _grid(tensors: Tensors, place: int, column: Column) -> ColumnGrid:
    lows, highs, cells = tensors[f"pieces {place}"].astype(np.int64)
    return ColumnGrid(lows, highs, column.nullable, cells, tensors[f"shares {place}"].astype(np.float64))
