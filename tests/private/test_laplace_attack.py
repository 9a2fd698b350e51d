"""Attacks on releases with Laplace noise: how far rows reach in L1, and what that tells of them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from receipts import unrecorded
from scipy.stats import beta

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.features import Block, Constant, Embedding
from understudy.methods import make_plan
from understudy.plan.plan import Plan, Stage
from understudy.private.noise import OpenDPNoise
from understudy.private.sums import Work
from understudy.schema import load_schema

Integers = npt.NDArray[np.int64]
Row = tuple[Any, ...]
SCHEMA = load_schema(
    {
        "name": "patients",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 120]},
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80], "nullable": True},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Kyoto", "Lima"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
KINDS = (pa.int64(), pa.float64(), pa.string(), pa.string())
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "dp-anova": ("dp-anova", {"pairs": True}),
    "dp-anova, no labels": ("dp-anova", {"pairs": True, "labels": "none"}),
    "dp-merf": ("dp-merf", {"num_features": 24}),
    "dp-merf, a scale that is paid for": ("dp-merf", {"num_features": 8, "length_scale": "private"}),
    "dp-merf, separate": ("dp-merf", {"num_features": 8, "separate_releases": True}),
    "dp-merf, balanced": ("dp-merf", {"num_features": 8, "labels": "balanced"}),
    "dp-hp": ("dp-hp", {"order": 8, "product_order": 3, "num_products": 3}),
    "dp-hp, triples": ("dp-hp", {"order": 4, "product_order": 2, "product_dim": 3, "num_products": 2}),
    "dp-hp, fresh": ("dp-hp", {"order": 4, "product_order": 2, "fresh_products": True, "num_products": 2}),
    "balog-subspace": ("balog-subspace", {"num_candidates": 30, "look": False}),
    "balog-subspace, a look": ("balog-subspace", {"num_candidates": 30, "look": True}),
    "balog-features": ("balog-features", {"num_candidates": 30, "num_features": 24}),
}
each_plan = pytest.mark.parametrize("name", PLANS)

ages = st.one_of(st.none(), st.integers(-(2**40), 2**40), st.integers(0, 120))
weights = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(10, 80))
cities = st.one_of(st.none(), st.sampled_from(["Bonn", "Kyoto", "Lima"]), st.text(max_size=3))
labels = st.one_of(st.none(), st.sampled_from(["no", "yes"]), st.text(max_size=3))
rows = st.tuples(ages, weights, cities, labels)


@cache
def plan_for(name: str, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Plan:
    method, options = PLANS[name]
    settings_ = {"num_rows": 2000, "neighbours": neighbours} | options
    return make_plan(SCHEMA, Budget(3.0, 0), method=method, options=settings_)


@cache
def settled(name: str, seed: int, neighbours: Neighbours) -> tuple[Embedding, ...]:
    """Stages as random noisy vectors settle them."""
    plan, rng = plan_for(name, neighbours), np.random.default_rng(seed)
    vectors: list[Integers] = []
    for _ in plan.stages:
        dim = plan.embeddings(vectors)[len(vectors)].dim
        counts = np.maximum(rng.normal(0, 1, dim), 0) ** 4 * 100
        vectors.append(np.rint(counts * plan.lattice).astype(np.int64))
    return plan.embeddings(vectors)[: len(plan.stages)]


def exact_sum(table: list[Row], plan: Plan, embedding: Embedding) -> Integers:
    columns = list(zip(*table, strict=True)) or [()] * len(KINDS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KINDS, strict=True)]
    made = pa.table(arrays, names=[column.name for column in SCHEMA.used])
    return Work(plan.layout, embedding, plan.lattice).sum(made.to_batches())[:-1]


def length(vector: Integers) -> int:
    """The L1 norm in Python integers: exact whatever the size."""
    return sum(abs(int(value)) for value in vector[vector != 0].tolist())


@each_plan
@settings(max_examples=30, deadline=None)
@given(table=st.lists(rows, max_size=4), one=rows, other=rows, seed=st.integers(0, 3))
def test_neighbours_are_no_further_apart_in_l1_than_stated(
    name: str, table: list[Row], one: Row, other: Row, seed: int
) -> None:
    """One row more, and one row for another, in every stage."""
    for neighbours in Neighbours:
        plan = plan_for(name, neighbours)
        for embedding, stated in zip(settled(name, seed, neighbours), plan.mechanism_sensitivities, strict=True):
            base, first, second = (exact_sum([*table, *more], plan, embedding) for more in ((), (one,), (other,)))
            moved = first - (base if neighbours is Neighbours.ADD_REMOVE else second)
            assert length(moved) <= sum(stated)
            for block in embedding.blocks:
                part = embedding.rows_of(block.name, first - base)
                assert length(part.ravel()) <= block.radius(plan.lattice)
                assert np.count_nonzero(part.any(axis=1)) <= 1, "a row touches one copy at most"


def people(count: int) -> list[Row]:
    rng = np.random.default_rng(0)
    return list(
        zip(
            rng.integers(0, 121, count).tolist(),
            rng.uniform(10, 80, count).tolist(),
            rng.choice(["Bonn", "Kyoto", "Lima"], count).tolist(),
            rng.choice(["no", "yes"], count).tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("name", ["dp-anova", "dp-anova, no labels"])
def test_rows_of_tables_reach_what_is_stated(name: str) -> None:
    """A bound that no row comes near would be paid for with noise."""
    for neighbours in Neighbours:
        plan, vectors = plan_for(name, neighbours), []
        for index, stated in enumerate(plan.mechanism_sensitivities):
            embedding = plan.embeddings(vectors)[index]
            vectors.append(exact_sum(people(2000), plan, embedding))
            alone = [exact_sum([row], plan, embedding) for row in people(40)]
            nothing = np.zeros(embedding.dim, dtype=np.int64)
            bases = [nothing] if neighbours is Neighbours.ADD_REMOVE else alone
            reached = max(length(one - base) for one in alone for base in bases)
            assert 0.999 * sum(stated) < reached <= sum(stated)


@pytest.mark.parametrize(("name", "least"), [("dp-merf", 0.8), ("dp-hp", 0.5)])
def test_rows_of_kernels_come_near_to_what_is_stated(name: str, least: float) -> None:
    plan = plan_for(name)
    (embedding,), (stated,) = settled(name, 0, Neighbours.ADD_REMOVE), plan.mechanism_sensitivities
    reached = max(length(exact_sum([row], plan, embedding)) for row in people(60))
    assert least * sum(stated) < reached <= sum(stated)


# Distinguishing two tables

EPSILON, TRIALS = 1.0, 100_000
FEW = 10_000
"""Trials of what has many numbers. Six deviations are 0.02, and the attack must stay that far below the bound."""
BOUND = math.e / (1 + math.e)


def count_plan(neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Plan:
    """One number, which a row moves by all that is allowed: the most that an attacker can ask."""
    embedding = Embedding((Block("count", Constant(), 1.0),))
    return Plan(
        schema=SCHEMA,
        method="count",
        budget=Budget(EPSILON, 0),
        neighbours=neighbours,
        stages=(Stage("count", embedding),),
        num_rows=3,
    )


def views(plan: Plan, table: list[Row], trials: int = TRIALS) -> Integers:
    """What an attacker may see of a table, many times over.  # (trials, dim)"""
    (stage,), (scale,) = plan.stages, plan.noise_scales
    total = exact_sum(table, plan, stage.embedding)
    noisy = OpenDPNoise().add_laplace_noise(np.tile(total, trials), scale, unrecorded())
    return noisy.reshape(trials, -1)


def successes(plan: Plan, one: list[Row], other: list[Row], factor: float = 1.0, trials: int = TRIALS) -> float:
    """How often the likeliest table is the right one; ``factor`` takes away some of the noise."""
    (stage,), (scale,) = plan.stages, plan.noise_scales
    first, second = (exact_sum(table, plan, stage.embedding) for table in (one, other))
    right = 0.0
    for table, own, its in ((one, first, 1), (other, second, -1)):
        seen = own + factor * (views(plan, table, trials) - own)
        # Log-likelihood ratio of the first table against the second.
        odds = (np.abs(seen - second) - np.abs(seen - first)).sum(axis=1) / scale
        right += float((np.sign(odds) == its).mean() + 0.5 * (odds == 0).mean())
    return right / 2


def test_the_best_attacker_is_right_as_often_as_theory_says_and_below_the_bound() -> None:
    """1 - e^(-epsilon / 2) / 2 of the time, below e^epsilon / (1 + e^epsilon)."""
    table = people(3)
    found = successes(count_plan(), table, [*table, people(4)[3]])
    deviation = math.sqrt(0.25 / (2 * TRIALS))
    assert abs(found - (1 - math.exp(-EPSILON / 2) / 2)) < 6 * deviation
    assert found < BOUND - 6 * deviation


def test_an_attacker_of_a_whole_method_stays_below_the_bound() -> None:
    plan = make_plan(SCHEMA, Budget(EPSILON, 0), method="dp-merf", options={"num_features": 2, "num_rows": 3})
    table = people(3)
    found = successes(plan, table, [*table, people(4)[3]], trials=FEW)
    assert 0.55 < found < BOUND - 6 * math.sqrt(0.25 / (2 * FEW))


def test_half_the_noise_takes_an_attacker_past_the_bound() -> None:
    table = people(3)
    assert successes(count_plan(), table, [*table, people(4)[3]], factor=0.5) > BOUND + 0.05


def epsilon_lower_bound(one: Integers, other: Integers, threshold: float) -> float:
    """What the chance of one event proves, at a risk of one in a million, by Clopper and Pearson."""
    likely, unlikely = (int((seen[:, 0] >= threshold).sum()) for seen in (other, one))
    risk = 5e-7
    low = beta.ppf(risk, likely, TRIALS - likely + 1)
    high = beta.ppf(1 - risk, unlikely + 1, TRIALS - unlikely)
    return math.log(low / high)


@pytest.mark.parametrize("factor", [1.0, 0.85])
def test_an_audit_proves_nearly_epsilon_and_more_only_if_noise_is_missing(factor: float) -> None:
    """Beyond the larger sum, one table is e^epsilon times as likely as the other, exactly."""
    plan, table = count_plan(), people(3)
    larger = [*table, people(4)[3]]
    (threshold,) = exact_sum(larger, plan, plan.stages[0].embedding).tolist()
    centers = (exact_sum(each, plan, plan.stages[0].embedding) for each in (table, larger))
    seen = [
        center + factor * (views(plan, each) - center) for each, center in zip((table, larger), centers, strict=True)
    ]
    found = epsilon_lower_bound(seen[0], seen[1], threshold)
    assert (0.9 < found <= EPSILON) if factor == 1 else found > EPSILON
