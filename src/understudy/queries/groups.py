"""Groups that rows are told apart by: categories, numbers or runs of them, and null."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.features import Cells
from understudy.queries.partitions import cell_edges
from understudy.schema import Column
from understudy.schema.codesets import CodeSet
from understudy.schema.columns import EPOCH, Kind
from understudy.schema.values import MICROSECOND, number_values

MOST_GROUPS = 20
"""Bars of a number unless a query says how many."""


@dataclass(frozen=True, slots=True)
class Group:
    """A set of codes with a name; ``middle`` is where it lies on a number's axis."""

    words: str
    codes: CodeSet
    middle: float | None = None


def groups_of(column: Column, cells: Cells, *, most: int | None = None) -> list[Group]:
    """The groups of a column; for a number runs of the given cells, at most ``most`` of them."""
    if column.is_choice:
        found = [Group(str(category), CodeSet(((code, code),))) for code, category in enumerate(column.categories)]
    else:
        found = _runs(column, cells, most or MOST_GROUPS)
    return [*found, Group("null", CodeSet((), has_null=True))] if column.nullable else found


def _runs(column: Column, cells: Cells, most: int) -> list[Group]:
    """Equal numbers of cells made one."""
    firsts = cell_edges(cells)
    firsts = firsts[:: -(-len(firsts) // most)]
    lasts = np.append(firsts[1:] - 1, cells.num_codes - 1)
    low, high = number_values(column, firsts), number_values(column, lasts)
    return [
        Group(
            _named(column, low[i], high[i], is_last=i == len(firsts) - 1),
            CodeSet(((int(firsts[i]), int(lasts[i])),)),
            (float(low[i]) + float(high[i])) / 2,
        )
        for i in range(len(firsts))
    ]


def _named(column: Column, low: float, high: float, *, is_last: bool) -> str:
    ends = [spoken(column, low), spoken(column, high)]
    if ends[0] == ends[1]:
        return ends[0]
    if column.kind is Kind.CONTINUOUS and not is_last:
        return f"{ends[0]} to below {ends[1]}"
    return f"{ends[0]} to {ends[1]}"


def spoken(column: Column, value: float) -> str:
    """A value of a number or a date in words."""
    if column.kind is Kind.DATETIME:
        moment = EPOCH + int(value) * MICROSECOND
        is_day = column.resolution is not None and column.resolution.value == "day"
        return moment.date().isoformat() if is_day else moment.isoformat()
    return str(int(value)) if column.is_whole else f"{value:.6g}"
