"""Poisson sampling: every row is in a step with the same chance, whatever the others do."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from understudy.accounting.descent import RATE_UNITS
from understudy.arrays import Integers

Draw = Callable[[int, float], Integers]
"""From a number of rows and a chance to the places of the rows that were drawn."""


def drawn_rows(num_rows: int, rate: float) -> Integers:
    """Places of the rows that a step looks at; there may be none.

    Guarantee:
        Each row is drawn with the chance ``rate``, exactly (it is a multiple of 2^-32), independently of all
        others and of earlier steps, if the operating system's bytes are uniform. There is no seed.
    """
    words = np.frombuffer(os.urandom(4 * num_rows), dtype=np.uint32)
    return np.flatnonzero(words < round(rate * RATE_UNITS))
