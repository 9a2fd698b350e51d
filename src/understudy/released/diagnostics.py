"""Diagnostics of a release from its own noisy counts: values that the schema does not list, rows clipped to a bound,
far fewer rows than planned. Post-processing: no row is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from understudy.arrays import Floats
from understudy.features import Cells
from understudy.released.release import Release
from understudy.released.tables import NoisyCount, ReleaseTables, tables_of, total_rows
from understudy.schema.columns import Kind, number_values, spoken

DOUBT = 4.0
"""Deviations of noise (of a normal law; as many as are as rare of another) that a finding about one column must
exceed; of many columns one is more often wrong, so that it must exceed more."""

LEAST_SHARE = 0.005
"""Of the rows: fewer are not worth a word."""

SHORT_SCALE = 20
"""Whole numbers of fewer values are scales, whose ends are values like others."""

PILE_FACTOR = 2.0
"""Rows at a bound pile up if they are so many times those at the value beside it."""

_KINDS = {Kind.DATETIME: "a date", Kind.INTEGER: "a whole number"}

PLANNED_SHARE = 0.5
"""A table with fewer of the rows planned for is probably another one."""


def release_warnings(release: Release) -> list[str]:
    """What the curator should look at before the release is used: unlisted values, clipped ones, too few rows."""
    measured = tables_of(release)
    planned, total = release.plan.num_rows, total_rows(measured.release)
    found = []
    doubt = release.plan.mechanism.deviations(DOUBT)
    if planned is not None and total.rows + doubt * total.noise < PLANNED_SHARE * planned:
        found.append(
            f"The noisy row count is {total.rows:.0f}, far below the {planned} rows planned for: "
            "is the right file read?"
        )
    for place, column in enumerate(measured.columns):
        found += filter(None, [unlisted_note(measured, place)])
        found += [
            f"About {_about(rows, total)} lie at the {side} bound of '{column.name}' ({value}), far more "
            "than beside it: values beyond it may have been clipped. Check the bounds in the schema."
            for side, value, rows, beside in _at_bounds(measured, place)
            if rows.rows > PILE_FACTOR * beside.rows + doubt * math.hypot(rows.noise, PILE_FACTOR * beside.noise)
        ]
    return found


def unlisted_note(measured: ReleaseTables, place: int) -> str | None:
    """How many rows have a value that the schema does not provide for, if there surely are some."""
    column, unlisted, total = (measured.columns[place], unlisted_rows(measured, place), total_rows(measured.release))
    if unlisted is None or not _is_sure(measured, unlisted, total):
        return None
    if column.is_choice:
        wrong, remedy = "is none of its listed categories", "their spelling and the file's encoding"
    else:
        wrong = f"cannot be read as {_KINDS.get(column.kind, 'a number')}"
        remedy = "the format of its cells"
    if not column.nullable:
        wrong, remedy = f"{wrong}, or is blank", f"{remedy}, or declare nullable: true"
    return f"In about {_about(unlisted, total)} '{column.name}' {wrong}: check {remedy}."


def bound_notes(measured: ReleaseTables, place: int) -> list[str]:
    """Which part of the rows lies at a column's bounds, where all that lies beyond them is counted too."""
    column, total = measured.columns[place], total_rows(measured.release)
    return [
        f"about {_about(rows, total)} lie at the {side} bound of '{column.name}' ({value}), "
        "which stands for all values beyond it"
        for side, value, rows, _ in _at_bounds(measured, place)
    ]


def unlisted_rows(measured: ReleaseTables, place: int) -> NoisyCount | None:
    """Rows whose value in a column is not listed, or null where none is allowed; from tables of it alone."""
    found = []
    for cells, counts, noise in _one_way(measured, place):
        if cells.has_unlisted:
            found.append(NoisyCount(float(counts[-1]), noise))
        elif not cells.has_null:
            total = total_rows(measured.release)
            both = math.hypot(total.noise, noise * math.sqrt(len(counts)))
            found.append(NoisyCount(total.rows - float(counts.sum()), both))
    return _average(found)


def _at_bounds(measured: ReleaseTables, place: int) -> Iterator[tuple[str, str, NoisyCount, NoisyCount]]:
    """Each bound of a number at which rows surely lie: its side, its value, its rows, and those of the next cell."""
    column = measured.columns[place]
    if column.is_choice or column.num_steps < SHORT_SCALE:
        return
    values = [spoken(column, value) for value in number_values(column, np.array([0, column.num_steps]))]
    for side, value, at in (("lower", values[0], 0), ("upper", values[1], -1)):
        if side == "lower" and column.low_high[0] == 0:
            continue  # nothing is below nothing
        bound, beside = [], []
        for cells, counts, noise in _one_way(measured, place):
            firsts, lasts = cells.first_codes, cells.last_codes
            if not cells.groups and firsts[at] == lasts[at] and cells.num_known > 2:
                next_to = 1 if at == 0 else -2
                width = float(lasts[next_to] - firsts[next_to] + 1)
                known = counts[: cells.num_known]
                bound.append(NoisyCount(float(known[at]), noise))
                beside.append(NoisyCount(float(known[next_to]) / width, noise / width))
        rows, near = _average(bound), _average(beside)
        if rows is not None and near is not None and _is_sure(measured, rows, total_rows(measured.release)):
            yield side, value, rows, near


def _one_way(measured: ReleaseTables, place: int) -> Iterator[tuple[Cells, Floats, float]]:
    """Counts of a column by itself, labels summed over, and the noise of each count."""
    for table in measured.over((place,)):
        if len(table.columns) <= 2:
            axis = table.columns.index(place)
            others = tuple(i for i in range(len(table.columns)) if i != axis)
            merged = math.prod(table.counts.shape[i] for i in others)
            yield table.cells[axis], table.counts.sum(axis=others), table.noise * math.sqrt(merged)


def _average(found: list[NoisyCount]) -> NoisyCount | None:
    """Independent estimates as one, by inverse variance."""
    if not found:
        return None
    weights = np.array([1 / each.noise**2 for each in found])
    rows = np.array([each.rows for each in found])
    return NoisyCount(float(weights @ rows / weights.sum()), float(1 / math.sqrt(weights.sum())))


def _is_sure(measured: ReleaseTables, found: NoisyCount, total: NoisyCount) -> bool:
    return found.rows > max(_doubt(measured) * found.noise, LEAST_SHARE * total.rows)


def _doubt(measured: ReleaseTables) -> float:
    """Deviations of the noise that all columns together exceed as seldom as one does ``DOUBT``.

    A normal tail is below exp(-d^2 / 2): an m-th of it (Bonferroni) lies at sqrt(d^2 + 2 log m).
    """
    return measured.mechanism.deviations(math.sqrt(DOUBT**2 + 2 * math.log(len(measured.columns))))


def _about(found: NoisyCount, total: NoisyCount) -> str:
    share = min(1.0, found.rows / total.rows)
    return f"{found.rows:,.0f} rows ({100 * share:.1f} %)"
