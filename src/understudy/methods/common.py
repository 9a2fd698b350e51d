"""What the methods share: how they treat a label, and the noise that they plan for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from understudy.accounting import Budget, Neighbours, mechanism_for
from understudy.errors import UsageError
from understudy.features import Block, Constant, FeatureMap, Norm, OneHot, Sign
from understudy.schema import Layout, Schema

Labels = Literal["auto", "none", "balanced", "imbalanced"]
LABELS: tuple[Labels, ...] = ("auto", "none", "balanced", "imbalanced")

ROWS_IF_UNSAID = 10_000
"""The row count that sizes are planned for when nobody has stated one."""

COUNT_SHARE = 0.01
"""The row count's share of the squared norm."""


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """The columns of a table, with the label set apart.

    ``classes`` is the span of a categorical label; ``target`` the name of a numeric one, which
    stays among the numbers; ``spans`` are the spans of all other choices. If the label
    ``may_be_unlisted``, a row may have a label outside ``classes``: it has no class for nulls.
    """

    classes: tuple[int, int] | None
    target: str | None
    spans: tuple[tuple[int, int], ...]
    is_counted: bool
    may_be_unlisted: bool = False

    @property
    def num_labels(self) -> int:
        """Number of label values, or 1 without a label."""
        return self.classes[1] - self.classes[0] if self.classes else 1

    def count_block(self, weight: float, norm: Norm = Norm.L2) -> Block:
        """The number of rows, or of rows per class."""
        by_class = bool(self.classes) and self.is_counted
        unlisted = by_class and self.may_be_unlisted
        return Block("count", Constant(), weight, by_class, norm, with_unlisted=unlisted)

    def feature_block(self, name: str, map_: FeatureMap, weight: float) -> Block:
        """Features by class; counts of choices are kept of rows without a listed class too."""
        by_class = self.classes is not None
        unlisted = by_class and self.may_be_unlisted and isinstance(map_, OneHot)
        return Block(name, map_, weight, by_class, with_unlisted=unlisted)


def labelled_columns(schema: Schema, labels: Labels) -> LabelledColumns:
    """Set the label apart as ``labels`` says."""
    if labels not in LABELS:
        raise UsageError("labels", "must be one of " + ", ".join(LABELS))
    layout = Layout(schema)
    label = schema.label if labels != "none" else None
    spans = {choice.column: (choice.start, choice.stop) for choice in layout.choices}
    classes = spans.pop(label.name) if label is not None and label.is_choice else None
    target = label.name if label is not None and classes is None else None
    is_open = label is not None and not label.nullable
    return LabelledColumns(classes, target, tuple(spans.values()), labels != "balanced", is_open)


def norm_for(budget: Budget) -> Norm:
    """The norm that a budget's noise is paid for by."""
    return Norm(mechanism_for(budget).norm)


def noise_of_mean(
    budget: Budget,
    neighbours: Neighbours,
    *,
    share: float,
    num_rows: int | None,
    nonzeros: float = 1,
    sign: Sign = Sign.SIGNED,
    max_rows: int = 1,
) -> float:
    """Deviation of the noise on a mean feature of a map that has this share of the budget.

    For the planned row count, and at most ``max_rows`` rows of a person. Laplace noise grows with the
    number of features of a row that are not zero, Gaussian noise does not.
    """
    total = float(mechanism_for(budget).total(budget))
    is_replaced = neighbours is Neighbours.REPLACE_ONE
    part, rows = max(share, 1e-18), (num_rows or ROWS_IF_UNSAID) / max_rows
    if norm_for(budget) is Norm.L1:
        return (2 if is_replaced else 1) * math.sqrt(2 * nonzeros) / (total * part) / rows
    reach = math.sqrt(sign.replace_factor_squared) if is_replaced else 1.0
    return reach / math.sqrt(total) / math.sqrt(part) / rows


def scales_by_name(names: tuple[str, ...], scales: Mapping[str, float]) -> tuple[float, ...]:
    """A length scale for every numeric column, or a refusal."""
    stray = sorted(set(scales) ^ set(names))
    if stray:
        raise UsageError("length scale", f"must name every numeric column and no other; see '{stray[0]}'")
    return tuple(checked_scale(float(scales[name])) for name in names)


def checked_scale(scale: float) -> float:
    """A length scale in units of a column's range, or a refusal."""
    if 1e-4 <= scale <= 1e4:
        return scale
    raise UsageError("length scale", "must lie between 0.0001 and 10000", "Common choices: 0.05 to 1")
