"""Ask a release: answers to queries with intervals, and a catalogue of what its tables can answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.accounting import critical
from understudy.errors import UsageError
from understudy.features import Cells
from understudy.files import refusing_damage
from understudy.queries.answers import LEVEL, Answer, Estimate
from understudy.queries.atoms import Sources, can_tell, single_axis
from understudy.queries.bind import BoundQuery, bind
from understudy.queries.least_squares import LeastSquares, gather
from understudy.queries.linear import means_of, range_of, roots_of, shares_of, sums_of, variances_of
from understudy.queries.quantiles import quantiles_of
from understudy.queries.question import Question, understand
from understudy.released import Release, load_release
from understudy.released.tables import NoisyTable, ReleaseTables, cell_edges, tables_of
from understudy.schema import Column
from understudy.schema.columns import number_values, spoken
from understudy.schema.scales import Family, family_of

COUNTED = ("count", "sum", "histogram")
NULLS_OUT = "nulls are left out"
OPEN = "a group with an unknown error may be empty: its interval is all that is possible"
SAMPLED_CELLS = 64
"""Cells whose errors stand for those of all."""

CUT = "cells of the release are coarser than the question: the interval covers any place in them"


class Asker:
    """A release that answers queries; what several of them need is computed once.

    Guarantee:
        Answers are post-processing of the release: they cost no privacy, however many are asked (proofs/noise.md).
    """

    @refusing_damage("release")
    def __init__(self, release: Release | str | Path) -> None:
        self.release = release if isinstance(release, Release) else load_release(release)
        self.sources = Sources(tables_of(self.release))

    @refusing_damage("release")
    def ask(self, query: str, *, level: float = LEVEL, population: bool = False) -> Answer:
        """Answer a query.

        Args:
            query: such as ``mean(age) where hours >= 40 by sex``; see docs/queries.md.
            level: how often intervals hold, for each number by itself.
            population: intervals for the population that rows were drawn from, instead of the
                data set itself; for shares, means, variances and quantiles.

        Raises:
            QueryError: the query cannot be read, or this release cannot answer it.
        """
        if not 0.5 <= level < 1:
            raise UsageError("level", "must lie between 0.5 and 1", "Common choices: 0.9, 0.95")
        question = understand(query, self.release.plan.schema)
        if population and question.aggregate in COUNTED:
            raise UsageError(
                "population",
                f"has no {question.aggregate} that rows could tell of",
                "Ask for a share or a mean, or leave the population out",
            )
        factor = critical(self.sources.measured.mechanism, level)
        if question.aggregate in ("median", "quantile"):
            bound, rows = quantiles_of(self.sources, question, level, is_population=population)
        else:
            bound, rows = self._estimates(question, factor, population)
        measured = bound.sources.measured
        answer = Answer(
            question.text,
            question.aggregate,
            tuple(rows),
            bound.source,
            level,
            bounds=bounds_of(question, measured.columns, measured.num_rows),
            notes=bound.notes,
        )
        answer = _noted(bound, answer)
        return answer.in_days() if question.is_of_dates(measured.columns) else answer

    def _estimates(self, question: Question, factor: float, population: bool) -> tuple[BoundQuery, list[Estimate]]:
        bound = bind(self.sources, question)
        if question.aggregate in ("count", "histogram"):
            return bound, sums_of(bound, bound.members, factor)
        if question.aggregate == "sum":
            return bound, sums_of(bound, bound.valued(), factor)
        if question.aggregate == "share":
            return bound, shares_of(bound, factor, is_population=population)
        if question.aggregate == "mean":
            return bound, means_of(bound, factor, is_population=population)
        variances = variances_of(bound, factor, is_population=population)
        return bound, variances if question.aggregate == "var" else roots_of(variances)


def ask(release: Release | str | Path, query: str, *, level: float = LEVEL, population: bool = False) -> Answer:
    """Answer one query from a release, or from the directory of one; see ``Asker.ask``."""
    return Asker(release).ask(query, level=level, population=population)


def bounds_of(question: Question, columns: Sequence[Column], num_rows: float | None) -> tuple[float, float]:
    """Between what an answer must lie, whatever the rows."""
    aggregate, most = question.aggregate, math.inf if num_rows is None else float(num_rows)
    if aggregate in ("count", "histogram"):
        return 0.0, most
    if aggregate == "share" or question.column is None:
        return 0.0, 1.0
    low, high = range_of(columns[question.column])
    if aggregate == "sum":
        return (min(0.0, low * most) if low else 0.0, max(0.0, high * most) if high else 0.0)
    if aggregate in ("var", "std"):
        widest = (high - low) / 2
        return 0.0, widest if aggregate == "std" else widest**2
    return low, high


def _noted(bound: BoundQuery, answer: Answer) -> Answer:
    notes = answer.notes
    place = bound.question.column
    is_open = [not math.isfinite(row.std_error) for row in answer.rows]
    if any(is_open):
        notes = (*notes, OPEN)
    if not all(row.is_exact or empty for row, empty in zip(answer.rows, is_open, strict=True)):
        notes = (*notes, CUT)
    if place is not None and bound.question.aggregate != "histogram":
        column = bound.sources.measured.columns[place]
        notes = (*notes, f"{NULLS_OUT}: those of {column.name}") if column.nullable else notes
    return replace(answer, notes=notes)


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
class Catalogue:
    """All that tables of a release can answer; ``num_rows`` if the row count is public."""

    num_rows: int | None
    columns: tuple[CatalogueColumn, ...]
    together: tuple[CatalogueTable, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def catalogue(sources: Sources) -> Catalogue:
    """List a release's columns and the tables over several of them, finest first."""
    measured = sources.measured
    best: dict[tuple[int, ...], NoisyTable] = {}
    for table in measured.tables:
        key = tuple(sorted(table.columns))
        if len(key) > 1 and (key not in best or table.counts.size > best[key].counts.size):
            best[key] = table
    together = [_together(measured, table) for table in best.values()]
    return Catalogue(
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
    fit = LeastSquares(gather(measured, [axis]), num_rows=measured.num_rows, mechanism=measured.mechanism)
    some = np.unique(np.linspace(0, axis.num_known - 1, SAMPLED_CELLS).astype(np.int64))
    weights = np.zeros((len(some), axis.dim))
    weights[np.arange(len(some)), some] = 1.0
    error = float(np.median(fit.deviations(weights)))
    finest = max(
        (cells for table in measured.tables for cells in table.cells if cells.column == place),
        key=lambda cells: cells.num_known,
    )
    return CatalogueColumn(column.name, _holds(column), _resolution(finest), _can(column), error)


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


def _together(measured: ReleaseTables, table: NoisyTable) -> CatalogueTable:
    order = np.argsort(table.columns)
    names = tuple(measured.columns[table.columns[i]].name for i in order)
    return CatalogueTable(names, tuple(table.cells[i].dim for i in order), float(table.noise))
