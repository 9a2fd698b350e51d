"""Ask a release: answers to queries with intervals, and a catalogue of what its tables can answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.errors import UsageError
from understudy.files import refusing_damage
from understudy.queries.answers import LEVEL, Answer, Estimate
from understudy.queries.atoms import Sources, can_tell, single_axis
from understudy.queries.bind import BoundQuery
from understudy.queries.estimates import estimates_of, range_of
from understudy.queries.least_squares import fit_tables
from understudy.queries.question import Question, aggregates_of, understand
from understudy.released import Release, load_release
from understudy.released.diagnostics import bound_notes, unlisted_note
from understudy.released.tables import NoisyTable, ReleaseTables, cell_edges, tables_of
from understudy.schema import Column
from understudy.schema.columns import Kind, number_values, spoken

COUNTED = ("count", "sum", "histogram")
OPEN = "a group with an unknown error may be empty: its interval is all that is possible"
SAMPLED_CELLS = 64
"""Cells whose errors stand for those of all."""

DISAGREE = (
    "the release's tables disagree more than their noise explains, so intervals were widened by what they disagree by: "
    "some tables miss rows whose values the schema does not list"
)

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
        bound, rows = estimates_of(self.sources, question, level, is_population=population)
        notes = tuple(_notes(bound, rows))
        found = Answer(question.text, question.aggregate, tuple(rows), bound.source, level, notes=notes)
        return bounded(found, question, bound.sources.measured.columns, num_rows=bound.sources.measured.num_rows)


def ask(release: Release | str | Path, query: str, *, level: float = LEVEL, population: bool = False) -> Answer:
    """Answer one query from a release, or from the directory of one; see ``Asker.ask``."""
    return Asker(release).ask(query, level=level, population=population)


def bounded(answer: Answer, question: Question, columns: Sequence[Column], *, num_rows: float | None = None) -> Answer:
    """An answer with the bounds between which it must lie, whatever the rows; moments in days."""
    found = replace(answer, bounds=_bounds(question, columns, math.inf if num_rows is None else float(num_rows)))
    is_of_dates = question.valued is not None and columns[question.valued].kind is Kind.DATETIME
    return found.in_days() if is_of_dates else found


def _bounds(question: Question, columns: Sequence[Column], most: float) -> tuple[float, float]:
    aggregate = question.aggregate
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


def _notes(bound: BoundQuery, rows: Sequence[Estimate]) -> Iterator[str]:
    """What a reader should know of the answer."""
    measured, question = bound.sources.measured, bound.question
    for place in question.columns:
        yield from filter(None, [unlisted_note(measured, place)])
    for place in question.columns:
        if place == question.column or place in question.where:
            yield from bound_notes(measured, place)
    if bound.fit.disagrees:
        yield DISAGREE
    if not all(math.isfinite(row.std_error) for row in rows):
        yield OPEN
    if not all(row.is_exact or not math.isfinite(row.std_error) for row in rows):
        yield CUT
    if question.valued is not None and bound.column.nullable:
        yield f"nulls are left out: those of {bound.column.name}"


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
        tuple(_column(measured, place) for place in range(len(measured.columns))),
        tuple(sorted(together, key=lambda each: (len(each.names), each.count_error, each.names))),
    )


def _column(measured: ReleaseTables, place: int) -> CatalogueColumn:
    column = measured.columns[place]
    if not measured.over((place,)):
        return CatalogueColumn(column.name, _holds(column), "not counted", (), None)
    if not column.is_choice and not can_tell(measured, place):
        can = ("count",) if column.nullable else ()
        return CatalogueColumn(column.name, _holds(column), "nulls only", can, None)
    axis = single_axis(measured, place, [], every_value=False)
    some = np.unique(np.linspace(0, axis.num_known - 1, SAMPLED_CELLS).astype(np.int64))
    single = (some[:, None] == np.arange(axis.dim)) * 1.0
    error = float(np.median(fit_tables(measured, [axis]).deviations(single)))
    every = [cells for table in measured.of_column[place] for cells in table.cells if cells.column == place]
    finest = max(every, key=lambda cells: cells.num_known)
    is_whole = finest.num_known == finest.num_codes
    resolution = "every value" if is_whole else f"{len(cell_edges(finest)):,} cells"
    return CatalogueColumn(column.name, _holds(column), resolution, aggregates_of(column), error)


def _holds(column: Column) -> str:
    if column.is_choice:
        found = f"{len(column.categories)} categories"
    else:
        low, high = number_values(column, np.array([0, column.num_steps]))
        found = f"{spoken(column, low)} to {spoken(column, high)}"
    return found + (" or null" if column.nullable else "")


def _together(measured: ReleaseTables, table: NoisyTable) -> CatalogueTable:
    order = np.argsort(table.columns)
    names = tuple(measured.columns[table.columns[i]].name for i in order)
    return CatalogueTable(names, tuple(table.cells[i].dim for i in order), float(table.noise))
