"""From a row's codes to what maps see: vectors of norm one, each a function of its row alone.

Tables: a membership per category, and hats over the range of a number, whose weighted sums are all
piecewise linear functions. Images: cosine coefficients, which can be drawn, or strokes, which tell more.
Every input ends with a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, product

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.fft import dct, fft2, ifft2

from understudy.arrays import Floats, Integers
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

SMALLEST_IMAGE = 8
"""Pixels of the shorter side of an image that strokes can be seen in."""

RIDGE = 0.1
"""Part of the noise's largest eigenvalue that is added to all."""

UNIT = 2.0**20
"""Entries of a whitening are multiples of one over this, so that products with integers are exact."""

NONE = "none"
"""The class of rows that have none of several labels."""

MOST_LABELS = 6
"""Labels that are combined to one, which has two to that power classes."""

DIRECTIONS = 8
SCALES = 2
"""Orientations and octaves of the filters."""

POOL = 4
"""Side of the squares of pixels that make one place."""

CENTRE_FREQUENCY = 3 * math.pi / 4
FILTER_WIDTH = 0.8
ELONGATION = 0.5
"""Of the finest filters: radians per pixel, pixels, and the ratio of their axes."""

LOWEST_FREQUENCIES = 7
"""Cosines of places are kept below this total frequency, which is where private noise takes over."""

SMALLEST_DEVIATION = 1e-2
"""Added to a channel's deviation, so that an empty image is not divided by zero."""


@dataclass(frozen=True)
class TableInputs:
    """Memberships of categories and hats over numbers."""

    schema: Schema

    @cached_property
    def runs(self) -> tuple[tuple[str, list[str]], ...]:
        """The column of each run of hats or memberships, and the value that every coordinate of it stands for."""
        layout = Layout(self.schema)
        columns = {column.name: column for column in self.schema.used}
        found = [(name, _knot_words(columns[name])) for name in layout.numbers]
        for choice in layout.choices:
            listed = [str(value) for value in columns[choice.column].categories]
            values = ["given", "missing"] if choice.flags_null else [*listed, "missing"]
            found.append((choice.column, values[: choice.width]))
        return tuple(found)

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Column and value of each coordinate."""
        return tuple((column, value) for column, values in self.runs for value in values)

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""
        return sum(len(values) for _, values in self.runs) + 1

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

    cosines: Cosines
    count: int

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""
        return self.count + 1

    def raw(self, codes: Integers) -> Floats:
        """The lowest coefficients.  # (num_rows, dim - 1)"""
        return self.cosines.coefficients(codes / LIGHTEST)[:, : self.count]

    def by_place(self, weights: Floats) -> Floats:
        """Weights of coefficients as images.  # (..., dim - 1) -> (..., channels, height, width)"""
        shape = self.cosines.shape
        images = self.cosines.images(weights.reshape(-1, self.count))
        return np.moveaxis(images.reshape(*weights.shape[:-1], shape.height, shape.width, shape.channels), -1, -3)


@dataclass(frozen=True)
class StrokeInputs:
    """Brightness and strokes of images of one shape: how strongly edges of each direction show, coarsely by place.

    Oriented band-pass filters at two scales, the modulus of what they find, averaged over places and taken apart by a
    cosine transform: the first layer of a scattering network (Mallat 2012). Nothing is learnt, and a row's numbers
    depend on that row alone.
    """

    shape: ImageShape

    @property
    def channels(self) -> int:
        """Brightness, then each scale's directions, for every colour."""
        return (1 + SCALES * DIRECTIONS) * self.shape.channels

    @cached_property
    def places(self) -> tuple[int, int]:
        """Rows and columns of places: the image has a frame of half a place or more."""
        down, across = (math.ceil((side + POOL) / POOL) for side in (self.shape.height, self.shape.width))
        return down, across

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Which cosines of places are kept.  # (place rows, place columns)"""
        down, across = self.places
        return np.arange(down)[:, None] + np.arange(across)[None, :] < LOWEST_FREQUENCIES

    @property
    def dim(self) -> int:
        """Coordinates, with the constant."""
        return self.channels * int(self.kept.sum()) + 1

    def raw(self, codes: Integers) -> Floats:
        """Strokes by place; each channel has mean 0 and size 1 before its cosines.  # (num_rows, dim - 1)"""
        shape = self.shape
        images = codes.reshape(-1, shape.height, shape.width, shape.channels) / LIGHTEST
        found = self._channels(np.moveaxis(images, 3, 1).astype(np.float32)).astype(np.float64)
        found -= found.mean(axis=(2, 3), keepdims=True)
        found /= np.sqrt((found**2).mean(axis=(2, 3), keepdims=True)) + SMALLEST_DEVIATION
        down, across = (_cosines(count) for count in self.places)
        return np.asarray((down @ found @ across.T)[:, :, self.kept].reshape(len(codes), -1))

    def by_place(self, weights: Floats) -> Floats:
        """Weights of numbers as weights of channels by place.  # (..., dim - 1) -> (..., channels, rows, columns)"""
        spread = np.zeros((*weights.shape[:-1], self.channels, *self.places))
        spread[..., self.kept] = weights.reshape(*weights.shape[:-1], self.channels, -1)
        down, across = (_cosines(count) for count in self.places)
        return np.asarray(down.T @ spread @ across)

    def _channels(self, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Brightness and strokes by place.  # (images, colours, height, width) -> (images, channels, rows, columns)"""
        high, wide = (POOL * count for count in self.places)
        top, left = (high - self.shape.height) // 2, (wide - self.shape.width) // 2
        framed = np.zeros((*images.shape[:2], high, wide), np.float32)
        framed[:, :, top : top + self.shape.height, left : left + self.shape.width] = images
        spectrum = fft2(framed)
        found = [_pooled(framed, POOL)[:, :, None]]
        for scale in range(SCALES):
            part = _lower(spectrum, 2**scale)
            filters = _filters(part.shape[2], part.shape[3])
            strokes = np.abs(ifft2(part[:, :, None] * filters))
            found.append(_pooled(strokes, POOL // 2**scale))
        stacked = np.concatenate(found, axis=2)
        return stacked.reshape(len(images), -1, *self.places)


Inputs = TableInputs | CosineInputs | StrokeInputs
"""What maps see of a row."""


def inputs_for(schema: Schema, kind: str, count: int) -> Inputs:
    """Inputs of a kind over the features of a schema."""
    if kind == "table":
        return TableInputs(schema)
    image = schema.image
    if image is None:
        raise UsageError("inputs", "the schema has no images", "Use --inputs table")
    if kind == "cosines":
        return CosineInputs(Cosines(image), min(count, image.num_pixels))
    if kind != "strokes":
        raise UsageError("inputs", f"'{kind}' is unknown", "Use one of table, cosines, strokes")
    if min(image.height, image.width) < SMALLEST_IMAGE:
        raise UsageError("inputs", "images are too small for strokes", "Use --inputs cosines")
    return StrokeInputs(image)


def unit_inputs(inputs: Inputs, codes: Integers) -> Floats:
    """Inputs of norm one, their constant last.  # (num_rows, dim)"""
    found = lengthened(inputs.raw(codes)) * math.sqrt(1 - CONSTANT**2)
    return np.concatenate([found, np.full((len(found), 1), CONSTANT)], axis=1)


def lengthened(vectors: Floats) -> Floats:
    """Vectors at length one; a zero vector stays."""
    norms = row_norms(vectors)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0)[:, None])


def _knot_words(column: Column) -> list[str]:
    """Around which value of a number each hat stands."""
    low, high = column.low_high
    share = np.linspace(0.0, 1.0, KNOTS)
    if column.scale_hint == "log1p":
        values = low + np.expm1(share * np.log1p(high - low))
    else:
        values = low + share * (high - low)
    return [f"about {value:,.0f}" if abs(value) >= 1000 else f"about {value:.4g}" for value in values]


def powerset_column(
    labels: Sequence[str], *, name: str = "label", kept: Sequence[Sequence[str]] | None = None
) -> Column:
    """Several yes-or-no labels as one: every combination is a class, as in the paper's medical records.

    ``kept`` lists the combinations that become classes, by default all: that is decided in public, not by how often
    they are in the data.
    """
    if not 1 <= len(labels) <= MOST_LABELS:
        raise UsageError("labels", f"must be one to {MOST_LABELS} to be combined")
    combinations = _combinations(labels) if kept is None else kept
    unknown = set().union(*combinations) - set(labels)
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
    for label in labels:
        yes_or_no = Column(name=label, kind=Kind.BINARY, categories=(False, True))
        place = 2 * place + (encode_column(yes_or_no, rows[label]) == 1)
    names = [class_name(each, labels) for each in _combinations(labels)]
    classes = pa.array(names, pa.string()).take(pa.array(place))
    return rows.drop_columns(list(labels)).append_column(name, classes)


def class_name(combination: Sequence[str], labels: Sequence[str]) -> str:
    """What a combination is called, whatever order it is listed in."""
    return "+".join(label for label in labels if label in combination) or NONE


def _combinations(labels: Sequence[str]) -> list[list[str]]:
    """Every combination of labels, in the order of binary numbers whose first digit is the first label."""
    return [list(compress(labels, digits)) for digits in product((0, 1), repeat=len(labels))]


@dataclass(frozen=True)
class Whitening:
    """A public matrix that spreads inputs evenly in all directions, and what else noisy second moments tell.

    Descent is slow where inputs vary much more in some directions than in others, and every step costs privacy. A noisy
    matrix of second moments is released first, and what is made of it is free.
    """

    matrix: Floats  # (dim, dim), entries at most 1
    mean: Floats  # (dim,) of unit inputs, noisy
    spread: Floats  # (dim,) deviation of unit inputs, noisy
    num_rows: float

    def __call__(self, inputs: Floats) -> Floats:
        """Inputs of norm one, spread evenly.  # (num_rows, dim)"""
        return lengthened(inputs @ self.matrix)


def whitening_from(moments: Floats, noise_std: float) -> Whitening:
    """Whiten by a noisy matrix of second moments, summed over rows of norm one.

    Eigenvalues of the noise, a symmetric random matrix, reach to 2 noise_std sqrt(dim) (Wigner's semicircle law):
    what is smaller is not believed.
    """
    reach = 2 * noise_std * math.sqrt(len(moments))
    values, directions = np.linalg.eigh(moments)
    matrix = directions / np.sqrt(np.maximum(values, 0.0) + RIDGE * reach + 1e-9)
    matrix /= np.abs(matrix).max()
    num_rows = max(1.0, float(np.trace(moments)))
    mean = moments[:, -1] / (CONSTANT * num_rows)  # products with the constant
    spread = np.sqrt(np.maximum(np.diag(moments) / num_rows - mean**2, 0.0))
    return Whitening(np.rint(matrix * UNIT) / UNIT, mean, spread, num_rows)


def _filters(high: int, wide: int) -> npt.NDArray[np.float32]:
    """Morlet wavelets, oriented band-pass filters of mean zero, as spectra.  # (directions, high, wide)"""
    down, across = np.meshgrid(*(2 * np.pi * np.fft.fftfreq(n) for n in (high, wide)), indexing="ij")
    found = []
    for direction in np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
        wave = _bump(down, across, direction, CENTRE_FREQUENCY)
        still = _bump(down, across, direction, 0.0)
        found.append(wave - still * (wave[0, 0] / still[0, 0]))
    return np.stack(found).astype(np.float32)


def _bump(down: Floats, across: Floats, direction: float, centre: float) -> Floats:
    """A long Gaussian bump around a frequency, wrapped around the ends of the spectrum."""
    total = np.zeros_like(down)
    for turn_down, turn_across in product((-2 * np.pi, 0.0, 2 * np.pi), repeat=2):
        y = down + turn_down - centre * math.sin(direction)
        x = across + turn_across - centre * math.cos(direction)
        along = x * math.cos(direction) + y * math.sin(direction)
        beside = y * math.cos(direction) - x * math.sin(direction)
        total += np.exp(-0.5 * FILTER_WIDTH**2 * (along**2 + (beside / ELONGATION) ** 2))
    return total


def _lower(spectrum: npt.NDArray[np.complex64], factor: int) -> npt.NDArray[np.complex64]:
    """The spectrum of the same images at a fraction of the size."""
    if factor == 1:
        return spectrum
    rows, columns = (np.r_[0 : math.ceil(n / factor / 2), n - n // factor // 2 : n] for n in spectrum.shape[2:])
    return np.asarray(spectrum[:, :, rows][:, :, :, columns] / factor**2)


def _pooled(maps: npt.NDArray[np.float32], step: int) -> npt.NDArray[np.float32]:
    """Averages around places, by a Gaussian half a place wide."""
    down, across = (_averages(n, step) for n in maps.shape[-2:])
    return np.asarray(down @ maps @ across.T)


def _averages(pixels: int, step: int) -> npt.NDArray[np.float32]:
    centres = (np.arange(pixels // step) + 0.5) * step - 0.5
    weights = np.exp(-0.5 * ((np.arange(pixels) - centres[:, None]) / (step / 2)) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


def _cosines(count: int) -> Floats:
    """The orthonormal cosine transform of so many numbers."""
    return np.asarray(dct(np.eye(count), norm="ortho", axis=0))
