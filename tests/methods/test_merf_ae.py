"""DP-MERF+AE: two mechanisms, one budget."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, Neighbours, create_ledger, load_schema, make_plan, read_ledger, release_table
from understudy.errors import BudgetError, UsageError
from understudy.fits.images import ImageTraining
from understudy.plan.plan import Plan, plan_from_dict

SCHEMA = load_schema({"name": "dots", "rows": 200, "image": {"height": 2, "width": 2}})
TRAINING = ImageTraining(hidden=(4,), steps=2, batch=16)


def the_plan(epsilon: float = 1.0, **options: object) -> Plan:
    wish = {"descent_steps": 20, "training": TRAINING} | options
    return make_plan(SCHEMA, Budget(epsilon), method="dp-merf-ae", options=wish)


def dots() -> pd.DataFrame:
    pixels = np.random.default_rng(0).integers(0, 256, (200, 4))
    return pd.DataFrame(pixels, columns=[f"pixel_{i}_{j}" for i in range(2) for j in range(2)])


@pytest.fixture(scope="module")
def plan() -> Plan:
    return the_plan()


def test_the_epsilon_is_that_of_both_mechanisms_together(plan: Plan):
    """By privacy loss distributions, at most the budget's, and more than of either one."""
    assert plan.descent is not None
    embedding = plan.cost()[:-1]
    alone = plan.descent.cost.epsilon(1e-5)
    together = plan.descent.cost.epsilon(1e-5, beside=embedding)
    assert alone < plan.epsilon() <= together
    assert 0.9 < plan.epsilon() <= 1.0
    assert plan.mechanism.epsilon(embedding, 1e-5) < plan.epsilon()


def test_costs_are_the_embeddings_and_the_descents_and_fit_the_budget(plan: Plan):
    whole = plan.mechanism.total(Budget(1.0, float(Fraction(1e-5) - plan.charge.slack)))
    assert plan.charge.slack > 0
    assert plan.cost()[-1] == plan.charge.mu_squared
    assert 0.97 * whole < sum(plan.cost()) <= whole
    assert sum(plan.cost()[:-1]) == pytest.approx(0.3 * whole, rel=1e-3)


def test_less_for_the_embedding_is_less_noise_in_the_descent(plan: Plan):
    other = the_plan(embedding_share=0.8)
    assert plan.descent is not None
    assert other.descent is not None
    assert other.descent.cost.noise_multiplier > plan.descent.cost.noise_multiplier
    assert other.noise_stds[0] < plan.noise_stds[0]


def test_a_plan_whose_parts_cost_more_than_the_budget_is_no_plan(plan: Plan):
    greedy = tuple(replace(stage, share=0.9) for stage in plan.stages)
    with pytest.raises(ValueError, match="descent"):
        replace(plan, stages=greedy)


def test_replacing_an_image_is_removing_and_adding_one(plan: Plan):
    replaced = plan.epsilon(Neighbours.REPLACE_ONE)
    assert 2 * plan.epsilon() < replaced < 4 * plan.epsilon()


def test_a_plan_comes_back_from_its_description(plan: Plan):
    again = plan_from_dict(plan.to_dict())
    assert again.fingerprint == plan.fingerprint
    assert again.descent == plan.descent
    assert again.epsilon() == plan.epsilon()


def test_a_ledger_is_charged_for_both_and_for_the_slack(plan: Plan, tmp_path: Path):
    create_ledger(tmp_path / "ledger.db", Budget(3.0), reserve=0.1)
    release_table(dots(), plan, ledger=tmp_path / "ledger.db")
    state = read_ledger(tmp_path / "ledger.db")
    (parts,), (noise,) = plan.mechanism_sensitivities, plan.noise_scales
    embedding = plan.mechanism.cost(sum(parts), noise)
    assert state.spent_units >= (embedding + plan.charge.mu_squared) * 2**40
    assert state.rows[0].slack_units >= plan.charge.slack * 2**62 > 0


def test_a_ledger_without_a_reserve_is_not_charged_at_all(plan: Plan, tmp_path: Path):
    create_ledger(tmp_path / "ledger.db", Budget(3.0))
    with pytest.raises(BudgetError):
        release_table(dots(), plan, ledger=tmp_path / "ledger.db")
    assert read_ledger(tmp_path / "ledger.db").spent_units == 0


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"neighbours": Neighbours.REPLACE_ONE}, "neighbours"),
        ({"embedding_share": 1.0}, "embedding share"),
        ({"length_scale": "private"}, "length scale"),
    ],
)
def test_what_cannot_be_accounted_for_is_refused(options: dict[str, object], where: str):
    with pytest.raises(UsageError, match=where):
        the_plan(**options)
