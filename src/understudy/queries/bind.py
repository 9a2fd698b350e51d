"""A question over the atoms of a release: who is counted in each group, with which value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import product

import numpy as np

from understudy.arrays import Integers
from understudy.features import Cells
from understudy.queries.atoms import (
    Group,
    Ranged,
    Sources,
    can_tell,
    finest_cells,
    groups_of,
    membership,
    several_axes,
    single_axis,
    values,
)
from understudy.queries.least_squares import LeastSquares, fit_tables
from understudy.queries.question import Question
from understudy.queries.tokens import CannotTellError, QueryError
from understudy.released.tables import ReleaseTables
from understudy.schema import Column
from understudy.schema.values import CodeSet, every_code

MOST_GROUPS = 4000
MOST_WEIGHTS = 30_000_000
"""Groups of an answer, and weights of all of them together."""

PAIRS_NAMED = 8  # in a refusal: pairs that were measured instead
WITH_VALUES = ("sum", "mean", "var", "std")

ALL_ROWS = Ranged(*[np.ones((1, 1))] * 3)
"""One group, with every row: what a question without columns is about."""


@dataclass(frozen=True, eq=False)
class BoundQuery:
    """A question with its atoms, and the estimates of their counts.

    ``groups`` are those of every column of the question; one that is not grouped by has a single group. Functions of
    all groups are arrays of (groups, atoms).
    """

    sources: Sources
    question: Question
    axes: Sequence[Cells]
    groups: Mapping[int, Sequence[Group]]
    fit: LeastSquares

    @property
    def column(self) -> Column:
        """The column that the question is asked of."""
        return self.sources.measured.columns[self.question.column or 0]

    @cached_property
    def members(self) -> Ranged:
        """Whether an atom's rows are counted in each group."""
        return reduce(Ranged.outer, self._memberships, ALL_ROWS)

    @cached_property
    def everyone(self) -> Ranged:
        """The same without the condition."""
        return reduce(Ranged.outer, self._membership_of(replace(self.question, where={})), ALL_ROWS)

    def valued(self, *, centre: float = 0.0, is_squared: bool = False) -> Ranged:
        """The question's column, less a centre, for rows that are counted, and 0 for others."""
        whole = ALL_ROWS
        for cells, part in zip(self.axes, self._memberships, strict=True):
            if cells.column == self.question.column:
                own = values(self.column, cells, centre=centre, masses=self.sources.masses(cells))
                part = (own.squared() if is_squared else own).within(part)
            whole = whole.outer(part)
        return whole

    @cached_property
    def _memberships(self) -> list[Ranged]:
        """Membership of each axis' cells in each of its groups.  # (groups, cells) of each"""
        return self._membership_of(self.question)

    def _membership_of(self, question: Question) -> list[Ranged]:
        found = []
        for cells in self.axes:
            masses, column = self.sources.masses(cells), self.sources.measured.columns[cells.column]
            sets = _sets(question, cells.column, column, self.groups[cells.column])
            parts = [membership(cells, codes, masses) for codes in sets]
            found.append(Ranged(*map(np.stack, zip(*parts, strict=True))))
        return found

    @property
    def names(self) -> list[tuple[tuple[str, str], ...]]:
        """Each group as pairs of a column's name and words."""
        every = product(*(self.groups[place] for place in self.question.grouping))
        return [tuple(group.name for group in own) for own in every]

    @property
    def source(self) -> str:
        """Where the answer comes from, in words."""
        if not self.axes and self.sources.measured.num_rows is not None:
            return "the public row count"
        used = [t for t in self.sources.measured.tables if set(self.question.columns) <= set(t.columns)]
        blocks = dict.fromkeys(table.block for table in used)
        plural = "tables" if len(used) > 1 else "table"
        return f"{len(used)} noisy {plural} ({', '.join(blocks)})"


def bind(sources: Sources, question: Question, *, also: Integers | None = None) -> BoundQuery:
    """Find the atoms on which a question is answered.

    Raises:
        QueryError: no table of the release is over all of its columns.
    """
    measured = sources.measured
    if question.grouping and not measured.over(question.columns):
        raise _no_table(measured, question)
    groups = {place: _groups(measured, question, place) for place in question.columns}
    sets = {place: _sets(question, place, measured.columns[place], own) for place, own in groups.items()}
    count = math.prod(map(len, sets.values()))
    if count > MOST_GROUPS:
        raise QueryError(
            question.whole,
            f"would have {count} groups, and {MOST_GROUPS} are the most",
            "Group by fewer columns, or ask about one group with where",
        )
    axes = _axes(sources, question, sets, also)
    if count * math.prod(cells.dim for cells in axes) > MOST_WEIGHTS:
        raise QueryError(question.whole, "is too large a table", "Ask about fewer groups, with where")
    return BoundQuery(sources, question, axes, groups, fit_tables(measured, axes))


def _groups(measured: ReleaseTables, question: Question, place: int) -> list[Group]:
    if place not in question.grouping:
        return [Group(("", "all"), replace(every_code(measured.columns[place]), has_unlisted=True))]
    bars = int(question.number) if question.aggregate == "histogram" and question.number else None
    return groups_of(measured.columns[place], finest_cells(measured, place, question.columns), most=bars)


def _sets(question: Question, place: int, column: Column, groups: Sequence[Group]) -> list[CodeSet]:
    """The codes of each group along an axis that meet the condition.

    Rows with an unlisted value are rows too; aggregates of a column leave its nulls out.
    """
    known, is_valued = every_code(column), place == question.valued
    every = CodeSet(known.ranges, known.has_null and not is_valued, has_unlisted=not is_valued)
    kept = question.where.get(place, every) & every
    return [group.codes & kept for group in groups]


def _axes(sources: Sources, question: Question, sets: dict[int, list[CodeSet]], also: Integers | None) -> list[Cells]:
    measured, columns = sources.measured, question.columns
    for place in columns:
        is_cut = place == question.column or any(
            codes.ranges not in ((), every_code(measured.columns[place]).ranges) for codes in sets[place]
        )
        if not measured.over((place,)) or (is_cut and not can_tell(measured, place)):
            raise _no_counts(measured, question, place)
    if len(columns) == 1:
        is_valued = question.aggregate in WITH_VALUES
        return [single_axis(measured, columns[0], sets[columns[0]], every_value=is_valued, also=also)]
    if columns and not measured.over(columns):
        raise _no_table(measured, question)
    return several_axes(sources, sets, question.valued) if columns else []


def _no_counts(measured: ReleaseTables, question: Question, place: int) -> CannotTellError:
    return CannotTellError(
        question.whole,
        _incomplete(measured, question) or f"this release holds no counts of column '{measured.columns[place].name}'",
        "Ask a fitted generator (--generator DIR), or in Python for an expectation",
    )


def _incomplete(measured: ReleaseTables, question: Question) -> str | None:
    """Which column it is that makes tables over a question's columns miss rows, in words."""
    over = [table for table in measured.tables if set(question.columns) <= set(table.columns)]
    missing = {other for table in over for other in table.columns} & measured.incomplete
    missing -= set(question.columns)
    if not missing:
        return None
    name = measured.columns[min(missing)].name
    return f"the tables of this release miss rows whose '{name}' is none of its listed values"


def _no_table(measured: ReleaseTables, question: Question) -> CannotTellError:
    short = _incomplete(measured, question)
    if short is not None:
        return CannotTellError(question.whole, short, "Mend the schema, or ask a fitted generator (--generator DIR)")
    names = [column.name for column in measured.columns]
    asked = " and ".join(names[place] for place in question.columns)
    over = [t.columns for t in measured.tables if len(t.columns) > 1 and set(t.columns) & set(question.columns)]
    pairs = sorted({" x ".join(names[place] for place in sorted(columns)) for columns in over})
    told = "It tells of these columns one by one only"
    if pairs:
        told = f"Of these columns it has {', '.join(pairs[:PAIRS_NAMED])}" + ", ..." * (len(pairs) > PAIRS_NAMED)
    return CannotTellError(
        question.whole,
        f"this release has no table over {asked} together",
        f"{told}. A fitted generator can guess: --generator DIR",
    )
