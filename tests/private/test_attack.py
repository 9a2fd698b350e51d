"""An attack on stages that settle one another: all that passes between them is noisy.

What a stage measures is settled by earlier noisy vectors. An attacker who knows those, and every
row but one, learns from a stage only how far that row moves its sum, which is what is paid for.
"""

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
from understudy.codec import encode
from understudy.features import Embedding
from understudy.methods import dp_anova
from understudy.plan.plan import Plan, plan_from_dict
from understudy.private import release as releasing
from understudy.private.noise import ExactNoise
from understudy.private.passes import sum_table
from understudy.private.release import release_table
from understudy.private.spending import Receipt
from understudy.private.sums import Work, check_row_independence
from understudy.schema import load_schema

Integers = npt.NDArray[np.int64]
Row = tuple[Any, ...]
SCHEMA = load_schema(
    {
        "name": "patients",
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 120]},
            {"name": "pay", "kind": "integer", "bounds": [0, 3000], "nullable": True},
            {"name": "bmi", "kind": "continuous", "bounds": [10, 80], "nullable": True},
            {"name": "city", "kind": "categorical", "categories": ["Bonn", "Kyoto", "Lima"]},
            {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
KINDS = (pa.int64(), pa.int64(), pa.float64(), pa.string(), pa.string())
LABELS = ["auto", "balanced", "none"]

# The encoder is total: any number, any text and nothing at all are cells.
ages = st.one_of(st.none(), st.integers(-(2**40), 2**40), st.integers(0, 120))
pays = st.one_of(st.none(), st.sampled_from([0, 0, 1200]), st.integers(0, 3000))
weights = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(10, 80))
cities = st.one_of(st.none(), st.sampled_from(["Bonn", "Kyoto", "Lima"]), st.text(max_size=3))
labels_ = st.one_of(st.none(), st.sampled_from(["no", "yes"]), st.text(max_size=3))
rows = st.tuples(ages, pays, weights, cities, labels_)
tables = st.lists(rows, max_size=6)


@cache
def plan_for(labels: Any, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Plan:
    return dp_anova(SCHEMA, Budget(3.0), labels=labels, pairs=True, num_rows=2000, neighbours=neighbours)


def table_of(table: list[Row]) -> pa.Table:
    columns = list(zip(*table, strict=True)) or [()] * len(KINDS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, KINDS, strict=True)]
    return pa.table(arrays, names=[column.name for column in SCHEMA.used])


def exact_sum(table: list[Row], plan: Plan, embedding: Embedding) -> Integers:
    batches = table_of(table).to_batches()
    return Work(plan.layout, embedding, plan.lattice).sum(batches)[:-1]


def random_past(plan: Plan, seed: int, size: float) -> list[Integers]:
    """Noisy vectors that a release might have: any integers, of lengths that the rules settle."""
    rng = np.random.default_rng(seed)
    vectors: list[Integers] = []
    for index in range(len(plan.stages)):
        embedding = plan.embeddings(vectors)[index]
        counts = np.maximum(rng.normal(0, 1, embedding.dim), 0) ** 4 * size
        noise = rng.normal(0, plan.noise_stds[index], embedding.dim)
        vectors.append(np.rint(counts * plan.lattice + noise).astype(np.int64))
    return vectors


@cache
def settled(
    labels: Any, seed: int, size: float, neighbours: Neighbours = Neighbours.ADD_REMOVE
) -> tuple[Embedding, ...]:
    plan = plan_for(labels, neighbours)
    return plan.embeddings(random_past(plan, seed, size)[:-1])


def squared(vector: Integers) -> int:
    """In Python integers: exact whatever the size."""
    return sum(int(value) ** 2 for value in vector[vector != 0].tolist())


each_labels = pytest.mark.parametrize("labels", LABELS)
seeds, sizes = st.integers(0, 5), st.sampled_from([0.0, 3.0, 1000.0])


@each_labels
@settings(max_examples=60, deadline=None)
@given(table=tables, one=rows, other=rows, seed=seeds, size=sizes)
def test_neighbours_with_the_same_noisy_past_are_no_further_apart_than_stated(
    labels: str, table: list[Row], one: Row, other: Row, seed: int, size: float
) -> None:
    """One row more, and one row for another, in every stage: squares in exact integers."""
    for neighbours in Neighbours:
        plan = plan_for(labels, neighbours)
        stated = plan.mechanism_sensitivities
        past = settled(labels, seed, size, neighbours)
        for embedding, squares in zip(past, stated, strict=True):
            base, first, second = (exact_sum([*table, *more], plan, embedding) for more in ((), (one,), (other,)))
            moved = first - (base if neighbours is Neighbours.ADD_REMOVE else second)
            assert squared(moved) <= sum(squares)
            for block in embedding.blocks:
                part = embedding.rows_of(block.name, first - base)
                assert squared(part.ravel()) <= block.radius(plan.lattice) ** 2
                assert np.count_nonzero(part.any(axis=1)) <= 1, "a row touches one copy at most"
                assert (part >= 0).all()


@each_labels
def test_the_worst_rows_reach_what_is_stated_in_settled_stages(labels: str) -> None:
    """A bound that no row comes near would be paid for with noise."""
    table = independent_rows(2000)
    for neighbours in Neighbours:
        plan = plan_for(labels, neighbours)
        vectors: list[Integers] = []
        for index, squares in enumerate(plan.mechanism_sensitivities):
            embedding = plan.embeddings(vectors)[index]
            vectors.append(exact_sum(table, plan, embedding))
            alone = [exact_sum([row], plan, embedding) for row in table[:40]]
            nothing = np.zeros(embedding.dim, dtype=np.int64)
            bases = [nothing] if neighbours is Neighbours.ADD_REMOVE else alone
            reached = max(squared(one - base) for one in alone for base in bases)
            assert 0.999 * sum(squares) < reached <= sum(squares)


def independent_rows(count: int) -> list[Row]:
    rng = np.random.default_rng(0)
    return [
        (int(age), int(pay), float(bmi), str(city), str(ill))
        for age, pay, bmi, city, ill in zip(
            rng.integers(0, 121, count),
            rng.integers(0, 3001, count),
            rng.uniform(10, 80, count),
            rng.choice(["Bonn", "Kyoto", "Lima"], count),
            rng.choice(["no", "yes"], count),
            strict=True,
        )
    ]


@each_labels
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0.0, 1.0, 50.0, 1e4, 1e6]))
def test_no_noisy_past_changes_the_sensitivity_for_either_notion_of_neighbours(
    labels: str, seed: int, size: float
) -> None:
    plan = plan_for(labels)
    vectors = random_past(plan, seed, size)
    for stage, embedding in zip(plan.stages, plan.embeddings(vectors), strict=True):
        for replace in (False, True):
            assert embedding.mechanism_sensitivities(
                plan.lattice, replace=replace
            ) == stage.embedding.mechanism_sensitivities(plan.lattice, replace=replace)


@each_labels
def test_the_same_noisy_past_settles_the_same_to_the_last_bit(labels: str) -> None:
    """Also for a plan that was read back from a file, and for vectors elsewhere in memory."""
    plan = plan_for(labels)
    vectors = random_past(plan, 3, 100.0)
    expected = [encode(embedding) for embedding in plan.embeddings(vectors)]
    again = plan_from_dict(plan.to_dict())
    for shift in range(1, 5):
        moved = []
        for vector in vectors:
            room = np.empty(len(vector) + shift, dtype=np.int64)
            room[shift:] = vector
            moved.append(room[shift:])
        assert [encode(embedding) for embedding in again.embeddings(moved)] == expected
    assert not any(vector.flags.owndata for vector in moved)


@each_labels
@settings(max_examples=8, deadline=None)
@given(table=tables, one=rows, other=rows, seed=seeds, size=sizes)
def test_a_table_reaches_later_stages_through_the_noisy_vectors_alone(
    labels: str, table: list[Row], one: Row, other: Row, seed: int, size: float
) -> None:
    """Neighbours whose noisy vectors happen to agree are then measured in the very same way.

    The noise source answers with a script, whatever the sums; what is measured is watched.
    """
    plan = plan_for(labels)
    past = random_past(plan, seed, size)
    watched = [watch(table_of([*table, *more]), plan, past) for more in ((), (one,), (one, other), (other,))]
    expected = [encode(embedding) for embedding in plan.embeddings(past)]
    for embeddings, noises in watched:
        assert [encode(embedding) for embedding in embeddings] == expected
        assert noises == list(plan.noise_stds)


def watch(table: pa.Table, plan: Plan, past: list[Integers]) -> tuple[list[Embedding], list[int]]:
    """The embeddings that a release sums, and its noise, if its noisy vectors are these."""
    embeddings: list[Embedding] = []
    noises: list[int] = []

    def watched_sum(data: Any, work: Work, **options: Any) -> Any:
        embeddings.append(work.embedding)
        return sum_table(data, work, **options)

    class Scripted(ExactNoise):
        def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
            noises.append(noise_std)
            assert sums.shape == past[len(noises) - 1].shape
            return past[len(noises) - 1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releasing, "sum_table", watched_sum)
        release = release_table(table, plan, noise=Scripted())
    assert list(release.embeddings) == embeddings
    return embeddings, noises


def test_every_stage_is_read_anew_and_meets_noise_of_its_own() -> None:
    plan = plan_for("auto")
    table = [(30, 0, 20.0, "Bonn", "yes"), (60, 1200, None, "Lima", "no")] * 50
    by_stage: list[list[npt.NDArray[np.float64]]] = [[] for _ in plan.stages]
    for _ in range(2):  # a late stage has few numbers, and how many depends on the noise before it
        release = release_table(table_of(table), plan)
        for drawn, embedding, vector, noise in zip(
            by_stage, release.embeddings, release.vectors, plan.noise_stds, strict=True
        ):
            drawn.append((vector - exact_sum(table, plan, embedding)) / noise)
    for drawn in by_stage:
        draws = np.concatenate(drawn)
        # Six deviations of each: once in a hundred million runs outside, however many draws.
        assert abs(np.sqrt((draws**2).mean()) - 1) < 6 / np.sqrt(2 * len(draws))
        assert abs(draws.mean()) < 6 / np.sqrt(len(draws))


def test_settled_tables_pass_the_probe_for_purity() -> None:
    for embedding in settled("auto", 2, 1000.0):
        check_row_independence(plan_for("auto").layout, embedding, plan_for("auto").lattice)
