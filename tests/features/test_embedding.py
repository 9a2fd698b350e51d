from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from understudy.codec import decode, encode
from understudy.features import Block, Constant, Embedding, FeatureMap, Fourier, Grid, Norm, OneHot, Scales, Sign
from understudy.private.sums import Rows, partial_sum
from understudy.schema import NULL, Layout, load_schema

Integers = npt.NDArray[np.int64]
SIGNED, NONNEGATIVE, CONSTANT = Sign.SIGNED, Sign.NONNEGATIVE, Sign.CONSTANT
FOURIER = Fourier((0, 1), (0.2, 0.1), (Scales(2, 1.0, 1.0),), 6, 1)
LATTICE = 2**24


@dataclass(frozen=True)
class Stub(FeatureMap):
    """A map known by its size and sign alone, or by a table of what it gives to row i."""

    dim: int = 1
    sign: Sign = Sign.SIGNED
    table: npt.NDArray[np.float64] | None = None

    def __call__(self, cells: Any) -> Any:
        assert self.table is not None
        return self.table[cells[:, 0].astype(int)]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "stub"}


def embedding(*blocks: tuple[Sign, float, bool], num_labels: int = 0, **options: Any) -> Embedding:
    label = (1, 1 + num_labels) if num_labels else None
    maps = [
        Block(f"block {i}", Stub(1 if sign is CONSTANT else 3, sign), weight, per_label)
        for i, (sign, weight, per_label) in enumerate(blocks)
    ]
    return Embedding(tuple(maps), label=label, **options)


SHAPES = {
    "one signed block": embedding((SIGNED, 1.0, False)),
    "one nonnegative block": embedding((NONNEGATIVE, 1.0, False)),
    "a count": embedding((CONSTANT, 1.0, False)),
    "count and features": embedding((CONSTANT, 0.6, False), (SIGNED, 0.8, False)),
    "heterogeneous": embedding((SIGNED, 1.0, False), (NONNEGATIVE, 1.0, False)),
    "labelled, class counts": embedding((CONSTANT, 1.0, True), (SIGNED, 1.0, True), num_labels=3),
    "labelled, heavy counts": embedding((CONSTANT, 0.9, True), (SIGNED, 0.3, True), num_labels=2),
    "labelled, balanced": embedding((CONSTANT, 0.5, False), (SIGNED, 0.5, True), num_labels=2),
    "labelled, everything": embedding(
        (CONSTANT, 0.5, True),
        (SIGNED, 0.5, True),
        (NONNEGATIVE, 0.5, True),
        (SIGNED, 0.2, False),
        (NONNEGATIVE, 0.4, False),
        num_labels=3,
    ),
    "one label value": embedding((CONSTANT, 0.5, True), (NONNEGATIVE, 0.5, True), num_labels=1),
}
each_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def vectors_in_ball(block: Block, lattice: int, rng: np.random.Generator) -> list[Integers]:
    """Integer vectors that the private side would let through, extremes first."""
    radius, dim = block.radius(lattice), block.map.dim
    if block.map.sign is CONSTANT:
        return [np.full(dim, radius, dtype=np.int64)]
    axes = [sign * radius * axis for axis in np.eye(dim, dtype=np.int64) for sign in (1, -1)]
    random = rng.normal(size=(12, dim))
    order = 2 if block.norm is Norm.L2 else 1
    random *= radius * rng.random((12, 1)) / np.linalg.norm(random, order, axis=1, keepdims=True)
    found = [*axes, *np.trunc(random).astype(np.int64), np.zeros(dim, dtype=np.int64)]
    return [abs(each) for each in found] if block.map.sign is NONNEGATIVE else found


def row_vector(shape: Embedding, parts: list[Integers], label: int | None) -> Integers:
    """What one row adds to the sum; label None is an unlisted value."""
    pieces = []
    for block, part in zip(shape.blocks, parts, strict=True):
        copies = np.zeros((shape.copies(block), block.map.dim), dtype=np.int64)
        if not block.per_label or shape.label is None:
            copies[0] = part
        elif label is not None:
            copies[label] = part
        pieces.append(copies.ravel())
    return np.concatenate(pieces)


def largest_changes(shape: Embedding, lattice: int) -> tuple[int, int]:
    """Largest change by adding and by replacing, over rows at the edge and inside.

    Blocks are independent given the labels, so each pair of labels is maximised block by block.
    """
    rng = np.random.default_rng(0)
    options = [vectors_in_ball(block, lattice, rng) for block in shape.blocks]
    labels = [*range(shape.num_labels), None] if shape.label else [0]
    adding = max(
        sum(max(_reach(shape, v) for v in vectors) for vectors in options) if label is not None else 0
        for label in labels
    )
    replacing = 0
    for one, other in itertools.product(labels, repeat=2):
        total = 0
        for position in range(len(shape.blocks)):
            total += max(
                _distance(shape, position, (a, one), (b, other))
                for a, b in itertools.product(options[position], repeat=2)
            )
        replacing = max(replacing, total)
    return adding, replacing


def _reach(shape: Embedding, vector: Integers) -> int:
    """A squared Euclidean norm, or an L1 norm."""
    return int(vector @ vector) if shape.norm is Norm.L2 else int(np.abs(vector).sum())


def _distance(shape: Embedding, position: int, one: tuple[Integers, int | None], other: Any) -> int:
    block = shape.blocks[position]
    alone = Embedding((block,), label=shape.label)
    change = row_vector(alone, [one[0]], one[1]) - row_vector(alone, [other[0]], other[1])
    return _reach(shape, change)


def in_norm(shape: Embedding, norm: Norm) -> Embedding:
    return replace(shape, blocks=tuple(replace(block, norm=norm) for block in shape.blocks))


@each_shape
@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("lattice", [7, 40])
def test_the_sensitivity_is_exactly_the_largest_change_over_all_rows(
    shape: Embedding, lattice: int, norm: Norm
) -> None:
    shape = in_norm(shape, norm)
    adding, replacing = largest_changes(shape, lattice)
    assert shape.sensitivity(lattice, replace=False) == adding
    bound = shape.sensitivity(lattice, replace=True)
    # With one label value two rows cannot have different ones: the bound is valid, not tight.
    assert bound == replacing if shape.num_labels != 1 or not shape.label else bound >= replacing


@each_shape
@pytest.mark.parametrize("norm", list(Norm))
def test_separate_releases_are_charged_at_least_the_joint_change(shape: Embedding, norm: Norm) -> None:
    shape = in_norm(shape, norm)
    apart = Embedding(shape.blocks, label=shape.label, separate=True)
    for replaced in (False, True):
        parts = apart.mechanism_sensitivities(40, replace=replaced)
        assert len(parts) == 1 + shape.num_labels
        assert sum(parts) >= shape.sensitivity(40, replace=replaced)


def test_separate_releases_of_three_classes_cost_as_in_the_first_paper() -> None:
    shape = embedding((CONSTANT, 1.0, True), (SIGNED, 1.0, True), num_labels=3, separate=True)
    assert shape.mechanism_sensitivities(10, replace=True) == (200, 400, 400, 400)
    assert shape.mechanism_sensitivities(10, replace=False) == (100, 100, 100, 100)
    laplace = in_norm(shape, Norm.L1)
    assert laplace.mechanism_sensitivities(10, replace=True) == (20, 20, 20, 20)
    assert laplace.mechanism_sensitivities(10, replace=False) == (10, 10, 10, 10)


def test_blocks_of_two_norms_have_no_sensitivity_together() -> None:
    blocks = SHAPES["count and features"].blocks
    with pytest.raises(ValueError, match="one kind"):
        Embedding((blocks[0], replace(blocks[1], norm=Norm.L1)))


def test_class_counts_ride_free_when_a_row_is_replaced() -> None:
    counted = SHAPES["labelled, class counts"].sensitivity(LATTICE, replace=True)
    alone = embedding((SIGNED, 1.0, True), num_labels=3)
    assert counted == alone.sensitivity(LATTICE, replace=True) == 4 * LATTICE**2


def test_heavy_class_counts_do_not_ride_free() -> None:
    a, b = math.floor(0.9 * LATTICE), math.floor(0.3 * LATTICE)
    found = SHAPES["labelled, heavy counts"].sensitivity(LATTICE, replace=True)
    assert found == 2 * (a**2 + b**2) > 4 * b**2


def test_numbers_and_choices_have_sensitivity_root_six_not_two_root_two() -> None:
    found = SHAPES["heterogeneous"].sensitivity(LATTICE, replace=True)
    assert math.sqrt(found) / LATTICE == math.sqrt(6)


@pytest.mark.parametrize("weight", [0.0, -0.5, 1.0000001, math.inf, math.nan])
def test_a_weight_lies_above_zero_and_is_at_most_one(weight: float) -> None:
    with pytest.raises(ValueError, match="weight"):
        Block("heavy", Constant(), weight)


def test_blocks_of_the_same_name_are_refused_since_one_would_be_forgotten() -> None:
    with pytest.raises(ValueError, match="names"):
        Embedding((Block("twice", Constant(), 0.5), Block("twice", FOURIER, 0.5)))


# Through the code that sums real rows

REAL = Embedding(
    (
        Block("count", Constant(), 0.3, per_label=True),
        Block("numbers", FOURIER, 0.7, per_label=True),
        Block("choices", OneHot(((2, 5), (5, 7))), 0.5, per_label=True),
        Block("histogram", Grid((0, 1), 4), 0.4),
    ),
    label=(7, 9),
)


def layout_of(num_numbers: int, *sizes: int) -> Layout:
    """A layout of so many numbers, then choices of these sizes."""
    numbers = [{"name": f"number {i}", "kind": "continuous", "bounds": [0, 1]} for i in range(num_numbers)]
    choices = [
        {"name": f"choice {i}", "kind": "categorical", "categories": list(range(size))} for i, size in enumerate(sizes)
    ]
    return Layout(load_schema({"name": "made up", "columns": [*numbers, *choices]}))


def sum_of(cells: npt.NDArray[np.float64], embedding: Embedding, layout: Layout) -> Integers:
    """The sum of rows of any cells, also such as no codes have; the last choice is the label."""
    label = layout.choices[-1]
    members = cells[:, label.start : label.stop]
    codes = np.zeros((len(cells), len(layout.schema.used)), dtype=np.int64)
    codes[:, -1] = np.where(members.any(axis=1), members.argmax(axis=1), NULL)
    rows = Rows(layout, codes)
    vars(rows)["cells"] = cells
    return partial_sum(rows, embedding=embedding, lattice=LATTICE)


REAL_LAYOUT, ONE_NUMBER = layout_of(2, 3, 2, 2), layout_of(1, 2)
cell_rows = st.builds(
    lambda x, y, *slots: _cells(x, y, slots),
    st.integers(0, 2**16),
    st.integers(0, 2**16),
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 2),
)


def _cells(x: int, y: int, slots: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """A row as Layout.expand makes them; the last slot of each choice means unlisted."""
    row = np.zeros(9)
    row[:2] = x / 2**16, y / 2**16
    for (start, stop), slot in zip(((2, 5), (5, 7), (7, 9)), slots, strict=True):
        if start + slot < stop:
            row[start + slot] = 1.0
    return row


@settings(max_examples=150, deadline=None)
@given(one=cell_rows, other=cell_rows)
def test_no_pair_of_rows_moves_the_real_sum_further_than_stated(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]
) -> None:
    sums = [sum_of(row[None, :], REAL, REAL_LAYOUT) for row in (one, other)]
    for single in sums:
        assert _squared(single) <= REAL.sensitivity(LATTICE, replace=False)
    assert _squared(sums[0] - sums[1]) <= REAL.sensitivity(LATTICE, replace=True)


def test_two_rows_half_a_turn_apart_reach_what_is_stated() -> None:
    one_frequency = Fourier((0,), (0.002,), (Scales(1, 1.0, 1.0),), 2, 1)
    labelled = Embedding(
        (Block("count", Constant(), 0.2, True), Block("numbers", one_frequency, 0.9, True)), label=(1, 3)
    )
    half_a_turn = 0.5 / abs(float(one_frequency.frequencies[0, 0]))
    rows = np.array([[0.0, 1, 0], [half_a_turn, 1, 0]])
    sums = [sum_of(rows[i : i + 1], labelled, ONE_NUMBER) for i in range(2)]
    stated = labelled.sensitivity(LATTICE, replace=True)
    assert 0.9999 * stated < _squared(sums[0] - sums[1]) <= stated


wild = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([1e308, -1e308, 5e-324, -5e-324, math.nan, math.inf, -math.inf, 1.0, -1.0]),
)


@settings(max_examples=150, deadline=None)
@given(
    signed=arrays(np.float64, (2, 4), elements=wild),
    unsigned=arrays(np.float64, (2, 3), elements=wild),
    labels=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_maps_that_break_every_promise_move_the_sum_no_further_than_stated(
    signed: npt.NDArray[np.float64], unsigned: npt.NDArray[np.float64], labels: tuple[int, int]
) -> None:
    liar = Embedding(
        (
            Block("count", Constant(), 0.3, per_label=True),
            Block("signed", Stub(4, SIGNED, signed), 0.7, per_label=True),
            Block("unsigned", Stub(3, NONNEGATIVE, unsigned), 0.5),
        ),
        label=(1, 3),
    )
    cells = np.zeros((2, 3))
    cells[1, 0] = 1
    for row, label in enumerate(labels):
        if label < 2:
            cells[row, 1 + label] = 1.0
    sums = [sum_of(cells[i : i + 1], liar, ONE_NUMBER) for i in range(2)]
    for single in sums:
        assert _squared(single) <= liar.sensitivity(LATTICE, replace=False)
    assert _squared(sums[0] - sums[1]) <= liar.sensitivity(LATTICE, replace=True)


def _squared(vector: Integers) -> int:
    return sum(int(value) ** 2 for value in vector.tolist())


def test_an_embedding_comes_back_from_its_description() -> None:
    again = decode(Embedding, encode(REAL))
    assert again == REAL
    assert again.spans == REAL.spans


@pytest.mark.parametrize(
    "damage",
    [
        {"blocks": None},
        {"label": [1]},
        {"separate": True, "label": {"a": 1}},
        {"separate": 1},
        {"no such": 1},
        {"blocks": [{"name": "a", "weight": 2.0, "per_label": False, "map": {"kind": "constant"}}]},
        {"blocks": [{"name": "a", "weight": 1.0, "per_label": False, "map": {"kind": "no such"}}]},
    ],
)
def test_a_damaged_description_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="field"):
        decode(Embedding, encode(REAL) | damage)
