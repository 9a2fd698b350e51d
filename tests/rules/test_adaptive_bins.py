from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import Budget
from understudy.features import Cells, Embedding, Tables
from understudy.methods import dp_anova
from understudy.plan.plan import Plan
from understudy.private.sums import Rows, partial_sum
from understudy.rules.adaptive_bins import (
    CELLS,
    COARSE_CELLS,
    COARSE_PAIRS,
    COLUMNS,
    MOST_CELLS,
    VALUES,
    masses_in,
    merged,
    pieces_of,
    place_bars,
    place_bins,
    refined,
    total_rows,
)
from understudy.rules.measurement import Measurement
from understudy.schema import NULL, load_schema

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ROWS = 20_000
COARSE = 5 + 2 * 12  # a few cells, and one for each doubling of a distance in 5,000 on both sides


def plan_for(*columns: dict[str, Any], epsilon: float = 3.0, num_rows: int = ROWS) -> Plan:
    extra = {"name": "other", "kind": "binary", "categories": ["no", "yes"]}
    schema = load_schema({"name": "t", "columns": [*columns, extra]})
    return dp_anova(schema, Budget(epsilon), pairs=True, num_rows=num_rows)


def number(top: int, **options: Any) -> dict[str, Any]:
    return {"name": "x", "kind": "integer", "bounds": [0, top], **options}


def first_reading(plan: Plan, values: npt.ArrayLike, *, seed: int = 0) -> Measurement:
    """The first stage's noisy vector of a table that has these codes in its first column."""
    column = np.asarray(values, dtype=np.int64)
    rng = np.random.default_rng(seed)
    codes = np.stack([column, rng.integers(0, 2, len(column))], axis=1)
    embedding = plan.stages[0].embedding
    exact = partial_sum(Rows(plan.layout, codes), embedding=embedding, lattice=plan.lattice)
    noise = np.rint(rng.normal(0, plan.noise_stds[0], embedding.dim)).astype(np.int64)
    return Measurement(embedding, exact + noise, plan.noise_stds[0], plan.lattice)


def planned(plan: Plan) -> Measurement:
    nothing = np.empty(0, dtype=np.int64)
    return Measurement(plan.stages[1].embedding, nothing, plan.noise_stds[1], plan.lattice)


def placed(plan: Plan, first: Measurement) -> tuple[Cells, Cells]:
    """The cells of the first column, and its cells in the first look at pairs."""
    settled = place_bins(planned(plan), [first])
    cells, looks = settled.block(CELLS).map, settled.block(COARSE_PAIRS).map
    assert isinstance(cells, Tables)
    assert isinstance(looks, Tables)
    return cells.factors[0], looks.factors[0]


def shares(cells: Cells, values: npt.ArrayLike) -> Floats:
    """The part of all rows that lies in each cell."""
    column = np.asarray(values, dtype=np.int64)
    return np.bincount(cells(column), minlength=cells.dim)[: cells.dim] / max(1, len(column))


def assert_partition(cells: Cells, num_codes: int) -> None:
    """Every code is in one cell, every cell has a code, and a number's cells are runs of codes."""
    found = cells(np.arange(num_codes))
    assert (cells.num_codes, cells.num_pieces) == (num_codes, len(cells.groups or found))
    assert cells.first_codes[0] == 0
    assert (np.diff(cells.first_codes) > 0).all()
    assert cells.last_codes[-1] == num_codes - 1
    assert set(found.tolist()) == set(range(cells.num_known))
    assert cells(np.array([NULL]))[0] == cells.num_known
    if cells.is_ordered:
        assert (np.diff(found) >= 0).all()
        assert (np.diff(found) <= 1).all()


def assert_finer(finer: Cells, coarser: Cells, num_codes: int) -> None:
    """Cells of the one are unions of cells of the other."""
    codes = np.arange(num_codes)
    pairs = {tuple(pair) for pair in zip(finer(codes).tolist(), coarser(codes).tolist(), strict=True)}
    assert len(pairs) == finer.num_known


# Where the rows are


def heavy_tail(rng: np.random.Generator) -> Integers:
    return np.minimum(rng.lognormal(4, 1.5, ROWS), 5000).astype(np.int64)


def bell(rng: np.random.Generator) -> Integers:
    return np.clip(rng.normal(2500, 400, ROWS), 0, 5000).astype(np.int64)


def two_heaps(rng: np.random.Generator) -> Integers:
    return np.where(rng.random(ROWS) < 0.5, rng.integers(100, 130, ROWS), rng.integers(4900, 5001, ROWS))


def uniform(rng: np.random.Generator) -> Integers:
    return rng.integers(0, 5001, ROWS)


SHAPES = {"heavy tail": heavy_tail, "bell": bell, "two heaps": two_heaps, "uniform": uniform}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_cells_lie_where_the_rows_are(shape: Callable[[np.random.Generator], Integers]) -> None:
    plan, values = plan_for(number(5000)), shape(np.random.default_rng(1))
    cells, looks = placed(plan, first_reading(plan, values))
    assert_partition(cells, 5001)
    assert_partition(looks, 5001)
    assert_finer(cells, looks, 5001)
    held = shares(cells, values)
    assert 20 <= cells.num_known <= MOST_CELLS
    assert held.max() < 0.2, "no cell hides much"
    assert np.sort(held)[-5:].sum() < 0.6
    assert COARSE_CELLS[0] <= looks.num_known <= 2 * COARSE_CELLS[1]
    assert shares(looks, values).max() < 0.6


@pytest.mark.parametrize("atom", [0, 1, 777, 5000])
def test_a_value_that_92_percent_have_is_a_cell_and_the_rest_is_still_seen(atom: int) -> None:
    rng = np.random.default_rng(2)
    values = np.where(rng.random(ROWS) < 0.92, atom, rng.integers(1000, 4000, ROWS))
    plan = plan_for(number(5000))
    cells, looks = placed(plan, first_reading(plan, values))
    assert_partition(cells, 5001)
    own = cells(np.array([atom]))[0]
    assert np.flatnonzero(cells(np.arange(5001)) == own).tolist() == [atom]
    others = np.delete(shares(cells, values), own)
    assert np.count_nonzero(others > 0.001) >= 5
    assert others.max() < 0.04
    assert looks.num_known >= 2
    assert shares(looks, values).max() < 0.97


@pytest.mark.parametrize("top", [0, 1, 2, 5])
def test_integers_with_few_values_keep_each_value_that_occurs(top: int) -> None:
    values = np.random.default_rng(3).integers(0, top + 1, ROWS)
    plan = plan_for(number(top))
    cells, looks = placed(plan, first_reading(plan, values))
    assert_partition(cells, top + 1)
    assert cells.num_known == top + 1
    assert_partition(looks, top + 1)


def test_a_column_with_one_value_has_that_value_in_a_cell_and_hardly_more() -> None:
    plan = plan_for(number(5000))
    cells, looks = placed(plan, first_reading(plan, np.full(ROWS, 321)))
    assert_partition(cells, 5001)
    own = cells(np.array([321]))[0]
    assert np.flatnonzero(cells(np.arange(5001)) == own).tolist() == [321]
    assert cells.num_known <= COARSE
    assert looks.num_known <= 4


@pytest.mark.parametrize("column", [number(5000), number(3), number(5000, nullable=True)], ids=str)
def test_a_table_without_rows_is_cut_coarsely(column: dict[str, Any]) -> None:
    for seed in range(5):
        plan = plan_for(column)
        cells, looks = placed(plan, first_reading(plan, [], seed=seed))
        assert_partition(cells, column["bounds"][1] + 1)
        assert_partition(looks, column["bounds"][1] + 1)
        assert cells.num_known <= COARSE
        assert looks.num_known <= 5


def test_a_column_of_nulls_alone_is_cut_coarsely() -> None:
    plan = plan_for(number(5000, nullable=True))
    first = first_reading(plan, np.full(ROWS, NULL))
    cells, looks = placed(plan, first)
    assert_partition(cells, 5001)
    assert cells.has_null
    assert looks.has_null
    assert cells.num_known <= COARSE
    assert total_rows(first) - pieces_of(first, 0).masses.sum() == pytest.approx(ROWS, rel=0.05)


def test_where_noise_drowns_the_rows_there_are_few_cells() -> None:
    plan = plan_for(number(5000), epsilon=0.001)
    for seed in range(5):
        values = np.random.default_rng(seed).integers(0, 5001, ROWS)
        cells, looks = placed(plan, first_reading(plan, values, seed=seed))
        assert_partition(cells, 5001)
        assert_partition(looks, 5001)
        assert cells.num_known <= COARSE


def test_many_values_that_repeat_do_not_make_more_cells_than_are_allowed() -> None:
    """Every tenth value is a heap of its own, each far above the noise."""
    values = 10 * np.random.default_rng(4).integers(0, 500, 20 * ROWS)
    plan = plan_for(number(5000), epsilon=30.0, num_rows=20 * ROWS)
    cells, _ = placed(plan, first_reading(plan, values))
    assert_partition(cells, 5001)
    assert cells.num_known <= 2 * MOST_CELLS


def test_more_noise_never_makes_for_a_finer_cut_by_much() -> None:
    values = heavy_tail(np.random.default_rng(5))
    sizes = []
    for epsilon in (0.05, 0.3, 2.0, 15.0):
        plan = plan_for(number(5000), epsilon=epsilon)
        sizes.append(placed(plan, first_reading(plan, values))[0].num_known)
    assert sizes == sorted(sizes)
    assert sizes[-1] > 4 * sizes[0]


def test_rare_categories_share_a_cell_and_frequent_ones_have_their_own() -> None:
    names = [f"c{i}" for i in range(30)]
    column = {"name": "x", "kind": "categorical", "categories": names, "nullable": True}
    rng = np.random.default_rng(6)
    values = np.where(rng.random(ROWS) < 0.999, rng.integers(0, 5, ROWS), rng.integers(5, 30, ROWS))
    plan = plan_for(column, epsilon=1.0)
    cells, _ = placed(plan, first_reading(plan, values))
    assert_partition(cells, 30)
    found = cells(np.arange(30))
    frequent = set(found[:5].tolist())
    assert len(frequent) == 5
    assert not frequent & set(found[5:].tolist())
    assert 6 <= cells.num_known <= 8


# Estimates


def test_pieces_hold_about_as_many_rows_as_there_are() -> None:
    plan, values = plan_for(number(5000, nullable=True)), heavy_tail(np.random.default_rng(7))
    values[:3000] = NULL
    first = first_reading(plan, values)
    pieces = pieces_of(first, 0)
    assert pieces.masses.sum() < total_rows(first)
    assert (pieces.masses >= 0).all()
    edges = np.append(pieces.lows, 5001)
    exact = np.histogram(values[values != NULL], edges)[0]
    deviation = first.noise_of_count(COLUMNS)
    off = np.cumsum(pieces.masses - exact)
    assert np.abs(off).max() < 0.01 * ROWS
    assert total_rows(first) - pieces.masses.sum() == pytest.approx(3000, abs=6 * deviation)
    assert pieces_of(first, 0) is pieces


def test_cells_placed_before_rows_were_added_get_the_rows_of_now() -> None:
    plan, rng = plan_for(number(5000)), np.random.default_rng(8)
    before, now = first_reading(plan, bell(rng)), first_reading(plan, uniform(rng))
    cells, _ = placed(plan, before)
    assert np.array_equal(masses_in(cells, before), pieces_of(before, 0).masses)
    masses = masses_in(cells, now)
    assert masses.sum() == pytest.approx(pieces_of(now, 0).masses.sum())
    spans = cells.last_codes - cells.first_codes + 1
    wide = spans > 300
    assert masses[wide] / masses.sum() == pytest.approx(spans[wide] / 5001, abs=0.02)


def test_merged_cells_are_unions_of_about_equal_size() -> None:
    plan, values = plan_for(number(5000)), bell(np.random.default_rng(8))
    first = first_reading(plan, values)
    cells, _ = placed(plan, first)
    for count in (2, 3, 8, 20):
        found = merged(first, cells, float(count))
        assert_partition(found, 5001)
        assert_finer(cells, found, 5001)
        assert count / 2 <= found.num_known <= 2 * count
        assert shares(found, values).max() < 3 / count


# Whatever the noisy vector


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 1, 2**20, 2**36, 2**48]),
    top=st.sampled_from([0, 1, 2, 40, 5000, 200_000]),
    is_skewed=st.booleans(),
)
def test_any_vector_at_all_makes_a_partition_and_the_planned_sensitivity(
    seed: int, size: int, top: int, is_skewed: bool
) -> None:
    plan = cached_plan(top)
    rng = np.random.default_rng(seed)
    embedding = plan.stages[0].embedding
    values = rng.normal(0, 1, embedding.dim) ** (5 if is_skewed else 1) * size
    first = Measurement(embedding, np.rint(values).astype(np.int64), plan.noise_stds[0], plan.lattice)
    settled = place_bins(planned(plan), [first])
    assert_same_sensitivity(plan, settled)
    for name in (CELLS, COARSE_PAIRS):
        map_ = settled.block(name).map
        assert isinstance(map_, Tables)
        for factor, column in zip(map_.factors, plan.schema.used, strict=True):
            size_ = len(column.categories) if column.is_choice else column.num_steps + 1
            assert_partition(factor, size_)
            assert factor.has_null == column.nullable


def assert_same_sensitivity(plan: Plan, settled: Embedding) -> None:
    for replace in (False, True):
        before, after = (
            each.mechanism_sensitivities(plan.lattice, replace=replace) for each in (plan.stages[1].embedding, settled)
        )
        assert before == after
        assert sum(after) > 0


PLANS: dict[int, Plan] = {}


def cached_plan(top: int) -> Plan:
    if top not in PLANS:
        PLANS[top] = plan_for(number(top, nullable=True))
    return PLANS[top]


@pytest.mark.parametrize("replace", [False, True])
def test_a_row_reaches_no_further_in_settled_cells_than_planned(replace: bool) -> None:
    plan, values = plan_for(number(5000)), heavy_tail(np.random.default_rng(9))
    settled = place_bins(planned(plan), [first_reading(plan, values)])
    stated = plan.stages[1].embedding.sensitivity(plan.lattice, replace=replace)
    sums = [
        partial_sum(Rows(plan.layout, np.array([[code, bit]])), embedding=settled, lattice=plan.lattice)
        for code in (NULL, 0, 40, 5000)
        for bit in (NULL, 0, 1)
    ]
    bases = sums if replace else [np.zeros(settled.dim, dtype=np.int64)]
    reached = max(sum(int(value) ** 2 for value in (one - base).tolist()) for one in sums for base in bases)
    assert 0.999 * stated < reached <= stated
    assert math.isclose(stated, (2 if replace else 1) * plan.lattice**2, rel_tol=1e-6)


def test_hardly_any_rows_are_seen_far_beyond_the_last_one() -> None:
    plan = plan_for(number(5000), epsilon=1.0)
    for seed in range(5):
        values = np.random.default_rng(seed).exponential(100, ROWS).astype(np.int64).clip(0, 800)
        pieces = pieces_of(first_reading(plan, values, seed=seed), 0)
        assert pieces.masses[np.asarray(pieces.lows) > 1500].sum() < 0.002 * ROWS


def test_a_bar_with_a_value_that_repeats_is_not_split() -> None:
    column = {"name": "x", "kind": "continuous", "bounds": [0, 100]}
    plan = plan_for(column, epsilon=3.0)
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(ROWS) < 0.3, round(0.6181 * 2**32), rng.integers(0, 2**32, ROWS))
    cells, _ = placed(plan, first_reading(plan, codes))
    bar = 2**32 // 4096
    around = cells(0.6181 * 2**32 // bar * bar + np.arange(bar)[::1000].astype(np.int64))
    assert len(np.unique(around)) == 1


# As many bars as rows carry


def bars_for(rows: float, *columns: dict[str, Any], epsilon: float = 0.1) -> Embedding:
    """The stage of histograms if the noisy row count is this."""
    plan = dp_anova(load_schema({"columns": list(columns)}), Budget(epsilon))
    counted, embedding = plan.stages[0].embedding, plan.stages[1].embedding
    vector = np.rint(rows * counted.blocks[0].scales(plan.lattice)).astype(np.int64).ravel()
    nothing = np.empty(0, dtype=np.int64)
    first = Measurement(counted, vector, plan.noise_stds[0], plan.lattice)
    return place_bars(Measurement(embedding, nothing, plan.noise_stds[1], plan.lattice), [first])


def test_the_more_rows_there_are_the_more_bars_a_histogram_has() -> None:
    numbers = number(5000), {"name": "z", "kind": "continuous", "bounds": [0, 1]}, {**number(100), "name": "w"}
    counts = []
    for rows in (-50.0, 1.0, 300.0, 3_000.0, 30_000.0, 1e6):
        bars = bars_for(rows, *numbers).block(COLUMNS).map_of(Tables).factors
        counts.append([cells.num_known for cells in bars])
        for cells in bars:  # bounds have bars of their own, and all others are about equally wide
            assert cells.num_codes == cells.num_known or {1, cells.num_codes - 1} <= set(cells.lows)
    assert counts == sorted(counts)
    assert all(8 <= count <= 11 for count in counts[0])
    assert counts[-1] == [258, 258, 101]


def test_values_are_counted_one_by_one_if_rows_are_many_and_how_round_they_are_in_any_case() -> None:
    few, many = (bars_for(rows, number(5000)).block(VALUES).map_of(Tables).factors for rows in (500.0, 1e6))
    assert [bool(cells.steps) for cells in few] == [True]
    assert [bool(cells.steps) for cells in many] == [False, True]


@settings(max_examples=60, deadline=None)
@given(top=st.integers(1, 3000), rows=st.floats(-1e4, 1e8))
def test_joined_bars_hold_every_code_once(top: int, rows: float) -> None:
    (cells,) = bars_for(rows, number(top)).block(COLUMNS).map_of(Tables).factors
    assert np.array_equal(np.unique(cells(np.arange(top + 1))), np.arange(cells.num_known))


@pytest.mark.parametrize("rows", [0.0, 1e3, 1e9, 1e15])
def test_cells_cut_anew_are_few_however_many_rows_there_are(rows: float) -> None:
    """A column of many values that all repeat, and a billion rows: what is cut after the charge must fit in memory."""
    plan = plan_for(number(100_000), epsilon=30.0)
    first = first_reading(plan, np.random.default_rng(0).choice(np.arange(0, 100_000, 97), ROWS))
    cells, _ = placed(plan, first)
    found = refined(first, cells, np.full(cells.dim, rows / cells.dim), 1e-3, MOST_CELLS)
    assert found.num_known <= 4 * MOST_CELLS
    assert found.num_pieces <= cells.num_pieces + 2 * MOST_CELLS
