from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.errors import InputError, UsageError
from understudy.features import Block, Cells, Constant, Embedding, Grid, Hermite, Norm, Tables
from understudy.methods import dp_anova, dp_merf
from understudy.plan.plan import LATTICE, Plan, Stage, plan_from_dict
from understudy.rules import RULES
from understudy.rules.measurement import Measurement
from understudy.schema import Schema, load_schema

DOCUMENT: dict[str, Any] = {
    "name": "tiny",
    "columns": [
        {"name": "x", "kind": "continuous", "bounds": [0, 1]},
        {"name": "city", "kind": "categorical", "categories": ["a", "b"], "nullable": True},
        {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
    ],
}
SCHEMA = load_schema(DOCUMENT)


def count_of(name: str) -> Embedding:
    return Embedding((Block(name, Constant(), 1.0),))


COUNT = count_of("count")


def plan_of(*stages: Stage, schema: Schema = SCHEMA, **options: Any) -> Plan:
    settings = {"budget": Budget(1.0), "neighbours": Neighbours.ADD_REMOVE} | options
    return Plan(schema=schema, method="hand-made", stages=stages, **settings)


deltas = st.sampled_from([1e-5, 0.0])


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.01, 20),
    delta=deltas,
    neighbours=st.sampled_from(list(Neighbours)),
    length_scale=st.sampled_from([None, "private", 0.2]),
    labels=st.sampled_from(["auto", "none", "balanced"]),
    separate=st.booleans(),
)
def test_no_plan_spends_more_than_its_budget(
    epsilon: float, delta: float, neighbours: Neighbours, length_scale: Any, labels: Any, separate: bool
) -> None:
    plan = dp_merf(
        SCHEMA,
        Budget(epsilon, delta),
        neighbours=neighbours,
        num_rows=100,
        labels=labels,
        length_scale=length_scale,
        num_features=4,
        separate_releases=separate,
    )
    assert plan.epsilon() <= epsilon
    assert sum(plan.cost()) <= plan.mechanism.total(plan.budget)
    assert plan.epsilon() == pytest.approx(epsilon, rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.01, 20),
    delta=deltas,
    neighbours=st.sampled_from(list(Neighbours)),
    labels=st.sampled_from(["auto", "none", "balanced"]),
    pairs=st.sampled_from([None, True, False]),
    values=st.booleans(),
)
def test_no_plan_of_tables_spends_more_than_its_budget(
    epsilon: float, delta: float, neighbours: Neighbours, labels: Any, pairs: bool | None, values: bool
) -> None:
    plan = dp_anova(
        SCHEMA, Budget(epsilon, delta), neighbours=neighbours, num_rows=100, labels=labels, pairs=pairs, values=values
    )
    assert len(plan.stages) == 3
    assert sum(plan.cost()) <= plan.mechanism.total(plan.budget)
    assert plan.epsilon() <= epsilon
    assert plan.epsilon() == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_a_plan_that_measures_the_row_count_first_spends_its_budget_and_no_more(delta: float, pairs: bool) -> None:
    plan = dp_anova(replace(SCHEMA, rows=None), Budget(0.7, delta), pairs=pairs)
    assert plan.stages[0].name == "rows"
    assert len(plan.stages) == 4
    assert sum(plan.cost()) <= plan.mechanism.total(plan.budget)
    assert plan.epsilon() == pytest.approx(0.7, rel=1e-4)


def test_a_rule_without_the_blocks_that_it_looks_at_is_refused_before_anything_is_charged() -> None:
    plan = dp_anova(replace(SCHEMA, rows=None), Budget(1.0), pairs=True)
    for stage in plan.stages[1:]:
        for block in stage.embedding.blocks:
            others = tuple(each for each in stage.embedding.blocks if each is not block)
            if block.name not in {"columns", "cells", "marginals"} or not others:
                continue
            cut = replace(stage, embedding=replace(stage.embedding, blocks=others))
            with pytest.raises(ValueError, match="a rule has the blocks"):
                replace(plan, stages=tuple(cut if each is stage else each for each in plan.stages))
    with pytest.raises(ValueError, match="a rule has"):
        replace(plan, stages=plan.stages[1:])


def test_replacing_a_row_costs_more_than_adding_one() -> None:
    plan = dp_merf(SCHEMA, Budget(1.0), num_features=4)
    assert plan.epsilon(Neighbours.REPLACE_ONE) > plan.epsilon(Neighbours.ADD_REMOVE)


def test_a_plan_comes_back_from_its_canonical_form() -> None:
    for budget in (Budget(1.0), Budget(1.0, 0)):
        assert_comes_back(dp_merf(SCHEMA, budget, num_features=4, length_scale="private"))
        assert_comes_back(dp_anova(SCHEMA, budget, pairs=True))


def assert_comes_back(plan: Plan) -> None:
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again.fingerprint == plan.fingerprint
    assert again.noise_stds == plan.noise_stds
    assert [stage.embedding for stage in again.stages] == [s.embedding for s in plan.stages]


@pytest.mark.parametrize("shares", [(0.6, 0.6), (1.5,), (0.0, 1.0), (-0.5, 1.0), (float("nan"),)])
def test_shares_that_add_up_to_more_than_the_budget_are_refused(shares: tuple[float, ...]) -> None:
    stages = [Stage(f"stage {i}", count_of(f"count {i}"), share) for i, share in enumerate(shares)]
    with pytest.raises(ValueError, match="shares"):
        plan_of(*stages)


def test_stages_of_the_same_name_are_refused_since_one_file_would_hide_the_other() -> None:
    with pytest.raises(ValueError, match="names"):
        plan_of(Stage("twice", COUNT, 0.5), Stage("twice", count_of("another"), 0.5))


def test_blocks_of_two_stages_with_one_name_are_refused_since_one_would_hide_the_other() -> None:
    with pytest.raises(ValueError, match="names"):
        plan_of(Stage("one", COUNT, 0.5), Stage("two", COUNT, 0.5))
    assert plan_of(Stage("one", COUNT, 0.5), Stage("two", count_of("another"), 0.5)).stages


@pytest.mark.parametrize("label", [(0, 2), (1, 6), (4, 5), (0, 1)])
def test_a_label_that_is_not_one_choice_is_refused_since_a_row_could_count_twice(label: tuple[int, int]) -> None:
    embedding = Embedding((Block("count", Constant(), 1.0, per_label=True),), label=label)
    with pytest.raises(ValueError, match="one choice"):
        plan_of(Stage("embedding", embedding))


@pytest.mark.parametrize(("rule", "position"), [("scale-by-histograms", 0), ("no such rule", 1)])
def test_a_rule_without_an_earlier_stage_or_a_name_is_refused(rule: str, position: int) -> None:
    stages = [Stage("a", COUNT, 0.5), Stage("b", count_of("another"), 0.5)]
    stages[position] = dataclasses.replace(stages[position], rule=rule)
    with pytest.raises(ValueError, match="rule"):
        plan_of(*stages)


def plan_per(unit: str, max_rows: int, **options: Any) -> Plan:
    schema = load_schema(DOCUMENT | {"privacy": {"unit": unit, "max_rows": max_rows}})
    return plan_of(Stage("a", COUNT), schema=schema, **options)


def test_several_rows_of_nobody_in_particular_are_refused() -> None:
    with pytest.raises(InputError, match="whose rows belong together"):
        plan_per("row", 3)


def test_the_column_of_ids_is_never_released() -> None:
    used = load_schema(DOCUMENT).used[0].name
    with pytest.raises(InputError, match="it cannot be released"):
        plan_per(used, 3)


def test_people_with_many_rows_have_no_public_row_count() -> None:
    with pytest.raises(UsageError, match="replace-one tells the row count"):
        plan_per("person", 2, neighbours=Neighbours.REPLACE_ONE, num_rows=10)


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_as_many_rows_as_count_move_a_sum_and_noise_grows_with_them(max_rows: int) -> None:
    one, many = plan_of(Stage("a", COUNT)), plan_per("person", max_rows)
    (alone,), (together,) = one.mechanism_sensitivities[0], many.mechanism_sensitivities[0]
    assert together == max_rows**2 * alone
    assert many.noise_stds[0] / one.noise_stds[0] == pytest.approx(max_rows, rel=1e-6)
    assert many.epsilon() == pytest.approx(one.epsilon(), rel=1e-6)
    swapped = sum(many.cost(Neighbours.REPLACE_ONE))
    assert swapped == 4 * sum(many.cost())


def test_pure_noise_grows_with_the_rows_that_count() -> None:
    pure = {"budget": Budget(1.0, 0.0)}
    one, many = plan_of(Stage("a", COUNT), **pure), plan_per("person", 5, **pure)
    assert sum(many.mechanism_sensitivities[0]) == 5 * sum(one.mechanism_sensitivities[0])
    assert sum(many.cost()) <= 1


def test_replace_one_needs_a_public_row_count() -> None:
    with pytest.raises(UsageError, match="public row count"):
        plan_of(Stage("a", COUNT), neighbours=Neighbours.REPLACE_ONE)


def test_a_table_whose_sums_no_row_can_move_costs_nothing() -> None:
    plan = plan_of(Stage("a", COUNT), neighbours=Neighbours.REPLACE_ONE, num_rows=10)
    assert plan.epsilon() == 0.0


@pytest.mark.parametrize(
    "damage",
    [
        {"epsilon": -1.0},
        {"epsilon": "1"},
        {"delta": None},
        {"neighbours": "friends"},
        {"lattice_bits": 20},
        {"stages": None},
        {"stages": [{}]},
        {"settings": 3},
        {"schema": {}},
    ],
    ids=str,
)
def test_a_damaged_plan_is_refused_as_input(damage: dict[str, Any]) -> None:
    whole = plan_of(Stage("a", Embedding((Block("grid", Grid((0,), 4), 1.0),)))).to_dict()
    with pytest.raises(InputError):
        plan_from_dict(whole | damage)


@pytest.mark.parametrize("name", ["replace-one", Neighbours.REPLACE_ONE])
def test_neighbours_by_name_or_by_value_give_the_same_noise(name: str) -> None:
    schema = load_schema({"columns": [{"name": "x", "kind": "continuous", "bounds": [0, 1]}]})
    plan = dp_merf(schema, Budget(1.0), neighbours=name, num_rows=5, num_features=20)
    assert plan.neighbours is Neighbours.REPLACE_ONE
    assert plan.noise_stds[0] > 1.9 * dp_merf(schema, Budget(1.0), num_features=20).noise_stds[0]
    assert plan.epsilon("replace-one") == plan.epsilon()


def test_unknown_neighbours_are_refused() -> None:
    schema = load_schema({"columns": [{"name": "x", "kind": "continuous", "bounds": [0, 1]}]})
    with pytest.raises(UsageError, match="add-remove"):
        dp_merf(schema, Budget(1.0), neighbours="replace_one", num_rows=5)


# Laplace noise

PURE = Budget(1.0, 0)
SMALL = Embedding((Block("bins", Grid((0,), 4), 1.0),))


def test_a_plan_without_a_delta_is_weighed_for_laplace_noise_whoever_composed_it() -> None:
    plan = plan_of(Stage("one", SECOND), budget=PURE)
    assert plan.stages[0].embedding.norm is Norm.L1
    assert plan.mechanism.name == "laplace"
    assert plan.noise_scales == (math.ceil(sum(plan.mechanism_sensitivities[0])),)
    assert plan.noise_stds == (pytest.approx(math.sqrt(2) * plan.noise_scales[0]),)
    again = dataclasses.replace(plan)
    assert again.stages == plan.stages, "weights that are meant for it are left as they are"


def test_norms_that_do_not_fit_the_noise_are_refused() -> None:
    laplace = plan_of(Stage("one", SECOND), budget=PURE).stages[0]
    with pytest.raises(ValueError, match="norms"):
        plan_of(laplace)
    with pytest.raises(ValueError, match="norms"):
        plan_of(dataclasses.replace(laplace, share=0.5), Stage("two", SMALL, 0.5), budget=PURE)


def test_shares_that_add_up_to_a_hair_too_much_still_meet_a_pure_budget() -> None:
    """Scales of 2 L - 1 and 2 L + 1 would cost more than 1 together, by 1e-20."""
    scales = 2 * LATTICE - 1, 2 * LATTICE + 1
    blocks = [Block(f"count {scale}", Constant(), 1.0, norm=Norm.L1) for scale in scales]
    stages = [
        Stage(f"{scale}", Embedding((block,)), LATTICE / scale * (1 + 1e-15))
        for scale, block in zip(scales, blocks, strict=True)
    ]
    plan = plan_of(*stages, budget=PURE)
    assert sum(plan.cost()) <= 1 < sum(Fraction(LATTICE, scale) for scale in scales)
    assert plan.epsilon() <= 1.0


def test_a_rule_may_choose_the_number_of_tables_under_laplace_noise_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """More tables share the same L1 norm."""
    few, many = (Tables((Cells(1, 2), Cells(2, 2)), subsets) for subsets in (((0,),), ((0,), (1,))))

    def rule(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
        return with_block(0, map=many)(planned.embedding)

    monkeypatch.setitem(RULES, "made up", rule)
    second = Embedding((Block("counts", few, 1.0),))
    stages = Stage("one", FIRST, 0.5), Stage("two", second, 0.5, "made up")
    plan = plan_of(*stages, budget=PURE)
    settled = plan.embeddings([np.zeros(4, dtype=np.int64)])[1]
    steps = [e.block("counts").rounding(plan.lattice)[0] for e in (plan.stages[1].embedding, settled)]
    assert settled.block("counts").map == many
    assert steps == [plan.lattice, plan.lattice // 2]


@pytest.mark.parametrize("cells", [Cells(1, 3), Cells(3, 2)])
def test_tables_of_other_columns_than_the_schema_s_are_refused(cells: Cells) -> None:
    with pytest.raises(ValueError, match="columns that the schema has, and of all their codes"):
        plan_of(Stage("one", Embedding((Block("counts", Tables((cells,), ((0,),)), 1.0),)), 1.0))


def test_a_rule_that_changes_the_norm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the square of the one radius is the other, and sensitivities look the same."""

    def rule(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
        blocks = [dataclasses.replace(b, norm=Norm.L2, weight=2.0**-16) for b in planned.embedding.blocks]
        return dataclasses.replace(planned.embedding, blocks=tuple(blocks))

    monkeypatch.setitem(RULES, "made up", rule)
    stages = Stage("one", FIRST, 0.5), Stage("two", SMALL, 0.5, "made up")
    plan = plan_of(*stages, budget=PURE)
    with pytest.raises(ValueError, match="sensitivity"):
        plan.embeddings([np.zeros(4, dtype=np.int64)])


# Rules between stages

FIRST = Embedding((Block("first", Grid((0,), 4), 1.0),))
SECOND = Embedding(
    (
        Block("numbers", Hermite((0,), (0.1,), 3, 2.0), 0.6),
        Block("counts", Tables((Cells(1, 2, has_null=True),), ((0,),)), 0.5, per_label=True),
        Block("count", Constant(), 0.3),
    ),
    label=(4, 6),
)


def settled_by(change: Callable[[Embedding], Embedding], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The second stage of a plan whose rule makes this change."""

    def rule(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
        return change(planned.embedding)

    monkeypatch.setitem(RULES, "made up", rule)
    plan = plan_of(Stage("one", FIRST, 0.5), Stage("two", SECOND, 0.5, "made up"))
    return plan.embeddings([np.zeros(4, dtype=np.int64)])[1]


def with_block(index: int, **changes: Any) -> Callable[[Embedding], Embedding]:
    def changed(embedding: Embedding) -> Embedding:
        blocks = list(embedding.blocks)
        blocks[index] = dataclasses.replace(blocks[index], **changes)
        return dataclasses.replace(embedding, blocks=tuple(blocks))

    return changed


FORBIDDEN: dict[str, Callable[[Embedding], Embedding]] = {
    "a larger weight": with_block(1, weight=0.6),
    "a smaller weight": with_block(1, weight=0.4999),
    "a signed map for counts": with_block(1, map=Hermite((0,), (0.1,), 3, 2.0)),
    "counts for a signed map": with_block(0, map=Grid((0,), 4)),
    "a count per label": with_block(2, per_label=True),
    "a block more": lambda e: dataclasses.replace(e, blocks=(*e.blocks, Block("more", Grid((0,), 4), 0.1))),
    "a block less": lambda e: dataclasses.replace(e, blocks=e.blocks[:1]),
    "another label": lambda e: dataclasses.replace(e, label=(1, 4)),
    "no label": lambda e: dataclasses.replace(e, label=None),
    "separate charges": lambda e: dataclasses.replace(e, separate=True),
}


@pytest.mark.parametrize("change", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_rule_that_changes_how_far_a_row_reaches_is_refused(
    change: Callable[[Embedding], Embedding], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="sensitivity"):
        settled_by(change, monkeypatch)


@pytest.mark.parametrize(
    "map_",
    [Grid((0,), 999), Tables((Cells(0, 3), Cells(1, 2)), ((0, 1), (1,), (0,)))],
    ids=["finer bins", "more tables"],
)
def test_a_rule_may_change_what_is_counted_and_the_size(map_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settled_by(with_block(1, map=map_), monkeypatch).block("counts").map == map_


def test_a_stage_is_settled_by_the_earlier_ones_alone() -> None:
    """Whatever stands in a stage's own vector or in later ones, its embedding is the same."""
    plan = dp_anova(SCHEMA, Budget(5.0), pairs=True, num_rows=1000)
    rng = np.random.default_rng(0)
    vectors: list[Any] = []
    for stage in range(len(plan.stages)):
        known = plan.embeddings(vectors)
        assert len(known) == stage + 1
        for _ in range(2):
            own = (rng.normal(0, 100, known[stage].dim) * plan.lattice).astype(np.int64)
            assert plan.embeddings([*vectors, own])[: stage + 1] == known
        vectors.append(own)
    assert plan.embeddings(vectors) == known


def test_a_rule_sees_the_noise_of_every_stage_and_no_vector_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def rule(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
        assert planned.vector.size == 0
        seen.extend((reading.noise_std, reading.lattice) for reading in (*earlier, planned))
        return planned.embedding

    monkeypatch.setitem(RULES, "made up", rule)
    plan = plan_of(Stage("one", FIRST, 0.3), Stage("two", SECOND, 0.7, "made up"))
    plan.embeddings([np.zeros(4, dtype=np.int64), np.ones(SECOND.dim, dtype=np.int64)])
    assert seen == [(noise, plan.lattice) for noise in plan.noise_stds]
