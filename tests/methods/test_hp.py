"""DP-HP's plans: sum and product kernels, sized by public facts alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from understudy import Budget, Neighbours, create_ledger, dp_hp, load_schema, make_plan, read_ledger, release_table
from understudy.accounting.mechanisms import UNITS_PER_COST, mu_squared_of_budget
from understudy.errors import BudgetError, UsageError
from understudy.features import Block, Embedding, Hermite, OneHot, Tensors
from understudy.features.hermite import best_half_range
from understudy.fits.mixture import MixtureTraining
from understudy.fits.network import Training
from understudy.methods.common import COUNT_SHARE
from understudy.methods.hp_kernels import (
    COARSEST_ORDER,
    FINEST_ORDER,
    FINEST_PRODUCT_ORDER,
    FRESH_RELEASES,
    MOST_SUBSETS,
    ORDER_TIMES_SCALE,
    PRESETS,
    Preset,
)
from understudy.plan.plan import Plan, Stage, plan_from_dict
from understudy.private.noise import SeededNoise
from understudy.schema import Schema

AGE = {"name": "age", "kind": "integer", "bounds": [0, 100]}
DOSE = {"name": "dose", "kind": "continuous", "bounds": [0, 1], "nullable": True}
SEX = {"name": "sex", "kind": "binary", "categories": ["f", "m"]}
LABEL = {"name": "label", "kind": "categorical", "categories": ["a", "b", "c"], "role": "label"}
TARGET = {"name": "label", "kind": "continuous", "bounds": [0, 10], "role": "label"}


def schema_with(*columns: dict[str, object], rows: int | None = 20_000) -> Schema:
    return load_schema({"columns": list(columns)} | ({"rows": rows} if rows else {}))


def labelled(label: dict[str, object] = LABEL) -> Schema:
    """Two numbers, a choice and a null flag, besides the label."""
    return schema_with(AGE, DOSE, SEX, label)


def wide(count: int, rows: int | None = 20_000) -> Schema:
    numbers = [{"name": f"x{i}", "kind": "continuous", "bounds": [0, 1]} for i in range(count)]
    return schema_with(*numbers, rows=rows)


def blocks_of(plan: Plan) -> dict[str, Block]:
    return {block.name: block for stage in plan.stages for block in stage.embedding.blocks}


def numbers_of(plan: Plan) -> Hermite:
    map_ = blocks_of(plan)["numbers"].map
    assert isinstance(map_, Hermite)
    return map_


def products_of(plan: Plan) -> Tensors:
    map_ = blocks_of(plan)["products"].map
    assert isinstance(map_, Tensors)
    return map_


def order_of(products: Tensors) -> int:
    (order,) = {factor.order for factor in products.factors if isinstance(factor, Hermite)}
    return order


def share_of(plan: Plan) -> float:
    return blocks_of(plan)["products"].weight ** 2 / (1 - COUNT_SHARE)


# Blocks and labels.


def test_both_kernels_are_kept_per_class():
    plan = dp_hp(labelled(), Budget(1.0))
    blocks = blocks_of(plan)
    assert list(blocks) == ["count", "numbers", "choices", "products"]
    assert all(block.per_label for block in blocks.values())
    assert plan.stages[0].embedding.num_labels == 3
    assert blocks["choices"].map.dim == 2 + 2  # sex, and whether dose is null; not the label


def test_balanced_classes_share_one_count():
    embedding = dp_hp(labelled(), Budget(1.0), labels="balanced").stages[0].embedding
    assert embedding.copies(embedding.block("count")) == 1
    assert embedding.copies(embedding.block("products")) == 3


def test_without_labels_the_label_is_a_column_like_others():
    plan = dp_hp(labelled(), Budget(1.0), labels="none")
    assert plan.stages[0].embedding.label is None
    assert blocks_of(plan)["choices"].map.dim == 2 + 2 + 3
    assert products_of(plan).subsets[-1] == (3, 4)  # sex or a flag with the label


def test_a_numeric_label_is_one_more_number():
    plan = dp_hp(labelled(TARGET), Budget(1.0))
    assert plan.stages[0].embedding.label is None
    assert len(numbers_of(plan).numbers) == 3


@pytest.mark.parametrize(
    "columns", [(AGE,), (SEX,), (LABEL,), (AGE, LABEL), (AGE, AGE | {"name": "old"}), (SEX, LABEL)]
)
def test_a_small_table_has_no_empty_block(columns: tuple[dict[str, object], ...]):
    plan = dp_hp(schema_with(*columns), Budget(1.0))
    assert all(block.map.dim > 0 for block in blocks_of(plan).values())
    assert sum(block.weight**2 for block in blocks_of(plan).values()) <= 1 + 1e-12


@pytest.mark.parametrize("columns", [(DOSE,), (DOSE, LABEL)])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_number_with_only_its_null_flag_for_company_has_no_products(
    columns: tuple[dict[str, object], ...], fresh: bool
):
    plan = dp_hp(schema_with(*columns), Budget(1.0), fresh_products=fresh)
    assert set(blocks_of(plan)) == {"count", "numbers", "choices"}


@pytest.mark.parametrize("options", [{}, {"gamma": 3.0}, {"product_share": 0.9}, {"order": 2}])
def test_block_weights_fill_the_unit_ball(options: dict[str, object]):
    blocks = blocks_of(dp_hp(labelled(), Budget(1.0), **options))
    assert sum(block.weight**2 for block in blocks.values()) == pytest.approx(1.0)
    assert blocks["count"].weight ** 2 == pytest.approx(COUNT_SHARE)
    assert blocks["numbers"].weight == pytest.approx(blocks["choices"].weight)  # two and two


# Sizes.


def test_all_pairs_of_a_small_table_are_taken_but_for_a_number_and_its_own_null_flag():
    products = products_of(dp_hp(labelled(), Budget(1.0)))
    kinds = [type(factor) for factor in products.factors]
    assert kinds == [Hermite, Hermite, OneHot, OneHot]  # age, dose, null flag of dose, sex
    assert products.subsets == tuple(p for p in combinations(range(4), 2) if p != (1, 2))


@pytest.mark.parametrize("dim", [2, 3, 4])
@pytest.mark.parametrize("count", [2, 1000])
def test_a_number_and_its_null_flag_are_never_in_one_product(dim: int, count: int):
    nullable = [DOSE | {"name": f"d{i}"} for i in range(4)]
    plan = dp_hp(schema_with(*nullable), Budget(1.0), product_dim=dim, num_products=count, product_order=1)
    subsets = products_of(plan).subsets
    assert all(len({j % 4 for j in subset}) == dim for subset in subsets)
    assert len(subsets) == min(count, math.comb(4, dim) * 2**dim)


def test_sizes_follow_from_schema_budget_and_rows_alone():
    plans = [dp_hp(labelled(), Budget(1.0), num_rows=n) for n in (None, 20_000, 30_000)]
    assert plans[0].fingerprint == plans[1].fingerprint  # the schema says 20,000
    assert plans[0].fingerprint != plans[2].fingerprint
    unsaid = dp_hp(wide(10, rows=None), Budget(1.0))
    planned = dp_hp(wide(10, rows=None), Budget(1.0), num_rows=10_000)
    assert unsaid.stages == planned.stages


def test_fewer_rows_or_less_budget_leave_fewer_products():
    def count(epsilon: float, rows: int) -> int:
        products = blocks_of(dp_hp(wide(60), Budget(epsilon), num_rows=rows)).get("products")
        return len(products.map.subsets) if products else 0

    by_rows = [count(1.0, rows) for rows in (100, 2000, 4000, 8000, 10**6)]
    assert by_rows == sorted(by_rows)
    assert by_rows[0] == 0
    assert 1 < by_rows[-3] < by_rows[-2] < by_rows[-1] == MOST_SUBSETS
    by_epsilon = [count(epsilon, 4000) for epsilon in (0.01, 0.5, 1.0, 2.0, 50.0)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] == 0
    assert by_epsilon[2] < by_epsilon[3] < by_epsilon[4]


def test_fewer_rows_or_less_budget_leave_lower_orders():
    def orders(epsilon: float, rows: int) -> tuple[int, int]:
        plan = dp_hp(wide(6), Budget(epsilon), num_rows=rows, num_products=15)
        return numbers_of(plan).order, order_of(products_of(plan))

    for found in (
        [orders(1.0, rows) for rows in (100, 1000, 3000, 10**7)],
        [orders(epsilon, 1000) for epsilon in (0.01, 1.0, 3.0, 100.0)],
    ):
        assert found == sorted(found)
        assert [order for _, order in found] == sorted(order for _, order in found)
        assert found[0][0] == COARSEST_ORDER
        assert found[2][0] > COARSEST_ORDER
        assert found[-1] == (FINEST_ORDER, FINEST_PRODUCT_ORDER)


def test_a_wide_table_has_lower_orders_so_that_the_release_stays_small():
    narrow, many = (dp_hp(wide(count), Budget(1.0), num_rows=10**8) for count in (5, 100))
    assert order_of(products_of(many)) < order_of(products_of(narrow))
    assert products_of(many).dim <= 400_000


def test_a_length_scale_follows_from_the_order():
    plan = dp_hp(labelled(), Budget(1.0), order=30, product_order=6)
    assert numbers_of(plan).length_scales == (ORDER_TIMES_SCALE / 30,) * 2
    assert numbers_of(plan).half_range == pytest.approx(best_half_range(0.05))
    factor = products_of(plan).factors[0]
    assert isinstance(factor, Hermite)
    assert (factor.order, factor.length_scales) == (6, (0.25,))


def test_an_order_follows_from_the_length_scale():
    plan = dp_hp(labelled(), Budget(1.0), length_scale=0.05, product_length_scale=0.25)
    assert numbers_of(plan).order == 30
    assert numbers_of(plan).length_scales == (0.05, 0.05)
    assert order_of(products_of(plan)) == 6


def test_length_scales_can_be_given_by_name_and_the_shortest_sets_the_order():
    plan = dp_hp(labelled(), Budget(1.0), length_scale={"dose": 0.02, "age": 0.5})
    assert numbers_of(plan).length_scales == (0.5, 0.02)
    assert numbers_of(plan).order == 75
    assert numbers_of(plan).half_range == pytest.approx(best_half_range(0.02))


def test_order_and_length_scale_can_both_be_given():
    plan = dp_hp(labelled(), Budget(1.0), order=12, length_scale=0.4)
    assert (numbers_of(plan).order, numbers_of(plan).length_scales) == (12, (0.4, 0.4))


@pytest.mark.parametrize("order", [0, 1, 300])
def test_the_lowest_and_highest_orders_are_plans_too(order: int):
    plan = dp_hp(labelled(), Budget(1.0), order=order, product_order=min(order, 2))
    assert numbers_of(plan).order == order


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_products_have_as_many_columns_as_asked_for(dim: int):
    plan = dp_hp(wide(6), Budget(1.0), product_dim=dim, product_order=2, num_products=50)
    assert products_of(plan).subsets == tuple(combinations(range(6), dim))


def test_no_products_leave_the_budget_to_the_sum_kernel():
    plan = dp_hp(labelled(), Budget(1.0), num_products=0)
    assert set(blocks_of(plan)) == {"count", "numbers", "choices"}
    assert "none" in plan.setting("explanation")[-1]


# Weights.


def test_without_gamma_each_kernel_is_trusted_as_its_noise_deserves():
    plan = dp_hp(labelled(), Budget(1.0))
    blocks, weights = blocks_of(plan), dict(plan.setting("loss_weights"))
    assert set(weights) == {"numbers", "choices", "products"}
    for name, weight in weights.items():
        assert weight == pytest.approx(blocks[name].weight ** 2 / (1 - COUNT_SHARE))


@pytest.mark.parametrize("fresh", [False, True])
def test_gamma_is_the_weight_of_the_products_against_one_for_the_sum(fresh: bool):
    plan = dp_hp(labelled(), Budget(1.0), gamma=0.1, fresh_products=fresh, num_products=2)
    weights = dict(plan.setting("loss_weights"))
    names = ["product 1", "product 2"] if fresh else ["products"]
    assert weights == {"numbers": 0.5, "choices": 0.5} | dict.fromkeys(names, 0.1)


@pytest.mark.parametrize("gamma", [None, 0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("schema", [labelled(), wide(5)])
def test_the_share_of_the_products_minimises_the_noise_of_the_loss(gamma: float | None, schema: Schema):
    plan = dp_hp(schema, Budget(1.0), gamma=gamma, num_products=4)
    blocks = blocks_of(plan)
    sums = sum(block.map.dim for name, block in blocks.items() if name in ("numbers", "choices"))
    products = blocks["products"].map.dim
    shares = np.linspace(0, 1, 20_001)[1:-1]
    noise = sums / (1 - shares) + (gamma or 1.0) * products / shares
    assert share_of(plan) == pytest.approx(shares[noise.argmin()], abs=1e-4)


def test_a_share_can_be_given():
    assert share_of(dp_hp(labelled(), Budget(1.0), product_share=0.25)) == pytest.approx(0.25)


# Presets.


def test_presets_have_the_papers_numbers():
    assert PRESETS["adult"] == Preset(100, 5, 5, 0.1, 0.6)
    assert PRESETS["cervical"] == Preset(20, 13, 5, 1, 0.6)
    assert PRESETS["epileptic"] == Preset(20, 5, 7, 0.1, 0.6)
    assert PRESETS["covtype"] == Preset(10, 7, 2, 1, 0.6)
    assert PRESETS["adult-marginals-0.1"] == Preset(100, 5, 7, 1, 0.5)
    assert PRESETS["mnist"] == Preset(100, 20, 2, 1 / 20, 0.8, 0.005**0.5)
    assert PRESETS["fashion-mnist"] == Preset(100, 20, 2, 1 / 10, 0.8, 0.15**0.5)
    assert len(PRESETS) == 13


def test_a_preset_sets_orders_dimension_gamma_and_split():
    plan = dp_hp(wide(6), Budget(1.0), preset="adult")
    assert numbers_of(plan).order == 100
    assert order_of(products_of(plan)) == 5
    assert products_of(plan).subsets == tuple(combinations(range(6), 5))
    assert dict(plan.setting("loss_weights")) == {"numbers": 1.0, "products": 0.1}
    parts = [float(mu_squared_of_budget(Budget(epsilon, 0.5e-5))) for epsilon in (0.6 * 1.0, 0.4 * 1.0)]
    assert share_of(plan) == pytest.approx(parts[1] / sum(parts))
    assert 0.25 < share_of(plan) < 0.4  # the smaller part of epsilon is the smaller still


@pytest.mark.parametrize(("preset", "variance"), [("mnist", 0.005), ("fashion-mnist", 0.15)])
def test_image_presets_have_the_papers_kernels(preset: str, variance: float):
    """Table 9 gives variances: 0.005 is a length scale of 0.0707, 0.15 one of 0.387."""
    plan = dp_hp(wide(6), Budget(1.0), preset=preset)
    sums, products = numbers_of(plan), products_of(plan)
    scales = {scale for factor in (sums, *products.factors) for scale in factor.length_scales}
    assert scales == {variance**0.5}
    pixels = np.array([[0.5] * 6, [0.6] * 6])
    near, far = np.asarray(sums(pixels))
    kernel = float(near @ far) / float(near @ near)
    assert kernel == pytest.approx(math.exp(-(0.1**2) / (2 * variance)), abs=1e-3)


def test_a_split_in_halves_is_a_split_in_halves():
    plan = dp_hp(wide(8), Budget(1.0), preset="adult-marginals-0.3", product_order=2)
    assert share_of(plan) == pytest.approx(0.5)


def test_what_is_given_goes_before_the_preset():
    plan = dp_hp(wide(6), Budget(1.0), preset="adult", order=7, product_dim=2, num_products=3, gamma=2.0)
    assert numbers_of(plan).order == 7
    assert [len(subset) for subset in products_of(plan).subsets] == [2, 2, 2]
    assert dict(plan.setting("loss_weights"))["products"] == 2.0
    assert order_of(products_of(plan)) == 5


def test_a_preset_releases_a_few_products_only():
    assert len(products_of(dp_hp(wide(20), Budget(1.0), preset="covtype")).subsets) == FRESH_RELEASES


# Fresh products.


def test_fresh_products_are_a_stage_each_within_the_same_budget():
    plan = dp_hp(labelled(), Budget(1.0), fresh_products=True)
    whole = dp_hp(labelled(), Budget(1.0))
    assert [stage.name for stage in plan.stages] == ["sum", *(f"product {i}" for i in range(1, 6))]
    assert sum(stage.share for stage in plan.stages) == pytest.approx(1.0)
    maps = [stage.embedding.blocks[0].map for stage in plan.stages[1:]]
    assert all(isinstance(map_, Tensors) for map_ in maps)
    assert tuple(subset for map_ in maps for subset in map_.subsets) == products_of(whole).subsets
    assert plan.setting("turns") == [stage.name for stage in plan.stages[1:]]
    assert whole.setting("turns") == []


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_fresh_products_cost_what_one_release_costs(epsilon: float, neighbours: Neighbours):
    plans = [dp_hp(labelled(), Budget(epsilon), neighbours=neighbours, fresh_products=fresh) for fresh in (False, True)]
    for plan in plans:
        assert plan.epsilon() <= epsilon
        assert plan.epsilon() == pytest.approx(epsilon, rel=1e-5)
    assert float(sum(plans[0].cost())) == pytest.approx(float(sum(plans[1].cost())), rel=1e-5)
    assert len(plans[0].cost()) == 1
    assert len(plans[1].cost()) == len(plans[1].stages)


def test_fresh_products_have_the_noise_of_one_release():
    whole, fresh = (
        dp_hp(labelled(), Budget(1.0), product_share=0.7, fresh_products=is_fresh) for is_fresh in (False, True)
    )
    root = math.sqrt(len(products_of(whole).subsets))  # features of many subsets are that smaller
    one = whole.noise_stds[0] / blocks_of(whole)["products"].weight * root
    assert fresh.noise_stds[1] == pytest.approx(one, rel=0.01)
    assert len(set(fresh.noise_stds[1:])) == 1


def test_fresh_products_are_charged_once_with_their_sum(tmp_path: Path):
    schema = labelled()
    plan = dp_hp(schema, Budget(1.0), fresh_products=True, num_products=2, order=3, product_order=2)
    table = pd.DataFrame({"age": [30, 40], "dose": [0.5, np.nan], "sex": ["f", "m"], "label": ["a", "b"]})
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(1.0))
    assert len(plan.cost()) == 3
    release = release_table(table, plan, ledger=ledger, noise=SeededNoise(0))
    (row,) = read_ledger(ledger).rows
    assert row.units == math.ceil(sum(plan.cost()) * UNITS_PER_COST)
    spent = Fraction(row.units, UNITS_PER_COST)
    assert float(spent) == pytest.approx(float(mu_squared_of_budget(Budget(1.0))), rel=1e-6)
    assert row.fingerprint == release.fingerprint
    assert len(release.vectors) == 3
    with pytest.raises(BudgetError):
        release_table(table, plan, ledger=ledger, noise=SeededNoise(0))


def test_without_products_fresh_ones_are_one_stage_with_all_of_the_budget():
    plan = dp_hp(labelled(), Budget(1.0), fresh_products=True, num_products=0)
    assert [(stage.name, stage.share) for stage in plan.stages] == [("sum", 1.0)]


# Refusals.


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"order": -1}, "order: must be a whole number between 0 and 300"),
        ({"order": 301}, "order: must be a whole number between 0 and 300"),
        ({"product_order": -1}, "product order"),
        ({"product_order": 301}, "product order"),
        ({"product_dim": 1}, "product dimension"),
        ({"product_dim": 9}, "product dimension"),
        ({"num_products": -1}, "products"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": math.inf}, "gamma"),
        ({"gamma": math.nan}, "gamma"),
        ({"product_share": 0.0}, "product share"),
        ({"product_share": 1.0}, "product share"),
        ({"product_share": math.nan}, "product share"),
        ({"preset": "iris"}, "Presets are adult, "),
        ({"generator": "gan"}, "generator: must be one of mixture, network"),
        ({"labels": "some"}, "labels"),
        ({"neighbours": "next-door"}, "neighbours"),
        ({"length_scale": 0.0}, "length scale"),
        ({"length_scale": -1.0}, "length scale"),
        ({"length_scale": math.inf}, "length scale"),
        ({"length_scale": math.nan}, "length scale"),
        ({"length_scale": "private"}, "length scale"),
        ({"length_scale": {"age": 0.1}}, "see 'dose'"),
        ({"length_scale": {"age": 1, "dose": 1, "sex": 1}}, "see 'sex'"),
        ({"product_length_scale": -1.0}, "length scale"),
        ({"product_length_scale": 0.0}, "length scale"),
        ({"product_length_scale": math.inf}, "length scale"),
        ({"product_length_scale": math.nan}, "length scale"),
        ({"training": Training()}, "training"),
        ({"training": MixtureTraining(), "generator": "network"}, "training"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, dict) else "",
)
def test_what_is_outside_its_rules_is_refused(option: dict[str, object], words: str):
    with pytest.raises(UsageError) as refused:
        dp_hp(labelled(), Budget(1.0), **option)
    assert words in str(refused.value)


def test_a_release_of_too_many_numbers_is_refused():
    with pytest.raises(UsageError, match=r"products: would release 10201000 numbers"):
        dp_hp(wide(60), Budget(1.0), product_order=100, num_products=1000)


def test_products_of_too_many_features_are_refused():
    with pytest.raises(UsageError, match="every set of 4 columns has more than 1048576 features"):
        dp_hp(wide(5), Budget(1.0), product_order=40, product_dim=4)


def test_replace_one_needs_a_public_row_count():
    with pytest.raises(UsageError, match="row count"):
        dp_hp(wide(3, rows=None), Budget(1.0), neighbours=Neighbours.REPLACE_ONE)


def test_an_option_of_another_method_is_refused_by_name():
    with pytest.raises(UsageError, match="is not an option of dp-hp"):
        make_plan(labelled(), Budget(1.0), method="dp-hp", options={"num_features": 10})
    with pytest.raises(UsageError, match="is not an option of dp-merf"):
        make_plan(labelled(), Budget(1.0), method="dp-merf", options={"gamma": 1.0})


# Seeds and files.


def test_the_same_seed_gives_the_same_plan_and_another_other_subsets():
    plans = [dp_hp(wide(30), Budget(1.0), num_products=9, seed=seed) for seed in (0, 0, 1)]
    assert plans[0].fingerprint == plans[1].fingerprint != plans[2].fingerprint
    assert products_of(plans[0]).subsets == products_of(plans[1]).subsets
    assert products_of(plans[0]).subsets != products_of(plans[2]).subsets
    assert plans[2].setting("training")["seed"] == 1


def test_steps_change_the_steps_only():
    training = MixtureTraining(num_components=30, seed=8)
    plan = dp_hp(labelled(), Budget(1.0), training=training, steps=7)
    found = plan.setting("training")
    assert (found["steps"], found["num_components"], found["seed"]) == (7, 30, 8)
    network = dp_hp(labelled(), Budget(1.0), generator="network", steps=7).setting("training")
    assert network["steps"] == 7
    assert "hidden" in network


@pytest.mark.parametrize(
    "options", [{}, {"fresh_products": True}, {"gamma": 0.2, "preset": "covtype"}, {"generator": "network"}]
)
def test_a_plan_comes_back_from_its_file_as_it_was(options: dict[str, object]):
    plan = dp_hp(labelled(), Budget(1.0), **options)
    loaded = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert loaded.fingerprint == plan.fingerprint
    assert loaded.stages == plan.stages


def test_the_explanation_says_what_was_chosen():
    plan = dp_hp(labelled(), Budget(1.0), order=30, product_order=6, product_share=0.4)
    assert plan.setting("explanation") == [
        "sum kernel: 2 numbers to order 30 (length scale 0.05 of a column's range)",
        "product kernel: 5 of 6 sets of 2 columns, numbers to order 6; 40 % of the budget",
    ]


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_ledger_of_some_epsilon_pays_for_a_plan_of_that_epsilon(
    epsilon: float, is_fresh: bool, tmp_path: Path
) -> None:
    ledger = tmp_path / "table.ledger"
    create_ledger(ledger, Budget(epsilon))
    columns = [AGE, {"name": "ward", "kind": "categorical", "categories": ["a", "b"]}]
    schema = load_schema({"columns": [*columns, {**AGE, "name": "height"}], "rows": 20})
    plan = dp_hp(schema, Budget(epsilon), num_products=3, order=5, fresh_products=is_fresh)
    table = pa.table({"age": [40] * 20, "ward": ["a"] * 20, "height": [70] * 20})
    release_table(table, plan, ledger=ledger)
    assert read_ledger(ledger).remaining_units >= 0


def test_a_plan_whose_part_would_be_noise_alone_is_refused() -> None:
    schema = load_schema({"columns": [AGE, {**AGE, "name": "height"}], "rows": 20})
    plan = dp_hp(schema, Budget(1.0), num_products=1)
    faint = replace(plan.stages[0].embedding.blocks[0], weight=1e-30)
    with pytest.raises(UsageError, match="only noise"):
        replace(plan, stages=(Stage("faint", Embedding((faint,))),))
    with pytest.raises(UsageError, match="at most 1073741824"):
        replace(plan, num_rows=2**31)
