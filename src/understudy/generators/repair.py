"""Mend rows that break rules: by cells of other rows first, then by the nearest cells that do."""

from __future__ import annotations

import numpy as np

from understudy.arrays import Codes
from understudy.generators.condition import Condition
from understudy.schema import Schema
from understudy.schema.codesets import CodeSet, every_code
from understudy.schema.rules import Comparison, Forbidden, Rule, allowed_codes, place_of

BORROWING_ROUNDS, ROUNDS = 24, 120
NOWHERE = 2.0**62


def repair(codes: Codes, others: Codes, schema: Schema, condition: Condition, rng: np.random.Generator) -> Codes:
    """Change as few cells as needed; rows may still break a rule when the effort is spent.

    In every round each broken rule has one of its columns changed. In the first rounds a cell
    is borrowed from a row of ``others``, and stays if fewer rules are broken then; that keeps
    cells likely. Later it moves to the nearest value that obeys the rule.
    """
    codes, used = codes.copy(), schema.used
    narrowed = condition.and_also(allowed_codes(used, schema.rules)).allowed
    kept = [narrowed.get(place, every_code(column)) for place, column in enumerate(used)]
    for round_ in range(ROUNDS):
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
    found, least = rows[:, place].copy(), np.full(len(rows), NOWHERE)
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
