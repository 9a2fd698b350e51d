from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import Budget
from understudy.features import Block, Cells, Constant, Embedding, Tables
from understudy.fits.shrinkage import positive_counts
from understudy.methods import dp_anova
from understudy.plan.plan import LATTICE, Plan
from understudy.private.sums import Rows, partial_sum
from understudy.rules.adaptive_bins import CELLS, COARSE_PAIRS, COLUMNS, rows_by_label
from understudy.rules.marginals import (
    Marginals,
    _from_histogram,
    _pair_margins,
    _raked,
    _updated,
    find_marginals,
    unions,
)
from understudy.rules.measurement import Measurement
from understudy.schema import NULL, load_schema

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


# Least squares by hand


def least_squares(observed: list[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats]:
    """Generalised least squares: unknowns from (matrix, sums, variances), and their covariance."""
    precision = sum(matrix.T @ (matrix / spread[:, None]) for matrix, _, spread in observed)
    weighted = sum(matrix.T @ (sums / spread) for matrix, sums, spread in observed)
    covariance = np.linalg.inv(precision)
    return covariance @ weighted, covariance


@st.composite
def evidence(draw: st.DrawFn) -> tuple[Floats, Floats, Floats, Floats, float]:
    """Counts of cells with variances of their own, and counts of unions of them."""
    size = draw(st.integers(1, 7))
    wanted = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    union = np.eye(len(set(wanted)))[np.unique(wanted, return_inverse=True)[1]]
    numbers, spreads = st.floats(-1e3, 1e3), st.floats(0.1, 1e3)
    known = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    variance = np.array(draw(st.lists(spreads, min_size=size, max_size=size)))
    width = union.shape[1]
    sums = np.array(draw(st.lists(numbers, min_size=width, max_size=width)))
    return known, variance, union, sums, draw(spreads)


@settings(max_examples=150, deadline=None)
@given(example=evidence())
def test_counts_of_unions_correct_counts_of_cells_as_least_squares_would(
    example: tuple[Floats, Floats, Floats, Floats, float],
) -> None:
    known, variance, union, sums, spread = example
    found, left = _updated(known, variance, union.argmax(axis=1), sums, spread)
    own = (np.eye(len(known)), known, variance)
    expected, covariance = least_squares([own, (union.T, sums, np.full(len(sums), spread))])
    assert found == pytest.approx(expected, abs=1e-7)
    assert left == pytest.approx(np.diag(covariance), rel=1e-7)


# The parts of a small release: bars, cells by label, and pairs

WHOLE = Cells(0, 16, has_null=True, is_ordered=True, lows=(0, 4, 8, 12))
OWN = Cells(0, 16, True, True, lows=(0, 4, 6, 8, 12), groups=(0, 1, 1, 2, 3))
SPLIT = Cells(0, 16, True, True, lows=(0, 2, 4, 8, 12), groups=(0, 1, 1, 2, 2))
OTHER = Cells(1, 3)
COARSE = Cells(0, 16, True, True, lows=(0, 4, 6, 8, 12), groups=(0, 0, 0, 1, 1))
PAIR_OTHER = Cells(1, 3, groups=(0, 1, 1))
LABEL = (1, 3)
FIRST = Embedding(
    (
        Block("count", Constant(), 0.5, per_label=True),
        Block(COLUMNS, Tables((WHOLE, OTHER), ((0,), (1,)), with_unlisted=True), 0.8),
    ),
    label=LABEL,
)


def second_of(own: Cells) -> Embedding:
    return Embedding(
        (
            Block(CELLS, Tables((own, OTHER), ((0,), (1,)), with_unlisted=True), 0.8, per_label=True),
            Block(COARSE_PAIRS, Tables((COARSE, PAIR_OTHER), ((0, 1),), with_unlisted=True), 0.6, per_label=True),
        ),
        label=LABEL,
    )


NOISES = (2 * LATTICE, 3 * LATTICE)


def vector_of(embedding: Embedding, codes: Integers, labels: Integers) -> Integers:
    parts = []
    for block in embedding.blocks:
        copies = embedding.copies(block)
        slots = labels if block.per_label else 0 * labels
        if isinstance(block.map, Tables):
            step = block.rounding(LATTICE)[0]
            parts.append((block.map.counts(codes, slots, copies) * step).ravel())
        else:
            scale = int(block.scales(LATTICE)[0])
            parts.append(np.bincount(slots, minlength=copies) * scale)
    return np.concatenate(parts)


def small_table() -> tuple[Integers, Integers]:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.binomial(15, 0.4, 600), rng.integers(0, 3, 600)], axis=1)
    codes[:50, 0] = NULL
    return codes, rng.integers(0, 2, 600)


def small_readings(own: Cells, seed: int | None) -> tuple[Measurement, Measurement]:
    """Two stages of a small table, with noise unless the seed is none."""
    codes, labels = small_table()
    found = []
    for embedding, noise in zip((FIRST, second_of(own)), NOISES, strict=True):
        vector = vector_of(embedding, codes, labels)
        if seed is not None:
            rng = np.random.default_rng([seed, embedding.dim])
            vector = vector + np.rint(rng.normal(0, noise, embedding.dim)).astype(np.int64)
        found.append(Measurement(embedding, vector, noise, LATTICE))
    return found[0], found[1]


def estimate(own: Cells, seed: int | None) -> tuple[Floats, Floats]:
    """Counts of the first column's cells from all that is known of them, and their variances."""
    first, second = small_readings(own, seed)
    table, noise = second.tables(CELLS)[0], second.noise_of_count(CELLS)
    known, variance = _from_histogram(first, own, table, noise)
    for union, sums, spread in _pair_margins([first, second])[0]:
        known, variance = _updated(known, variance, unions(own, union), sums, spread)
    return known, variance


def test_bars_cells_by_label_and_pairs_are_combined_as_least_squares_would() -> None:
    first, second = small_readings(OWN, 1)
    by_label, bars = second.tables(CELLS)[0], first.tables(COLUMNS)[0][0]
    look = second.tables(COARSE_PAIRS)[0]
    noise = [first.noise_of_count(COLUMNS), *(second.noise_of_count(b) for b in (CELLS, COARSE_PAIRS))]
    # Unknown are the five cells: of codes 0-3, 4-7, 8-11, 12-15, and of nulls.
    unions = np.array([[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]])
    expected, covariance = least_squares(
        [
            (np.eye(5), bars, np.full(5, noise[0] ** 2)),
            (np.eye(5), by_label[0] + by_label[1], np.full(5, 2 * noise[1] ** 2)),
            (unions, look.sum(axis=(0, 2)), np.full(3, 4 * noise[2] ** 2)),
        ]
    )
    known, variance = estimate(OWN, 1)
    assert known == pytest.approx(expected)
    assert variance == pytest.approx(np.diag(covariance))


def test_cells_that_split_a_bar_learn_nothing_from_the_bars() -> None:
    first, second = small_readings(SPLIT, 2)
    table, noise = second.tables(CELLS)[0], second.noise_of_count(CELLS)
    known, variance = _from_histogram(first, SPLIT, table, noise)
    bars, bar_noise = first.tables(COLUMNS)[0][0], first.noise_of_count(COLUMNS)
    assert known[:2] == pytest.approx(table.sum(axis=0)[:2])
    assert variance[:2] == pytest.approx(np.full(2, 2 * noise**2))
    for cell, own in ((2, bars[2] + bars[3]), (3, bars[4])):
        spreads = np.array([2 * noise**2, (2 if cell == 2 else 1) * bar_noise**2])
        weights = 1 / spreads / (1 / spreads).sum()
        assert known[cell] == pytest.approx(weights @ [table.sum(axis=0)[cell], own])
        assert variance[cell] == pytest.approx(1 / (1 / spreads).sum())


@pytest.mark.parametrize("own", [OWN, SPLIT], ids=["whole bars", "split bars"])
def test_the_combination_is_unbiased_and_as_sure_as_it_says(own: Cells) -> None:
    codes, _ = small_table()
    exact = np.bincount(own(codes[:, 0]), minlength=own.dim)
    assert estimate(own, None)[0] == pytest.approx(exact, abs=1e-4)
    drawn = np.stack([estimate(own, seed)[0] for seed in range(800)])
    stated = estimate(own, 0)[1]
    assert np.abs(drawn.mean(axis=0) - exact).max() < 5 * np.sqrt(stated.max() / 800)
    ratio = drawn.var(axis=0) / stated
    assert (ratio > 0.75).all()
    assert (ratio < 1.3).all()


def test_rows_of_labels_are_what_all_tables_say_as_least_squares_would() -> None:
    first, second = small_readings(OWN, seed=4)
    evidence = [(np.eye(2), first.all_sums("count")[:, 0], np.full(2, first.noise_of_sum("count") ** 2))]
    for measured, name, matrix in (
        (first, COLUMNS, np.ones((1, 2))),
        (second, CELLS, np.eye(2)),
        (second, COARSE_PAIRS, np.eye(2)),
    ):
        for table in measured.all_tables(name):
            sums = table.reshape(len(table), -1).sum(axis=1)
            evidence.append((matrix, sums, np.full(len(sums), table[0].size * measured.noise_of_count(name) ** 2)))
    expected, _ = least_squares(evidence)
    assert rows_by_label(first, second) == pytest.approx(expected, rel=1e-9)


def test_tables_by_label_tell_a_count_of_all_rows_as_least_squares_would() -> None:
    """If only the columns are by label, as with labels that are balanced."""
    first, second = small_readings(OWN, seed=4)
    whole = replace(first.embedding.block("count"), per_label=False)
    embedding = Embedding((whole, *first.embedding.blocks[1:]), label=LABEL)
    both = replace(first, embedding=embedding, vector=first.vector[1:])
    evidence = [(np.eye(1), both.all_sums("count")[:, 0], np.full(1, both.noise_of_sum("count") ** 2))]
    for measured, name in ((both, COLUMNS), (second, CELLS), (second, COARSE_PAIRS)):
        for table in measured.all_tables(name):
            spread = table.size * measured.noise_of_count(name) ** 2
            evidence.append((np.eye(1), np.array([table.sum()]), np.array([spread])))
    expected, _ = least_squares(evidence)
    assert rows_by_label(both, second) == pytest.approx(expected, rel=1e-9)


def test_rows_of_labels_without_noise_are_exact_and_noise_is_less_than_the_counts_own() -> None:
    exact = np.bincount(small_table()[1], minlength=2)
    assert rows_by_label(*small_readings(OWN, seed=None)) == pytest.approx(exact, abs=1e-3)
    pairs = [small_readings(OWN, seed=seed) for seed in range(200)]
    alone = np.std([first.all_sums("count")[:, 0] for first, _ in pairs], axis=0)
    assert (np.std([rows_by_label(*each) for each in pairs], axis=0) < 0.9 * alone).all()


# Whole releases

SCHEMA = load_schema(
    {
        "name": "t",
        "columns": [
            {"name": "x", "kind": "integer", "bounds": [0, 900]},
            {"name": "c", "kind": "categorical", "categories": list("abcd"), "nullable": True},
            {"name": "z", "kind": "integer", "bounds": [0, 9], "nullable": True},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)


@cache
def plan_for(epsilon: float, labels: str = "auto") -> Plan:
    return dp_anova(SCHEMA, Budget(epsilon), pairs=True, num_rows=20_000, labels=labels)


def table_of(count: int) -> Integers:
    """The first column depends on the label, the second and third on one another."""
    rng = np.random.default_rng(3)
    y = (rng.random(count) < 0.3).astype(np.int64)
    x = np.clip(rng.normal(300 + 300 * y, 80, count), 0, 900).astype(np.int64)
    c = rng.integers(NULL, 4, count)
    return np.stack([x, c, np.where(rng.random(count) < 0.5, c, rng.integers(0, 10, count)), y], 1)


def readings_of(plan: Plan, codes: Integers, *, seed: int = 0) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    found: list[Measurement] = []
    for index, noise in enumerate(plan.noise_stds):
        embedding = plan.embeddings([measurement.vector for measurement in found])[index]
        vector = partial_sum(Rows(plan.layout, codes), embedding=embedding, lattice=plan.lattice)
        vector = vector + np.rint(rng.normal(0, noise, embedding.dim)).astype(np.int64)
        found.append(Measurement(embedding, vector, noise, plan.lattice))
    return found


def assert_shares(margins: Marginals) -> None:
    assert margins.total >= 1
    assert (margins.label_shares > 0).all()
    assert margins.label_shares.sum() == pytest.approx(1.0)
    for cells, shares in zip(margins.cells, margins.by_label, strict=True):
        assert shares.shape == (len(margins.label_shares), cells.dim)
        assert (shares >= 0).all()
        assert shares.sum(axis=1) == pytest.approx(np.ones(len(shares)))


@pytest.mark.parametrize("labels", ["auto", "none", "balanced"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0, 2**20, 2**36, 2**45]), stages=st.sampled_from([2, 3]))
def test_shares_sum_to_one_and_are_not_negative_whatever_the_noise(
    labels: str, seed: int, size: int, stages: int
) -> None:
    plan, rng = plan_for(1.0, labels), np.random.default_rng(seed)
    found: list[Measurement] = []
    for index, noise in enumerate(plan.noise_stds[:stages]):
        embedding = plan.embeddings([measurement.vector for measurement in found])[index]
        vector = np.rint(rng.normal(0, 1, embedding.dim) * size).astype(np.int64)
        found.append(Measurement(embedding, vector, noise, plan.lattice))
    assert_shares(find_marginals(found))


@pytest.mark.parametrize("labels", ["auto", "none"])
def test_margins_come_near_to_the_shares_of_the_rows(labels: str) -> None:
    codes, plan = table_of(20_000), plan_for(5.0, labels)
    margins = find_marginals(readings_of(plan, codes))
    assert_shares(margins)
    assert margins.total == pytest.approx(20_000, rel=0.01)
    groups = [codes[:, 3] == y for y in (0, 1)] if labels == "auto" else [codes[:, 3] >= 0]
    for label, group in enumerate(groups):
        assert margins.label_shares[label] == pytest.approx(group.mean(), abs=0.005)
        for cells, shares in zip(margins.cells, margins.by_label, strict=True):
            inside = np.bincount(cells(codes[group, cells.column]), minlength=cells.dim)
            exact = inside[: cells.dim] / inside[: cells.dim].sum()
            assert np.abs(shares[label] - exact).sum() < 0.06


def test_more_evidence_makes_margins_better() -> None:
    codes, plan = table_of(3000), plan_for(0.5, "none")
    errors = []
    for stages in (2, 3):
        off = []
        for seed in range(12):
            readings = readings_of(plan, codes, seed=seed)
            margins = find_marginals(readings[:stages])
            for cells in readings[1].map(CELLS).factors:  # later stages have finer ones
                counts = np.bincount(cells(codes[:, cells.column]), minlength=cells.dim)
                off.append(np.abs(margins.over(cells)[0] - counts[: cells.dim] / 3000).sum())
        errors.append(np.mean(off))
    assert errors[1] < 0.95 * errors[0]


def test_a_union_puts_every_cell_into_the_one_that_holds_its_codes() -> None:
    found = unions(OWN, COARSE)
    assert found.tolist() == [0, 0, 1, 1, 2]
    codes, _ = small_table()
    finer, coarser = (np.bincount(cells(codes[:, 0]), minlength=cells.dim) for cells in (OWN, COARSE))
    assert np.bincount(found, weights=finer).tolist() == coarser.tolist()


def test_independent_columns_have_the_products_of_their_shares_within_each_label() -> None:
    own, label_shares = (np.array([[0.1, 0.2, 0.3, 0.4, 0.0], [0.5, 0.0, 0.0, 0.0, 0.5]]), [0.25, 0.75])
    other = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    margins = Marginals(100.0, np.array(label_shares), (own, other), (OWN, OTHER))
    found = margins.independent((0, 1), (COARSE, PAIR_OTHER))
    assert found.shape == (2, 3, 2)
    assert found[0] == pytest.approx(0.25 * np.outer([0.3, 0.7, 0.0], [0.2, 0.8]))
    assert found[1] == pytest.approx(0.75 * np.outer([0.5, 0.0, 0.5], [1.0, 0.0]))


# Labels add up


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), labels=st.integers(1, 8), cells=st.integers(1, 9))
def test_raked_labels_add_up_to_all_and_keep_their_rows(seed: int, labels: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.gamma(2.0, 10.0, (labels, cells)) + 1.0
    shares, pooled = rng.dirichlet(np.full(labels, 3.0)), rng.gamma(2.0, 30.0, cells) + 1.0
    found = _raked(table, shares, pooled)
    assert found.sum(axis=1) == pytest.approx(shares * pooled.sum())
    assert np.abs(found.sum(axis=0) - pooled).sum() < 0.02 * pooled.sum()


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_raked_labels_are_counts_whatever_is_empty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.gamma(1.0, 10.0, (3, 5)) * rng.integers(0, 2, (3, 5)) * rng.integers(0, 2, (3, 1))
    pooled = rng.gamma(1.0, 10.0, 5) * rng.integers(0, 2, 5) + np.eye(5)[0]
    found = _raked(table, np.array([0.2, 0.3, 0.5]), pooled)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found.sum(axis=1) == pytest.approx(np.array([0.2, 0.3, 0.5]) * pooled.sum())


def test_labels_that_add_up_are_nearer_to_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of eight labels, each made nonnegative by itself, had doubled the error of a column."""
    categories = [{"name": name, "kind": "categorical", "categories": list("abcdef")} for name in "uv"]
    label = {"name": "y", "kind": "categorical", "categories": list("12345678"), "role": "label"}
    schema, rng = load_schema({"columns": [*categories, label]}), np.random.default_rng(0)
    plan = dp_anova(schema, Budget(0.1), pairs=False, num_rows=4000)
    shares, errors = np.array([0.4, 0.3, 0.2, 0.06, 0.03, 0.01]), []
    releases = []
    for seed in range(8):
        codes = np.column_stack([*rng.choice(6, (2, 4000), p=shares), rng.integers(0, 8, 4000)])
        releases.append(readings_of(plan, codes, seed=seed))
    for rake in (_raked, lambda table, shares, pooled: table):
        monkeypatch.setattr("understudy.rules.marginals._raked", rake)
        all_marginals = [find_marginals(each, positive=positive_counts) for each in releases]
        columns = [each.label_shares @ own for each in all_marginals for own in each.by_label[:2]]
        errors.append(float(np.mean([np.abs(column - shares).sum() for column in columns])))
    raked, apart = errors
    assert raked < 0.8 * apart


def test_a_rare_label_that_lies_apart_is_found_there() -> None:
    """One percent of the rows, where hardly any others lie: shrunk width by width, a third was spread like all rows."""
    rng = np.random.default_rng(5)
    codes = table_of(20_000)
    codes[:, 3] = rng.random(20_000) < 0.01
    common, rare = rng.normal(600, 80, 20_000), rng.normal(150, 40, 20_000)
    codes[:, 0] = np.clip(np.where(codes[:, 3] == 1, rare, common), 0, 900).astype(np.int64)
    inside = []
    for seed in range(8):
        margins = find_marginals(readings_of(plan_for(0.3), codes, seed=seed))
        cells = margins.cells[0]
        starts = cells.first_codes[np.flatnonzero(np.diff(cells.cell_of_piece, prepend=-1))]
        inside.append(margins.by_label[0][1][: cells.num_known][starts < 300].sum())
    assert np.mean(inside) > 0.8
