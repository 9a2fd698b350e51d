"""Numbers and names as a report spells them."""

from __future__ import annotations

import math
from collections.abc import Sequence

ELLIPSIS = "…"
UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def decimal(value: float | None, places: int = 3) -> str:
    """A score; nothing where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("-") and not float(text) else text


def percent(share: float, places: int = 1) -> str:
    """A share out of a hundred, with a space that does not break."""
    return f"{decimal(100 * share, places)}\u00a0%"


def whole(number: float) -> str:
    """A count, in thousands."""
    return f"{number:,.0f}"


def short(number: float) -> str:
    """A number for the tick of an axis: at most about five characters."""
    size = abs(number)
    if size < 1e4:
        return f"{number:,.0f}" if size >= 1000 else f"{number:.3g}"
    factor, letter = next(pair for pair in UNITS if size >= pair[0])
    return f"{number / factor:.3g}{letter}"


def clipped(name: str, length: int) -> str:
    """A name that fits; the whole of it stands in a table."""
    return name if len(name) <= length else name[: length - 1] + ELLIPSIS


def squeezed(name: str, length: int) -> str:
    """A name that fits and keeps its end, which is what tells columns of a wide table apart."""
    kept = (length - 1) // 3
    return name if len(name) <= length else name[: length - 1 - kept] + ELLIPSIS + name[-kept:]


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(number: int, noun: str) -> str:
    """``1 column``, ``3 columns``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
