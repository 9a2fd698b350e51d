"""What can be asked of a release: its columns, which of them together, and with what errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from understudy.features import Cells
from understudy.queries.atoms import Sources, can_tell, single_axis
from understudy.queries.groups import spoken
from understudy.queries.least_squares import LeastSquares, gather
from understudy.released.tables import Counted, Measured, cell_edges
from understudy.schema import Column
from understudy.schema.scales import Family, family_of
from understudy.schema.values import number_values

SAMPLE = 64
"""Cells whose errors stand for those of all."""


@dataclass(frozen=True, slots=True)
class CatalogueColumn:
    """A column, how finely the release tells of it, and the error of a count in one cell of it."""

    name: str
    holds: str
    resolution: str
    can: tuple[str, ...]
    count_error: float | None


@dataclass(frozen=True, slots=True)
class CatalogueTable:
    """Columns that a table of the release is over, its cells along each, and the error of one."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    count_error: float


@dataclass(frozen=True, slots=True)
class Askable:
    """All that tables of a release can answer; ``num_rows`` if the row count is public."""

    num_rows: int | None
    columns: tuple[CatalogueColumn, ...]
    together: tuple[CatalogueTable, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def what_can_be_asked(sources: Sources) -> Askable:
    """List a release's columns and the tables over several of them, finest first."""
    measured = sources.measured
    best: dict[tuple[int, ...], Counted] = {}
    for table in measured.tables:
        key = tuple(sorted(table.columns))
        if len(key) > 1 and (key not in best or table.counts.size > best[key].counts.size):
            best[key] = table
    together = [_together(measured, table) for table in best.values()]
    return Askable(
        measured.num_rows,
        tuple(_column(sources, place) for place in range(len(measured.columns))),
        tuple(sorted(together, key=lambda each: (len(each.names), each.count_error, each.names))),
    )


def _column(sources: Sources, place: int) -> CatalogueColumn:
    measured, column = sources.measured, sources.measured.columns[place]
    if not measured.over((place,)):
        return CatalogueColumn(column.name, _holds(column), "not counted", (), None)
    if not column.is_choice and not can_tell(measured, place):
        can = ("count",) if column.nullable else ()
        return CatalogueColumn(column.name, _holds(column), "nulls only", can, None)
    axis = single_axis(measured, place, [], every_value=False)
    fit = LeastSquares(gather(measured, [axis]), num_rows=measured.num_rows, law=measured.law)
    some = np.unique(np.linspace(0, axis.num_known - 1, SAMPLE).astype(np.int64))
    weights = np.zeros((len(some), axis.dim))
    weights[np.arange(len(some)), some] = 1.0
    error = float(np.median(fit.deviations(weights)))
    finest = max(_cuts(measured, place), key=lambda cells: cells.num_known)
    return CatalogueColumn(column.name, _holds(column), _resolution(finest), _can(column), error)


def _cuts(measured: Measured, place: int) -> Iterable[Cells]:
    return (cells for table in measured.tables for cells in table.cells if cells.column == place)


def _resolution(cells: Cells) -> str:
    if cells.num_known == cells.num_codes:
        return "every value"
    return f"{len(cell_edges(cells)):,} cells"


def _holds(column: Column) -> str:
    if column.is_choice:
        found = f"{len(column.categories)} categories"
    else:
        low, high = number_values(column, np.array([0, column.num_steps]))
        found = f"{spoken(column, low)} to {spoken(column, high)}"
    return found + (" or null" if column.nullable else "")


def _can(column: Column) -> tuple[str, ...]:
    family = family_of(column)
    if family is Family.NUMBER:
        return ("count", "share", "sum", "mean", "var", "std", "median", "quantile", "histogram")
    if family is Family.MOMENT:
        return ("count", "share", "mean", "median", "quantile", "histogram")
    return ("count", "share", "histogram")


def _together(measured: Measured, table: Counted) -> CatalogueTable:
    order = np.argsort(table.columns)
    names = tuple(measured.columns[table.columns[i]].name for i in order)
    return CatalogueTable(names, tuple(table.cells[i].dim for i in order), float(table.noise))
