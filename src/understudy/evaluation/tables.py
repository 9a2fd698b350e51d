"""Tables as numbers, which every metric reads: bins of all columns beside exact values, and the tables to compare."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.errors import InputError
from understudy.evaluation.models import FAST_MODELS
from understudy.schema.columns import BLANKS, EPOCH, NULL, Column, Kind, Resolution, number_values
from understudy.schema.encode import encode_column
from understudy.schema.table import Schema

if TYPE_CHECKING:
    import pandas as pd

FARTHEST_RANGES = 1e6
"""Ranges of a column beyond its bounds. Farther numbers would overflow squares and single precision."""


def choice_codes(column: Column, cells: pd.Series) -> Integers:
    """0 for null, then the categories from 1 in order; one past them for what the schema does not list."""
    codes = encode_column(column, _arrow(column, cells)) + 1
    unclear = np.flatnonzero(codes == NULL + 1)
    doubtful = cells.iloc[unclear]
    blank = doubtful.isna() | doubtful.astype(str).str.strip(BLANKS).eq("")
    codes[unclear[~blank.to_numpy(dtype=bool)]] = len(column.categories) + 1
    return codes


def numbers(column: Column, cells: pd.Series) -> Floats:
    """The numbers of a column, NaN for null; dates are microseconds.

    Infinities, and what lies so far out that it is no measurement, stop at the bounds.
    """
    found, (low, high) = _as_written(column, cells), column.low_high
    reach = FARTHEST_RANGES * ((high - low) or 1.0)
    return np.where(found > high + reach, high, np.where(found < low - reach, low, found))


def _as_written(column: Column, cells: pd.Series) -> Floats:
    if column.kind is Kind.DATETIME:
        codes = encode_column(column, _arrow(column, cells))
        return np.where(codes == NULL, np.nan, number_values(column, codes).astype(np.float64))
    try:
        if cells.dtype.kind not in "mM":  # moments and durations, which NumPy would count in ticks
            return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"column '{column.name}'",
        f"is {column.kind} and must hold numbers",
        "Mend the column, or change its kind in the schema",
    )


def is_invalid(column: Column, cells: pd.Series) -> npt.NDArray[np.bool_]:
    """Which cells the schema does not allow."""
    if column.is_choice:
        codes = choice_codes(column, cells)
        missing, wrong = codes == 0, codes > len(column.categories)
    else:
        found, (low, high) = _as_written(column, cells), column.low_high
        missing, wrong = np.isnan(found), (found < low) | (found > high)
        if column.is_whole:
            wrong |= np.isfinite(found) & (found != np.rint(found))
    return wrong if column.nullable else wrong | missing


def _arrow(column: Column, cells: pd.Series) -> Any:
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        pass
    try:  # an object column whose cells are of several types
        return pa.array(cells.astype(str).where(cells.notna(), None), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(f"column '{column.name}'", "holds cells that are no values", "Mend the column") from None


NUM_BINS = 20
"""Of a number, of equal width over its public bounds."""

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


def bins_and_values(column: Column, cells: pd.Series) -> tuple[Integers, Floats]:
    """The bin of every cell, and its value.

    Bins are 0 for null, then count from 1; last comes what a choice's schema does not list. A number past its bounds
    is in the first or last bin.
    """
    if column.is_choice:
        codes = choice_codes(column, cells)
        return codes, codes.astype(np.float64)
    values, (low, high) = numbers(column, cells), column.low_high
    missing = np.isnan(values)
    clipped = np.clip(np.where(missing, low, values), low, high)
    if _has_few_values(column):
        places = np.rint(clipped) - low
    else:
        places = np.floor((clipped - low) / ((high - low) or 1.0) * NUM_BINS)
    return np.where(missing, 0, np.minimum(places, NUM_BINS - 1) + 1).astype(np.int64), values


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


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Rows in the schema's terms. Nothing here is private by itself: it holds what it was given."""

    columns: tuple[Column, ...]
    bins: Integers
    """0 for null, then bins or categories from 1, then unlisted.  # (num_rows, num_columns)"""
    values: Floats
    """Numbers as they are with NaN for null, choices as in ``bins``.  # (num_rows, num_columns)"""

    def __len__(self) -> int:
        return len(self.bins)

    def take(self, rows: Integers | slice) -> CodedTable:
        """Some of the rows."""
        return CodedTable(self.columns, self.bins[rows], self.values[rows])

    def independent(self, num_rows: int, *, seed: int) -> CodedTable:
        """Rows whose columns are shuffled one by one, at most as many as there are."""
        rng = np.random.default_rng(seed)
        order = np.stack([rng.permutation(len(self)) for _ in self.columns], axis=1)[:num_rows]
        return CodedTable(
            self.columns, np.take_along_axis(self.bins, order, axis=0), np.take_along_axis(self.values, order, axis=0)
        )

    @property
    def numeric(self) -> list[int]:
        """Positions of the columns that hold numbers."""
        return [i for i, column in enumerate(self.columns) if not column.is_choice]


def code_table(schema: Schema, frame: pd.DataFrame, *, columns: tuple[Column, ...] | None = None) -> CodedTable:
    """Read the schema's columns as files have them, or the given ones, of a data frame."""
    columns = schema.in_files if columns is None else columns
    absent = next((each.name for each in columns if each.name not in frame.columns), None)
    if absent is not None:
        raise InputError(f"column '{absent}'", "is not in the table", "Check the schema's names")
    twice = next((each.name for each in columns if list(frame.columns).count(each.name) > 1), None)
    if twice is not None:
        raise InputError(f"column '{twice}'", "is in the table more than once", "Give every column its own name")
    bins, values = zip(*(bins_and_values(column, frame[column.name]) for column in columns), strict=True)
    return CodedTable(columns, np.stack(bins, axis=1), np.stack(values, axis=1))


def invalid_cells(schema: Schema, frame: pd.DataFrame) -> int:
    """How many cells the schema does not allow."""
    return sum(int(is_invalid(column, frame[column.name]).sum()) for column in schema.in_files)


@dataclass(frozen=True, slots=True)
class Effort:
    """How many rows and sets of columns are looked at, and by which models."""

    rows: int = 200_000
    sets: int = 1500
    test_rows: int = 10_000
    """On each side of a two-sample test. Boosted trees stop early from 10,000 rows in all."""
    test_folds: int = 5
    neighbour_rows: int = 5000
    training_rows: int = 50_000
    image_rows: int = 10_000
    """That models learn from where each is an image."""
    num_jobs: int = os.cpu_count() or 1
    models: tuple[str, ...] | None = None
    """The names of those that are trained; all of them, if none is named."""
    curve_shares: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    """Parts of the synthetic rows that the learning curve is measured at."""


THOROUGH = Effort()
QUICK = Effort(
    rows=50_000,
    sets=150,
    test_rows=10_100,
    test_folds=2,
    neighbour_rows=2000,
    training_rows=10_000,
    image_rows=3000,
    num_jobs=1,
    models=FAST_MODELS,
    curve_shares=(0.01, 0.1),
)


@dataclass(frozen=True, eq=False)
class Sides:
    """The tables that a score compares, how hard it looks at them, and the seed of all sampling."""

    real: CodedTable
    synthetic: CodedTable
    independent: CodedTable
    """Real columns, each shuffled by itself."""
    halves: tuple[CodedTable, CodedTable]
    effort: Effort
    seed: int


def make_sides(real: CodedTable, synthetic: CodedTable, *, seed: int, effort: Effort = THOROUGH) -> Sides:
    """Split the real rows into two halves at random, and shuffle their columns for the baseline."""
    order = np.random.default_rng(seed).permutation(len(real))
    middle = len(real) // 2
    return Sides(
        real,
        synthetic,
        independent=real.independent(len(synthetic), seed=seed + 1),
        halves=(real.take(order[:middle]), real.take(order[middle : 2 * middle])),
        effort=effort,
        seed=seed,
    )
