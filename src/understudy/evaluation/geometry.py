"""Rows as points, so that a distance between rows of mixed columns means something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats
from understudy.evaluation.tables import CodedTable

SCALED_ON = 1000


@dataclass(frozen=True, eq=False)
class Geometry:
    """Numbers in units of their deviation, choices on the corners of a simplex.

    Two different categories are 1 apart, as two numbers are that differ by one deviation. A
    number's null lies at its mean and 1 away from every number that is there.
    """

    centre: Floats
    deviation: Floats
    """Of every column; those of choices are not used.  # (num_columns,)"""
    length_scale: float

    def points(self, table: CodedTable) -> Floats:
        """One point per row.  # (num_rows, num_axes)"""
        return _points(table, self.centre, self.deviation)


def make_geometry(real: CodedTable, *, seed: int) -> Geometry:
    """Units from the real rows; the length scale is the median distance between some of them."""
    from scipy.spatial.distance import pdist

    # Of choices only, or of a column of nulls, there is nothing to take the mean of.
    known = np.where(np.isnan(real.values).all(axis=0), 0.0, real.values)
    centre, deviation = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    order = np.random.default_rng(seed).permutation(len(real))[:SCALED_ON]
    distances = pdist(_points(real.take(order), centre, deviation))
    return Geometry(centre, deviation, float(np.median(distances)) or 1.0)


def _points(table: CodedTable, centre: Floats, deviation: Floats) -> Floats:
    parts: list[Floats] = []
    for position, column in enumerate(table.columns):
        if column.is_choice:
            corners = np.eye(len(column.categories) + 2) / np.sqrt(2)
            parts.append(corners[table.bins[:, position]])
        else:
            scaled = (table.values[:, [position]] - centre[position]) / deviation[position]
            missing = np.isnan(scaled)
            parts += [np.where(missing, 0.0, scaled), missing.astype(np.float64)]
    return np.concatenate(parts, axis=1)
