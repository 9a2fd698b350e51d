"""Blocks of products: halves are rounded, products summed, and nobody's row leaves its ball."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from understudy.features import (
    Block,
    Constant,
    Embedding,
    FeatureMap,
    Fourier,
    Grid,
    Hermite,
    OneHot,
    Scales,
    Sign,
    Tensors,
    product,
)
from understudy.plan.plan import LATTICE
from understudy.private.sums import Rows, check_row_independence, partial_sum
from understudy.schema import NULL, Layout, load_schema

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
LAYOUT = Layout(
    load_schema(
        {
            "name": "t",
            "columns": [
                {"name": "a", "kind": "continuous", "bounds": [0, 1]},
                {"name": "b", "kind": "continuous", "bounds": [0, 1]},
                {"name": "c", "kind": "integer", "bounds": [0, 9]},
                {"name": "city", "kind": "categorical", "categories": ["x", "y", "z"]},
                {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
            ],
        }
    )
)
WIDTH, CITY, LABEL = 8, (3, 6), (6, 8)
FACTORS: tuple[FeatureMap, ...] = (
    Hermite((0,), (0.1,), 5, 2.0),
    Hermite((1,), (0.3,), 7, 2.0),
    Hermite((2, 0), (0.2, 0.7), 3, 2.0),
    OneHot((CITY,)),
    Grid((2,), 4),
)
DENSE = Tensors(FACTORS, tuple(itertools.combinations(range(5), 2)))
SPARSE = Tensors(FACTORS * 5, tuple((j, j + 1) for j in range(0, 24, 2)))
TRIPLES = Tensors(FACTORS, ((0, 1, 3), (1, 2, 4), (0, 1, 2, 3, 4)))
COUNTS = Tensors(FACTORS, ((3, 4),))
CONSTANTS = product(Constant(), Constant(), Constant())
SINGLE = Tensors(tuple(Fourier((j,), (0.1,), (Scales(1, 1, 1),), 20, j) for j in range(3)), ((0, 1), (1, 2)))
MAPS = {
    "dense pairs": DENSE,
    "a few pairs": SPARSE,
    "triples": TRIPLES,
    "counts": COUNTS,
    "constants": CONSTANTS,
    "single precision": SINGLE,
}
each_map = pytest.mark.parametrize("map_", MAPS.values(), ids=MAPS)

PLAIN = Embedding(
    (
        Block("count", Constant(), 0.1),
        Block("pairs", DENSE, 0.7),
        Block("triples", TRIPLES, 0.6),
        Block("counts", COUNTS, 0.3),
        Block("constants", CONSTANTS, 0.2),
    )
)
LABELLED = Embedding(
    (
        Block("count", Constant(), 0.1, per_label=True),
        Block("pairs", DENSE, 0.6, per_label=True),
        Block("few", SPARSE, 0.3, per_label=True),
        Block("triples", TRIPLES, 0.4),
        Block("counts", COUNTS, 0.5, per_label=True),
        Block("constants", CONSTANTS, 0.2, per_label=True),
        Block("numbers", FACTORS[2], 0.2),
    ),
    label=LABEL,
)
each_embedding = pytest.mark.parametrize("embedding", [PLAIN, LABELLED], ids=["unlabelled", "labelled"])


def row_of(steps: tuple[int, int, int], city: int, label: int) -> Floats:
    """A row as Layout.expand makes them; one slot past the last means unlisted."""
    row = np.zeros(WIDTH)
    row[:3] = np.array(steps) / 2**16
    for (start, stop), slot in ((CITY, city), (LABEL, label)):
        if start + slot < stop:
            row[start + slot] = 1.0
    return row


step = st.one_of(st.sampled_from([0, 2**15, 2**16]), st.integers(0, 2**16))
rows = st.builds(row_of, st.tuples(step, step, step), st.integers(0, 3), st.integers(0, 2))
tables = st.lists(rows, max_size=9)


def random_rows(count: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    steps, slots = rng.integers(0, 2**16 + 1, (count, 3)), rng.integers(0, (4, 3), (count, 2))
    return np.array([row_of(tuple(s), *slot) for s, slot in zip(steps, slots, strict=True)])


def sum_of(cells: Any, embedding: Embedding, lattice: int = LATTICE) -> Integers:
    table = np.asarray(cells, dtype=np.float64).reshape(-1, WIDTH)
    return partial_sum(rows_with(table), embedding=embedding, lattice=lattice)


def rows_with(cells: Floats) -> Rows:
    """Rows of any cells, also such as no codes have; of their codes only the label is read."""
    members = cells[:, slice(*LABEL)]
    labels = np.where(members.any(axis=1), members.argmax(axis=1), NULL)
    found = Rows(LAYOUT, np.concatenate([np.zeros((len(cells), 4), np.int64), labels[:, None]], 1))
    vars(found)["cells"] = cells
    return found


def squared(vector: npt.NDArray[Any]) -> int:
    """In Python integers: exact whatever the size."""
    return sum(int(value) ** 2 for value in vector.ravel().tolist())


# One row


@each_map
@settings(max_examples=25, deadline=None)
@given(
    row=rows,
    weight=st.sampled_from([1.0, 0.99, 0.5, 1e-3, 1e-9]),
    lattice=st.sampled_from([1, 3, 50, 10**4, 2**24, LATTICE - 1, LATTICE]),
)
def test_no_row_of_products_leaves_its_integer_ball(map_: Tensors, row: Floats, weight: float, lattice: int) -> None:
    block = Block("products", map_, weight)
    found = sum_of(row, Embedding((block,)), lattice)
    assert squared(found) <= block.radius(lattice) ** 2


@each_map
def test_a_row_of_products_keeps_nearly_all_of_its_length(map_: Tensors) -> None:
    """A rounding that is too careful would pay for noise with nothing."""
    block = Block("products", map_, 0.8)
    for row in random_rows(20, 0):
        wanted = float(np.linalg.norm(map_(row[None, :]).astype(float))) * block.radius(LATTICE)
        found = math.sqrt(squared(sum_of(row, Embedding((block,)))))
        assert found == pytest.approx(wanted, rel=1e-3)


@each_embedding
@settings(max_examples=40, deadline=None)
@given(row=rows)
def test_a_row_stays_within_every_block_s_radius(embedding: Embedding, row: Floats) -> None:
    found = sum_of(row, embedding)
    for block in embedding.blocks:
        part = embedding.rows_of(block.name, found)
        assert squared(part) <= block.radius(LATTICE) ** 2
        assert np.count_nonzero(part.any(axis=1)) <= 1, "a row touches one copy at most"


# Sums


@each_embedding
@settings(max_examples=30, deadline=None)
@given(table=tables, cut=st.integers(0, 9), random=st.randoms())
def test_the_sum_is_that_of_single_rows_in_any_split_and_order(
    embedding: Embedding, table: list[Floats], cut: int, random: Any
) -> None:
    expected = sum((sum_of(row, embedding) for row in table), sum_of([], embedding))
    assert np.array_equal(sum_of(table, embedding), expected)
    assert np.array_equal(sum_of(table[:cut], embedding) + sum_of(table[cut:], embedding), expected)
    shuffled = list(table)
    random.shuffle(shuffled)
    assert np.array_equal(sum_of(shuffled, embedding), expected)


@each_map
@pytest.mark.parametrize("count", [2, 31, 512])
def test_sums_of_products_are_exact_however_many_rows_come_at_once(map_: Tensors, count: int) -> None:
    embedding = Embedding((Block("products", map_, 1.0),))
    cells = random_rows(count, 1)
    alone = sum(sum_of(row, embedding) for row in cells)
    assert np.array_equal(sum_of(cells, embedding), alone)


def test_an_empty_table_sums_to_zero_in_every_copy() -> None:
    for embedding in (PLAIN, LABELLED):
        found = sum_of([], embedding)
        assert found.shape == (embedding.dim,)
        assert not found.any()


def test_a_row_with_an_unlisted_label_adds_nothing_to_blocks_with_labels() -> None:
    found = sum_of(row_of((5, 2**15, 2**16), 1, 2), LABELLED)
    for block in LABELLED.blocks:
        assert LABELLED.rows_of(block.name, found).any() == (not block.per_label)


@pytest.mark.parametrize("label", [0, 1])
def test_a_row_adds_to_the_copy_of_its_own_label_what_it_adds_without_labels(label: int) -> None:
    row = row_of((5, 2**15, 2**16), 1, label)
    found = sum_of(row, LABELLED)
    for block in LABELLED.blocks:
        alone = sum_of(row, Embedding((Block(block.name, block.map, block.weight),)))
        copies = LABELLED.rows_of(block.name, found)
        if block.per_label:
            assert not copies[1 - label].any()
            assert np.array_equal(copies[label], alone)
        else:
            assert np.array_equal(copies[0], alone)


@each_embedding
def test_sums_over_the_scales_are_the_sums_of_the_features(embedding: Embedding) -> None:
    cells = random_rows(400, 2)
    found = sum_of(cells, embedding)
    for block in embedding.blocks:
        features = np.asarray(block.map(cells), dtype=np.float64)
        members = cells[:, slice(*LABEL)] if block.per_label else np.ones((400, 1))
        means = members.T @ features / 400
        released = embedding.rows_of(block.name, found) / block.scales(LATTICE) / 400
        assert np.abs(released - means).max() < 1e-4
        assert np.abs(released).max() > 1e-3


@each_map
def test_the_scales_are_the_radius_up_to_what_rounding_keeps_back(map_: Tensors) -> None:
    block = Block("products", map_, 0.37)
    scales = block.scales(LATTICE)
    assert scales.shape == (map_.dim,)
    assert (scales < block.radius(LATTICE)).all()
    assert (scales > 0.999 * block.radius(LATTICE)).all()


# Neighbouring tables


@each_embedding
@settings(max_examples=60, deadline=None)
@given(table=st.lists(rows, max_size=3), one=rows, other=rows)
def test_neighbouring_tables_are_no_further_apart_than_stated(
    embedding: Embedding, table: list[Floats], one: Floats, other: Floats
) -> None:
    base, first, second = (sum_of([*table, *more], embedding) for more in ((), (one,), (other,)))
    assert squared(first - base) <= embedding.sensitivity(LATTICE, replace=False)
    assert squared(first - second) <= embedding.sensitivity(LATTICE, replace=True)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_the_worst_rows_of_products_reach_what_is_stated_and_no_more(count: int) -> None:
    """Half a turn of one frequency turns the sign of every product; each of P has norm one."""
    turn = Fourier((0,), (0.002,), (Scales(1, 1.0, 1.0),), 2, 1)
    far = 0.5 / abs(float(turn.frequencies[0, 0]))
    map_ = Tensors((turn, OneHot((CITY,)), Constant()), ((0, 1), (0, 2), (0, 1, 2))[:count])
    if count == 10:
        map_ = Tensors((turn, OneHot((CITY,))), ((0, 1),) * 10)
    embedding = Embedding((Block("products", map_, 0.9),))
    one, other = row_of((0, 0, 0), 1, 0), row_of((0, 0, 0), 1, 0)
    other[0] = far
    sums = [sum_of(row, embedding) for row in (one, other)]
    added = embedding.sensitivity(LATTICE, replace=False)
    replaced = embedding.sensitivity(LATTICE, replace=True)
    for each in sums:
        assert 0.999 * added < squared(each) <= added
    assert 0.999 * replaced < squared(sums[0] - sums[1]) <= replaced


def test_two_rows_of_different_counts_reach_what_is_stated_for_counts() -> None:
    embedding = Embedding((Block("counts", COUNTS, 1.0, per_label=True),), label=LABEL)
    first = row_of((0, 0, 0), 1, 0)
    stated = embedding.sensitivity(LATTICE, replace=True)
    assert stated == 2 * LATTICE**2
    for other in (row_of((0, 0, 0), 2, 0), row_of((0, 0, 0), 1, 1), row_of((0, 0, 2**16), 1, 0)):
        change = sum_of(first, embedding) - sum_of(other, embedding)
        assert 0.999 * stated < squared(change) <= stated


def test_constant_products_are_the_same_for_every_row() -> None:
    embedding = Embedding((Block("constants", CONSTANTS, 1.0),))
    first, *others = (sum_of(row, embedding) for row in random_rows(9, 3))
    assert first.any()
    assert all(np.array_equal(first, other) for other in others)
    assert embedding.sensitivity(LATTICE, replace=True) == 0


# Factors that break every promise


@dataclass(frozen=True, eq=False)
class Liar(FeatureMap):
    """A map that gives row i whatever stands in its table, in the table's own precision."""

    table: npt.NDArray[Any]
    sign: Sign = Sign.SIGNED

    @property
    def dim(self) -> int:
        return int(self.table.shape[1])

    def __call__(self, cells: Any) -> Any:
        return self.table[cells[:, 0].astype(int)]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "liar"}


def numbered(count: int, label: int = 0) -> Floats:
    cells = np.array([row_of((0, 0, 0), 0, label) for _ in range(count)])
    cells[:, 0] = np.arange(count)
    return cells


def assert_bounded(embedding: Embedding, count: int) -> None:
    cells = numbered(count)
    sums = [sum_of(row, embedding) for row in cells]
    for each in sums:
        assert squared(each) <= embedding.sensitivity(LATTICE, replace=False)
    for one, other in itertools.combinations(sums, 2):
        assert squared(one - other) <= embedding.sensitivity(LATTICE, replace=True)
    assert np.array_equal(sum_of(cells, embedding), sum(sums))


wild = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.sampled_from([5.0, -5.0, 1.0, -1.0, 0.75, math.nan, math.inf, -math.inf, 1e38, 1e-45]),
)
lies = st.one_of(arrays(np.float64, (3, 3), elements=wild), arrays(np.float32, (3, 3), elements=wild))
signs = st.sampled_from(list(Sign))


@settings(max_examples=120, deadline=None)
@given(one=lies, other=lies, third=lies, kinds=st.tuples(signs, signs, signs))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_factors_that_break_every_promise_move_the_sum_no_further_than_stated(
    one: Floats, other: Floats, third: Floats, kinds: tuple[Sign, ...]
) -> None:
    liars = tuple(Liar(t, sign) for t, sign in zip((one, other, third), kinds, strict=True))
    for subsets in (((0, 1),), ((0, 1), (1, 2), (2, 0)), ((0, 1, 2), (2, 2, 1, 0))):
        assert_bounded(Embedding((Block("lies", Tensors(liars, subsets), 0.9),)), 3)


@pytest.mark.parametrize("bad", [5.0, -5.0, 1e300, math.inf, math.nan])
@pytest.mark.parametrize("subsets", [((0, 1),), ((0, 1), (1, 2), (0, 2)), ((0, 1, 2), (0, 1))])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_lying_factor_stays_within_the_radius_and_spoils_no_other_row(
    bad: float, subsets: tuple[tuple[int, ...], ...]
) -> None:
    table = np.array([[0.6, 0.0, 0.8], [bad, bad, bad], [bad, 0.0, 0.5]])
    liar = Liar(table)
    honest: tuple[FeatureMap, ...] = (OneHot((CITY,)), Constant())
    embedding = Embedding((Block("lies", Tensors((liar, *honest), subsets), 1.0),))
    assert_bounded(embedding, 3)
    alone = Embedding((Block("lies", Tensors((Liar(table[:1]), *honest), subsets), 1.0),))
    assert np.array_equal(sum_of(numbered(3)[:1], embedding), sum_of(numbered(1), alone))


@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_a_norm_that_is_too_long_by_the_last_digit_is_caught(precision: type) -> None:
    """65534^2 + 512^2 = 65536^2 + 4: two such halves leave the ball, if only by 2 parts in 10^9.

    In single precision the sum of squares is 65536^2, so a check in it would see nothing.
    """
    kept = 65536 - math.sqrt(2) / 2 - 1
    liar = Liar(np.array([[1.0, 512 / kept]], dtype=precision))
    embedding = Embedding((Block("lies", product(liar, liar), 1.0),))
    found = sum_of(numbered(1), embedding)
    assert 0.999 * LATTICE**2 < squared(found) <= LATTICE**2


def test_features_below_zero_where_none_are_promised_count_as_zero() -> None:
    shy = Liar(np.array([[-0.6, 0.8], [0.6, -0.8]]), Sign.NONNEGATIVE)
    for subsets in (((0, 1),), ((0, 1), (1, 1)), ((0, 0, 1),)):
        map_ = Tensors((shy, OneHot((CITY,))), subsets)
        assert map_.sign is Sign.NONNEGATIVE
        embedding = Embedding((Block("lies", map_, 1.0),))
        for row in numbered(2):
            assert (sum_of(row, embedding) >= 0).all()
        assert_bounded(embedding, 2)


# The probe that runs before any private row


def test_the_probe_accepts_products_of_every_kind() -> None:
    assert LAYOUT.width == WIDTH
    for embedding in (PLAIN, LABELLED):
        check_row_independence(LAYOUT, embedding, LATTICE)
    check_row_independence(LAYOUT, Embedding((Block("fourier", SINGLE, 1.0),)), LATTICE)
