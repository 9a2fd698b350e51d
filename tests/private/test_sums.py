from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.features import (
    Block,
    Cells,
    Constant,
    Embedding,
    FeatureMap,
    Fourier,
    Grid,
    OneHot,
    Scales,
    Sign,
    Tables,
)
from understudy.plan.plan import LATTICE, ROW_CAP
from understudy.private import sums
from understudy.private.sums import Rows, Work, check_row_independence, partial_sum
from understudy.schema import NULL, Layout, load_schema

SCHEMA = load_schema(
    {
        "name": "patients",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 120]},
            {"name": "pay", "kind": "continuous", "bounds": [0, 1e6], "scale_hint": "log1p"},
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80], "nullable": True},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Kyoto", "Lima"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
LAYOUT = Layout(SCHEMA)
SPAN = {choice.column: (choice.start, choice.stop) for choice in LAYOUT.choices}
NUMBERS = tuple(range(len(LAYOUT.numbers)))
CUTS = (
    Cells(0, 121, is_ordered=True, lows=(0, 18, 65)),
    Cells(2, SCHEMA.used[2].num_steps + 1, has_null=True, is_ordered=True, lows=(0, 2**14)),
    Cells(3, 3, groups=(0, 1, 0)),
)
EMBEDDING = Embedding(
    (
        Block("count", Constant(), 0.3, per_label=True),
        Block("numbers", Fourier(NUMBERS, (0.1,) * 3, (Scales(3, 1, 1),), 40, 0), 0.6, True),
        Block("choices", OneHot((SPAN["city"], SPAN["bmi"])), 0.5, per_label=True),
        Block("total", Constant(), 0.2),
        Block("histogram", Grid(NUMBERS, 5), 0.3),
        Block("cells", Tables(CUTS, ((0,), (1,), (2,))), 0.4, per_label=True),
        Block("pairs", Tables(CUTS, ((0, 1), (1, 2))), 0.3),
    ),
    label=SPAN["ill"],
)

# The encoder is total: any number, any text and nothing at all are cells.
ages = st.one_of(st.none(), st.integers(-(2**40), 2**40))
amounts = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))
words = st.one_of(st.none(), st.sampled_from(["Bonn", "Kyoto", "Lima", "no", "yes"]), st.text(max_size=5))
rows = st.lists(st.tuples(ages, amounts, amounts, words, words), max_size=12)


def batch_of(table: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*table, strict=True)) or [()] * 5
    kinds = (pa.int64(), pa.float64(), pa.float64(), pa.string(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.record_batch(arrays, names=[column.name for column in SCHEMA.used])


def total_of(*tables: list[tuple[Any, ...]]) -> npt.NDArray[np.int64]:
    batches = [batch_of(table) for table in tables]
    return Work(LAYOUT, EMBEDDING, LATTICE).sum(batches)[:-1]


@settings(max_examples=40, deadline=None)
@given(table=rows, cut=st.integers(0, 12), random=st.randoms())
def test_the_sum_is_the_same_in_any_split_and_any_order(table: list[tuple[Any, ...]], cut: int, random: Any) -> None:
    expected = total_of(table)
    assert np.array_equal(total_of(table[:cut], table[cut:]), expected)
    assert np.array_equal(sum((total_of([row]) for row in table), total_of()), expected)
    shuffled = list(table)
    random.shuffle(shuffled)
    assert np.array_equal(total_of(shuffled), expected)


@settings(max_examples=60, deadline=None)
@given(table=rows, row=st.tuples(ages, amounts, amounts, words, words))
def test_one_row_more_moves_the_sum_by_that_row_and_within_the_sensitivity(
    table: list[tuple[Any, ...]], row: tuple[Any, ...]
) -> None:
    change = total_of([*table, row]) - total_of(table)
    assert np.array_equal(change, total_of([row]))
    squared = sum(int(value) ** 2 for value in change.tolist())
    assert squared <= EMBEDDING.sensitivity(LATTICE, replace=False)


def test_partial_sums_merge_across_readers_with_batches_of_their_own() -> None:
    rng = np.random.default_rng(0)
    table = [(int(age), float(pay), float(bmi), "Lima", "yes") for age, pay, bmi in rng.uniform(0, 100, (9000, 3))]
    expected = total_of(table)
    assert np.array_equal(total_of(*(table[i : i + 171] for i in range(0, 9000, 171))), expected)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, 5e-324, None])
def test_a_row_of_extremes_adds_what_any_row_may_add(value: float | None) -> None:
    found = total_of([(None, value, value, "???", "yes")])
    norm = math.sqrt(sum(int(v) ** 2 for v in found.tolist())) / LATTICE
    assert 0.5 < norm <= math.sqrt(EMBEDDING.sensitivity(LATTICE, replace=False)) / LATTICE


@pytest.mark.parametrize("label", [None, "maybe", "YES ", ""])
def test_a_row_with_an_unlisted_label_adds_nothing_to_any_label(label: str | None) -> None:
    found = total_of([(40, 1.0, 20.0, "Bonn", label)])
    for name in ("count", "numbers", "choices", "cells"):
        assert not EMBEDDING.rows_of(name, found).any()
    for name in ("total", "histogram", "pairs"):
        assert EMBEDDING.rows_of(name, found).any()


def test_a_row_adds_to_the_copy_of_its_own_label_alone() -> None:
    found = total_of([(40, 1.0, 20.0, "Bonn", "yes")])
    for name in ("count", "numbers", "choices", "cells"):
        no, yes = EMBEDDING.rows_of(name, found)
        assert not no.any()
        assert yes.any()


def test_which_label_a_row_has_is_read_the_same_from_its_codes_as_from_its_cells() -> None:
    schema = load_schema(
        {
            "name": "labels",
            "columns": [
                {"name": "flagged", "kind": "integer", "bounds": [0, 9], "nullable": True},
                {"name": "closed", "kind": "categorical", "categories": ["a", "b", "c"]},
                {"name": "open", "kind": "binary", "categories": [0, 1], "nullable": True},
            ],
        }
    )
    codes = np.array(list(itertools.product(range(NULL, 10), range(NULL, 3), range(NULL, 2))))
    rows = Rows(Layout(schema), codes)
    assert [choice.column for choice in rows.layout.choices] == ["flagged", "closed", "open"]
    for choice in rows.layout.choices:
        members = rows.cells[:, choice.start : choice.stop]
        expected = np.where(members.any(axis=1), members.argmax(axis=1), choice.width)
        assert np.array_equal(rows.slots((choice.start, choice.stop)), expected)
        map_ = Tables((Cells(0, 10, has_null=True),), ((0,),))
        label = (choice.start, choice.stop)
        counted = Embedding((Block("counts", map_, 1.0, per_label=True),), label=label)
        found = counted.rows_of("counts", partial_sum(rows, embedding=counted, lattice=LATTICE))
        assert np.array_equal(found / LATTICE, members.T @ map_(codes))


def test_tables_and_other_maps_give_the_same_counts_of_the_same_things() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(NULL, [121, 9, 9, 3, 2], (500, 5))
    city, bmi = Cells(3, 3), Cells(2, SCHEMA.used[2].num_steps + 1, has_null=True, lows=(0,))
    both = Embedding(
        (
            Block("one-hot", OneHot((SPAN["city"], SPAN["bmi"])), 0.7, per_label=True),
            Block("tables", Tables((city, bmi), ((0,), (1,))), 0.7, per_label=True),
        ),
        label=SPAN["ill"],
    )
    sums_ = partial_sum(Rows(LAYOUT, codes), embedding=both, lattice=LATTICE)
    one, other = (both.rows_of(block.name, sums_) / block.scales(LATTICE) * math.sqrt(2) for block in both.blocks)
    assert np.allclose(one, other, atol=1e-3)
    assert np.array_equal(np.rint(one), np.rint(other))
    assert other.sum() > 500


def test_categories_come_from_the_schema_and_never_from_the_batch() -> None:
    for table in (["Lima"], ["Oslo", "Lima"], ["Lima", "Bonn", "Lima"]):
        found = total_of([(40, 1.0, 20.0, city, "yes") for city in table])
        memberships = EMBEDDING.rows_of("choices", found)[1][:3]
        assert (memberships > 0).tolist() == ["Bonn" in table, False, True]


def test_a_dictionary_column_counts_as_its_values_do_whatever_else_its_dictionary_holds() -> None:
    cities = pa.DictionaryArray.from_arrays([2, None, 0, 2], ["Bonn", "never used", "Lima"])
    labels = pa.array(["yes"] * 4).dictionary_encode()
    numbers = [pa.array([1.0, 2.0, 3.0, 4.0])] * 3
    names = [column.name for column in SCHEMA.used]
    coded = pa.record_batch([*numbers, cities, labels], names=names)
    plain = pa.record_batch([*numbers, pa.array(["Lima", None, "Bonn", "Lima"]), pa.array(["yes"] * 4)], names=names)
    one, other = (Work(LAYOUT, EMBEDDING, LATTICE).sum([batch])[:-1] for batch in (coded, plain))
    assert np.array_equal(one, other)


def test_the_row_cap_leaves_room_for_every_sum_in_64_bits() -> None:
    largest = LATTICE  # no coordinate of a row is larger than its block's radius
    assert ROW_CAP * largest <= 2**62


# The probe that runs before any private row


@dataclass(frozen=True)
class Impure(FeatureMap):
    """A map whose rows depend on how many rows come with them."""

    dim: int = 2
    sign: Sign = Sign.SIGNED

    def __call__(self, cells: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.full((len(cells), 2), 0.5 + 1e-6 * len(cells))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "impure"}


def test_an_impure_map_is_refused_before_any_row_is_read() -> None:
    impure = Embedding((Block("impure", Impure(), 1.0),))
    with pytest.raises(InputError, match="differently in different batches"):
        check_row_independence(LAYOUT, impure, LATTICE)


def test_an_impure_encoder_is_refused_before_any_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Layout.expand

    def expand(self: Layout, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        cells = honest(self, codes)
        cells[:, 0] *= 1 - 2.0**-16 * (len(codes) > 1)
        return cells

    monkeypatch.setattr(Layout, "expand", expand)
    with pytest.raises(InputError, match="differently in different batches"):
        check_row_independence(LAYOUT, EMBEDDING, LATTICE)


def test_a_pure_embedding_passes_the_probe() -> None:
    check_row_independence(LAYOUT, EMBEDDING, LATTICE)


def test_an_empty_block_of_rows_sums_to_zero() -> None:
    empty = Rows(LAYOUT, np.empty((0, len(SCHEMA.used)), dtype=np.int64))
    assert not partial_sum(empty, embedding=EMBEDDING, lattice=LATTICE).any()
    assert not total_of().any()


def test_more_rows_than_a_sum_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "LARGEST_SUM", 3 * LATTICE)
    row = (40, 1.0, 20.0, "Bonn", "yes")
    total_of([row] * 3)
    with pytest.raises(InputError, match="more rows than one release can hold"):
        total_of([row] * 3, [row])


@dataclass(frozen=True, slots=True)
class Parity(FeatureMap):
    """Even or odd: a map of codes that is no table."""

    column: int

    reads_codes = True

    @property
    def dim(self) -> int:
        return 2

    @property
    def sign(self) -> Sign:
        return Sign.NONNEGATIVE

    def __call__(self, codes: Any) -> Any:
        own = codes[:, self.column]
        return np.stack([(own >= 0) & (own % 2 == 0), (own >= 0) & (own % 2 == 1)], axis=1).astype(np.float64)


def test_a_map_that_reads_codes_is_given_codes() -> None:
    codes = np.stack([np.arange(10), *[np.zeros(10, dtype=np.int64)] * 4], axis=1)
    codes[:3, 0] = [1, 3, 5]
    found = partial_sum(Rows(LAYOUT, codes), embedding=Embedding((Block("parity", Parity(0), 1.0),)), lattice=LATTICE)
    even, odd = (found / found.sum() * 10).round(6)
    assert (even, odd) == (3, 7)
