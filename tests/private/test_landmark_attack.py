"""An attack on weighted databases: whatever a look has seen, one row moves a sum as far as is paid for."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.features import Landmarks
from understudy.methods import balog_features, balog_subspace
from understudy.plan.plan import Plan
from understudy.private.sums import Work, check_row_independence
from understudy.schema import load_schema

Integers = npt.NDArray[np.int64]
Row = tuple[Any, ...]
SCHEMA = load_schema(
    {
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 120], "nullable": True},
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80]},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Kyoto", "Lima"]},
        ]
    }
)
KINDS = (pa.int64(), pa.float64(), pa.string())
rows = st.tuples(
    st.one_of(st.none(), st.integers(-(2**40), 2**40), st.integers(0, 120)),
    st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(10, 80)),
    st.one_of(st.none(), st.sampled_from(["Bonn", "Kyoto", "Lima"]), st.text(max_size=3)),
)


@cache
def plan_of(kind: str, neighbours: Neighbours) -> Plan:
    shared: dict[str, Any] = {"neighbours": neighbours, "num_rows": 2000, "num_candidates": 80}
    if kind == "features":
        return balog_features(SCHEMA, Budget(1.0), num_features=40, **shared)
    kernel = "laplace" if kind == "laplace" else "gaussian"
    return balog_subspace(SCHEMA, Budget(1.0), look=kind == "look", kernel=kernel, **shared)


def exact_sums(table: list[Row], plan: Plan, past: list[Integers]) -> list[Integers]:
    columns = [list(column) for column in zip(*table, strict=True)] or [[]] * len(KINDS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KINDS, strict=True)]
    batches = pa.table(arrays, names=[c.name for c in SCHEMA.used]).to_batches()
    return [
        Work(plan.layout, embedding, plan.lattice).sum(batches)[:-1]
        for embedding in plan.embeddings(past)[: len(plan.stages)]
    ]


def random_past(plan: Plan, seed: int) -> list[Integers]:
    """A noisy first vector that a release might have."""
    rng = np.random.default_rng(seed)
    dim = plan.stages[0].embedding.dim
    seen = np.maximum(rng.normal(0, 1, dim), 0) ** 4 * 1000
    return [np.rint(seen * plan.lattice).astype(np.int64)][: len(plan.stages) - 1]


def squared(vector: Integers) -> int:
    return sum(int(value) ** 2 for value in vector.tolist())


KINDS_OF_PLAN = ("look", "gaussian", "laplace", "features")
each_plan = pytest.mark.parametrize("kind", KINDS_OF_PLAN)
each_notion = pytest.mark.parametrize("neighbours", Neighbours)


@each_plan
@each_notion
@settings(max_examples=25, deadline=None)
@given(table=st.lists(rows, max_size=4), row=rows, other=rows, seed=st.integers(0, 3))
def test_neighbours_with_the_same_noisy_past_are_no_further_apart_than_stated(
    kind: str, neighbours: Neighbours, table: list[Row], row: Row, other: Row, seed: int
) -> None:
    plan = plan_of(kind, neighbours)
    past = random_past(plan, seed)
    second = [*table, other] if neighbours is Neighbours.REPLACE_ONE else table
    one, two = exact_sums([*table, row], plan, past), exact_sums(second, plan, past)
    for first, last, stated in zip(one, two, plan.mechanism_sensitivities, strict=True):
        assert squared(first - last) <= sum(stated)


@pytest.mark.parametrize("seed", range(3))
def test_points_that_a_look_has_chosen_pass_the_probe_for_purity(seed: int) -> None:
    plan = plan_of("look", Neighbours.ADD_REMOVE)
    settled = plan.embeddings(random_past(plan, seed))[1]
    assert isinstance(settled.blocks[0].map, Landmarks)
    check_row_independence(plan.layout, settled, plan.lattice)


def test_other_pasts_choose_other_points_at_the_same_price() -> None:
    plan = plan_of("look", Neighbours.ADD_REMOVE)
    chosen = [plan.embeddings(random_past(plan, seed))[1] for seed in range(3)]
    assert len({embedding.blocks[0].map.points for embedding in chosen}) == 3
    for replaced in (False, True):
        stated = {embedding.sensitivity(plan.lattice, replace=replaced) for embedding in chosen}
        assert len(stated) == 1


def test_a_row_at_a_public_point_reaches_nearly_all_that_is_paid_for() -> None:
    """So the noise is not larger than it need be: the bound is met by a row that may be there."""
    plan = plan_of("gaussian", Neighbours.ADD_REMOVE)
    ((moved,), (stated,)) = exact_sums([(60, 45.0, "Lima")], plan, []), plan.mechanism_sensitivities
    assert squared(moved) > 0.9 * sum(stated)
