"""Columns in bins: 20 equal ones over a number's public bounds, a category each for a choice.

Code 0 is null, the bins follow from 1, and what a choice's schema does not list comes last.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from understudy.arrays import Integers
from understudy.evaluation.cells import choice_codes, numbers
from understudy.schema.columns import EPOCH, Column, Kind, Resolution

if TYPE_CHECKING:
    import pandas as pd

NUM_BINS = 20
UNLISTED = "(not in the schema)"


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of one column, from public knowledge alone."""

    labels: tuple[str, ...]
    edges: tuple[float, ...]
    """Of a number, one more than labels; of a choice, none."""


def column_bins(column: Column) -> Bins:
    """A choice's categories; a number's 20 bins, or its values where they are fewer than 20."""
    if column.is_choice:
        return Bins((*map(str, column.categories), UNLISTED), ())
    low, high = column.low_high
    if _has_few_values(column):
        values = np.arange(column.num_steps + 1) + low
        edges = np.append(values, values[-1] + 1) - 0.5
        return Bins(tuple(f"{value:.0f}" for value in values), tuple(edges.tolist()))
    edges = np.linspace(low, high, NUM_BINS + 1)
    names = [_name(column, edge) for edge in edges]
    labels = tuple(f"{start} to {end}" for start, end in pairwise(names))
    return Bins(labels, tuple(edges.tolist()))


def bin_codes(column: Column, cells: pd.Series) -> Integers:
    """The bin of every cell. A number past its bounds is in the first or last bin."""
    if column.is_choice:
        return choice_codes(column, cells)
    values, (low, high) = numbers(column, cells), column.low_high
    missing = np.isnan(values)
    clipped = np.clip(np.where(missing, low, values), low, high)
    if _has_few_values(column):
        places = np.rint(clipped) - low
    else:
        places = np.floor((clipped - low) / ((high - low) or 1.0) * NUM_BINS)
    found: Integers = np.where(missing, 0, np.minimum(places, NUM_BINS - 1) + 1).astype(np.int64)
    return found


def _has_few_values(column: Column) -> bool:
    # Fewer than 20 whole numbers never share one of 20 bins, so that distances are the same.
    return column.is_whole and column.num_steps < NUM_BINS


def _name(column: Column, edge: float) -> str:
    if column.kind is not Kind.DATETIME:
        return f"{edge:.4g}" if abs(edge) < 1e4 or not column.is_whole else f"{edge:.0f}"
    moment = EPOCH + dt.timedelta(microseconds=edge)
    if column.resolution is Resolution.DAY:
        return moment.date().isoformat()
    return moment.isoformat(sep=" ", timespec="minutes")
