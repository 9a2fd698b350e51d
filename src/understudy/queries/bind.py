"""A question over the atoms of a release: who is counted in each group, with which value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product

import numpy as np

from understudy.arrays import Floats, Integers
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
from understudy.queries.grammar import CannotTellError, QueryError
from understudy.queries.least_squares import LeastSquares, gather
from understudy.queries.question import Question
from understudy.released.diagnostics import bound_notes, unlisted_note
from understudy.released.tables import ReleaseTables
from understudy.schema.values import CodeSet, every_code

MOST_GROUPS = 4000
MOST_WEIGHTS = 30_000_000
"""Groups of an answer, and weights of all of them together."""

PAIRS_NAMED = 8
WITH_VALUES = ("sum", "mean", "var", "std")

DISAGREE = (
    "the release's tables disagree more than their noise explains, so intervals were widened by what they disagree by: "
    "some tables miss rows whose values the schema does not list"
)


@dataclass(frozen=True, eq=False)
class BoundQuery:
    """A question with its atoms, and the estimates of their counts.

    ``sets`` are, for each axis, the codes of each of its groups; ``everyone`` the same without the
    question's condition. Functions of all groups are arrays of (groups, atoms).
    """

    sources: Sources
    question: Question
    axes: tuple[Cells, ...]
    sets: tuple[tuple[CodeSet, ...], ...]
    unconditional: tuple[tuple[CodeSet, ...], ...]
    groups: tuple[tuple[Group, ...], ...]

    @cached_property
    def fit(self) -> LeastSquares:
        """Counts of the atoms from all tables together."""
        evidence = gather(self.sources.measured, self.axes)
        measured = self.sources.measured
        num_rows = measured.num_rows if all(map(measured.is_whole, self.axes)) else None
        return LeastSquares(evidence, num_rows=num_rows, mechanism=measured.mechanism)

    @cached_property
    def members(self) -> Ranged:
        """Whether an atom's rows are counted in each group."""
        return self._product([self._memberships(i, self.sets[i]) for i in range(len(self.axes))])

    @cached_property
    def everyone(self) -> Ranged:
        """The same without the condition."""
        every = range(len(self.axes))
        return self._product([self._memberships(i, self.unconditional[i]) for i in every])

    def valued(self, *, centre: float = 0.0, is_squared: bool = False) -> Ranged:
        """The question's column, less a centre, for rows that are counted, and 0 for others."""
        parts = []
        for i, cells in enumerate(self.axes):
            part = self._memberships(i, self.sets[i])
            if cells.column == self.question.column:
                own = values(
                    self.sources.measured.columns[cells.column], cells, centre=centre, masses=self.sources.masses(cells)
                )
                part = (own.squared() if is_squared else own).within(part)
            parts.append(part)
        return self._product(parts)

    def _memberships(self, axis: int, sets: Sequence[CodeSet]) -> Ranged:
        """Membership of one axis' cells in each of its groups.  # (groups, cells)"""
        cells = self.axes[axis]
        found = [membership(cells, codes, self.sources.masses(cells)) for codes in sets]
        return Ranged(*(np.stack([getattr(f, end) for f in found]) for end in ("low", "middle", "high")))

    def _product(self, parts: list[Ranged]) -> Ranged:
        """Functions of axes multiplied.  # (groups, cells) of each -> (all groups, atoms)"""
        if not parts:
            one = np.ones((1, 1))
            return Ranged(one, one, one)
        whole = reduce(Ranged.outer, parts)
        count = len(parts)
        order = [*range(0, 2 * count, 2), *range(1, 2 * count, 2)]
        groups = int(np.prod([part.low.shape[0] for part in parts]))

        def flat(array: Floats) -> Floats:
            return array.transpose(order).reshape(groups, -1)

        return Ranged(flat(whole.low), flat(whole.middle), flat(whole.high))

    @property
    def names(self) -> list[tuple[tuple[str, str], ...]]:
        """Each group as pairs of a column's name and words."""
        columns = self.sources.measured.columns
        by = [columns[cells.column].name for cells in self.axes if cells.column in self.question.grouping]
        return [tuple(zip(by, [group.words for group in each], strict=True)) for each in self.groups]

    @property
    def source(self) -> str:
        """Where the answer comes from, in words."""
        if not self.axes and self.sources.measured.num_rows is not None:
            return "the public row count"
        asked = {cells.column for cells in self.axes}
        used = [t for t in self.sources.measured.tables if asked <= set(t.columns)]
        blocks = sorted({table.block for table in used}, key=[t.block for t in used].index)
        plural = "tables" if len(used) > 1 else "table"
        return f"{len(used)} noisy {plural} ({', '.join(blocks)})"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the answer."""
        measured, question = self.sources.measured, self.question
        found = [unlisted_note(measured, place) for place in question.columns]
        for place in question.columns:
            if place == question.column or place in question.where:
                found += bound_notes(measured, place)
        if self.fit.disagrees:
            found.append(DISAGREE)
        return tuple(note for note in found if note)


def bind(sources: Sources, question: Question, *, also: Integers | None = None) -> BoundQuery:
    """Find the atoms on which a question is answered.

    Raises:
        QueryError: no table of the release is over all of its columns.
    """
    measured, columns = sources.measured, question.columns
    groups: dict[int, list[Group]] = {}
    for place in columns:
        if place not in question.grouping:
            continue
        cells = finest_cells(measured, place, columns)
        if cells is None:
            raise _no_table(measured, question)
        bars = int(question.number) if question.aggregate == "histogram" and question.number else None
        groups[place] = groups_of(measured.columns[place], cells, most=bars)
    sets, unconditional = _sets(measured, question, groups)
    count = int(np.prod([len(each) for each in sets.values()])) if sets else 1
    if count > MOST_GROUPS:
        raise QueryError(
            question.whole,
            f"would have {count} groups, and {MOST_GROUPS} are the most",
            "Group by fewer columns, or ask about one group with where",
        )
    axes = _axes(sources, question, sets, also)
    size = int(np.prod([cells.dim for cells in axes])) if axes else 1
    if count * size > MOST_WEIGHTS:
        raise QueryError(question.whole, "is too large a table", "Ask about fewer groups, with where")
    return BoundQuery(
        sources,
        question,
        tuple(axes),
        tuple(tuple(sets[cells.column]) for cells in axes),
        tuple(tuple(unconditional[cells.column]) for cells in axes),
        tuple(product(*(groups[place] for place in columns if place in groups))),
    )


def _sets(
    measured: ReleaseTables, question: Question, groups: dict[int, list[Group]]
) -> tuple[dict[int, list[CodeSet]], dict[int, list[CodeSet]]]:
    """The codes of each group along each axis, with the condition and without."""
    sets, unconditional = {}, {}
    for place in question.columns:
        # Rows with an unlisted value are rows too; aggregates of a column leave its nulls out.
        is_valued = place == question.column and question.aggregate != "histogram"
        known = every_code(measured.columns[place])
        every = CodeSet(known.ranges, known.has_null and not is_valued, has_unlisted=not is_valued)
        base = question.where[place] & every if place in question.where else every
        own = [group.codes for group in groups[place]] if place in groups else [every]
        sets[place] = [codes & base for codes in own]
        unconditional[place] = [codes & every for codes in own]
    return sets, unconditional


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
        place = columns[0]
        return [single_axis(measured, place, sets[place], every_value=is_valued, also=also)]
    valued = question.column if question.aggregate != "histogram" else None
    axes = several_axes(sources, columns, sets, valued) if columns else []
    if axes is None:
        raise _no_table(measured, question)
    return axes


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
        remedy = "Mend the schema, or ask a fitted generator (--generator DIR)"
        return CannotTellError(question.whole, short, remedy)
    names = [measured.columns[place].name for place in question.columns]
    pairs = sorted(
        {
            " x ".join(measured.columns[place].name for place in sorted(table.columns))
            for table in measured.tables
            if len(table.columns) > 1 and set(table.columns) & set(question.columns)
        }
    )
    if pairs:
        listed = ", ".join(pairs[:PAIRS_NAMED]) + (", ..." if len(pairs) > PAIRS_NAMED else "")
        told = f"Of these columns it has {listed}"
    else:
        told = "It tells of these columns one by one only"
    return CannotTellError(
        question.whole,
        f"this release has no table over {' and '.join(names)} together",
        f"{told}. A fitted generator can guess: --generator DIR",
    )
