"""How the methods treat a label: which column it is, and how its values are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from understudy.errors import UsageError
from understudy.features import Block, Constant
from understudy.schema import Layout, Schema

Labels = Literal["auto", "none", "balanced", "imbalanced"]
LABELS: tuple[Labels, ...] = ("auto", "none", "balanced", "imbalanced")


@dataclass(frozen=True, slots=True)
class LabelledColumns:
    """The columns of a table, with the label set apart.

    ``classes`` is the span of a categorical label; ``target`` the name of a numeric one, which
    stays among the numbers; ``spans`` are the spans of all other choices.
    """

    classes: tuple[int, int] | None
    target: str | None
    spans: tuple[tuple[int, int], ...]
    is_counted: bool

    def count_block(self, weight: float) -> Block:
        """The number of rows, or of rows per class."""
        return Block("count", Constant(), weight, per_label=bool(self.classes) and self.is_counted)


def labelled_columns(schema: Schema, labels: Labels) -> LabelledColumns:
    """Set the label apart as ``labels`` says."""
    if labels not in LABELS:
        raise UsageError("labels", "must be one of " + ", ".join(LABELS))
    layout = Layout(schema)
    label = schema.label if labels != "none" else None
    spans = {choice.column: (choice.start, choice.stop) for choice in layout.choices}
    classes = spans.pop(label.name) if label is not None and label.is_choice else None
    target = label.name if label is not None and classes is None else None
    return LabelledColumns(classes, target, tuple(spans.values()), labels != "balanced")
