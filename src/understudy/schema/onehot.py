"""Groups of yes/no columns that are the one-hot code of a single variable.

A group is measured as one choice whose categories are the names of its columns, so that no synthetic row can have two
of them set; rows are read and written with the columns as they lie in files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.arrays import Codes
from understudy.errors import InputError, column_error
from understudy.schema.columns import NULL, Column, Kind, Role
from understudy.schema.values import category_key

FORM = "Write onehot_groups: {soil: [soil_1, soil_2, null]}; null if a row may have none of them"


@dataclass(frozen=True, slots=True)
class OneHotGroup:
    """Columns of which a row has exactly one set; none of them, if that is declared."""

    name: str
    columns: tuple[str, ...]
    or_none: bool = False

    def listed(self) -> list[str | None]:
        """The group as the YAML file has it."""
        return [*self.columns, *([None] if self.or_none else [])]


def parse_groups(document: Any, columns: tuple[Column, ...], *, where: str) -> tuple[OneHotGroup, ...]:
    """Check a schema's ``onehot_groups``.

    Raises:
        InputError: it names the group or the column, and the remedy.
    """
    if not isinstance(document, dict):
        raise InputError(where, "onehot_groups must hold a list of columns for each name", FORM)
    by_name, taken, found = {column.name: column for column in columns}, set[str](), []
    for name, listed in document.items():
        group = f"one-hot group '{name}'"
        if not isinstance(name, str) or not isinstance(listed, list):
            raise InputError(group, "must have a name and a list of different columns", FORM)
        names = tuple(str(each) for each in listed if each is not None)
        if len({category_key(each) for each in names}) + listed.count(None) < len(listed) or listed.count(None) > 1:
            raise InputError(group, "must have a name and a list of different columns", FORM)
        if name in by_name:
            raise InputError(group, "has the name of a column", "Name it otherwise")
        if len(names) < 2:
            raise InputError(group, "has fewer than two columns", "Leave it out")
        for each in names:
            if each in taken:
                raise column_error(str(each), "is in two one-hot groups", "Keep it in one")
            _check_member(each, by_name.get(each), group)
        taken.update(names)
        found.append(OneHotGroup(name, names, None in listed))
    return tuple(sorted(found, key=lambda group: group.name))  # as release.json has them


def _check_member(name: Any, column: Column | None, group: str) -> None:
    if column is None:
        raise InputError(group, f"names '{name}', which is not a column", "Mend onehot_groups: or columns:")
    if column.role is not Role.FEATURE or sorted(column.categories, key=str) not in ([0, 1], [False, True]):
        raise column_error(
            column.name,
            f"is in {group}, whose columns must be features with the categories 0 and 1",
            "Mend it, or take it out of the group",
        )


def grouped(groups: tuple[OneHotGroup, ...], name: str) -> tuple[str, str] | None:
    """Why a column of a group cannot be asked for by itself, and what to ask for."""
    group = next((group for group in groups if name in group.columns), None)
    if group is None:
        return None
    return f"is one of the columns of '{group.name}'", f"Ask for {group.name} = '{name}'"


def with_groups(columns: tuple[Column, ...], groups: tuple[OneHotGroup, ...]) -> tuple[Column, ...]:
    """Columns with each group as one choice, in the place of its first column."""
    group_of = {name: group for group in groups for name in group.columns}
    by_name, found = {column.name: column for column in columns}, []
    for column in columns:
        group = group_of.get(column.name)
        if group is None:
            found.append(column)
        elif column.name == group.columns[0]:
            members = tuple(by_name[name] for name in group.columns)
            found.append(
                Column(
                    name=group.name,
                    kind=Kind.CATEGORICAL,
                    categories=group.columns,
                    nullable=group.or_none,
                    bounds_from=_source_of(members),
                    members=members,
                )
            )
    return tuple(found)


def _source_of(members: tuple[Column, ...]) -> str:
    """Where it is known from that a group's columns are 0 or 1: where not all of them say the same, nowhere."""
    sources = {member.bounds_from for member in members}
    return sources.pop() if len(sources) == 1 else "not stated"


def group_codes(column: Column, codes: Codes, *, unlisted: int) -> Codes:
    """Codes of a group's columns to its own: which one is set.

    Guarantee:
        A row's code depends on its own codes alone: ``unlisted`` if several are set; null if none is, or ``unlisted``
        if one of them holds no value of its column (proofs/encoder.md).
        # (num_rows, members) -> (num_rows,)
    """
    is_set = codes == np.array([member.categories.index(1) for member in column.members])
    count = is_set.sum(axis=1)
    none_set = np.minimum(codes.min(axis=1), NULL)
    return np.where(count == 1, is_set.argmax(axis=1), np.where(count == 0, none_set, unlisted))


def member_codes(column: Column, codes: Codes) -> Codes:
    """A group's codes to those of its columns; null has none of them set.  # (num_rows,) -> (num_rows, members)"""
    is_set = codes[:, None] == np.arange(len(column.members))
    on = np.array([member.categories.index(1) for member in column.members])
    return np.where(is_set, on, 1 - on)
