"""Conditional sampling: values that columns must have, shares of the classes, and Bayes' rule for mixtures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.errors import InputError, UsageError
from understudy.generators.grids import ColumnGrid, even_marks, pick
from understudy.schema import NULL, Column, Schema
from understudy.schema.rules import allowed_codes
from understudy.schema.values import CodeSet, Value, code_set, codes_of, every_code, spelt, spelt_range


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
    """A mixture given a condition, by Bayes' rule; None if it gives the condition no probability.

    P(k | C) is in proportion to w_k P(C | k). Columns are independent inside a component k, so P(C | k) is
    the product of the probabilities that each column meets its part of C, and the cells of a column, given C and k, are
    those it had, cut to what is allowed. Codes of a piece are equally likely, so a part of it has its share of them.
    Products are sums of logarithms: with a thousand columns they would underflow.
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


def restrict_label(
    schema: Schema, shares: Sequence[float], condition: Condition
) -> tuple[tuple[float, ...], Condition]:
    """Shares of the label's values that a condition leaves, and the rest of the condition.

    Raises:
        UsageError: no class is left.
    """
    label = schema.label
    place = schema.used.index(label) if label is not None and len(shares) > 1 else None
    if label is None or place is None or place not in condition.allowed:
        return tuple(shares), condition
    codes = np.append(np.arange(len(label.categories)), NULL)[: len(shares)]
    kept = np.asarray(shares) * condition.allowed[place].contains(codes)
    if not kept.any():
        raise UsageError("given", "no row has such a label", "Widen the condition")
    left = {other: codes for other, codes in condition.allowed.items() if other != place}
    return tuple((kept / kept.sum()).tolist()), Condition(left)


Given = Mapping[str, Any]
"""Columns with the value they must have, a tuple (low, high) of numbers or dates, both included, or
a list of these; None is null, or an open end of a range."""

Balance = str | Mapping[Any, float]
"""``kept``, ``equal``, or shares of the label's classes, which need not add up to 1."""


def condition_of(schema: Schema, given: Given | None) -> Condition:
    """The condition that ``given`` describes.

    Raises:
        UsageError: it names a column or value that is unknown, or that the rules do not allow.
    """
    condition = Condition()
    for name, value in (given or {}).items():
        places = [i for i, column in enumerate(schema.used) if column.name == name]
        if not places:
            known = ", ".join(column.name for column in schema.used)
            raise UsageError(f"given '{name}'", "is not a column", f"Columns are {known}")
        kept = _allowed_codes(schema.used[places[0]], value)
        if kept.is_empty:
            raise UsageError(f"given '{name}'", "the column has no such value", "Widen it")
        condition = condition.and_also({places[0]: kept})
    emptied = condition.and_also(allowed_codes(schema.used, schema.rules)).emptied
    if emptied is not None:
        raise UsageError(
            f"given '{schema.used[emptied].name}'",
            "the schema's rules allow no such value",
            "Ask for another, or change the rules",
        )
    return condition


def _allowed_codes(column: Column, value: Any) -> CodeSet:
    is_list = isinstance(value, list | set | frozenset)
    if column.is_choice and isinstance(value, tuple):
        is_list = True
    try:
        parts = [codes_of(column, _spelt_value(column, each)) for each in (value if is_list else [value])]
    except InputError as error:
        raise UsageError(f"given '{column.name}'", error.rule, error.remedy) from None
    ranges = [each for part in parts for each in part.ranges]
    return code_set(ranges, has_null=any(part.has_null for part in parts))


def _spelt_value(column: Column, value: Any) -> Value:
    if not isinstance(value, tuple):
        return spelt(column, value)
    if len(value) != 2:
        raise InputError(f"column '{column.name}'", "needs (low, high) as a range", "Or a list")
    return spelt_range(column, *value)


def class_shares(schema: Schema, condition: Condition, balance: Balance | None) -> dict[int, float] | None:
    """Shares of the label's codes, of sum 1; None leaves them as the generator has them.

    A class that the condition or the rules exclude is left out, and the others fill its place.

    Raises:
        UsageError: there is no class to balance, or a share that is none.
    """
    if balance is None or balance == "kept":
        return None
    label = schema.label
    if label is None or not label.is_choice:
        raise UsageError("balance", "the table has no label with classes", "Leave balance out")
    if balance == "equal":
        shares = dict.fromkeys(range(len(label.categories)), 1.0)
    elif isinstance(balance, Mapping):
        shares = _read_shares(label, balance)
    else:
        raise UsageError("balance", "must be kept, equal, or a share for each class")
    place = schema.used.index(label)
    kept = condition.and_also(allowed_codes(schema.used, schema.rules)).allowed
    left = kept.get(place, every_code(label))
    shares = {code: share for code, share in shares.items() if share > 0 and left.contains(np.asarray([code]))[0]}
    total = sum(shares.values())
    if not shares:
        raise UsageError("balance", "no class with a share is left by the condition and the rules")
    return {code: share / total for code, share in shares.items()}


def _read_shares(label: Column, balance: Mapping[Any, float]) -> dict[int, float]:
    shares: dict[int, float] = {}
    for value, share in balance.items():
        try:
            kept = codes_of(label, spelt(label, value))
        except InputError as error:
            raise UsageError("balance", f"{error.where} {error.rule}", error.remedy) from None
        if isinstance(share, bool) or not isinstance(share, int | float) or not _is_share(share):
            raise UsageError("balance", "shares must be numbers of at least 0", "Such as 0.5")
        shares[NULL if kept.has_null else kept.ranges[0][0]] = float(share)
    return shares


def _is_share(share: float) -> bool:
    return math.isfinite(share) and share >= 0


def rows_per_class(shares: dict[int, float], num_rows: int) -> npt.NDArray[np.int64]:
    """Whole numbers of rows as near to the shares as can be, of the right sum."""
    exact = np.asarray(list(shares.values())) * num_rows
    counts: npt.NDArray[np.int64] = np.floor(exact).astype(np.int64)
    largest_rests = np.argsort(counts - exact, kind="stable")
    counts[largest_rests[: num_rows - counts.sum()]] += 1
    return counts
