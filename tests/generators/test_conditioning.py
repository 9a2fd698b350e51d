"""A mixture under a condition has exactly the conditional law: Bayes' rule by brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from understudy import load_schema
from understudy.errors import UsageError
from understudy.generators.conditioning import Condition
from understudy.generators.mixture import ColumnGrid, Components, Mixture, Tie, restrict, spans_of
from understudy.schema import NULL
from understudy.schema.values import CodeSet, code_set

Floats = npt.NDArray[np.float64]
GRIDS = (
    ColumnGrid(np.array([0, 1, 5]), np.array([0, 4, 6]), has_null=True),
    ColumnGrid(np.array([0, 1, 2]), np.array([0, 1, 2]), has_null=False),
    ColumnGrid(np.array([0, 1]), np.array([0, 1]), has_null=True),
    ColumnGrid(
        np.array([0, 1, 3, 4]),
        np.array([0, 2, 3, 6]),
        has_null=True,
        cells=np.array([0, 1, 0, 0]),
        shares=np.array([0.3, 1.0, 0.0, 0.7]),
    ),
)
CODES = [[NULL, *range(7)], [0, 1, 2], [NULL, 0, 1], [NULL, *range(7)]]
TABLE = list(product(*CODES))
NUM_COMPONENTS = 4


def random_components(seed: int = 0) -> Components:
    """Components of any weights; some cells have no probability, and sums are not quite 1."""
    rng = np.random.default_rng(seed)
    pieces = [rng.dirichlet(np.full(grid.width, 0.4), NUM_COMPONENTS) for grid in GRIDS]
    probabilities = np.concatenate(pieces, axis=1) * 1.01
    probabilities[rng.random(probabilities.shape) < 0.1] = 0
    probabilities[:, [0, 4, 7, 10]] += 1e-3
    return Components(rng.dirichlet(np.ones(NUM_COMPONENTS)), probabilities, GRIDS)


def joint(components: Components) -> Floats:
    """The probability of every possible row, by the definition of a mixture of products."""
    found = np.zeros(len(TABLE))
    spans = spans_of(components.grids)
    for weight, row in zip(components.weights, components.probabilities, strict=True):
        whole = np.array([weight])
        for grid, (start, stop), codes in zip(components.grids, spans, CODES, strict=True):
            cells = row[start:stop] / row[start:stop].sum()
            whole = np.outer(whole, [code_chance(grid, cells, code) for code in codes]).ravel()
        found += whole
    return found


def code_chance(grid: ColumnGrid, cells: Floats, code: int) -> float:
    if code == NULL:
        return float(cells[-1]) if grid.has_null else 0.0
    inside = (grid.lows <= code) & (code <= grid.highs)
    known = cells[grid.cell_of_piece] * grid.share_of_piece
    return float((known * inside / (grid.highs - grid.lows + 1)).sum())


sets = st.builds(
    lambda pairs, null: code_set(pairs, has_null=null),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=3),
    st.booleans(),
)


@given(seed=st.integers(0, 50), allowed=st.dictionaries(st.integers(0, 3), sets, max_size=3))
@settings(deadline=None, max_examples=150)
def test_a_restricted_mixture_is_the_conditional_law(seed: int, allowed: dict[int, CodeSet]):
    components, condition = random_components(seed), Condition(allowed)
    wanted = joint(components) * condition.holds(np.asarray(TABLE))
    found = restrict(components, condition)
    if wanted.sum() == 0:
        assert found is None
        return
    assert found is not None
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights > 0).all()
    np.testing.assert_allclose(joint(found), wanted / wanted.sum(), atol=1e-12)


def test_rows_drawn_under_a_condition_follow_the_conditional_law():
    components = random_components(3)
    condition = Condition({0: CodeSet(((2, 5),), has_null=True), 1: CodeSet(((1, 2),))})
    wanted = joint(components) * condition.holds(np.asarray(TABLE))
    restricted = restrict(components, condition)
    assert restricted is not None
    codes = restricted.codes(100_000, np.random.default_rng(0))
    assert condition.holds(codes).all()
    place = {row: i for i, row in enumerate(TABLE)}
    seen = np.bincount([place[tuple(row)] for row in codes.tolist()], minlength=len(TABLE))
    likely = wanted > 0
    assert not seen[~likely].any()
    assert chisquare(seen[likely], wanted[likely] / wanted.sum() * len(codes)).pvalue > 1e-3


def test_a_condition_of_null_alone_gives_nulls_alone():
    restricted = restrict(random_components(), Condition({0: CodeSet((), has_null=True)}))
    assert restricted is not None
    assert (restricted.codes(50, np.random.default_rng(0))[:, 0] == NULL).all()


def test_far_less_likely_conditions_than_floats_can_hold_are_met():
    count = 60
    grid = ColumnGrid(np.array([0]), np.array([2**40]), has_null=False)
    components = Components(np.array([0.25, 0.75]), np.ones((2, count)), (grid,) * count)
    condition = Condition({place: CodeSet(((7, 7),)) for place in range(count)})
    restricted = restrict(components, condition)
    assert restricted is not None
    np.testing.assert_allclose(restricted.weights, [0.25, 0.75])
    assert (restricted.codes(5, np.random.default_rng(0)) == 7).all()


# Ties: columns that are drawn given others.


def tied_components(seed: int = 0) -> Components:
    """The same with a tree 1 -> 0 -> 3: a few pairs of cells never go together."""
    rng = np.random.default_rng(seed)
    ratios = [rng.random((GRIDS[parent].width, GRIDS[child].width)) for parent, child in ((1, 0), (0, 3))]
    for each in ratios:
        each[rng.random(each.shape) < 0.2] = 0
        each[:, 0] += 0.01
    ties = tuple(Tie(parent, child, own) for (parent, child), own in zip(((1, 0), (0, 3)), ratios, strict=True))
    untied = random_components(seed)
    return Components(untied.weights, untied.probabilities, GRIDS, ties)


def tied_joint(components: Components) -> Floats:
    """The probability of every possible row: roots as they are, children given their parents' cells."""
    spans, found = spans_of(components.grids), np.zeros(len(TABLE))
    parent = {tie.child: tie for tie in components.ties}
    widths = [grid.width for grid in components.grids]
    for weight, row in zip(components.weights, components.probabilities, strict=True):
        own = [row[start:stop] for start, stop in spans]
        for cells in product(*(range(width) for width in widths)):
            chance = weight
            for place, cell in enumerate(cells):
                law = own[place] * (parent[place].ratios[cells[parent[place].parent]] if place in parent else 1.0)
                chance *= law[cell] / law.sum() if law.sum() > 0 else 0.0
            if chance > 0:
                points = [np.eye(width)[cell] for width, cell in zip(widths, cells, strict=True)]
                codes = [
                    [code_chance(grid, point, code) for code in each]
                    for grid, point, each in zip(components.grids, points, CODES, strict=True)
                ]
                whole = np.array([chance])
                for each in codes:
                    whole = np.outer(whole, each).ravel()
                found += whole
    return found


@given(seed=st.integers(0, 50), allowed=st.dictionaries(st.integers(0, 3), sets, max_size=3))
@settings(deadline=None, max_examples=12)
def test_a_restricted_mixture_with_ties_is_the_conditional_law(seed: int, allowed: dict[int, CodeSet]):
    components, condition = tied_components(seed), Condition(allowed)
    wanted = tied_joint(components) * condition.holds(np.asarray(TABLE))
    found = restrict(components, condition)
    if wanted.sum() == 0:
        assert found is None
        return
    assert found is not None
    np.testing.assert_allclose(tied_joint(found), wanted / wanted.sum(), atol=1e-10)


def test_rows_drawn_along_ties_follow_their_law():
    components = tied_components(3)
    wanted, codes = tied_joint(components), components.codes(100_000, np.random.default_rng(0))
    place = {row: i for i, row in enumerate(TABLE)}
    seen = np.bincount([place[tuple(row)] for row in codes.tolist()], minlength=len(TABLE))
    likely = wanted > 1e-12
    assert not seen[~likely].any()
    # Rows are drawn evenly, so that counts are nearer to their expectations than independent draws would be.
    assert chisquare(seen[likely], wanted[likely] / wanted[likely].sum() * len(codes)).pvalue > 1e-3


SQUARE = np.ones((3, 3))


@pytest.mark.parametrize(
    "ties",
    [
        [Tie(1, 0, SQUARE), Tie(0, 1, SQUARE)],
        [Tie(1, 2, SQUARE), Tie(0, 1, SQUARE)],
        [Tie(0, 1, SQUARE), Tie(2, 1, SQUARE)],
        [Tie(0, 0, SQUARE)],
        [Tie(0, 3, SQUARE)],
        [Tie(3, 0, SQUARE)],
        [Tie(0, -1, SQUARE)],
        [Tie(0, 1, np.ones((3, 1)))],
        [Tie(0, 1, np.ones(3))],
        [Tie(0, 1, SQUARE * np.nan)],
        [Tie(0, 1, -SQUARE)],
    ],
    ids=[
        "circle",
        "child first",
        "twice",
        "itself",
        "no child",
        "no parent",
        "negative",
        "narrow",
        "flat",
        "nan",
        "minus",
    ],
)
def test_ties_that_are_no_forest_in_order_are_refused(ties: list[Tie]):
    """Drawn in another order, a parent's cells were whatever memory held before: rows of a private table, say."""
    values = np.arange(3)
    grids = (ColumnGrid(values, values, has_null=False),) * 3
    with pytest.raises(ValueError, match=r"ties|ratios"):
        Components(np.ones(1), np.full((1, 9), 1 / 3), grids, tuple(ties))


# The mixture with labels and rules.

COLUMNS = [
    {"name": "age", "kind": "integer", "bounds": [0, 9]},
    {"name": "ward", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": True},
    {"name": "ill", "kind": "binary", "role": "label", "categories": ["no", "yes"]},
]


def small_mixture(*rules: object) -> Mixture:
    schema = load_schema({"columns": COLUMNS, "rules": list(rules)})
    rng = np.random.default_rng(1)
    pieces = [rng.dirichlet(np.full(width, 0.5), size=5) for width in (10, 4)]
    labels = np.repeat(np.eye(2), (2, 3), axis=0)
    return Mixture(schema, np.concatenate([*pieces, labels], axis=1), (2, 3), 50, (0.9, 0.1))


def test_the_components_of_a_mixture_have_their_labels_shares():
    np.testing.assert_allclose(small_mixture().components.weights, [0.45, 0.45, 0.1 / 3, 0.1 / 3, 0.1 / 3])


def test_shares_of_labels_under_a_condition_follow_bayes_rule():
    mixture = small_mixture()
    rows = mixture.sample(60_000, given={"age": (2, 4), "ward": ["a", None]}).to_pandas()
    assert rows["age"].between(2, 4).all()
    assert (rows["ward"].isna() | (rows["ward"] == "a")).all()
    cells = mixture.probabilities
    chance = cells[:, 2:5].sum(1) * cells[:, [10, 13]].sum(1) * mixture.components.weights
    exact = chance[2:].sum() / chance.sum()
    assert (rows["ill"] == "yes").mean() == pytest.approx(exact, abs=0.01)


def test_rules_about_single_columns_are_met_by_the_exact_conditional_law():
    ruled = small_mixture("age >= 7", {"forbid": {"ward": ["b", None]}})
    plain = small_mixture().sample(40_000, given={"age": (7, 9), "ward": ["a", "c"]}, seed=2)
    assert ruled.sample(40_000, seed=2).equals(plain)


def test_rules_that_the_model_gives_no_probability_are_obeyed_all_the_same():
    mixture = small_mixture("age >= 7")
    probabilities = mixture.probabilities.copy()
    probabilities[:, 7:10] = 0
    never = Mixture(mixture.schema, probabilities, (2, 3), 50, (0.9, 0.1))
    assert (never.sample(30).to_pandas()["age"] >= 7).all()


def test_a_condition_that_the_model_gives_no_probability_is_refused():
    mixture = small_mixture()
    probabilities = mixture.probabilities.copy()
    probabilities[:, 7:10] = 0
    never = Mixture(mixture.schema, probabilities, (2, 3), 50, (0.9, 0.1))
    with pytest.raises(UsageError, match="no row that this generator draws is such"):
        never.sample(30, given={"age": (7, None)})
