"""Heat maps: a matrix as one path for each shade, which stays small and follows the page's colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from understudy.evaluation.results import Matrix
from understudy.reports.words import squeezed

MOST_COLUMNS, NAME_LENGTH = 24, 13
SHADES = 10
LARGEST_DIFFERENCE = 0.3
"""A difference of associations from which on the shade is the darkest."""

LARGEST_RESIDUAL = 3.0


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cells of one unit each, grouped by colour and shade."""

    names: tuple[str, ...]
    shades: tuple[tuple[str, int, str], ...]
    """A colour's name, how dark from 1 to 10, and the cells as a path."""

    @property
    def size(self) -> int:
        """Cells along a side."""
        return len(self.names)

    @property
    def room(self) -> float:
        """What the longest name takes beside and below the cells, of a picture 300 wide."""
        return 8 + 6.6 * max((len(name) for name in self.names), default=0)


def association_map(names: Sequence[str], matrix: Matrix) -> HeatMap:
    """Values from 0 to 1."""
    return _draw(names, matrix, lambda value: ("level", value * SHADES))


def difference_map(names: Sequence[str], real: Matrix, synthetic: Matrix) -> HeatMap:
    """Synthetic less real: ties that were lost, and ties that were made up."""
    apart = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(real, synthetic, strict=True)]
    return _draw(
        names, apart, lambda value: ("lost" if value < 0 else "made", abs(value) / LARGEST_DIFFERENCE * SHADES)
    )


def residual_map(names: Sequence[str], matrix: Sequence[Sequence[float]]) -> HeatMap:
    """Sizes of standardised residuals: noise alone gives 1, which stays blank."""
    return _draw(names, matrix, lambda value: ("lost", (value - 1) / (LARGEST_RESIDUAL - 1) * SHADES))


def _draw(
    names: Sequence[str], matrix: Sequence[Sequence[float]], shade_of: Callable[[float], tuple[str, float]]
) -> HeatMap:
    found: dict[tuple[str, int], list[str]] = {}
    for y, row in enumerate(matrix):
        for x, value in enumerate(row):
            if x == y or not math.isfinite(value):
                continue
            colour, depth = shade_of(value)
            shade = min(SHADES, round(depth))
            if shade > 0:
                found.setdefault((colour, shade), []).append(f"M{x} {y}h1v1h-1z")
    return HeatMap(
        tuple(squeezed(name, NAME_LENGTH) for name in names),
        tuple((*key, "".join(cells)) for key, cells in sorted(found.items())),
    )


def most_different(real: Matrix, synthetic: Matrix) -> list[int]:
    """Columns that fit a heat map: those whose ties differ most, in their own order."""
    sums = [
        math.fsum(abs(b - a) for a, b in zip(*rows, strict=True) if math.isfinite(b - a))
        for rows in zip(real, synthetic, strict=True)
    ]
    return sorted(sorted(range(len(sums)), key=lambda i: -sums[i])[:MOST_COLUMNS])


def chosen(matrix: Matrix, columns: Sequence[int]) -> Matrix:
    """The part of a matrix that concerns some columns."""
    return tuple(tuple(matrix[i][j] for j in columns) for i in columns)
