from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.codec import encode
from understudy.features import Block, Cells, Sign, Tables
from understudy.features.base import MAP_KINDS
from understudy.features.tables import round_steps
from understudy.schema import load_schema
from understudy.schema.columns import NULL, UNLISTED, number_values

Integers = npt.NDArray[np.int64]
LATTICE = 2**32

AGE = Cells(0, 100, is_ordered=True, lows=(0, 18, 19, 65), groups=(0, 1, 0, 2))
CITY = Cells(1, 5, has_null=True, groups=(2, 0, 1, 0, 2))
ILL = Cells(2, 2)
PAY = Cells(3, 1000, has_null=True, is_ordered=True, lows=(0, 1, 500))
FACTORS = (AGE, CITY, ILL, PAY)


def cell_by_hand(cells: Cells, code: int) -> int | None:
    """Where a code belongs, from the words of the docstring; None is nowhere."""
    pieces = [range(code, code + 1) for code in range(cells.num_codes)]
    if cells.lows:
        ends = [*cells.lows[1:], cells.num_codes]
        pieces = [range(low, end) for low, end in zip(cells.lows, ends, strict=True)]
    groups = cells.groups or range(len(pieces))
    if code == NULL:
        return len(set(groups)) if cells.has_null else None
    (piece,) = (i for i, codes in enumerate(pieces) if code in codes)
    return groups[piece]


def counts_by_hand(map_: Tables, codes: Integers, copies: Integers, num_copies: int) -> Integers:
    """Row by row and table by table, in a dictionary."""
    found = []
    for copy in range(num_copies):
        for subset in map_.subsets:
            ranges = [range(map_.factors[j].dim) for j in subset]
            table = dict.fromkeys(itertools.product(*ranges), 0)
            for row in codes[copies == copy]:
                place = tuple(cell_by_hand(map_.factors[j], int(row[map_.factors[j].column])) for j in subset)
                if None not in place:
                    table[place] += 1
            found.extend(table.values())
    return np.array(found, dtype=np.int64).reshape(num_copies, -1)


@st.composite
def cuts(draw: st.DrawFn, column: int = 0) -> Cells:
    """Any way to cut a column: runs of codes or single ones, in cells of their own or merged."""
    num_codes = draw(st.integers(1, 8))
    inner = draw(st.none() | st.sets(st.integers(1, 7).filter(lambda low: low < num_codes)))
    lows = () if inner is None else (0, *sorted(inner))
    pieces = len(lows) or num_codes
    wanted = draw(st.none() | st.lists(st.integers(0, 7), min_size=pieces, max_size=pieces))
    groups = () if wanted is None else np.unique(wanted, return_inverse=True)[1].tolist()
    return Cells(
        column, num_codes, has_null=draw(st.booleans()), is_ordered=draw(st.booleans()), lows=lows, groups=tuple(groups)
    )


@st.composite
def tables_with_rows(draw: st.DrawFn) -> tuple[Tables, Integers, Integers, int]:
    factors = tuple(draw(cuts(column)) for column in range(draw(st.integers(1, 4))))
    subset = st.lists(st.integers(0, len(factors) - 1), min_size=1, max_size=3, unique=True)
    subsets = draw(st.lists(subset.map(tuple), min_size=1, max_size=5))
    row = st.tuples(*(st.integers(NULL, factor.num_codes - 1) for factor in factors))
    rows = draw(st.lists(row, max_size=12))
    num_copies = draw(st.integers(1, 3))
    one_each = st.lists(st.integers(0, num_copies - 1), min_size=len(rows), max_size=len(rows))
    codes = np.array(rows, dtype=np.int64).reshape(-1, len(factors))
    copies = np.array(draw(one_each), dtype=np.int64)
    return Tables(factors, tuple(subsets)), codes, copies, num_copies


# Cells


@settings(max_examples=200, deadline=None)
@given(cells=cuts())
def test_every_code_lies_in_one_cell_and_a_null_in_the_last_or_in_none(cells: Cells) -> None:
    codes = np.arange(NULL, cells.num_codes)
    found = cells(codes)
    expected = [cell_by_hand(cells, int(code)) for code in codes]
    assert found.tolist() == [cells.dim if place is None else place for place in expected]
    assert set(found[1:].tolist()) == set(range(cells.num_known)), "no cell is empty"
    assert cells.dim == cells.num_known + cells.has_null


@settings(max_examples=100, deadline=None)
@given(cells=cuts())
def test_pieces_run_from_their_first_code_to_their_last(cells: Cells) -> None:
    runs = [list(range(low, high + 1)) for low, high in zip(cells.first_codes, cells.last_codes, strict=True)]
    assert [code for run in runs for code in run] == list(range(cells.num_codes))
    assert len(runs) == cells.num_pieces == len(cells.cell_of_piece)
    for run, cell in zip(runs, cells.cell_of_piece, strict=True):
        assert set(cells(np.array(run)).tolist()) == {cell}


def test_codes_outside_a_column_are_taken_as_its_ends() -> None:
    """The encoder makes no such codes; if it did, a row would still be in one cell at most."""
    assert AGE(np.array([-7, 100, 2**40])).tolist() == [0, 2, 2]


# Counts


@settings(max_examples=150, deadline=None)
@given(example=tables_with_rows())
def test_counts_are_those_made_by_hand(example: tuple[Tables, Integers, Integers, int]) -> None:
    map_, codes, copies, num_copies = example
    found = map_.counts(codes, copies, num_copies)
    assert found.shape == (num_copies, map_.dim)
    assert np.array_equal(found, counts_by_hand(*example))


def test_single_columns_are_counted_as_pandas_counts_them() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, [100, 5, 2, 1000], (3000, 4))
    map_ = Tables(FACTORS, ((0,), (1,), (2,), (3,)))
    age, city, ill, pay = (table[0] for table in split(map_, counted(map_, codes)))
    frame = pd.DataFrame(codes, columns=["age", "city", "ill", "pay"])
    adults = frame.age.between(19, 64).sum() + (frame.age < 18).sum()
    assert age.tolist() == [adults, (frame.age == 18).sum(), (frame.age >= 65).sum()]
    merged = [frame.city.isin(group).sum() for group in ([1, 3], [2], [0, 4])]
    assert city.tolist() == [*merged, 0]
    assert ill.tolist() == frame.ill.value_counts().sort_index().tolist()
    bins = pd.cut(frame.pay, [-1, 0, 499, 999]).value_counts(sort=False)
    assert pay.tolist() == [*bins, 0]


@pytest.mark.parametrize("subset", [(1, 2), (2, 1), (0, 3), (0, 1, 2), (3, 1, 0), (0, 1, 2, 3)])
def test_tables_of_several_columns_are_the_crosstables_of_their_cells(subset: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(NULL, [100, 5, 2, 1000], (3000, 4))
    map_ = Tables(FACTORS, (subset,))
    (table,) = split(map_, counted(map_, codes))
    places = [
        pd.Categorical.from_codes(
            [place if place < cells.dim else -1 for place in cells(codes[:, cells.column])], categories=range(cells.dim)
        )
        for cells in (FACTORS[j] for j in subset)
    ]
    frame = pd.DataFrame(dict(enumerate(places))).dropna()
    sizes = frame.groupby(list(frame), observed=False).size()
    assert np.array_equal(table[0].ravel(), sizes.to_numpy())
    assert 1500 < table.sum() < 3000, "rows with a null and no cell for it are left out"


def test_a_null_is_counted_in_its_own_cell_and_where_there_is_none_not_at_all() -> None:
    codes = np.array([[NULL, NULL, NULL, NULL], [99, 4, 1, 999], [NULL, 4, 1, NULL]])
    map_ = Tables(FACTORS, ((0,), (1,), (2,), (3,), (0, 1), (1, 3)))
    age, city, ill, pay, age_city, city_pay = (t[0] for t in split(map_, counted(map_, codes)))
    assert age.tolist() == [0, 0, 1]
    assert city.tolist() == [0, 0, 2, 1]
    assert ill.tolist() == [0, 2]
    assert pay.tolist() == [0, 0, 1, 2]
    assert age_city.tolist() == [[0] * 4, [0] * 4, [0, 0, 1, 0]]
    assert [tuple(place) for place in np.argwhere(city_pay)] == [(2, 2), (2, 3), (3, 3)]


def test_copies_share_out_the_rows() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(NULL, [100, 5, 2, 1000], (500, 4))
    copies = rng.integers(0, 3, 500)
    map_ = Tables(FACTORS, ((0,), (1, 2), (0, 1, 3)))
    found = map_.counts(codes, copies, 4)
    for copy in range(4):
        assert np.array_equal(found[copy : copy + 1], counted(map_, codes[copies == copy]))
    assert not found[3].any()


def test_a_table_s_margin_is_the_table_of_its_columns() -> None:
    codes = np.random.default_rng(3).integers(0, [100, 5, 2, 1000], (400, 4))
    map_ = Tables(FACTORS, ((0, 1, 2), (0, 1), (1,)))
    triple, pair, single = split(map_, counted(map_, codes))
    assert np.array_equal(triple.sum(axis=3), pair)
    assert np.array_equal(pair.sum(axis=1), single)


def test_tables_come_in_order_and_their_last_column_varies_fastest() -> None:
    map_ = Tables((Cells(0, 2), Cells(1, 3)), ((1,), (0, 1)))
    assert counted(map_, np.array([[1, 0]])).tolist() == [[1, 0, 0, 0, 0, 0, 1, 0, 0]]
    assert tuple(table.shape for table in map_.count_tables) == ((3,), (2, 3))
    parts = split(map_, np.arange(18).reshape(2, 9))
    assert [part.shape for part in parts] == [(2, 3), (2, 2, 3)]
    assert parts[1][0].tolist() == [[3, 4, 5], [6, 7, 8]]


def test_a_column_that_no_table_uses_is_not_read() -> None:
    map_ = Tables((Cells(9, 2), Cells(0, 3)), ((1,),))
    assert counted(map_, np.array([[2], [0]])).tolist() == [[1, 0, 1]]


def split(map_: Tables, values: Integers) -> list[Integers]:
    """A vector of counts as its tables.  # (copies, dim) -> (copies, *shape) of each"""
    spans = [(slice(table.start, table.start + table.size), table.shape) for table in map_.count_tables]
    return [values[:, span].reshape(len(values), *shape) for span, shape in spans]


def counted(map_: Tables, codes: Integers) -> Integers:
    return map_.counts(codes, np.zeros(len(codes), dtype=np.int64), 1)


# Norms


@settings(max_examples=100, deadline=None)
@given(example=tables_with_rows())
def test_a_row_has_norm_one_if_it_is_in_every_table_and_less_if_not(
    example: tuple[Tables, Integers, Integers, int],
) -> None:
    map_, codes, _, _ = example
    squares = (map_(codes) ** 2).sum(axis=1)
    inside = [
        sum(all(cell_by_hand(map_.factors[j], int(row[j])) is not None for j in subset) for subset in map_.subsets)
        for row in codes
    ]
    assert squares == pytest.approx(np.array(inside) / len(map_.subsets))


@settings(max_examples=100, deadline=None)
@given(
    example=tables_with_rows(),
    weight=st.sampled_from([1.0, 0.7, 1e-3, 1e-9]),
    lattice=st.sampled_from([1, 7, 1000, 2**24, LATTICE]),
)
def test_what_a_row_adds_is_the_largest_whole_number_that_stays_in_the_ball(
    example: tuple[Tables, Integers, Integers, int], weight: float, lattice: int
) -> None:
    block = Block("tables", example[0], weight)
    (step, unit), count = block.rounding(lattice), len(example[0].subsets)
    assert unit == 1
    assert count * step**2 <= block.radius(lattice) ** 2 < count * (step + 1) ** 2
    assert (block.scales(lattice) == step * math.sqrt(count)).all()


def test_counts_are_never_negative_so_replacing_a_row_moves_them_by_root_two() -> None:
    assert Tables(FACTORS, ((0,),)).sign is Sign.NONNEGATIVE


def test_features_of_whole_codes_are_not_cut_to_whole_numbers() -> None:
    map_ = Tables(FACTORS, ((0,), (1,), (2,)))
    codes = np.array([[20, 1, 1, 0]])
    for given_ in (codes, codes.astype(np.float64)):
        assert map_(given_).max() == pytest.approx(1 / math.sqrt(3))


# Descriptions


@settings(max_examples=50, deadline=None)
@given(example=tables_with_rows())
def test_tables_come_back_from_their_description(example: tuple[Tables, Integers, Integers, int]) -> None:
    map_, codes, copies, num_copies = example
    again: Any = MAP_KINDS.decode(json.loads(json.dumps(encode(map_))))
    assert again == map_
    assert hash(again.factors) == hash(map_.factors)
    assert np.array_equal(again.counts(codes, copies, num_copies), map_.counts(codes, copies, num_copies))


@pytest.mark.parametrize("subsets", [(), ((),), ((0,), ())])
def test_no_table_or_a_table_without_columns_is_refused(subsets: Any) -> None:
    with pytest.raises(ValueError, match="there is a table"):
        Tables(FACTORS, subsets)


@pytest.mark.parametrize("place", [-1, 4])
def test_a_table_over_a_column_that_is_not_there_is_refused(place: int) -> None:
    with pytest.raises(ValueError, match="columns that there are"):
        Tables(FACTORS, ((0,), (1, place)))


def test_a_row_that_is_in_no_cell_has_one_of_its_own_if_unlisted_values_are_counted() -> None:
    codes = np.array([[UNLISTED] * 4, [NULL] * 4, [99, 4, 1, 999], [99, UNLISTED, NULL, 0]])
    map_ = Tables(FACTORS, ((0,), (1,), (2,), (2, 1)), with_unlisted=True)
    assert tuple(table.shape for table in map_.count_tables) == ((4,), (5,), (3,), (3, 5))
    age, city, ill, ill_city = (t[0] for t in split(map_, counted(map_, codes)))
    assert age.tolist() == [0, 0, 2, 2]  # no cell for nulls: they are unlisted
    assert city.tolist() == [0, 0, 1, 1, 2]  # nulls have a cell, unlisted values another
    assert ill.tolist() == [0, 1, 3]
    assert ill_city.tolist() == [[0] * 5, [0, 0, 1, 0, 0], [0, 0, 0, 1, 2]]


def test_unlisted_values_are_nulls_in_tables_that_do_not_count_them() -> None:
    codes = np.array([[UNLISTED] * 4, [NULL] * 4])
    map_ = Tables(FACTORS, ((0,), (1,)))
    assert np.array_equal(counted(map_, codes[:1]), counted(map_, codes[1:]))


@given(st.lists(st.tuples(*(st.integers(UNLISTED, top) for top in (99, 4, 1, 999))), max_size=8))
def test_with_unlisted_values_all_tables_count_every_row(rows: list[tuple[int, ...]]) -> None:
    codes = np.array(rows, dtype=np.int64).reshape(-1, 4)
    map_ = Tables(FACTORS, ((0,), (1,), (2,), (3,), (0, 1), (1, 3), (0, 2, 3)), with_unlisted=True)
    assert MAP_KINDS.decode(json.loads(json.dumps(encode(map_)))) == map_
    for table in split(map_, counted(map_, codes)):
        assert table.sum() == len(codes)
        assert table.min() >= 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"lows": (1, 5)},
        {"lows": (0, 5, 5)},
        {"lows": (0, 10)},
        {"lows": (0, 5), "groups": (0,)},
        {"lows": (0, 5, 6), "groups": (0, -9, 1)},
        {"lows": (0, 5), "groups": (0, 2)},
        {"num_codes": 0},
        {"column": -1},
    ],
)
def test_cells_that_some_code_would_fall_out_of_are_refused(wrong: dict[str, Any]) -> None:
    """A request could make a party refuse if, and only if, somebody has a chosen value."""
    with pytest.raises(ValueError, match="piece"):
        Cells(**{"column": 0, "num_codes": 10, "is_ordered": True} | wrong)


def test_round_steps_put_every_code_in_one_cell_by_the_largest_step_it_is_a_multiple_of() -> None:
    schema = load_schema({"name": "t", "columns": [{"name": "x", "kind": "integer", "bounds": [-30, 1200]}]})
    steps = round_steps(0, schema.used[0])
    assert steps is not None
    codes = np.arange(1231)
    found = steps(codes)
    assert np.array_equal(codes[found == 0] - 30, [0])
    assert np.array_equal(codes[found == 1] - 30, [1000])
    for code, cell in zip(codes, found, strict=True):
        by_hand = next(i for i, step in enumerate(steps.steps) if (code - 30) % step == 0)
        assert cell == by_hand
    assert np.array_equal(steps(np.array([NULL, UNLISTED])), [steps.num_known] * 2)
    table = Tables((steps,), ((0,),), with_unlisted=True)
    assert np.asarray(table(np.array([[0], [30], [NULL], [UNLISTED]]))).sum(axis=1) == pytest.approx(1)
    assert MAP_KINDS.decode(json.loads(json.dumps(encode(table)))) == table


def test_decimals_are_told_from_codes_of_continuous_columns() -> None:
    schema = load_schema({"name": "t", "columns": [{"name": "x", "kind": "continuous", "bounds": [-3, 7]}]})
    steps = round_steps(0, schema.used[0])
    assert steps is not None
    values = np.array([0.0, 5.0, 2.5, 1.0, 0.7, 0.35, -0.25, 0.01])
    codes = np.rint((values + 3) / 10 * 2**32).astype(np.int64)
    sizes = np.asarray(steps.steps)[steps(codes)] / 2**32 * 10
    assert sizes[1:] == pytest.approx([5, 2.5, 1, 0.1, 0.05, 0.25, 0.01])
    assert steps(codes)[0] == 0
    assert np.mean(steps(np.random.default_rng(0).integers(0, 2**32, 10_000)) == steps.num_known - 1) > 0.98


def test_steps_of_less_than_a_code_are_refused() -> None:
    for steps in ((0.5,), (0.0,), (math.inf,), (math.nan,)):
        with pytest.raises(ValueError, match="steps"):
            Cells(0, 100, lows=(0,), steps=steps)
    with pytest.raises(ValueError, match="steps"):
        Cells(0, 100, steps=(10.0,))


@pytest.mark.parametrize(
    "wrong",
    [{"origin": math.nan}, {"origin": 2.0**70}, {"steps": (0.5,)}, {"steps": (math.inf,)}, {"steps": (2.0,) * 65}],
    ids=str,
)
def test_steps_that_no_schema_asks_for_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="steps"):
        Cells(0, 100, is_ordered=True, lows=(0,), **wrong)


def test_a_column_too_narrow_for_steps_has_none() -> None:
    schema = load_schema(
        {"name": "t", "columns": [{"name": "x", "kind": "continuous", "bounds": [0, 1e-300], "nullable": False}]}
    )
    assert round_steps(0, schema.used[0]) is None
    assert np.isfinite(number_values(schema.used[0], np.array([0, 5, 2**32]))).all()
