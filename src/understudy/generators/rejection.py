"""Rejection sampling under a schema's rules and a condition, and the repair of rows where that takes too long.

Accepted rows follow the generator's law given that rules and condition hold, exactly. Where fewer than one row in 32
is accepted, waiting would take too long: rows that break a rule are then changed in as few cells as it takes,
which is no longer that law but keeps cells likely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from understudy.arrays import Codes
from understudy.errors import InputError, UsageError
from understudy.generators.conditioning import Condition
from understudy.schema import Schema
from understudy.schema.rules import Comparison, Forbidden, Rule, allowed_codes, obeys, place_of, rule_words
from understudy.schema.values import CodeSet, every_code

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
            broken = np.flatnonzero(~rule.holds(used, codes))
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
                better = rule.holds(used, rows)
            better &= kept[place].contains(rows[:, place])
            codes[broken[better]] = rows[better]
        if is_obeyed:
            break
    return codes


def _num_broken(schema: Schema, codes: Codes) -> Codes:
    broken = [~rule.holds(schema.used, codes) for rule in schema.rules]
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
    """Draws codes of so many rows under a condition, which are alike in law whatever their order.

    The part ``left`` of the condition is to be met by drawing again.
    """

    draw: Callable[[int, np.random.Generator], Codes]
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
        if not rule.holds(schema.used, mended).all():
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
