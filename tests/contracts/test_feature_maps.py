"""Every feature map, present and future, passes this suite: add an example and it runs."""

from __future__ import annotations

import itertools
import json
import math
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec import encode, kind_of
from understudy.features import (
    Block,
    Buckets,
    Cells,
    Constant,
    Embedding,
    FeatureMap,
    Fourier,
    Grid,
    Hermite,
    Kernel,
    Landmarks,
    Lengths,
    Mahalanobis,
    Norm,
    OneHot,
    Scales,
    Sides,
    Sign,
    Spectrum,
    Tables,
    Tensors,
    Term,
    Weighted,
    product,
)
from understudy.features.base import MAP_KINDS
from understudy.features.fourier import SLACK
from understudy.features.image_bases import principal_of
from understudy.features.landmarks import kernel_sums
from understudy.features.perceptual import NetworkLayers, perceptual
from understudy.features.points import points_of_codes
from understudy.networks.public import PIXELS, Intake, network_of_module
from understudy.plan.plan import LATTICE
from understudy.private.sums import Rows, partial_sum
from understudy.rules.pivots import pivot_points
from understudy.schema import NULL, Layout, load_schema
from understudy.schema.images import ImageShape

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
COLUMNS: list[dict[str, Any]] = [
    {"name": "share", "kind": "continuous", "bounds": [0, 1]},
    {"name": "age", "kind": "integer", "bounds": [0, 120]},
    {"name": "income", "kind": "continuous", "bounds": [0, 1e6], "nullable": True, "scale_hint": "log1p"},
    {"name": "day", "kind": "datetime", "bounds": ["2000-01-01", "2020-12-31"]},
    {"name": "stars", "kind": "ordinal", "bounds": [1, 5]},
    {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True},
    {"name": "smoker", "kind": "binary", "categories": ["no", "yes"]},
]
SCHEMA = load_schema({"name": "every kind", "columns": COLUMNS})
LAYOUT = Layout(SCHEMA)
NUMBERS = tuple(range(len(LAYOUT.numbers)))
SPANS = tuple((choice.start, choice.stop) for choice in LAYOUT.choices)
CLASSES = SPANS[0][1] - SPANS[0][0]
LARGEST = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in SCHEMA.used]

GAUSSIAN = Fourier(NUMBERS, (0.3, 0.1, 1.0, 0.5, 0.2), (Scales(len(NUMBERS), 1.0, 1.0),), 66, 3)
GRID = Grid((0, 2), 7)
MIXTURE = Fourier((1, 3), (1.0, 0.5), (Scales(1, 0.004, 0.5), Scales(2, 0.02, 0.7)), 30, 1)
HERMITE = Hermite(NUMBERS, (0.3, 0.1, 1.0, 0.5, 0.2), 12, 2.5)
PLANE = Mahalanobis((2, 0), ((3.0, 1.2), (1.2, 2.0)), 9)
SPACE = Mahalanobis((0, 3, 1), ((2.0, 0.5, -0.3), (0.5, 1.0, 0.2), (-0.3, 0.2, 1.5)), 5)
SINGLES: tuple[FeatureMap, ...] = (
    *(Hermite((j,), (0.05 * (j + 1),), 6 + j, 3.0) for j in NUMBERS),
    *(OneHot((span,)) for span in SPANS),
)
PAIRS = tuple(itertools.combinations(range(len(SINGLES)), 2))
TRIPLES = ((0, 1, 2), (4, 6, 3), (5, 7, 6), (0, 5, 1))
CUTS = (
    Cells(0, LARGEST[0] + 1, is_ordered=True, lows=(0, 1, 2**14, LARGEST[0])),
    Cells(1, 121, is_ordered=True, lows=(0, 18, 19, 65, 66), groups=(0, 1, 0, 2, 2)),
    Cells(2, LARGEST[2] + 1, has_null=True, is_ordered=True, lows=(0, 1, 2**12)),
    Cells(3, LARGEST[3] + 1, is_ordered=True, lows=tuple(range(0, LARGEST[3], 365))),
    Cells(4, 5, is_ordered=True),
    Cells(5, 3, has_null=True, groups=(1, 0, 1)),
    Cells(6, 2),
)
PUBLIC = points_of_codes(LAYOUT, np.random.default_rng(12).integers(NULL, np.asarray(LARGEST) + 1, (70, len(LARGEST))))


def kernel_of(shape: str, scale: float, mismatch: float, *, together: bool = True) -> Kernel:
    """A kernel of all columns together, or a mean of one per column."""
    if together:
        return Kernel(shape, (Term(NUMBERS, (scale,) * len(NUMBERS), SPANS, mismatch),))
    terms = [Term((number,), (scale,), (), mismatch) for number in NUMBERS]
    return Kernel(shape, (*terms, *(Term((), (), (span,), mismatch) for span in SPANS)))


def landmarks(kernel: Kernel, most: int = 60) -> Landmarks:
    places, _ = pivot_points(kernel, PUBLIC, np.ones(len(PUBLIC)), most=most)
    return Landmarks(kernel, PUBLIC, tuple(int(place) for place in places))


PRINCIPAL = principal_of(np.arange(0, 252, 3, np.uint8).reshape(21, 4), ImageShape(2, 2), 3)


def tiny_network(channels: int = 1) -> torch.nn.Module:
    """Two convolutions, with weights of a seed."""
    source = torch.Generator().manual_seed(channels)
    found = torch.nn.Sequential(
        torch.nn.Conv2d(channels, 3, 3, padding=1), torch.nn.ReLU(inplace=True), torch.nn.Conv2d(3, 2, 1)
    )
    with torch.no_grad():
        for values in found.parameters():
            values.normal_(generator=source)
    return found


GREY = network_of_module(tiny_network(), name="grey", intake=Intake(1, (0.4,), (0.3,)), layers=("0", "2"))
COLOURED = network_of_module(
    tiny_network(3), name="coloured", intake=Intake(3, (0.4,) * 3, (0.3,) * 3, (3, 3)), layers=("0",)
)
SMALL = ImageShape(2, 2)

EXAMPLES: dict[str, FeatureMap] = {
    "perceptual, first moment": perceptual(GREY, SMALL),
    "perceptual, second moment": perceptual(GREY, SMALL, moment=2),
    "perceptual, after activation": perceptual(GREY, SMALL, layers=("0",), rectified=True),
    "perceptual, pixels too": perceptual(GREY, SMALL, layers=(PIXELS, "2")),
    "perceptual, grey images for colours, scaled": perceptual(COLOURED, SMALL),
    "perceptual, products": Tensors((perceptual(GREY, SMALL, layers=("2",)),), ((0, 0),)),
    "landmarks, gaussian": landmarks(kernel_of("gaussian", 0.6, 0.5)),
    "landmarks, wide, so that points nearly lie in a line": landmarks(Kernel("gaussian", (Term((0, 1), (3.0, 2.0)),))),
    "landmarks, laplace": landmarks(kernel_of("laplace", 1.0, 0.3)),
    "landmarks, matern 1/2": landmarks(kernel_of("matern12", 0.5, 0.0)),
    "landmarks, matern 3/2": landmarks(kernel_of("matern32", 2.0, 0.9)),
    "landmarks, matern 5/2, one point": landmarks(kernel_of("matern52", 1.0, 0.2), most=1),
    "landmarks, sum of columns": landmarks(kernel_of("gaussian", 0.2, 0.0, together=False)),
    "landmarks, many numbers": landmarks(Kernel("gaussian", (Term(NUMBERS * 2, (1.0,) * (2 * len(NUMBERS))),))),
    "landmarks, choices alone": landmarks(Kernel("gaussian", (Term((), (), SPANS, 0.4),))),
    "kernel sums, gaussian": kernel_sums(kernel_of("gaussian", 0.6, 0.5), PUBLIC),
    "kernel sums, sum of columns": kernel_sums(kernel_of("matern32", 0.3, 0.1, together=False), PUBLIC),
    "kernel sums, laplace, wide": kernel_sums(kernel_of("laplace", 9.0, 0.9), PUBLIC),
    "spectrum": Spectrum(Weighted(ImageShape(2, 2), 3, 1.25), 1.5),
    "spectrum, everything cut": Spectrum(Weighted(ImageShape(1, 5), 5, 4.0), 0.01),
    "spectrum, nothing cut": Spectrum(Weighted(ImageShape(4, 1), 4, 0.0), 50.0),
    "spectrum, principal": Spectrum(Weighted(PRINCIPAL.shape, 2, 1.0, PRINCIPAL), 1.0),
    "spectrum, colours": Spectrum(Weighted(ImageShape(1, 1, 3), 2, 1.0), 1.0),
    "second moments": Tensors((Spectrum(Weighted(ImageShape(5, 1), 5, 1.0), 2.0),), ((0, 0),)),
    "lengths": Lengths(Weighted(ImageShape(2, 2), 4, 1.0)),
    "lengths, one pixel": Lengths(Weighted(ImageShape(1, 1), 1, 0.0)),
    "sides": Sides(Weighted(ImageShape(2, 2), 3, 1.0), SPANS[0], ((0.3, -1.0, 2.0),) * CLASSES, (0.1,) * CLASSES),
    "sides, two planes and no classes": Sides(
        Weighted(ImageShape(1, 3), 2, 1.0), None, ((1.0, -1.0), (0.2, 0.7)), (0.0, 0.5)
    ),
    "constant": Constant(),
    "buckets": Buckets(NUMBERS, 7, 3),
    "buckets, one": Buckets((1,), 1, 0),
    "buckets of numbers": product(Buckets(NUMBERS, 5, 1), MIXTURE),
    "one-hot": OneHot(SPANS),
    "grid": GRID,
    "fourier, one Gaussian": GAUSSIAN,
    "fourier, a mixture": MIXTURE,
    "fourier, fine scales": Fourier((0,), (1e-3,), (Scales(1, 1.0, 1.0),), 8, 5),
    "product of choices and numbers": product(OneHot(SPANS[1:]), MIXTURE),
    "product of counts": product(Constant(), OneHot(SPANS[:1])),
    "product of constants": product(Constant(), Constant()),
    "product of products": product(product(Grid((1,), 3), OneHot(SPANS[2:])), Constant()),
    "hermite, several numbers": HERMITE,
    "hermite, high order": Hermite((1,), (0.01,), 300, 12.0),
    "hermite, tiny and large scales": Hermite((0, 4, 2), (1e-4, 1e4, 1.0), 40, 1.0),
    "hermite, a tiny range": Hermite((0,), (0.5,), 300, 1e-6),
    "hermite, a vast range": Hermite((0, 1), (0.5, 1e-3), 300, 1e9),
    "mahalanobis, two numbers": PLANE,
    "mahalanobis, three numbers": SPACE,
    "mahalanobis, steep": Mahalanobis((0, 1), ((1e8, 0.0), (0.0, 1e-8)), 20, rho=0.9),
    "tensors, all pairs": Tensors(SINGLES, PAIRS),
    "tensors, two pairs": Tensors(SINGLES, ((0, 7), (1, 2))),
    "tensors, triples": Tensors(SINGLES, TRIPLES),
    "tensors, sizes mixed": Tensors(SINGLES, ((7, 0), (0, 1, 5), (5, 6, 7), (0, 1, 5, 7))),
    "tensors, choices": Tensors(SINGLES[5:], ((0, 1), (1, 2), (0, 1, 2))),
    "tensors, fourier alone": Tensors((GAUSSIAN, MIXTURE), ((0, 1), (1, 1))),
    "tensors, fourier": Tensors((GAUSSIAN, MIXTURE, GRID), ((0, 1), (2, 1), (2, 0))),
    "tensors, mahalanobis": Tensors((PLANE, MIXTURE, OneHot(SPANS)), ((0, 2), (1, 2))),
    "tables, one column": Tables((Cells(4, 5),), ((0,),)),
    "tables, single columns": Tables(CUTS, tuple((j,) for j in range(len(CUTS)))),
    "tables, every code": Tables((Cells(1, 121), Cells(3, LARGEST[3] + 1)), ((0,), (1,))),
    "tables, runs of codes": Tables((CUTS[0], CUTS[3]), ((0,), (1,))),
    "tables, cells of nulls": Tables((CUTS[2], CUTS[5]), ((0,), (1,), (0, 1))),
    "tables, merged groups": Tables((CUTS[1], CUTS[5]), ((0,), (1, 0))),
    "tables, all pairs": Tables(CUTS, tuple(itertools.combinations(range(len(CUTS)), 2))),
    "tables, sizes mixed": Tables(CUTS, ((4,), (6, 5), (2, 4, 6), (1, 2, 5, 6))),
    "tables, one column cut twice": Tables((CUTS[1], Cells(1, 121)), ((0,), (1,), (0, 1))),
}
each_map = pytest.mark.parametrize("map_", EXAMPLES.values(), ids=EXAMPLES)
each_radius = st.sampled_from([1, 2, 17, 1000, 2**20 + 3, 2**24, 2**29 - 1, LATTICE])

code_rows = st.lists(
    st.tuples(*(st.one_of(st.sampled_from([NULL, 0, largest]), st.integers(NULL, largest)) for largest in LARGEST)),
    min_size=1,
    max_size=5,
)


def inputs(map_: FeatureMap, codes: npt.ArrayLike) -> npt.NDArray[Any]:
    """What a map reads of rows: tables read their codes, everything else their cells."""
    rows = np.asarray(codes, dtype=np.int64)
    return rows if map_.reads_codes else LAYOUT.expand(rows)


def random_codes(count: int, seed: int) -> Integers:
    rng = np.random.default_rng(seed)
    return rng.integers(NULL, np.asarray(LARGEST) + 1, (count, len(LARGEST)))


@cache
def marking_layout(count: int) -> Layout:
    """The same columns, with a label that has a value for every row."""
    label = {"name": "row", "kind": "categorical", "categories": list(range(count))}
    return Layout(load_schema({"name": "marked", "columns": [*COLUMNS, label]}))


def marked(codes: npt.ArrayLike) -> Rows:
    """Every row with a label of its own, so that what a batch adds for it can be told apart."""
    rows = np.asarray(codes, dtype=np.int64)
    labels = np.arange(len(rows))[:, None]
    return Rows(marking_layout(len(rows)), np.concatenate([rows, labels], axis=1))


def whole_rows(map_: FeatureMap, rows: Rows, lattice: int = LATTICE, norm: Norm = Norm.L2) -> Integers:
    """The integers that the private side makes of each of several marked rows, in one batch."""
    label = (LAYOUT.width, rows.layout.width)
    embedding = Embedding((Block("rows", map_, 1.0, per_label=True, norm=norm),), label=label)
    summed = partial_sum(rows, embedding=embedding, lattice=lattice)
    return embedding.rows_of("rows", summed)


def whole_of_codes(map_: FeatureMap, codes: npt.ArrayLike, lattice: int = LATTICE, norm: Norm = Norm.L2) -> Integers:
    return whole_rows(map_, marked(codes), lattice, norm)


def moved(values: npt.NDArray[Any], shift: int) -> npt.NDArray[Any]:
    """The same values so many places further on in memory."""
    room = np.empty(values.size + shift, dtype=values.dtype)
    found = room[shift:].reshape(values.shape)
    found[:] = values
    return found


def squared(vector: Integers) -> int:
    """In Python integers: exact whatever the size."""
    return sum(int(value) ** 2 for value in vector.tolist())


def test_every_kind_of_map_has_an_example_here() -> None:
    assert {kind_of(map_) for map_ in EXAMPLES.values()} == set(MAP_KINDS)


@each_map
def test_a_map_has_as_many_features_as_it_says(map_: FeatureMap) -> None:
    assert map_(inputs(map_, random_codes(3, 0))).shape == (3, map_.dim)


@each_map
@settings(max_examples=20, deadline=None)
@given(rows=code_rows)
def test_no_row_of_any_codes_has_a_norm_above_one(map_: FeatureMap, rows: list[tuple[int, ...]]) -> None:
    norms = np.linalg.norm(np.asarray(map_(inputs(map_, rows)), dtype=np.float64), axis=1)
    assert (norms <= 1 + 1e-6).all()  # single-precision cos and sin; integers are checked exactly


@each_map
@settings(max_examples=20, deadline=None)
@given(rows=code_rows, radius=each_radius)
def test_no_row_of_any_codes_leaves_its_integer_ball(
    map_: FeatureMap, rows: list[tuple[int, ...]], radius: int
) -> None:
    assert Block("rows", map_, 1.0).radius(radius) == radius
    for row in whole_of_codes(map_, rows, lattice=radius):
        assert squared(row) <= radius**2


@each_map
@settings(max_examples=20, deadline=None)
@given(rows=code_rows, radius=each_radius)
def test_no_row_of_any_codes_leaves_its_l1_ball(map_: FeatureMap, rows: list[tuple[int, ...]], radius: int) -> None:
    """In integers, for Laplace noise."""
    assert Block("rows", map_, 1.0, norm=Norm.L1).radius(radius) == radius
    for row in whole_of_codes(map_, rows, lattice=radius, norm=Norm.L1):
        assert sum(abs(int(value)) for value in row.tolist()) <= radius


@each_map
def test_a_row_in_its_l1_ball_is_its_features_times_the_stated_scales(map_: FeatureMap) -> None:
    """Honest rows are not cut: the ball is as large as their features that are not zero need."""
    codes = random_codes(60, 10)
    features = np.asarray(map_(inputs(map_, codes)), dtype=np.float64)
    scales = Block("rows", map_, 1.0, norm=Norm.L1).scales(LATTICE)
    found = whole_of_codes(map_, codes, norm=Norm.L1) / scales
    assert np.abs(found - features).max() < (2e-3 if isinstance(map_, Tensors) else 1e-7)
    assert scales.max() <= scales.min() * 1.02, "noise is the same on all features of a block"
    assert scales.min() > 0.9 * LATTICE / math.sqrt(map_.most_nonzeros)


@each_map
def test_no_row_has_more_features_than_stated_that_are_not_zero(map_: FeatureMap) -> None:
    features = np.asarray(map_(inputs(map_, random_codes(400, 12))))
    assert np.count_nonzero(features, axis=1).max() <= map_.most_nonzeros <= map_.dim


@each_map
def test_an_honest_row_keeps_its_norm_on_the_lattice(map_: FeatureMap) -> None:
    codes = random_codes(200, 1)
    features = np.linalg.norm(np.asarray(map_(inputs(map_, codes)), dtype=np.float64), axis=1)
    kept = np.linalg.norm(whole_of_codes(map_, codes) / LATTICE, axis=1)
    # Halves of products are rounded at 16 bits, everything else at 24.
    assert np.abs(kept - features).max() < (2e-3 if isinstance(map_, Tensors) else 1e-5)


@each_map
def test_a_row_on_the_lattice_is_its_features_times_the_stated_scales(map_: FeatureMap) -> None:
    codes = random_codes(60, 10)
    features = np.asarray(map_(inputs(map_, codes)), dtype=np.float64)
    scales = Block("rows", map_, 1.0).scales(LATTICE)
    found = whole_of_codes(map_, codes) / scales
    assert scales.shape == (map_.dim,)
    # Fourier features are cut, and shorter by a slack for single precision, where others are rounded.
    worst = 3e-5 if isinstance(map_, Tensors) else 2**-23 + SLACK if isinstance(map_, Fourier) else 1e-7
    assert np.abs(found - features).max() < worst


@each_map
def test_a_row_gives_the_same_integers_in_any_split_order_or_padding(map_: FeatureMap) -> None:
    codes = random_codes(97, 2)
    expected = whole_of_codes(map_, codes)
    for size in (1, 2, 3, 7, 8, 31, 64):
        parts = [codes[start : start + size] for start in range(0, len(codes), size)]
        pieces = [whole_of_codes(map_, part) for part in parts]
        assert np.array_equal(np.concatenate(pieces), expected)
    order = np.random.default_rng(3).permutation(len(codes))
    assert np.array_equal(whole_of_codes(map_, codes[order]), expected[order])
    for before, after in ((1, 0), (5, 3), (0, 160)):
        padded = np.concatenate([random_codes(before, 4), codes, random_codes(after, 5)])
        found = whole_of_codes(map_, padded)
        assert np.array_equal(found[before : before + len(codes)], expected)


@each_map
def test_a_sum_over_rows_is_the_sum_of_their_integers(map_: FeatureMap) -> None:
    codes = random_codes(300, 11)
    embedding = Embedding((Block("sum", map_, 1.0),))
    rows = np.concatenate([whole_of_codes(map_, codes[i : i + 60]) for i in range(0, 300, 60)])
    for count in (1, 2, 29, 300):
        some = Rows(LAYOUT, codes[:count])
        found = partial_sum(some, embedding=embedding, lattice=LATTICE)
        assert np.array_equal(found, rows[:count].sum(axis=0))


@each_map
def test_a_row_gives_the_same_integers_wherever_it_lies_in_memory(map_: FeatureMap) -> None:
    rows = marked(random_codes(33, 6))
    expected = whole_rows(map_, rows)
    elsewhere = [np.asfortranarray, *(partial(moved, shift=shift) for shift in range(1, 9))]
    for move in elsewhere:
        found = Rows(rows.layout, move(rows.codes))
        vars(found)["cells"] = move(rows.cells)  # else they would be made anew
        assert np.array_equal(whole_rows(map_, found), expected)


@each_map
def test_the_stated_sign_is_true_of_integer_rows(map_: FeatureMap) -> None:
    rows = whole_of_codes(map_, random_codes(120, 7))
    if map_.sign is Sign.CONSTANT:
        assert (rows == rows[0]).all()
    if map_.sign is Sign.NONNEGATIVE:
        assert (rows >= 0).all()  # and so no inner product is negative


@each_map
@settings(max_examples=20, deadline=None)
@given(rows=code_rows)
def test_two_rows_are_no_further_apart_than_the_sign_allows(map_: FeatureMap, rows: list[tuple[int, ...]]) -> None:
    whole = whole_of_codes(map_, rows)
    bound = map_.sign.replace_factor_squared * LATTICE**2
    for one, other in itertools.combinations(whole, 2):
        assert squared(one - other) <= bound


@each_map
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-6), ("float32", 5e-4)])
def test_numpy_and_torch_agree(map_: FeatureMap, precision: str, tolerance: float) -> None:
    seen = inputs(map_, random_codes(40, 8))
    tensor = torch.from_numpy(seen)
    if tensor.is_floating_point():  # codes are whole numbers in any precision of cells
        tensor = tensor.to(getattr(torch, precision))
    there = map_(tensor).double().numpy()
    assert np.abs(there - np.asarray(map_(seen), dtype=np.float64)).max() < tolerance


@each_map
def test_a_map_comes_back_from_its_description(map_: FeatureMap) -> None:
    again = MAP_KINDS.decode(json.loads(json.dumps(encode(map_))))
    seen = inputs(map_, random_codes(20, 9))
    assert again == map_
    assert (again.dim, again.sign) == (map_.dim, map_.sign)
    assert np.array_equal(again(seen), map_(seen))


@each_map
def test_a_table_of_counts_is_what_rows_add_to_it(map_: FeatureMap) -> None:
    """One over the scale in one entry at most, and in the entry of the row's own codes where codes tell."""
    # A blank where a schema allows for none lies in some bin of a grid, so codes do not tell there.
    never_null = np.array([not column.nullable for column in SCHEMA.used])
    codes = np.where(never_null, np.maximum(random_codes(300, 13), 0), random_codes(300, 13))
    features = np.asarray(map_(inputs(map_, codes)), dtype=np.float64)
    for table in map_.count_tables:
        counts = table.counts(features).reshape(len(codes), -1)  # (num_rows, size)
        assert np.isin(np.rint(counts), (0, 1)).all()
        assert np.abs(counts - np.rint(counts)).max(initial=0.0) < 1e-9
        assert (np.rint(counts).sum(axis=1) <= 1).all()
        cut = [axis.cells_in(LAYOUT) for axis in table.axes]
        known = [cells for cells in cut if cells is not None]
        if len(known) < len(cut):
            continue
        assert tuple(cells.dim for cells in known) == table.shape
        expected = np.zeros((len(codes), *(cells.dim + 1 for cells in known)))
        expected[(np.arange(len(codes)), *(cells(codes[:, cells.column]) for cells in known))] = 1.0
        listed = expected[(slice(None), *(slice(cells.dim) for cells in known))]
        assert np.array_equal(np.rint(counts), listed.reshape(len(codes), -1))


@each_map
def test_tables_of_counts_do_not_overlap(map_: FeatureMap) -> None:
    taken = np.zeros(map_.dim, dtype=np.int64)
    for table in map_.count_tables:
        assert 0 <= table.start <= table.start + table.size <= map_.dim
        taken[table.start : table.start + table.size] += 1
    assert taken.max() <= 1


@each_map
def test_no_column_but_those_named_moves_a_feature(map_: FeatureMap) -> None:
    codes, others = random_codes(80, 14), random_codes(80, 15)
    before = np.asarray(map_(inputs(map_, codes)))
    groups = map_.groups(LAYOUT)
    every = np.concatenate([group.features for group in groups])
    assert np.array_equal(np.sort(every), np.arange(map_.dim)), "every feature is in one group"
    for group in groups:
        if group.columns is None:
            continue
        moved_codes = codes.copy()
        for place, column in enumerate(SCHEMA.used):
            if column.name not in group.columns:
                moved_codes[:, place] = others[:, place]
        after = np.asarray(map_(inputs(map_, moved_codes)))
        assert np.array_equal(after[:, group.features], before[:, group.features])


@each_map
def test_a_group_is_as_long_as_its_scale_says_and_its_own_map_has_the_same_features(map_: FeatureMap) -> None:
    seen = inputs(map_, random_codes(50, 16))
    features = np.asarray(map_(seen), dtype=np.float64)
    for group in map_.groups(LAYOUT):
        own = features[:, group.features] * group.scale
        assert np.linalg.norm(own, axis=1).max() <= 1 + 1e-6
        if group.map is not None:
            assert np.allclose(np.asarray(group.map(seen)), own, atol=1e-12)
        if group.bands is not None:
            assert group.bands.shape == group.features.shape


@each_map
def test_sums_and_inner_products_of_public_rows_are_those_of_their_features(map_: FeatureMap) -> None:
    codes = random_codes(40, 17)
    cells, slots = LAYOUT.expand(codes), np.arange(40) % 4
    features = np.asarray(map_(inputs(map_, codes)), dtype=np.float64)
    expected = np.stack([features[slots == copy].sum(axis=0) for copy in range(3)])
    assert np.allclose(map_.sums(codes, cells, slots, 3), expected, atol=1e-6)
    noisy = np.random.default_rng(18).normal(size=(4, map_.dim))
    products, own = map_.inner_products(codes, cells, sums=noisy, copy=slots)
    assert np.allclose(products, features @ features.T, atol=1e-6)
    assert np.allclose(own, (features * noisy[slots]).sum(axis=1), atol=1e-6)


@each_map
def test_means_of_groups_of_rows_are_those_of_their_features(map_: FeatureMap) -> None:
    seen = inputs(map_, random_codes(30, 19))
    features = np.asarray(map_(seen), dtype=np.float64)
    means, squares = map_.means(seen, [10, 20])
    for part, mean, square in zip((features[:10], features[10:]), means, squares, strict=True):
        assert np.allclose(np.asarray(mean), part.mean(axis=0), atol=1e-6)
        assert np.isclose(float(square), (part**2).sum(axis=1).mean(), atol=1e-6)


def test_a_map_that_says_nothing_of_itself_gets_answers_that_are_safe() -> None:
    """A loose bound, no tables to query, and features that any column may move."""

    class Quiet(FeatureMap):
        dim = 3
        sign = Sign.SIGNED

        def __call__(self, cells: Any) -> Any:
            return cells[:, :3] / 2

        def to_dict(self) -> dict[str, Any]:
            return {"kind": "quiet"}

    quiet = Quiet()
    (group,) = quiet.groups(LAYOUT)
    assert quiet.most_nonzeros == 3
    assert quiet.l1_bound == math.sqrt(3)
    assert quiet.count_tables == ()
    assert group.columns is None
    assert group.features.tolist() == [0, 1, 2]
    assert product(quiet, OneHot(SPANS[:1])).groups(LAYOUT)[0].columns is None
    assert product(quiet, OneHot(SPANS[:1])).count_tables == ()


def test_public_inputs_are_found_wherever_a_map_holds_them() -> None:
    nearby = EXAMPLES["landmarks, gaussian"]
    assert nearby.public_inputs == (PUBLIC,)
    assert product(Constant(), nearby).public_inputs == (PUBLIC,)
    assert EXAMPLES["spectrum, principal"].public_inputs == (PRINCIPAL,)
    assert EXAMPLES["spectrum"].public_inputs == ()
    assert EXAMPLES["one-hot"].public_inputs == ()
    (layers,) = EXAMPLES["perceptual, products"].public_inputs
    assert layers == NetworkLayers("grey", GREY.sha256, ("2",))
