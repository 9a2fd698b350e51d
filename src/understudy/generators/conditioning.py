"""Conditional sampling: by Bayes' rule for mixtures, and by rejection, which also makes rows obey a schema's rules.

Accepted rows follow the generator's law given that rules and condition hold, exactly. Where fewer than one row in 32
is accepted, waiting would take too long: rows that break a rule are then changed in as few cells as it takes,
which is no longer that law but keeps cells likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Codes, Floats, Integers
from understudy.errors import InputError, UsageError
from understudy.generators.grids import ColumnGrid, even_marks, pick
from understudy.schema import NULL, Column, Schema
from understudy.schema.rules import Comparison, Forbidden, Rule, allowed_codes, holds, obeys, place_of, rule_words
from understudy.schema.values import CodeSet, Value, codes_of, every_code, spelt, spelt_range


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
        return codes_of(column, *(_spelt_value(column, each) for each in (value if is_list else [value])))
    except InputError as error:
        raise UsageError(f"given '{column.name}'", error.rule, error.remedy) from None


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


BORROWING_ROUNDS = 24
"""Rounds of repair in which cells come from other rows, before they move to the nearest value allowed."""

REPAIR_ROUNDS = 120
"""Rounds after which rules are taken to contradict one another."""

FAR_AWAY = 2.0**62
"""Farther than any two codes lie apart."""


def repair(codes: Codes, others: Codes, schema: Schema, condition: Condition, rng: np.random.Generator) -> Codes:
    """Change as few cells as needed; rows may still break a rule when the effort is spent.

    In every round each broken rule has one of its columns changed. In the first rounds a cell
    is borrowed from a row of ``others``, and stays if fewer rules are broken then; that keeps
    cells likely. Later it moves to the nearest value that obeys the rule.
    """
    codes, used = codes.copy(), schema.used
    narrowed = condition.and_also(allowed_codes(used, schema.rules)).allowed
    kept = [narrowed.get(place, every_code(column)) for place, column in enumerate(used)]
    for round_ in range(REPAIR_ROUNDS):
        is_obeyed = True
        for rule in schema.rules:
            broken = np.flatnonzero(~holds(rule, used, codes))
            if not len(broken):
                continue
            is_obeyed = False
            place = place_of(used, str(rng.choice(rule.columns)))
            rows = codes[broken]
            if round_ < BORROWING_ROUNDS:
                rows[:, place] = others[rng.integers(len(others), size=len(rows)), place]
                better = _num_broken(schema, rows) < _num_broken(schema, codes[broken])
            else:
                rows[:, place] = _nearest(rule, schema, rows, place, kept[place], rng)
                better = holds(rule, used, rows)
            better &= kept[place].contains(rows[:, place])
            codes[broken[better]] = rows[better]
        if is_obeyed:
            break
    return codes


def _num_broken(schema: Schema, codes: Codes) -> Codes:
    broken = [~holds(rule, schema.used, codes) for rule in schema.rules]
    return np.asarray(np.sum(broken, axis=0, dtype=np.int64))


def _nearest(rule: Rule, schema: Schema, rows: Codes, place: int, kept: CodeSet, rng: np.random.Generator) -> Codes:
    """New codes for one column; any category is as near as the others."""
    column = schema.used[place]
    if isinstance(rule, Comparison):
        return _nearest_side(rule, schema, rows, place, kept, rng)
    if isinstance(rule, Forbidden):
        kept = kept - rule.forbidden(column)
    if column.is_choice and kept.ranges:
        listed = np.arange(len(column.categories))
        return rng.choice(listed[kept.contains(listed)], size=len(rows))
    return kept.nearest(rows[:, place])


def _nearest_side(
    rule: Comparison, schema: Schema, rows: Codes, place: int, kept: CodeSet, rng: np.random.Generator
) -> Codes:
    """New codes for one side of a comparison, given the other; old ones where none would do."""
    is_left = schema.used[place].name == rule.left
    scales = rule.scales(schema.used)
    mine, other = scales if is_left else scales[::-1]
    operator = rule.operator if is_left else rule.operator.mirrored
    values = other.values(rows[:, place_of(schema.used, other.column.name)])
    found, least = rows[:, place].copy(), np.full(len(rows), FAR_AWAY)
    for lows, highs in mine.matching(operator, values):
        for low, high in kept.ranges:
            first, last = np.maximum(lows, low), np.minimum(highs, high)
            moved = np.clip(rows[:, place], first, np.maximum(first, last))
            far = np.abs(moved - rows[:, place]).astype(np.float64)
            if mine.column.is_choice:
                far = rng.random(len(rows))
            nearer = (first <= last) & (far < least)
            found, least = np.where(nearer, moved, found), np.where(nearer, far, least)
    return found


Draw = Callable[[int, np.random.Generator], Codes]
"""Draws codes of that many rows, which are alike in law whatever their order."""

CHUNK = 65_536
"""Rows drawn at a time; rows of a seed depend on it."""

FEWEST_DRAWS = 2**18
"""Draws before any rate is judged: enough to see one in 1000 some 260 times."""

DRAWS_PER_ACCEPTED = 32
"""Rules that one row in so many obeys are met by rejection alone; rows are repaired only beyond."""

DRAWS_PER_MEETING = 1000
"""A condition that fewer rows meet is refused: there is nothing to repair rows with."""


@dataclass(frozen=True)
class Source:
    """Draws rows under a condition; the part ``left`` of it is to be met by drawing again."""

    draw: Draw
    left: Condition = field(default_factory=Condition)


def rejection_sample(
    source: Source, schema: Schema, condition: Condition, num_rows: int, rng: np.random.Generator
) -> Codes:
    """As many rows as were asked for, all of which obey the rules and meet the condition.

    Args:
        source: what draws rows under the condition.
        schema: its rules are obeyed.
        condition: what mended rows must still meet.
        num_rows: at most a chunk.
        rng: the source of all that is random.

    Raises:
        UsageError: the condition is met too seldom to wait for.
        InputError: no way was found to obey a rule; it is named.
    """
    if not (schema.rules or source.left.allowed):
        return source.draw(num_rows, rng)
    obeying, broken = _draw_until(source, schema, num_rows, rng)
    missing = num_rows - len(obeying)
    if not missing:
        return obeying
    if len(broken) < missing:
        raise UsageError("given", f"fewer than one row in {DRAWS_PER_MEETING} is such", "Widen the condition")
    donors = np.concatenate([obeying, broken])
    mended = repair(broken[:missing], donors, schema, condition, rng)
    for rule in schema.rules:
        if not holds(rule, schema.used, mended).all():
            raise InputError(
                rule_words(rule),
                "no row that obeys it and the other rules was found",
                "See whether the rules (and the condition) contradict one another",
            )
    return rng.permutation(np.concatenate([obeying, mended]))


def _draw_until(source: Source, schema: Schema, num_rows: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Draw until there are enough rows, or enough to mend, or no hope.

    Returns:
        At most ``num_rows`` rows that obey the rules, and at most as many that break one. All meet
        the condition.
    """
    batch, drawn, met = num_rows, 0, 0
    obeying = broken = np.empty((0, len(schema.used)), dtype=np.int64)
    while len(obeying) < num_rows:
        codes = source.draw(batch, rng)
        codes = codes[source.left.holds(codes)]
        drawn, met = drawn + batch, met + len(codes)
        good = obeys(schema, codes)
        fresh, missing = codes[good], num_rows - len(obeying)
        if len(fresh) > missing:  # at random, since draws may be spread evenly in their order
            fresh = fresh[np.sort(rng.choice(len(fresh), size=missing, replace=False))]
        obeying = np.concatenate([obeying, fresh])
        broken = np.concatenate([broken, codes[~good]])[-num_rows:]
        can_mend = len(obeying) + len(broken) >= num_rows
        is_seldom = met > DRAWS_PER_ACCEPTED * len(obeying)
        is_hopeless = drawn > DRAWS_PER_MEETING * met
        if drawn >= FEWEST_DRAWS and (is_hopeless or (can_mend and is_seldom)):
            break
        # The rate so far, with one row more on both sides so that it is never 0, and a tenth to spare.
        needed = 1.1 * (num_rows - len(obeying)) * (drawn + 1) / (len(obeying) + 1)
        batch = max(num_rows - len(obeying), min(CHUNK, int(needed)))
    return obeying, broken
