"""DP-SGD for locally linear maps, with per-example gradients in closed form and in integers throughout.

The gradient of a row is an outer product: derivatives by the maps' answers, times what the maps
see. Both are rounded to integers inside a radius, and a sum over rows is one matrix product, exact in
float64 because every number in it stays below 2^53. No gradient of a single row is ever formed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers
from understudy.classifier.maps import LocallyLinearMaps, MapShape, answer_gradients
from understudy.classifier.plan import RADIUS
from understudy.errors import InputError
from understudy.private.dpsgd.steps import Descent, clipped
from understudy.private.lattice import to_lattice

WEIGHT_UNIT = 2.0**20
"""Weights are rounded to multiples of one over this, so that products with integer inputs are exact."""

LARGEST_WEIGHTS = 2.0**38
"""Norm that a map's integer weights stay below: times ``RADIUS`` it is below 2^53, where float64 is exact."""

PROJECTION_UNIT = 2.0**20
"""Public projections are rounded to multiples of one over this, for the same reason."""

PROBE_ROWS = 24
"""Made-up rows on which row independence is checked."""

BLOCK_NUMBERS = 2**20
"""Numbers of a block of rows, so that it stays in cache."""

MOST_UNPACKED = 2**26
"""Numbers of all rows that are kept unpacked, which takes half a gigabyte."""


@dataclass(frozen=True)
class IntegerRows:
    """Private rows as a descent sees them: integer inputs inside ``RADIUS``, and labels."""

    inputs: npt.NDArray[np.int16 | np.float64]  # (num_rows, num_features), whole numbers
    labels: Integers  # (num_rows,)

    def unpacked(self) -> IntegerRows:
        """The same as float64, if they fit memory: steps then need not convert them."""
        if self.inputs.size > MOST_UNPACKED:
            return self
        return IntegerRows(self.inputs.astype(np.float64), self.labels)


def integer_inputs(inputs: Floats) -> npt.NDArray[np.int16]:
    """Inputs of norm at most one as integers; longer ones are shortened, broken ones become zero."""
    return to_lattice(inputs, RADIUS).astype(np.int16)


def train_maps(rows: IntegerRows, shape: MapShape, descent: Descent) -> LocallyLinearMaps:
    """Train maps, of a shape with public projections, on private rows by DP-SGD.

    The plan's clipping norm is for per-example derivatives by the maps' answers, for inputs of norm one.

    Guarantee:
        The maps are private as the plan's cost states, between tables with one row more or less. Every row adds
        an integer matrix of norm at most RADIUS^2 to a step's sum, a function of that row and of
        earlier noisy sums alone, and the sum is exact (proofs/descent.md).
    """
    rows, first, clip = rows.unpacked(), shape.first_weights(), descent.plan.clip
    check_row_independence(shape, first, clip)

    def summed(weights: Floats, drawn: Integers) -> Integers:
        return gradient_sum(rows, shape, weights.reshape(first.shape), drawn, clip=clip)

    found = descent.run(first.ravel(), summed, num_rows=len(rows.labels), radius=RADIUS**2)
    return LocallyLinearMaps(shape, found.reshape(first.shape))


def exact_answers(seen: Floats, whole: Floats) -> Floats:
    """Whole inputs times whole weights, in units of one.  # (groups, rows, dim), (groups, maps, dim)

    Guarantee:
        Every partial sum is a whole number below 2^53, so answers are exact, and the same in any block
        (proofs/descent.md).
    """
    return np.asarray(np.matmul(seen, np.swapaxes(whole, 1, 2)) / (RADIUS * WEIGHT_UNIT))


def gradient_sum(rows: IntegerRows, shape: MapShape, weights: Floats, places: Integers, *, clip: float) -> Integers:
    """The exact sum of the drawn rows' integer gradients. PRIVATE.  # (maps, classes, map_dim)"""
    projections = _whole_projections(shape)
    groups = shape.num_maps if projections is not None else 1  # maps that see the same are one
    whole = _whole_weights(weights).reshape(groups, -1, shape.map_dim)
    total = np.zeros(whole.shape, dtype=np.int64)
    step = max(1, BLOCK_NUMBERS // (shape.num_features + groups * shape.map_dim))
    for start in range(0, len(places), step):
        part = places[start : start + step]
        inputs = rows.inputs[_run(part)].astype(np.float64, copy=False)
        seen = inputs[None] if projections is None else _projected(inputs, projections)
        answers = exact_answers(seen, whole)
        by_row = np.moveaxis(answers, 0, 1).reshape(len(part), shape.num_maps, shape.num_classes)
        slopes = answer_gradients(by_row, rows.labels[part], shape.inverse_temperature)
        pulls = to_lattice(clipped(slopes.reshape(len(part), -1), clip), RADIUS)
        by_group = np.moveaxis(pulls.reshape(len(part), groups, -1), 0, 2)
        total += np.matmul(by_group, seen).astype(np.int64)
    return total.reshape(weights.shape)


def _run(places: Integers) -> Integers | slice:
    """Places as a slice where they follow each other, which copies nothing."""
    first, last = int(places[0]), int(places[-1])
    is_run = last - first + 1 == len(places) and bool((np.diff(places) == 1).all())
    return slice(first, last + 1) if is_run else places


def check_row_independence(shape: MapShape, weights: Floats, clip: float) -> None:
    """Check on made-up rows that this machine computes a row's gradient the same way in any block."""
    rng = np.random.default_rng(0)
    inputs = integer_inputs(rng.normal(size=(PROBE_ROWS, shape.num_features)))
    rows = IntegerRows(inputs, rng.integers(0, shape.num_classes, PROBE_ROWS))

    def summed(places: Integers) -> Integers:
        return gradient_sum(rows, shape, weights, places, clip=clip)

    every = np.arange(PROBE_ROWS)
    if not np.array_equal(summed(every), sum(summed(every[i : i + 1]) for i in every)):
        raise InputError(
            "this machine", "computes a row's gradient differently in different blocks", "Use another build of NumPy"
        )


def _whole_weights(weights: Floats) -> Floats:
    """Weights as whole numbers, so small that their products with inputs are exact."""
    whole = np.rint(weights * WEIGHT_UNIT)
    longest = np.sqrt((whole**2).sum(axis=2).max())
    return whole if longest < LARGEST_WEIGHTS else np.trunc(whole * (LARGEST_WEIGHTS / 2 / longest))


def _whole_projections(shape: MapShape) -> Floats | None:
    if shape.projections is None:
        return None
    return np.rint(shape.projections * PROJECTION_UNIT)


def _projected(inputs: Floats, projections: Floats) -> Floats:
    """Each map's inputs by its integer projection, rounded and clipped to the radius again.  # (maps, rows, map_dim)"""
    scale = RADIUS * PROJECTION_UNIT
    return np.stack([to_lattice(inputs @ each / scale, RADIUS) for each in projections])
