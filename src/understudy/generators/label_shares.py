"""Labels under a condition: which classes are left, and what must still be met by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.errors import UsageError
from understudy.generators.conditioning import Condition
from understudy.schema import NULL, Schema


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
