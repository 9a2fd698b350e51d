"""DP-ANOVA's plans: which tables are counted, at which share of the budget, by public facts alone."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from understudy import Budget, Neighbours, dp_anova, load_schema, make_plan
from understudy.errors import UsageError
from understudy.features import Block, Cells, Tables
from understudy.features.tables import HISTOGRAM_BARS, LONG_BARS, MOST_VALUES
from understudy.fits.anova import AnovaTraining
from understudy.methods.anova import MOST_CLASSES, PLANNED_CELLS
from understudy.plan.plan import Plan, plan_from_dict
from understudy.schema import Schema

AGE = {"name": "age", "kind": "integer", "bounds": [0, 100]}
DOSE = {"name": "dose", "kind": "continuous", "bounds": [0, 1], "nullable": True}
COST = {"name": "cost", "kind": "integer", "bounds": [0, 99_999]}
SEX = {"name": "sex", "kind": "binary", "categories": ["f", "m"]}
WARD = {"name": "ward", "kind": "categorical", "categories": ["n", "s", "w"], "nullable": True}
LABEL = {"name": "ill", "kind": "categorical", "role": "label", "categories": ["a", "b", "c"]}


def schema_with(*columns: dict[str, object], rows: int | None = 50_000) -> Schema:
    document: dict[str, object] = {"columns": list(columns)}
    return load_schema(document if rows is None else document | {"rows": rows})


def blocks_of(plan: Plan) -> dict[str, Block]:
    return {block.name: block for stage in plan.stages for block in stage.embedding.blocks}


def tables_of(plan: Plan, name: str) -> Tables:
    map_ = blocks_of(plan)[name].map
    assert isinstance(map_, Tables)
    return map_


def explained(plan: Plan) -> str:
    return "; ".join(plan.setting("explanation"))


PLANS: dict[str, Plan] = {
    "all": dp_anova(schema_with(AGE, DOSE, COST, WARD, LABEL), Budget(1.0)),
    "unlabelled": dp_anova(schema_with(AGE, DOSE, COST, WARD), Budget(1.0)),
    "balanced": dp_anova(schema_with(AGE, DOSE, LABEL), Budget(1.0), labels="balanced"),
    "no pairs": dp_anova(schema_with(AGE, DOSE, COST, LABEL), Budget(1.0), pairs=False),
    "no values": dp_anova(schema_with(AGE, DOSE, COST, LABEL), Budget(1.0), values=False),
    "neither": dp_anova(schema_with(AGE, DOSE), Budget(1.0), pairs=False, values=False),
    "one column": dp_anova(schema_with(AGE, LABEL), Budget(1.0)),
    "one column of all": dp_anova(schema_with(SEX), Budget(1.0)),
    "few rows": dp_anova(schema_with(AGE, DOSE, COST, WARD, LABEL, rows=20), Budget(0.1)),
    "replace-one": dp_anova(schema_with(AGE, DOSE, LABEL), Budget(1.0), neighbours=Neighbours.REPLACE_ONE),
}


@pytest.mark.parametrize("name", PLANS)
def test_shares_of_the_budget_add_up_to_one_and_so_do_weights_in_a_stage(name: str):
    plan = PLANS[name]
    assert sum(stage.share for stage in plan.stages) == pytest.approx(1.0, abs=1e-9)
    for stage in plan.stages:
        squares = sum(block.weight**2 for block in stage.embedding.blocks)
        assert squares == pytest.approx(1.0, abs=1e-9)
        assert squares <= 1 + 1e-12
    assert 0.999 * plan.budget.epsilon < plan.epsilon() <= plan.budget.epsilon


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_read_back_from_its_canonical_form(name: str):
    assert plan_from_dict(PLANS[name].to_dict()) == PLANS[name]


@pytest.mark.parametrize("name", PLANS)
def test_the_first_stage_has_no_rule_and_later_ones_have(name: str):
    rules = [stage.rule for stage in PLANS[name].stages]
    assert rules == [None, "place-cells", "choose-pairs"][: len(rules)]
    assert len(rules) >= 2


def test_columns_and_the_label_have_histograms_and_only_other_columns_cells_by_label():
    plan = PLANS["all"]
    assert len(tables_of(plan, "columns").subsets) == 5
    cells = tables_of(plan, "cells")
    assert [factor.column for factor in cells.factors] == [0, 1, 2, 3]
    assert blocks_of(plan)["cells"].per_label
    assert blocks_of(plan)["looks"].per_label
    assert not blocks_of(plan)["marginals"].per_label
    assert plan.stages[1].embedding.num_labels == 3


def test_all_pairs_are_looked_at_where_the_noise_allows_it():
    plan = PLANS["all"]
    every = tuple(combinations(range(4), 2))
    assert tables_of(plan, "looks").subsets == every
    assert "6 of 6 pairs" in explained(plan)


def test_choices_have_a_bar_per_category_and_numbers_at_most_so_many():
    factors = tables_of(PLANS["all"], "columns").factors
    assert [factor.has_null for factor in factors] == [False, True, False, True, False]
    assert [factor.is_ordered for factor in factors] == [True, True, True, False, False]
    assert [factor.num_known for factor in factors[3:]] == [3, 3]
    for factor in factors[:3]:
        assert factor.num_known <= HISTOGRAM_BARS + 2
        assert (factor.first_codes[0], factor.last_codes[-1]) == (0, factor.num_codes - 1)
    assert factors[0].num_known == 101
    for factor in factors[1:3]:  # bounds, where values pile up, are bars by themselves
        assert (factor.last_codes[0], factor.first_codes[-1]) == (0, factor.num_codes - 1)


@pytest.mark.parametrize("name", ["all", "few rows", "no pairs"])
def test_cells_that_are_not_placed_yet_are_planned_as_few(name: str):
    for block, most in zip(("cells", "looks"), PLANNED_CELLS[:2], strict=True):
        if block in blocks_of(PLANS[name]):
            factors = tables_of(PLANS[name], block).factors
            assert all(factor.num_known <= most for factor in factors)


# Pairs that are left out.


@pytest.mark.parametrize(("columns", "rows", "epsilon"), [(4, 30, 1.0), (4, 400, 0.05), (600, 800, 1.0)])
def test_wide_or_tiny_tables_get_no_pairs_and_the_plan_says_so(columns: int, rows: int, epsilon: float):
    many = [{"name": f"c{i}", "kind": "integer", "bounds": [0, 9]} for i in range(columns)]
    plan = dp_anova(schema_with(*many, LABEL, rows=rows), Budget(epsilon))
    assert [stage.name for stage in plan.stages] == ["columns", "by label", "columns again"]
    assert "looks" not in blocks_of(plan)
    assert "no pairs of columns: the budget does not carry them on so few rows" in explained(plan)
    assert "independent within each class" in explained(plan)


def test_between_few_and_many_rows_some_pairs_are_drawn_by_the_seed():
    many = [{"name": f"c{i}", "kind": "integer", "bounds": [0, 9]} for i in range(30)]
    counts = {}
    for rows in (200, 500, 1000, 2000, 2800, 4000, 5600, 8000, 50_000):
        plan = dp_anova(schema_with(*many, rows=rows), Budget(1.0))
        counts[rows] = len(tables_of(plan, "looks").subsets) if "looks" in blocks_of(plan) else 0
    assert list(counts.values()) == sorted(counts.values())
    assert counts[200] == 0
    assert counts[50_000] == math.comb(30, 2)
    rows = next(rows for rows, count in counts.items() if 0 < count < math.comb(30, 2))
    one, same, other = (
        tables_of(dp_anova(schema_with(*many, rows=rows), Budget(1.0), seed=seed), "looks").subsets
        for seed in (0, 0, 1)
    )
    assert one == same != other
    assert len(set(one)) == len(one) == len(other)
    assert all(i < j for i, j in one)


def test_pairs_that_are_asked_for_are_measured_however_few_rows_there_are():
    plan = dp_anova(schema_with(AGE, DOSE, WARD, rows=20), Budget(0.1), pairs=True)
    assert len(tables_of(plan, "looks").subsets) == 3
    assert "no pairs" not in explained(plan)


def test_pairs_that_are_not_wanted_are_left_out_as_asked():
    assert "no pairs of columns, as asked" in explained(PLANS["no pairs"])
    assert "looks" not in blocks_of(PLANS["no pairs"])


def test_a_single_column_has_no_pairs_and_the_plan_blames_no_budget():
    for name in ("one column", "one column of all"):
        assert "looks" not in blocks_of(PLANS[name])
        assert "pairs" not in explained(PLANS[name])


def test_replace_one_carries_about_as_many_pairs_as_its_noise_does():
    """Its noise of a count is larger by the square root of two at the same epsilon."""
    many = [{"name": f"c{i}", "kind": "integer", "bounds": [0, 9]} for i in range(40)]

    def looks(neighbours: Neighbours, rows: int) -> int:
        plan = dp_anova(schema_with(*many, rows=rows), Budget(1.0), neighbours=neighbours)
        return len(tables_of(plan, "looks").subsets) if "looks" in blocks_of(plan) else 0

    for rows in (800, 1200, 1600, 2000):
        both = [looks(neighbours, rows) for neighbours in Neighbours]
        assert both[1] <= both[0]


# Values that are counted one by one.


def values_of(plan: Plan) -> dict[str, Cells]:
    if "values" not in blocks_of(plan):
        return {}
    names = [column.name for column in plan.schema.used]
    return {names[cells.column]: cells for cells in tables_of(plan, "values").factors if not cells.steps}


def test_only_numbers_with_many_values_are_counted_finer():
    assert set(values_of(PLANS["all"])) == {"dose", "cost"}  # age has a bar per value anyway
    assert "finer histograms find values that repeat (dose, cost)" in explained(PLANS["all"])
    assert values_of(dp_anova(schema_with(AGE, SEX, WARD), Budget(1.0))) == {}


def test_integers_are_counted_value_by_value_and_longer_columns_in_finer_bars():
    found = values_of(PLANS["all"])
    assert found["cost"].num_known == 100_000
    assert LONG_BARS <= found["dose"].num_known <= LONG_BARS + 2
    assert not found["dose"].has_null  # nulls are counted with the coarse bars


def test_values_can_be_left_out_and_their_share_goes_to_cells():
    assert values_of(PLANS["no values"]) == {}
    assert "finer histograms" not in explained(PLANS["no values"])
    with_values = dp_anova(schema_with(AGE, DOSE, COST, LABEL), Budget(1.0))
    shares = [plan.stages[1].share for plan in (PLANS["no values"], with_values)]
    assert shares[0] > shares[1]


def test_all_columns_together_are_counted_in_no_more_numbers_than_there_is_room_for():
    many = [{"name": f"c{i}", "kind": "integer", "bounds": [0, 60_000]} for i in range(40)]
    plan = dp_anova(schema_with(*many, rows=10_000_000), Budget(5.0))
    found = values_of(plan)
    assert found
    assert sum(cells.dim for cells in found.values()) <= MOST_VALUES


def test_values_are_not_counted_where_only_noise_would_be():
    assert values_of(dp_anova(schema_with(COST, DOSE, rows=50), Budget(0.1))) == {}


# Labels.


def test_a_label_with_too_many_classes_is_a_column_like_others():
    def plan_for(classes: int) -> Plan:
        label = {**LABEL, "categories": [f"c{i}" for i in range(classes)]}
        return dp_anova(schema_with(AGE, label), Budget(1.0))

    few, many = plan_for(MOST_CLASSES), plan_for(MOST_CLASSES + 1)
    assert few.stages[1].embedding.num_labels == MOST_CLASSES
    assert [factor.column for factor in tables_of(few, "cells").factors] == [0]
    assert many.stages[1].embedding.label is None
    assert [factor.column for factor in tables_of(many, "cells").factors] == [0, 1]
    assert not blocks_of(many)["cells"].per_label


def test_without_a_label_or_with_labels_none_all_columns_are_alike():
    for plan in (PLANS["unlabelled"], dp_anova(schema_with(AGE, DOSE, WARD, LABEL), Budget(1.0), labels="none")):
        assert all(stage.embedding.label is None for stage in plan.stages)
        assert len(tables_of(plan, "cells").factors) == 4
        assert not any(block.per_label for block in blocks_of(plan).values())


def test_balanced_classes_share_one_count():
    first = PLANS["balanced"].stages[0].embedding
    assert first.copies(first.block("count")) == 1
    second = PLANS["balanced"].stages[1].embedding
    assert second.copies(second.block("cells")) == 4  # three classes, and rows of none


def test_a_numeric_label_is_a_number_like_others():
    label = {"name": "ill", "kind": "continuous", "role": "label", "bounds": [0, 10]}
    plan = dp_anova(schema_with(AGE, label, SEX), Budget(1.0))
    assert plan.stages[1].embedding.label is None
    assert len(tables_of(plan, "cells").factors) == 3


def test_a_nullable_label_has_one_class_more():
    plan = dp_anova(schema_with(AGE, {**LABEL, "nullable": True}), Budget(1.0))
    assert plan.stages[1].embedding.num_labels == 4
    assert tables_of(plan, "columns").factors[1].dim == 4


def test_a_schema_with_nothing_but_a_label_is_refused_with_a_way_out():
    with pytest.raises(UsageError, match="no column beside the label") as refusal:
        dp_anova(schema_with(LABEL), Budget(1.0))
    assert "--labels none" in str(refusal.value)
    plan = dp_anova(schema_with(LABEL), Budget(1.0), labels="none")
    assert len(tables_of(plan, "cells").factors) == 1


# Settings.


def test_steps_and_seed_change_the_training_and_nothing_else():
    schema = schema_with(AGE, DOSE, LABEL)
    plain = dp_anova(schema, Budget(1.0))
    changed = dp_anova(schema, Budget(1.0), steps=7, seed=3)
    assert plain.setting("training") == vars_of(AnovaTraining())
    assert changed.setting("training") == vars_of(AnovaTraining(steps=7, seed=3))
    assert changed.stages == plain.stages
    given = dp_anova(schema, Budget(1.0), training=AnovaTraining(num_components=9), steps=5)
    assert given.setting("training") == vars_of(AnovaTraining(num_components=9, steps=5))


def vars_of(training: AnovaTraining) -> dict[str, object]:
    return {name: getattr(training, name) for name in AnovaTraining.__slots__}


def test_the_row_count_is_the_schemas_unless_another_is_given():
    assert PLANS["all"].num_rows == 50_000
    assert dp_anova(schema_with(AGE, DOSE), Budget(1.0), num_rows=99).num_rows == 99
    assert dp_anova(schema_with(AGE, DOSE, rows=None), Budget(1.0)).num_rows is None


def test_replace_one_needs_a_public_row_count():
    with pytest.raises(UsageError, match="row count"):
        dp_anova(schema_with(AGE, rows=None), Budget(1.0), neighbours=Neighbours.REPLACE_ONE)


@pytest.mark.parametrize("option", ["num_features", "order", "length_scale", "generator"])
def test_an_option_of_another_method_is_refused(option: str):
    with pytest.raises(UsageError, match="is not an option of dp-anova"):
        make_plan(schema_with(AGE, DOSE), Budget(1.0), options={option: 1})


def test_an_unknown_way_with_labels_is_refused():
    with pytest.raises(UsageError, match="labels"):
        make_plan(schema_with(AGE, LABEL), Budget(1.0), options={"labels": "some"})
