"""From a row's codes to what maps see: vectors of norm one, each a function of its row alone.

Tables: a membership per category, and hats over the range of a number, whose weighted sums are all
piecewise linear functions. Images: cosine coefficients, which can be drawn, or strokes, which tell more.
Every input ends with a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.classifier.strokes import Strokes
from understudy.errors import UsageError
from understudy.features.exact import row_norms
from understudy.features.image_bases import Cosines
from understudy.schema import Layout, Schema
from understudy.schema.columns import Column, Kind, Role
from understudy.schema.encode import encode_column
from understudy.schema.images import LIGHTEST, ImageShape

KNOTS = 9
"""Hats over the range of a number."""

CONSTANT = 0.1
"""The last coordinate of every input, which gives maps their bias."""

KINDS = ("table", "cosines", "strokes")
SMALLEST_IMAGE = 8


class Inputs(Protocol):
    """What maps see of a row."""

    @property
    def schema(self) -> Schema:
        """The columns that are known before a label is predicted."""

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""

    def raw(self, codes: Integers) -> Floats:
        """Coordinates without the constant, of any length.  # (num_rows, dim - 1)"""


@dataclass(frozen=True)
class TableInputs:
    """Memberships of categories and hats over numbers."""

    schema: Schema

    @cached_property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Column and value of each coordinate."""
        layout, found = Layout(self.schema), []
        columns = {column.name: column for column in self.schema.used}
        for name in layout.numbers:
            found += [(name, words) for words in _knot_words(columns[name])]
        for choice in layout.choices:
            column = columns[choice.column]
            listed = [str(value) for value in column.categories]
            values = ["given", "missing"] if choice.flags_null else [*listed, "missing"]
            found += [(choice.column, value) for value in values[: choice.width]]
        return tuple(found)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Where each run of hats or memberships lies."""
        layout = Layout(self.schema)
        widths = [KNOTS] * len(layout.numbers) + [choice.width for choice in layout.choices]
        ends = np.cumsum(widths).tolist()
        return tuple(zip([0, *ends[:-1]], ends, strict=True))

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""
        return len(self.names) + 1

    def raw(self, codes: Integers) -> Floats:
        """Hats, then memberships.  # (num_rows, dim - 1)"""
        layout = Layout(self.schema)
        cells = layout.expand(codes)
        positions = cells[:, : len(layout.numbers), None] * (KNOTS - 1)
        hats = np.maximum(0.0, 1.0 - np.abs(positions - np.arange(KNOTS)))
        return np.concatenate([hats.reshape(len(cells), -1), cells[:, len(layout.numbers) :]], axis=1)


@dataclass(frozen=True)
class CosineInputs:
    """Cosine coefficients of images, the lowest frequencies first: linear, so that maps can be drawn."""

    schema: Schema
    count: int

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""
        return self.count + 1

    @cached_property
    def cosines(self) -> Cosines:
        """The basis."""
        return Cosines(_image(self.schema))

    def raw(self, codes: Integers) -> Floats:
        """The lowest coefficients.  # (num_rows, dim - 1)"""
        return self.cosines.coefficients(codes / LIGHTEST)[:, : self.count]


@dataclass(frozen=True)
class StrokeInputs:
    """Strokes of images."""

    schema: Schema

    @cached_property
    def strokes(self) -> Strokes:
        """The filters."""
        return Strokes(_image(self.schema))

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""
        return self.strokes.dim + 1

    def raw(self, codes: Integers) -> Floats:
        """Strokes by place.  # (num_rows, dim - 1)"""
        return self.strokes(codes.astype(np.float64))


def inputs_for(schema: Schema, kind: str, count: int) -> Inputs:
    """Inputs of a kind over the features of a schema."""
    if kind == "table":
        return TableInputs(schema)
    image = _image(schema)
    if kind == "strokes" and min(image.height, image.width) >= SMALLEST_IMAGE:
        return StrokeInputs(schema)
    if kind == "cosines":
        return CosineInputs(schema, min(count, image.num_pixels))
    if kind == "strokes":
        raise UsageError("inputs", "images are too small for strokes", "Use --inputs cosines")
    raise UsageError("inputs", f"'{kind}' is unknown", f"Use one of {', '.join(KINDS)}")


def unit_inputs(inputs: Inputs, codes: Integers) -> Floats:
    """Inputs of norm one, their constant last.  # (num_rows, dim)"""
    found = lengthened(inputs.raw(codes)) * math.sqrt(1 - CONSTANT**2)
    return np.concatenate([found, np.full((len(found), 1), CONSTANT)], axis=1)


def lengthened(vectors: Floats) -> Floats:
    """Vectors at length one; a zero vector stays."""
    norms = row_norms(vectors)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0)[:, None])


def features_of(schema: Schema) -> Schema:
    """The schema of what is known before a label is predicted."""
    return replace(schema, columns=tuple(c for c in schema.columns if c.role is not Role.LABEL))


def _image(schema: Schema) -> ImageShape:
    if schema.image is None:
        raise UsageError("inputs", "the schema has no images", "Use --inputs table")
    return schema.image


def _knot_words(column: Column) -> list[str]:
    """Around which value of a number each hat stands."""
    low, high = column.low_high
    share = np.linspace(0.0, 1.0, KNOTS)
    if column.scale_hint == "log1p":
        values = low + np.expm1(share * np.log1p(high - low))
    else:
        values = low + share * (high - low)
    return [f"about {value:,.0f}" if abs(value) >= 1000 else f"about {value:.4g}" for value in values]


# Several yes-or-no labels as one: every combination is a class, as 003 does for medical records.
#
# Which combinations are kept is decided in public, not by how often they are in the data.

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

    A row's class depends on that row alone, and a cell that is neither true nor false sets nothing. Rows of
    combinations that a schema does not keep are read as rows without a label, which a classifier does not use.
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


# Inputs of equal spread in all directions, by their noisy second moments.
#
# Descent is slow where inputs vary much more in some directions than in others, and every step costs
# privacy. A noisy matrix of second moments is released first, and what is made of it is free.

RIDGE = 0.1
"""Part of the noise's largest eigenvalue that is added to all."""

UNIT = 2.0**20
"""Entries of a whitening are multiples of one over this, so that products with integers are exact."""


@dataclass(frozen=True)
class Whitening:
    """A public matrix that inputs are multiplied by, and what else noisy second moments tell."""

    matrix: Floats  # (dim, dim), entries at most 1
    mean: Floats  # (dim,) of unit inputs, noisy
    spread: Floats  # (dim,) deviation of unit inputs, noisy
    num_rows: float

    def __call__(self, inputs: Floats) -> Floats:
        """Inputs of norm one, spread evenly.  # (num_rows, dim)"""
        return lengthened(inputs @ self.matrix)

    @property
    def dim(self) -> int:
        """Coordinates."""
        return len(self.matrix)


def whitening_from(moments: Floats, noise_std: float) -> Whitening:
    """Whiten by a noisy matrix of second moments, summed over rows of norm one.

    Eigenvalues of the noise reach to 2 noise_std sqrt(dim): what is smaller is not believed.
    """
    reach = 2 * noise_std * math.sqrt(len(moments))
    values, directions = np.linalg.eigh(moments)
    matrix = directions / np.sqrt(np.maximum(values, 0.0) + RIDGE * reach + 1e-9)
    matrix /= np.abs(matrix).max()
    num_rows = max(1.0, float(np.trace(moments)))
    mean = moments[:, -1] / (CONSTANT * num_rows)  # products with the constant
    spread = np.sqrt(np.maximum(np.diag(moments) / num_rows - mean**2, 0.0))
    return Whitening(np.rint(matrix * UNIT) / UNIT, mean, spread, num_rows)
