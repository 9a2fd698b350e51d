"""Ask a release: the front of the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from understudy.errors import UsageError
from understudy.files import refusing_damage
from understudy.queries.answers import Answer, Estimate
from understudy.queries.atoms import Sources
from understudy.queries.bind import BoundQuery, bind
from understudy.queries.linear import means_of, range_of, roots_of, shares_of, sums_of, variances_of
from understudy.queries.quantiles import quantiles_of
from understudy.queries.question import Question, understand
from understudy.released import Release, load_release
from understudy.released.intervals import LEVEL, critical
from understudy.released.tables import measure_release
from understudy.schema import Column

COUNTED = ("count", "sum", "histogram")
NULLS_OUT = "nulls are left out"
OPEN = "a group with an unknown error may be empty: its interval is all that is possible"
CUT = "cells of the release are coarser than the question: the interval covers any place in them"


class Asker:
    """A release that answers queries; what several of them need is computed once.

    Guarantee:
        Answers are post-processing of the release: they cost no privacy, however many are asked.
    """

    @refusing_damage("release")
    def __init__(self, release: Release | str | Path) -> None:
        self.release = release if isinstance(release, Release) else load_release(release)
        self.sources = Sources(measure_release(self.release))

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
        factor = critical(level, self.sources.measured.law)
        if question.aggregate in ("median", "quantile"):
            posed, rows = quantiles_of(self.sources, question, level, is_population=population)
        else:
            posed, rows = self._estimates(question, factor, population)
        measured = posed.sources.measured
        answer = Answer(
            question.text,
            question.aggregate,
            tuple(rows),
            posed.source,
            level,
            bounds=bounds_of(question, measured.columns, measured.num_rows),
            notes=posed.notes,
        )
        answer = _noted(posed, answer)
        return answer.in_days() if question.is_of_dates(measured.columns) else answer

    def _estimates(self, question: Question, factor: float, population: bool) -> tuple[BoundQuery, list[Estimate]]:
        posed = bind(self.sources, question)
        if question.aggregate in ("count", "histogram"):
            return posed, sums_of(posed, posed.members, factor)
        if question.aggregate == "sum":
            return posed, sums_of(posed, posed.valued(), factor)
        if question.aggregate == "share":
            return posed, shares_of(posed, factor, is_population=population)
        if question.aggregate == "mean":
            return posed, means_of(posed, factor, is_population=population)
        variances = variances_of(posed, factor, is_population=population)
        return posed, variances if question.aggregate == "var" else roots_of(variances)


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


def _noted(posed: BoundQuery, answer: Answer) -> Answer:
    notes = answer.notes
    place = posed.question.column
    is_open = [not math.isfinite(row.std_error) for row in answer.rows]
    if any(is_open):
        notes = (*notes, OPEN)
    if not all(row.is_exact or empty for row, empty in zip(answer.rows, is_open, strict=True)):
        notes = (*notes, CUT)
    if place is not None and posed.question.aggregate != "histogram":
        column = posed.sources.measured.columns[place]
        notes = (*notes, f"{NULLS_OUT}: those of {column.name}") if column.nullable else notes
    return replace(answer, notes=notes)
