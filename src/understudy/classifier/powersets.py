"""Several yes-or-no labels as one: every combination is a class, as 003 does for medical records.

Which combinations are kept is decided in public, not by how often they are in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from understudy.errors import UsageError
from understudy.schema.columns import Column, Kind, Role

NONE = "none"
MOST_LABELS = 6


def powerset_column(
    labels: Sequence[str], *, name: str = "label", kept: Sequence[Sequence[str]] | None = None
) -> Column:
    """The label of combinations of labels; ``kept`` lists those that become classes, by default all."""
    if not 1 <= len(labels) <= MOST_LABELS:
        raise UsageError("labels", f"must be one to {MOST_LABELS} to be combined")
    combinations = kept if kept is not None else _all(labels)
    unknown = {each for combination in combinations for each in combination} - set(labels)
    if unknown:
        raise UsageError("kept", f"names '{min(unknown)}', which is no label")
    names = tuple(dict.fromkeys(class_name(each, labels) for each in combinations))
    return Column(name=name, kind=Kind.CATEGORICAL, role=Role.LABEL, categories=names)


def combined(rows: pa.Table, labels: Sequence[str], *, name: str = "label") -> pa.Table:
    """Rows with one column in place of the labels; a label is set where it is true or 1.

    A row's class depends on that row alone. Rows of combinations that a schema does not keep are read as
    rows without a label, which a classifier does not use.
    """
    set_ = {
        label: pc.fill_null(pc.equal(pc.cast(rows[label], pa.int64()), 1), False)
        for label in labels
    }
    words = None
    for label in labels:
        part = pc.if_else(set_[label], f"{label}+", "")
        words = part if words is None else pc.binary_join_element_wise(words, part, "")
    names = pc.if_else(pc.equal(words, ""), NONE, pc.utf8_rtrim(words, "+"))
    return rows.drop_columns(list(labels)).append_column(name, names)


def class_name(combination: Sequence[str], labels: Sequence[str]) -> str:
    """What a combination is called, whatever order it is listed in."""
    return "+".join(label for label in labels if label in combination) or NONE


def _all(labels: Sequence[str]) -> list[list[str]]:
    choices = product((False, True), repeat=len(labels))
    return [[label for label, on in zip(labels, each, strict=True) if on] for each in choices]
