"""The interface of feature maps, whose sum over rows is a kernel mean embedding, and the registry of their kinds.

A map states its own L2 and L1 bounds (and so the sensitivity of its sum), the marginals among its features, and how
they are evaluated. Sums, noise, queries, two-sample tests, reports and training ask the map and never for its class.
The default answers are safe ones: a loose bound, no tables to query, one group of features about all columns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import array_api_compat
import numpy as np

from understudy.arrays import Floats, Integers
from understudy.codec import Registry

if TYPE_CHECKING:
    from understudy.features.tables import Cells
    from understudy.schema import Layout


Array = Any
"""A NumPy array or a torch tensor; maps speak the array-API namespace of what they get."""


class Sign(StrEnum):
    """Sign of the inner product of two rows' features, that is, of the kernel.

    It decides on the L2 sensitivity of a sum under replace-one neighbours, as |a - b|^2 = |a|^2 + |b|^2 - 2 a.b: zero
    if the features are constant, sqrt(2) norms if no inner product is negative, else two norms.
    """

    CONSTANT = "constant"
    NONNEGATIVE = "nonnegative"
    SIGNED = "signed"

    @property
    def replace_factor_squared(self) -> int:
        """Largest squared distance between two rows' features, in squared norm bounds."""
        return {"constant": 0, "nonnegative": 2, "signed": 4}[self.value]


class Norm(StrEnum):
    """The norm that a sensitivity is measured in.

    Gaussian noise is calibrated to L2 sensitivity, whose squares add up over blocks; Laplace noise to L1 sensitivity,
    which adds up itself.
    """

    L1 = "l1"
    L2 = "l2"

    def dilution(self, parts: int) -> float:
        """The factor by which noise grows on each of several parts that share the sensitivity equally."""
        return math.sqrt(parts) if self is Norm.L2 else float(parts)

    def parts(self, dilution: float) -> float:
        """The inverse of ``dilution``: how many equal parts have noise that is larger by this factor."""
        return dilution**2 if self is Norm.L2 else dilution

    def weight(self, share: float) -> float:
        """The weight (norm) of a block that gets this share of the budget."""
        return math.sqrt(share) if self is Norm.L2 else share


class Axis(Protocol):
    """One axis of a table of counts: how a row's place along it is found. Equal axes count the same rows alike."""

    @property
    def dim(self) -> int:
        """Places along the axis."""

    def cells_in(self, layout: Layout) -> Cells | None:
        """The cells of a schema's column that the places are; none if they cannot be told from codes.

        Queries pass by tables in which a cell of a number is not one run of codes.
        """

    def edges_in(self, layout: Layout) -> tuple[str, Integers] | None:
        """For a chart: the column, and the codes at which runs of numbers begin, and the last one ends.

        No codes: places are the categories of a choice. None: the axis is no scale that could be drawn.
        """


@dataclass(frozen=True)
class OwnPlaces:
    """An axis whose places only its own kind of map can tell; no query is about them."""

    kind: str
    dim: int

    def cells_in(self, layout: Layout) -> None:
        """Codes do not tell."""

    def edges_in(self, layout: Layout) -> None:
        """Nothing to draw."""


@dataclass(frozen=True)
class CountTable:
    """A table of counts among a map's features: a row adds 1 / ``scale`` to one of its entries, or to none.

    Its features are those from ``start`` on, the last axis varying fastest. Without axes it is the row count.
    """

    axes: tuple[Axis, ...]
    start: int
    scale: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Places along each axis."""
        return tuple(axis.dim for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def features(self) -> Integers:
        """Which of the map's features they are."""
        return np.arange(self.start, self.start + self.size)

    def counts(self, sums: Floats) -> Floats:
        """The counts in sums of the map's features.  # (copies, dim) -> (copies, *shape)"""
        part = sums[:, self.start : self.start + self.size]
        return np.asarray(part * self.scale).reshape(len(sums), *self.shape)

    @classmethod
    def in_turn(cls, axes: Sequence[tuple[Axis, ...]]) -> tuple[CountTable, ...]:
        """Tables one after another, T of them: a row adds 1 / sqrt(T) to one entry of each."""
        found: list[CountTable] = []
        for own in axes:
            start = found[-1].start + found[-1].size if found else 0
            found.append(cls(own, start, math.sqrt(len(axes))))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class FeatureGroup:
    """Features that are about the same columns; their norm is 1 at most if they are times ``scale``.

    ``columns`` are names of a schema's columns: no other column moves these features. None: any column may.
    ``num_ordered`` of the features, the first, are neighbours on a scale; ``bands`` says of each how fine a
    structure it sees, the coarsest first. ``map`` has these features alone, times ``scale``, where that is less work
    than to take them from all.
    """

    columns: tuple[str, ...] | None
    features: Integers
    scale: float = 1.0
    num_ordered: int = 0
    bands: Integers | None = None
    map: FeatureMap | None = None


class PublicInput:
    """What a map holds of the world outside the schema: public rows, networks, directions of images."""


def constant_like(cells: Array, value: Floats, kept: dict[str, Array]) -> Array:
    """A map's own numbers as an array of the kind and precision of cells, kept for the next call."""
    key = f"{array_api_compat.array_namespace(cells).__name__} {cells.dtype}"
    if key not in kept:
        kept[key] = array_api_compat.array_namespace(cells).asarray(value, dtype=cells.dtype)
    return kept[key]


Piece = tuple["FeatureMap", Any, float]
"""A map with some of another's features, where they lie there, and their scale here."""


class FeatureMap(ABC):
    """phi(x): a row's cells in, its features out; sums of features over rows are what is released.

    Guarantee:
        For cells as ``Layout.expand`` makes them (if ``reads_codes``: for codes), every row's features have Euclidean
        norm at most 1, depend on that row alone (bit for bit, in NumPy float64), and have the stated
        ``sign``. The private side checks the norm again, in integers (proofs/lattice.md).
    """

    reads_codes: bool = False
    """Whether the map is given a row's codes, not its cells."""

    is_linear: bool = False
    """Whether features are linear in cells: features of expected cells are then expected features."""

    words: str = "features"
    """What the features are, for people."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Number of features."""

    @property
    @abstractmethod
    def sign(self) -> Sign:
        """What is known of inner products of two rows' features."""

    @abstractmethod
    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, width) -> (num_rows, dim)"""

    @property
    def is_differentiable(self) -> bool:
        """Whether features change smoothly with cells, so that a generator can be trained through the map."""
        return True

    @property
    def most_nonzeros(self) -> int:
        """The largest number of features of one row that are not zero: one of each table, if all are counts.

        Nothing private rests on it: the private side checks L1 norms row by row. It decides how large features may be
        made without being cut there.
        """
        tables = self.count_tables
        return len(tables) if sum(table.size for table in tables) == self.dim else self.dim

    @property
    def l1_bound(self) -> float:
        """The largest L1 norm of a row's features: sqrt(k) for k nonzeros of L2 norm 1 (Cauchy-Schwarz)."""
        return math.sqrt(self.most_nonzeros)

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The tables of counts among the features; queries can be answered from these alone."""
        return ()

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """The features by the columns that they are about; every feature is in one group."""
        return (FeatureGroup(None, np.arange(self.dim)),)

    @property
    def components(self) -> tuple[FeatureMap, ...]:
        """The maps whose features are multiplied; itself, if the map is no product."""
        return (self,)

    def rebuilt(self, change: Callable[[FeatureMap], FeatureMap]) -> FeatureMap:
        """The map changed; of a product, every factor."""
        return change(self)

    def fits(self, layout: Layout) -> bool:
        """Whether a layout's schema has what the map says that it reads."""
        return True

    @property
    def gram_size(self) -> int:
        """Numbers in the matrix that sums over rows go through, if they go through one."""
        return 0

    @property
    def public_inputs(self) -> tuple[PublicInput, ...]:
        """Public rows, networks and directions that the map holds; found in its fields, so none is forgotten."""
        return tuple(_inputs_in(self))

    @property
    def row_width(self) -> int:
        """How many numbers a row takes while features are summed."""
        return self.dim

    def sums(self, codes: Integers, cells: Floats, slots: Integers, copies: int) -> Floats:
        """Sums of public rows' features by copy, not rounded to the lattice; a slot of ``copies`` is in none.

        # (copies, dim)
        """
        members = np.asarray(slots[:, None] == np.arange(copies), dtype=np.float64)
        return np.asarray(members.T @ np.asarray(self(codes if self.reads_codes else cells), dtype=np.float64))

    def inner_products(self, codes: Integers, cells: Floats, *, sums: Floats, copy: Integers) -> tuple[Floats, Floats]:
        """Of public rows' features with one another, and with the sums of each row's copy.  # (rows, rows), (rows,)"""
        features = np.asarray(self(codes if self.reads_codes else cells), dtype=np.float64)
        return features @ features.T, (features * sums[copy]).sum(axis=1)

    def means(self, cells: Array, sizes: Sequence[int]) -> tuple[Array, Array]:
        """Mean embedding, and mean squared norm of features, of each of several groups of consecutive rows.

        # (num_rows, width) -> (groups, dim), (groups,)
        """
        features = self(cells)
        xp = array_api_compat.array_namespace(features)
        shares = np.repeat(np.eye(len(sizes)), sizes, axis=1) / np.asarray(sizes)[:, None]
        averaging = xp.asarray(shares, dtype=features.dtype)  # (groups, num_rows)
        return averaging @ features, averaging @ (features**2).sum(1)

    def pieces(self, num_features: int, num_subsets: int) -> list[Piece]:
        """Mini-batches of features: parts of about so many features or products, each an estimate of the whole MMD."""
        return [(self, slice(None), 1.0)]


def _inputs_in(value: Any) -> Iterator[PublicInput]:
    if isinstance(value, PublicInput):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _inputs_in(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _inputs_in(getattr(value, field.name))


MAP_KINDS: Registry[FeatureMap] = Registry(FeatureMap)
"""Every kind of map by the name it has in files; the conformance suite runs over this."""


@MAP_KINDS.register("constant")
@dataclass(frozen=True, slots=True)
class Constant(FeatureMap):
    """One feature that is 1 for every row: its sum is the row count."""

    dim = 1
    sign = Sign.CONSTANT
    row_width = 0  # nothing of a row is looked at
    is_differentiable = False
    words = "rows with each label"

    @property
    def count_tables(self) -> tuple[CountTable, ...]:
        """The row count."""
        return (CountTable((), 0, 1.0),)

    def groups(self, layout: Layout) -> tuple[FeatureGroup, ...]:
        """No column moves it."""
        return (FeatureGroup((), np.arange(1)),)

    def __call__(self, cells: Array) -> Array:
        """Ones.  # (num_rows, 1)"""
        xp = array_api_compat.array_namespace(cells)
        return xp.ones((cells.shape[0], 1), dtype=cells.dtype)
