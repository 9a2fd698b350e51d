"""A distance beside what chance and what independent columns would give.

Distances between samples are above zero by chance alone, the more so the fewer rows there are. The
floor is therefore measured between two halves and between two quarters of the real rows, and
carried over to as many rows as the real and the synthetic table have: chance shrinks as a power of
1/n + 1/m, a half for well-filled cells and less for thin ones, and the two measurements tell which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats, Integers
from understudy.evaluation.tables import CodedTable

Distance = Callable[[CodedTable, CodedTable], Floats]
"""One or several distances between two tables."""


@dataclass(frozen=True, eq=False)
class Sides:
    """The tables that a score compares."""

    real: CodedTable
    synthetic: CodedTable
    independent: CodedTable
    """Real columns, each shuffled by itself."""
    halves: tuple[CodedTable, CodedTable]


@dataclass(frozen=True, eq=False)
class Compared:
    """Distances of synthetic rows, of real rows by chance, and of independent columns."""

    value: Floats
    floor: Floats
    baseline: Floats


def make_sides(real: CodedTable, synthetic: CodedTable, *, seed: int) -> Sides:
    """Split the real rows into two halves at random, and shuffle their columns for the baseline."""
    order = np.random.default_rng(seed).permutation(len(real))
    middle = len(real) // 2
    return Sides(
        real=real,
        synthetic=synthetic,
        independent=real.independent(len(synthetic), seed=seed + 1),
        halves=(real.take(order[:middle]), real.take(order[middle : 2 * middle])),
    )


def compare(distance: Distance, sides: Sides) -> Compared:
    """All rows of both tables, and a floor for as many rows."""
    quarters = [half.take(slice(len(half) // 2)) for half in sides.halves]
    half, quarter = distance(*sides.halves), distance(*quarters)
    spread = 1 / len(sides.real) + 1 / len(sides.synthetic)
    return Compared(
        value=distance(sides.real, sides.synthetic),
        floor=half * chance_ratio(half, quarter, spread * len(sides.halves[0]) / 2),
        baseline=distance(sides.real, sides.independent),
    )


def chance_ratio(half: Floats, quarter: Floats, spread: float) -> float:
    """Chance at a ``spread`` (1/n + 1/m, in units of that of the halves), relative to the halves."""
    if not half.any() or not quarter.any():
        return 1.0
    power = float(np.clip(np.log2(quarter.mean() / half.mean()), 0.0, 0.5))
    return float(spread**power)


def equal_parts(sides: Sides, *, most_rows: int, seed: int) -> tuple[CodedTable, ...]:
    """Equally many rows: of a real half, of the synthetic table, the other half and the baseline."""
    num_rows = min(len(sides.halves[0]), len(sides.synthetic), len(sides.independent), most_rows)
    rng = np.random.default_rng(seed)
    tables = (sides.halves[0], sides.synthetic, sides.halves[1], sides.independent)
    return tuple(table.take(_some(len(table), num_rows, rng)) for table in tables)


def _some(num_rows: int, wanted: int, rng: np.random.Generator) -> Integers:
    chosen: Integers = rng.choice(num_rows, wanted, replace=False)
    return chosen
