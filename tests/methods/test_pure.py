"""What methods plan at delta 0: less is measured at once, and shares are of epsilon."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from understudy import Budget, Neighbours, dp_anova, dp_hp, dp_merf, load_schema
from understudy.features import Fourier, Hermite, Norm, Sign
from understudy.methods.anova import PURE_SHARES, PURE_WITHOUT_PAIRS
from understudy.methods.common import terms_of
from understudy.plan.plan import Plan
from understudy.schema import Schema

PURE = Budget(1.0, 0)


def the_schema(rows: int = 40_000, columns: int = 6) -> Schema:
    numbers = [{"name": f"x{i}", "kind": "integer", "bounds": [0, 5000]} for i in range(columns)]
    sex = {"name": "sex", "kind": "binary", "categories": ["f", "m"]}
    label = {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"}
    return load_schema({"columns": [*numbers, sex, label], "rows": rows})


def parts_of(plan: Plan) -> dict[str, float]:
    return {name: part for stage in plan.stages for name, part in stage.parts.items()}


@pytest.mark.parametrize("shares", [PURE_SHARES, PURE_WITHOUT_PAIRS])
def test_shares_of_epsilon_add_up_to_one(shares: dict[str, float]) -> None:
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-12)


def test_tables_have_the_parts_of_epsilon_that_were_meant_for_them() -> None:
    parts = parts_of(dp_anova(replace(the_schema(400_000), rows=None), PURE, pairs=True))
    assert parts == pytest.approx(PURE_SHARES)


def test_a_stated_row_count_is_not_measured_first_and_columns_by_label_have_its_part() -> None:
    parts, stated = dict(PURE_SHARES), parts_of(dp_anova(the_schema(400_000), PURE, pairs=True))
    parts["cells"] += parts.pop("rows")
    assert stated == pytest.approx(parts)


@pytest.mark.parametrize(("budget", "rows"), [(Budget(1.0), 40_000), (PURE, 40_000)])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_noise_that_is_planned_for_is_the_noise_of_the_plan(
    budget: Budget, rows: int, neighbours: Neighbours
) -> None:
    """For a share of the budget and a number of tables."""
    plan = dp_anova(the_schema(rows), budget, pairs=True, neighbours=neighbours)
    terms = terms_of(plan.schema, budget, neighbours, rows)
    for index, stage in enumerate(plan.stages):
        for block in stage.embedding.blocks:
            if block.map.sign is Sign.CONSTANT:
                continue
            planned = terms.noise(stage.parts[block.name], nonzeros=block.map.most_nonzeros, sign=block.map.sign)
            # Under replace-one a constant count costs nothing, or less than its share.
            found = plan.noise_std_of_sum(index, block) / rows
            assert found == pytest.approx(planned, rel=0.15 if index == 0 else 1e-3)


def test_few_rows_have_no_pairs_at_delta_zero_where_they_have_them_above() -> None:
    schema = the_schema(3000, columns=10)
    assert "looks" in parts_of(dp_anova(schema, Budget(1.0)))
    assert "looks" not in parts_of(dp_anova(schema, PURE))
    assert "looks" in parts_of(dp_anova(the_schema(60_000, columns=10), PURE))


def test_fewer_fourier_features_are_planned_at_delta_zero() -> None:
    def features(budget: Budget) -> int:
        blocks = dp_merf(the_schema(), budget).stages[0].embedding.blocks
        return next(block.map.dim for block in blocks if isinstance(block.map, Fourier))

    assert 200 <= features(Budget(0.1, 0)) <= features(PURE) < features(Budget(1.0)) / 2


def test_lower_orders_are_planned_at_delta_zero() -> None:
    def order(budget: Budget) -> int:
        plan = dp_hp(the_schema(10_000), budget, num_products=4)
        map_ = plan.stages[0].embedding.block("numbers").map
        assert isinstance(map_, Hermite)
        return map_.order

    assert order(PURE) < order(Budget(1.0))


def test_products_of_columns_are_planned_where_laplace_noise_allows_them() -> None:
    def has_products(rows: int, budget: Budget) -> bool:
        blocks = dp_hp(the_schema(rows), budget).stages[0].embedding.blocks
        return any(block.name == "products" for block in blocks)

    assert has_products(20_000, Budget(1.0))
    assert not has_products(20_000, PURE)
    assert has_products(200_000, PURE)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("options", [{"product_share": 0.3}, {"preset": "covtype"}], ids=str)
def test_a_wished_share_for_products_is_one_of_epsilon(fresh: bool, options: dict[str, Any]) -> None:
    plan = dp_hp(the_schema(), PURE, num_products=4, fresh_products=fresh, **options)
    products = sum(part for name, part in parts_of(plan).items() if name.startswith("product"))
    assert products == pytest.approx(options.get("product_share", 0.4))
    assert sum(parts_of(plan).values()) == pytest.approx(1.0)
    assert sum(plan.cost()) <= 1


def test_blocks_are_trusted_as_one_over_the_variance_of_their_noise() -> None:
    plan = dp_hp(the_schema(), PURE, num_products=4)
    losses = plan.setting("loss_weights")
    blocks = [b for b in plan.stages[0].embedding.blocks if b.map.sign is not Sign.CONSTANT]
    found = [losses[block.name] * plan.noise_std_of_sum(0, block) ** 2 for block in blocks]
    assert found == pytest.approx([found[0]] * 3, rel=0.02)
    trusts = [block.trust * plan.noise_std_of_sum(0, block) ** 2 for block in blocks]
    assert trusts == pytest.approx([trusts[0]] * 3, rel=0.02)


def test_noise_of_a_share_grows_as_its_norm_says() -> None:
    def noise(budget: Budget, share: float, nonzeros: int = 1) -> float:
        return terms_of(the_schema(), budget, Neighbours.ADD_REMOVE, 1000).noise(share, nonzeros=nonzeros)

    assert noise(PURE, 1.0) == pytest.approx(math.sqrt(2) / 1000)
    assert noise(PURE, 0.25) == pytest.approx(4 * noise(PURE, 1.0))
    assert noise(PURE, 1.0, 9) == pytest.approx(3 * noise(PURE, 1.0))
    assert noise(Budget(1.0), 0.25, 9) == pytest.approx(2 * noise(Budget(1.0), 1.0))
    for norm in Norm:
        assert norm.parts(norm.dilution(7)) == pytest.approx(7)
