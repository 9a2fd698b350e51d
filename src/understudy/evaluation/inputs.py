"""What a model is given: numbers as they are, choices one-hot, and the label apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.evaluation.models import Task
from understudy.evaluation.tables import CodedTable
from understudy.schema.columns import Column


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows to learn from or to test on."""

    inputs: Floats
    """# (num_rows, num_inputs)"""
    target: npt.NDArray[Any]
    """Truth values with two classes, codes with more, numbers in a regression.  # (num_rows,)"""

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Integers | slice) -> Examples:
        """Some of the rows."""
        return Examples(self.inputs[rows], self.target[rows])


def task_of(label: Column) -> Task:
    """Numbers are regressed on; choices are told apart."""
    if not label.is_choice:
        return "regression"
    return "binary" if len(label.categories) == 2 else "multiclass"


def design(table: CodedTable, *, label: Column) -> Floats:
    """Every column but the label: a number's null is the middle, a choice's null a place of its own."""
    parts: list[Floats] = [np.empty((len(table), 0))]
    for position, column in enumerate(table.columns):
        if column.name == label.name:
            continue
        if column.is_choice:
            codes = table.bins[:, position]
            listed = np.where(codes > len(column.categories), 0, codes)
            parts.append(np.eye(len(column.categories) + 1)[listed])
        else:
            values = table.values[:, [position]]
            parts.append(np.where(np.isnan(values), sum(column.low_high) / 2, values))
    return np.concatenate(parts, axis=1)


def examples(
    table: CodedTable, *, label: Column, most_rows: int | None = None, rng: np.random.Generator | None = None
) -> Examples:
    """Rows whose label is known, or ``most_rows`` of them by a draw.

    With two classes the schema's last category is the positive one.
    """
    position = next(i for i, each in enumerate(table.columns) if each.name == label.name)
    target: npt.NDArray[Any] = table.values[:, position]
    known = ~np.isnan(target)
    if label.is_choice:
        codes = table.bins[:, position]
        known = (codes > 0) & (codes <= len(label.categories))
        target = codes == 2 if len(label.categories) == 2 else codes
    rows = np.flatnonzero(known)
    if most_rows is not None and len(rows) > most_rows:
        rows = (rng or np.random.default_rng(0)).permutation(rows)[:most_rows]
    return Examples(design(table.take(rows), label=label), target[rows])


def standardise(train: Examples, test: Examples) -> tuple[Examples, Examples]:
    """Both, scaled by the mean and deviation of the rows to learn from."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train.inputs)
    first, second = (Examples(scaler.transform(side.inputs), side.target) for side in (train, test))
    return first, second
