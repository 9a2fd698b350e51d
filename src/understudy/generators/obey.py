"""Rows that obey a schema's rules: drawn again until they do, and mended where that takes too long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from understudy.arrays import Codes
from understudy.errors import InputError, UsageError
from understudy.generators.condition import Condition
from understudy.generators.repair import repair
from understudy.schema import Schema
from understudy.schema.rule_entries import rule_words
from understudy.schema.rules import obeys

Draw = Callable[[int, np.random.Generator], Codes]
"""Draws codes of that many rows, which are alike in law whatever their order."""

CHUNK = 65_536
FEWEST_DRAWS = 2**18
DRAWS_PER_OBEYING, DRAWS_PER_MEETING = 32, 1000
"""Effort before rows are mended, and before a condition is refused: rules that one row in 32 obeys
need no mending, and a condition that one row in 1000 meets is always met."""


@dataclass(frozen=True)
class Source:
    """Draws rows under a condition; the part ``left`` of it is to be met by drawing again."""

    draw: Draw
    left: Condition = field(default_factory=Condition)


def draw_obeying(
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
        if len(fresh) > missing:
            fresh = fresh[np.sort(rng.choice(len(fresh), size=missing, replace=False))]
        obeying = np.concatenate([obeying, fresh])
        broken = np.concatenate([broken, codes[~good]])[-num_rows:]
        can_mend = len(obeying) + len(broken) >= num_rows
        is_seldom = met > DRAWS_PER_OBEYING * len(obeying)
        is_hopeless = drawn > DRAWS_PER_MEETING * met
        if drawn >= FEWEST_DRAWS and (is_hopeless or (can_mend and is_seldom)):
            break
        needed = 1.1 * (num_rows - len(obeying)) * (drawn + 1) / (len(obeying) + 1)
        batch = max(num_rows - len(obeying), min(CHUNK, int(needed)))
    return obeying, broken
