"""Rows that obey a schema's rules: drawn again until they do, and mended where that takes too long."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from understudy.errors import InputError
from understudy.generators.condition import Condition
from understudy.generators.repair import repair
from understudy.schema import Schema
from understudy.schema.rule_entries import rule_words
from understudy.schema.rules import obeys

Codes = npt.NDArray[np.int64]
Draw = Callable[[int, np.random.Generator], Codes]
"""Draws codes of that many rows, which are alike in law whatever their order."""

CHUNK = 16_384
DRAWS_PER_ROW, FEWEST_DRAWS = 32, 2**18
"""Effort before rows are mended: seconds, and all rules that one row in thirty obeys are met."""


def draw_obeying(
    draw: Draw, schema: Schema, condition: Condition, num_rows: int, rng: np.random.Generator
) -> Codes:
    """As many rows as were asked for, all of which obey the rules and meet the condition.

    Args:
        draw: draws rows that meet the condition.
        schema: its rules are obeyed.
        condition: what mended rows must still meet.
        num_rows: at most a chunk.
        rng: the source of all that is random.

    Raises:
        InputError: no way was found to obey a rule; it is named.
    """
    if not schema.rules:
        return draw(num_rows, rng)
    most = DRAWS_PER_ROW * num_rows + FEWEST_DRAWS
    kept, last = draw_until(
        draw, lambda codes: obeys(schema, codes), num_rows, rng, most_draws=most
    )
    missing = num_rows - len(kept)
    if not missing:
        return kept
    mended = repair(last[~obeys(schema, last)][:missing], last, schema, condition, rng)
    for rule in schema.rules:
        if not rule.holds(schema.used, mended).all():
            raise InputError(
                rule_words(rule), "no row that obeys it and the other rules was found",
                "See whether the rules (and the condition) contradict one another",
            )  # fmt: skip
    return rng.permutation(np.concatenate([kept, mended]))


def draw_until(
    draw: Draw,
    accepts: Callable[[Codes], npt.NDArray[np.bool_]],
    num_rows: int,
    rng: np.random.Generator,
    *,
    most_draws: int,
) -> tuple[Codes, Codes]:
    """Keep what is accepted until there is enough of it, or until ``most_draws`` were made.

    Returns:
        At most ``num_rows`` accepted rows, and all rows of the last draw, among which are at
        least as many refused ones as are still missing.
    """
    kept: list[Codes] = []
    found, drawn, batch = 0, 0, num_rows
    while True:
        last = draw(batch, rng)
        fresh, missing = last[accepts(last)], num_rows - found
        if len(fresh) > missing:
            fresh = fresh[np.sort(rng.choice(len(fresh), size=missing, replace=False))]
        kept.append(fresh)
        found, drawn = found + len(fresh), drawn + batch
        if found == num_rows or drawn >= most_draws:
            return np.concatenate(kept), last
        needed = 1.1 * (num_rows - found) * (drawn + 1) / (found + 1)
        batch = max(num_rows - found, min(CHUNK, int(needed)))
