"""Several yes-or-no labels as one: every combination is a class, as 003 does for medical records.

Which combinations are kept is decided in public, not by how often they are in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pyarrow as pa

from understudy.errors import UsageError
from understudy.schema.columns import Column, Kind, Role
from understudy.schema.encode import encode_column

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

    A row's class depends on that row alone, and a cell that is neither true nor false sets nothing. Rows of combinations that a schema does not keep are read as
    rows without a label, which a classifier does not use.
    """
    place = np.zeros(rows.num_rows, dtype=np.int64)
    for bit, label in enumerate(labels):
        yes_or_no = Column(name=label, kind=Kind.BINARY, categories=(False, True))
        place += (encode_column(yes_or_no, rows[label]) == 1).astype(np.int64) << bit
    names = [
        class_name([label for bit, label in enumerate(labels) if place >> bit & 1], labels)
        for place in range(2 ** len(labels))
    ]
    classes = pa.array(names, pa.string()).take(pa.array(place))
    return rows.drop_columns(list(labels)).append_column(name, classes)


def class_name(combination: Sequence[str], labels: Sequence[str]) -> str:
    """What a combination is called, whatever order it is listed in."""
    return "+".join(label for label in labels if label in combination) or NONE


def _all(labels: Sequence[str]) -> list[list[str]]:
    choices = product((False, True), repeat=len(labels))
    return [[label for label, on in zip(labels, each, strict=True) if on] for each in choices]
