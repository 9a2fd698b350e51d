from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

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
from understudy.rules import pair_selection
from understudy.rules.adaptive_bins import CELLS, COARSE_PAIRS, MARGINALS, looks_at_pairs
from understudy.rules.marginals import find_marginals
from understudy.rules.measurement import Measurement
from understudy.rules.pair_selection import RESOLUTIONS, STRONGEST, dependence, resolution, select_marginals
from understudy.schema import load_schema

Integers = npt.NDArray[np.int64]
SCHEMA = load_schema(
    {
        "name": "t",
        "columns": [
            *({"name": f"x{i}", "kind": "integer", "bounds": [0, 400]} for i in range(4)),
            *({"name": f"c{i}", "kind": "categorical", "categories": list("abcd")} for i in range(2)),
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
ROWS = 10_000


@cache
def plan_for(epsilon: float = 3.0, labels: str = "auto") -> Plan:
    return dp_anova(SCHEMA, Budget(epsilon), pairs=True, num_rows=ROWS, labels=labels)


def independent_rows(seed: int) -> Integers:
    rng = np.random.default_rng(seed)
    return rng.integers(0, [401] * 4 + [4] * 2 + [2], (ROWS, 7))


def readings_of(plan: Plan, codes: Integers, *, seed: int = 0) -> list[Measurement]:
    """Columns and columns by label with noise."""
    return stages_of(plan, codes, seed=seed)[:2]


def stages_of(plan: Plan, codes: Integers, *, seed: int = 0) -> list[Measurement]:
    """All stages with noise but that of the row count, if it is measured first."""
    rng = np.random.default_rng(seed)
    found: list[Measurement] = []
    for index, noise in enumerate(plan.noise_stds):
        embedding = plan.embeddings([measurement.vector for measurement in found])[index]
        vector = partial_sum(Rows(plan.layout, codes), embedding=embedding, lattice=plan.lattice)
        vector = vector + np.rint(rng.normal(0, noise, embedding.dim)).astype(np.int64)
        found.append(Measurement(embedding, vector, noise, plan.lattice))
    return found[-3:]


def chosen_by(plan: Plan, earlier: list[Measurement]) -> Embedding:
    nothing = np.empty(0, dtype=np.int64)
    planned = Measurement(plan.stages[-1].embedding, nothing, plan.noise_stds[-1], plan.lattice)
    return select_marginals(planned, earlier)


def marginals_of(settled: Embedding) -> Tables:
    map_ = settled.block(MARGINALS).map
    assert isinstance(map_, Tables)
    return map_


def tables_of(settled: Embedding) -> Tables:
    """The pairs among the marginals."""
    map_ = marginals_of(settled)
    pairs = [subset for subset in map_.subsets if len(subset) == 2]
    used = sorted({j for pair in pairs for j in pair})
    return replace(
        map_,
        factors=tuple(map_.factors[j] for j in used),
        subsets=tuple(tuple(used.index(j) for j in pair) for pair in pairs),
    )


def columns_of(tables: Tables) -> list[tuple[int, ...]]:
    return [tuple(tables.factors[j].column for j in subset) for subset in tables.subsets]


def tied(codes: Integers, pair: tuple[int, int], *, by: float, seed: int = 9) -> Integers:
    """The same rows, in a part of which the one column follows the other."""
    rng = np.random.default_rng(seed)
    left, right = pair
    found = codes.copy()
    sizes = [401] * 4 + [4] * 2
    follows = found[:, left] * sizes[right] // sizes[left]
    found[:, right] = np.where(rng.random(len(codes)) < by, follows, found[:, right])
    return found


# Which pairs


@pytest.mark.parametrize("labels", ["auto", "none"])
@pytest.mark.parametrize("pair", [(0, 1), (2, 4), (4, 5)], ids=str)
def test_a_pair_that_depends_comes_before_all_that_do_not(pair: tuple[int, int], labels: str) -> None:
    codes = tied(independent_rows(1), pair, by=0.3)
    plan = plan_for(labels=labels)
    earlier = readings_of(plan, codes)
    strengths = dependence(find_marginals(earlier), earlier[1])
    assert max(strengths, key=lambda each: strengths[each]) == pair
    others = [strength for each, strength in strengths.items() if each != pair]
    assert strengths[pair] > 2 * max(others)
    assert pair in columns_of(tables_of(chosen_by(plan, earlier)))


def test_the_stronger_of_two_dependent_pairs_comes_first() -> None:
    codes = tied(tied(independent_rows(2), (0, 1), by=0.6), (2, 3), by=0.2)
    earlier = readings_of(plan_for(), codes)
    strengths = dependence(find_marginals(earlier), earlier[1])
    first, second, *_ = sorted(strengths, key=lambda each: -strengths[each])
    assert (first, second) == ((0, 1), (2, 3))


def test_a_pair_that_depends_only_through_the_label_is_not_taken_for_dependent() -> None:
    """Within labels the columns are independent, and columns by label are measured anyway."""
    rng = np.random.default_rng(3)
    codes = independent_rows(3)
    high = codes[:, 6] == 1
    codes[:, 0] = np.where(high, rng.integers(200, 401, ROWS), rng.integers(0, 201, ROWS))
    codes[:, 1] = np.where(high, rng.integers(200, 401, ROWS), rng.integers(0, 201, ROWS))
    found = {}
    for labels in ("auto", "none"):
        earlier = readings_of(plan_for(labels=labels), codes)
        found[labels] = dependence(find_marginals(earlier), earlier[1])[0, 1]
    assert found["auto"] < 0.25 * found["none"]


def test_where_nothing_depends_no_more_pairs_are_measured_than_chance_shows() -> None:
    """Half of the strengths are above zero by chance, and at this budget a pair in few cells costs next to nothing."""
    counts = []
    for seed in range(8):
        earlier = readings_of(plan_for(), independent_rows(seed), seed=seed)
        counts.append(len(tables_of(chosen_by(plan_for(), earlier)).subsets))
    assert min(counts) >= 1
    assert np.mean(counts) <= 8, f"{counts} of 15 pairs"


def test_where_noise_drowns_everything_few_pairs_are_measured() -> None:
    plan = plan_for(0.01)
    counts = []
    for seed in range(8):
        earlier = readings_of(plan, tied(independent_rows(seed), (0, 1), by=0.5), seed=seed)
        counts.append(len(tables_of(chosen_by(plan, earlier)).subsets))
    assert np.mean(counts) <= 6, f"{counts} of 15 pairs"


def test_where_everything_depends_many_pairs_are_measured() -> None:
    codes = independent_rows(4)
    for j in range(1, 6):
        codes = tied(codes, (0, j), by=0.9, seed=j)
    found = tables_of(chosen_by(plan_for(), readings_of(plan_for(), codes)))
    assert len(found.subsets) >= 10


def test_strengths_of_noise_alone_are_zero_half_of_the_time_and_never_negative() -> None:
    """The energy of noise is taken away: what is left is as often above zero as below."""
    plan, found = plan_for(0.3), []
    for seed in range(12):
        earlier = readings_of(plan, independent_rows(seed), seed=seed)
        strengths = dependence(find_marginals(earlier), earlier[1])
        assert set(strengths) == set(combinations(range(6), 2))
        found.extend(strengths.values())
    assert min(found) >= 0
    assert 0.3 < np.mean(np.array(found) == 0) < 0.75
    strong = readings_of(plan, tied(independent_rows(0), (0, 1), by=0.9))
    assert np.mean(found) < 0.2 * dependence(find_marginals(strong), strong[1])[0, 1]


# Sizes


def test_cells_of_a_pair_are_unions_of_the_columns_own() -> None:
    earlier = readings_of(plan_for(), tied(independent_rows(5), (0, 1), by=0.5))
    found = tables_of(chosen_by(plan_for(), earlier))
    owns = {cells.column: cells for cells in earlier[1].map(CELLS).factors}
    assert {cells.column for cells in found.factors} == set(owns)
    for coarser in found.factors:
        own = owns[coarser.column]
        codes = np.arange(own.num_codes)
        both = set(zip(own(codes).tolist(), coarser(codes).tolist(), strict=True))
        assert len(both) == own.num_known
        assert (own.column, own.has_null) == (coarser.column, coarser.has_null)
        assert coarser.dim <= own.dim


def test_a_release_never_grows_beyond_its_limit_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = independent_rows(6)
    for j in range(1, 6):
        codes = tied(codes, (0, j), by=0.9, seed=j)
    earlier = readings_of(plan_for(), codes)
    free = tables_of(chosen_by(plan_for(), earlier))
    for limit in (free.dim, free.dim // 2, free.dim // 5):
        monkeypatch.setattr(pair_selection, "MOST_NUMBERS", limit)
        assert tables_of(chosen_by(plan_for(), earlier)).dim <= limit
    monkeypatch.setattr(pair_selection, "MOST_NUMBERS", 1)
    assert len(tables_of(chosen_by(plan_for(), earlier)).subsets) == 1, "there is always a table"


@pytest.mark.parametrize("most", [1, 2, 5])
def test_never_more_pairs_than_allowed(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = independent_rows(7)
    for j in range(1, 6):
        codes = tied(codes, (0, j), by=0.9, seed=j)
    monkeypatch.setattr(pair_selection, "MOST_PAIRS", most)
    found = tables_of(chosen_by(plan_for(), readings_of(plan_for(), codes)))
    assert 1 <= len(found.subsets) <= most


def cells_of(dim: int, *, is_ordered: bool = True) -> Cells:
    return Cells(0, dim, is_ordered=is_ordered)


@settings(max_examples=200, deadline=None)
@given(strength=st.floats(0, STRONGEST), noise=st.floats(1e-9, 1e9), dims=st.tuples(*[st.integers(1, 200)] * 2))
def test_a_pair_is_never_finer_for_more_noise_nor_for_less_dependence(
    strength: float, noise: float, dims: tuple[int, int]
) -> None:
    numbers = [cells_of(dim) for dim in dims]
    count, error = resolution(strength, numbers, noise)
    assert count in RESOLUTIONS
    assert error >= 0
    assert resolution(strength, numbers, 2 * noise)[0] <= count
    assert resolution(strength / 2, numbers, noise)[0] <= count


def test_two_tied_amounts_are_not_drowned_in_cells() -> None:
    """24,000 rows and a noise of 51: in 73 x 74 cells rank correlation 0.91 came back as 0.45."""
    count, _ = resolution(1.5, [cells_of(73), cells_of(74)], 51 / 24_000)
    assert 8 <= count <= 16


def test_a_group_of_a_number_is_measured_value_by_value() -> None:
    """Else a group that begins inside a cell contradicts the number in half of the cell's rows."""
    number, group = cells_of(60), cells_of(8, is_ordered=False)
    assert resolution(1.9, [number, group], 78 / 20_000)[0] >= 32
    assert resolution(0.3, [number, group], 78 / 20_000)[0] <= 12


def test_dependence_is_never_said_to_be_more_than_it_can_be() -> None:
    codes = tied(independent_rows(8), (4, 5), by=1.0)
    earlier = readings_of(plan_for(30.0), codes)
    assert 1.0 < dependence(find_marginals(earlier), earlier[1])[4, 5] <= STRONGEST


# Where no row count is stated


@pytest.mark.parametrize("labels", ["auto", "none"])
def test_a_row_count_that_carries_no_pairs_lets_columns_be_measured_again(labels: str) -> None:
    plan = dp_anova(SCHEMA, Budget(0.05), labels=labels)
    codes = independent_rows(0)[:800]
    earlier = readings_of(plan, codes)
    assert not looks_at_pairs(earlier[1])
    found = marginals_of(chosen_by(plan, earlier))
    assert columns_of(found) == [(j,) for j in range(6 if labels == "auto" else 7)]


def test_columns_cut_anew_lie_inside_the_cells_by_label() -> None:
    plan = plan_for(1.0)
    earlier = readings_of(plan, independent_rows(0))
    found = marginals_of(chosen_by(plan, earlier))
    anew = [found.factors[subset[0]] for subset in found.subsets if len(subset) == 1]
    for cells, finer in zip(earlier[1].map(CELLS).factors, anew, strict=True):
        codes = np.arange(cells.num_codes)
        assert len(np.unique(np.stack([cells(codes), finer(codes)]), axis=1).T) == finer.num_known


def test_rows_in_a_small_part_of_a_wide_bar_are_found_by_cells_cut_anew() -> None:
    """A few rows in one of 5,000 codes: eight bars cannot show where, nor can cells that split one of them evenly."""
    schema = load_schema({"columns": [{"name": "year", "kind": "integer", "bounds": [0, 5000]}]})
    plan, errors = dp_anova(schema, Budget(0.1), values=False), []
    codes = np.full((3000, 1), 1999)
    for seed in range(6):
        readings = stages_of(plan, codes, seed=seed)
        for measurements in (readings, readings[:2]):
            found = find_marginals(measurements)
            cells, shares = found.cells[0], found.by_label[0][0]
            own = int(cells(np.array([1999]))[0])
            width = (cells(np.arange(5001)) == own).sum()
            errors.append((float(shares[own]), int(width)))
    shares, widths = np.array(errors).reshape(6, 2, 2).transpose(2, 1, 0)
    assert (shares[0] > 0.8).all()
    assert np.median(widths[0]) < 0.3 * np.median(widths[1])


def test_columns_measured_again_are_nearer_to_the_truth() -> None:
    plan, errors = dp_anova(SCHEMA, Budget(0.5)), []
    for seed in range(12):
        readings = stages_of(plan, independent_rows(seed)[:500], seed=seed)
        assert not looks_at_pairs(readings[1])
        found = [find_marginals(each).by_label[4:] for each in (readings, readings[:2])]
        errors.append([sum(float(np.abs(each - 0.25).sum()) for each in shares) for shares in found])
    again, once = np.mean(errors, axis=0)
    assert again < 0.97 * once


def test_a_row_count_that_carries_pairs_looks_at_them_without_being_stated() -> None:
    plan = dp_anova(SCHEMA, Budget(3.0))
    assert looks_at_pairs(readings_of(plan, independent_rows(0))[1])


def test_a_row_count_between_looks_at_some_of_the_pairs() -> None:
    plan = dp_anova(SCHEMA, Budget(1.0))
    found = {len(readings_of(plan, independent_rows(0)[:rows])[1].map(COARSE_PAIRS).subsets) for rows in (780, 880)}
    assert all(8 <= count < 15 for count in found)


# Whatever the noisy vectors


@pytest.mark.parametrize("labels", ["auto", "none", "balanced"])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0, 2**20, 2**36, 2**45]))
def test_any_vectors_at_all_choose_pairs_that_were_looked_at_at_the_planned_sensitivity(
    labels: str, seed: int, size: int
) -> None:
    check_any_vectors(plan_for(1.0, labels), seed, size)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0, 2**20, 2**36, 2**45]))
def test_any_vectors_at_all_settle_on_pairs_or_columns_at_the_planned_sensitivity(seed: int, size: int) -> None:
    plan = dp_anova(SCHEMA, Budget(1.0))
    assert [stage.rule for stage in plan.stages[:3]] == [None, "place-bars", "place-cells-by-rows"]
    check_any_vectors(plan, seed, size)


def check_any_vectors(plan: Plan, seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    earlier: list[Measurement] = []
    for index, noise in enumerate(plan.noise_stds[:-1]):
        embedding = plan.embeddings([measurement.vector for measurement in earlier])[index]
        vector = np.rint(rng.normal(0, 1, embedding.dim) * size).astype(np.int64)
        earlier.append(Measurement(embedding, vector, noise, plan.lattice))
    settled = chosen_by(plan, earlier)
    found = marginals_of(settled)
    looked_at, measured = columns_of(earlier[-1].map(COARSE_PAIRS)), columns_of(found)
    pairs = [columns for columns in measured if len(columns) == 2]
    assert [columns for columns in measured if len(columns) == 1] == columns_of(earlier[-1].map(CELLS))
    assert set(pairs) <= set(looked_at)
    assert looks_at_pairs(earlier[-1]) == bool(pairs)
    assert len(set(measured)) == len(measured), "no marginal is measured twice"
    assert list(found.subsets) == sorted(found.subsets), "the order tells nothing"
    for is_replaced in (False, True):
        before, after = (
            each.mechanism_sensitivities(plan.lattice, replace=is_replaced)
            for each in (plan.stages[-1].embedding, settled)
        )
        assert before == after
