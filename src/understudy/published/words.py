"""Numbers and domains as certificates word them."""

from __future__ import annotations

import math

from understudy.schema import Column


def round_up(value: float) -> float:
    """Four significant digits, never below the value."""
    if value == 0 or not math.isfinite(value):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    rounded = float(f"{math.ceil(value / step) * step:.6g}")
    return rounded if rounded >= value else float(f"{rounded + step:.6g}")


def domain_words(column: Column) -> str:
    """A column's public domain in a few words."""
    if column.is_choice:
        words = f"{len(column.categories)} categories"
    else:
        low, high = column.to_dict()["bounds"]
        words = f"{_plain(low)} to {_plain(high)}"
    return words + (", may be null" if column.nullable else "")


def _plain(bound: object) -> str:
    return f"{bound:,.10g}" if isinstance(bound, int | float) else str(bound)
