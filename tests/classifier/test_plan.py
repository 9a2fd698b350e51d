from __future__ import annotations

from fractions import Fraction

import pytest

from understudy.accounting.mechanisms import Budget, epsilon_of
from understudy.classifier.plan import RADIUS, ClassifierPlan, Training, classifier_plan_from_dict
from understudy.errors import InputError, UsageError
from understudy.schema import load_schema

from .conftest import IMAGES, TABLE


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_look_and_descent_together_meet_the_budget(rate: float) -> None:
    plan = ClassifierPlan(TABLE, Budget(1.0), Training(sampling_rate=rate, steps=50))
    assert 0.99 < plan.descent.epsilon() <= 1.0
    assert plan.descent.epsilon() <= plan.descent.charged_epsilon() + 1e-9 <= 1.0 + 1e-9
    look, descent = plan.descent.charges
    assert look.slack == 0
    assert (descent.slack > 0) == (rate < 1)
    assert plan.look_noise is not None
    assert look.mu_squared == Fraction(RADIUS**4, plan.look_noise**2 - 4)
    if rate == 1:
        costs = [look.mu_squared, 50 / Fraction(plan.descent.cost.noise_multiplier) ** 2]
        assert plan.descent.epsilon() == pytest.approx(epsilon_of(costs, 1e-5))
    else:
        expected = plan.descent.cost.epsilon(1e-5, beside=[look.mu_squared])
        assert plan.descent.epsilon() == expected


def test_noise_depends_on_public_numbers_alone() -> None:
    plans = [ClassifierPlan(TABLE, Budget(1.0), num_rows=rows) for rows in (None, 10, 10**6)]
    assert len({plan.descent.cost for plan in plans}) == 1
    assert len({plan.look_noise for plan in plans}) == 1


def test_a_larger_budget_takes_more_steps() -> None:
    steps = [ClassifierPlan(TABLE, Budget(epsilon)).steps for epsilon in (0.1, 0.5, 2.0, 50.0)]
    assert steps == [30, 60, 120, 240]
    assert ClassifierPlan(TABLE, Budget(1.0), Training(steps=7)).steps == 7


def test_a_plan_comes_back_from_its_canonical_form() -> None:
    training = Training(num_maps=3, projected=5, sampling_rate=0.1, seed=4)
    plan = ClassifierPlan(TABLE, Budget(1.0), training, num_rows=1000)
    again = classifier_plan_from_dict(plan.to_dict())
    assert again.fingerprint == plan.fingerprint
    assert again.shape == plan.shape


@pytest.mark.parametrize(
    "damage",
    [
        {"epsilon": True},
        {"delta": "1e-5"},
        {"num_rows": 10.5},
        {"training": {"num_maps": 2}},
        {"radius": 1},
        {"more": 0},
    ],
)
def test_a_damaged_canonical_form_is_refused(damage: dict[str, object]) -> None:
    document = ClassifierPlan(TABLE, Budget(1.0), num_rows=1000).to_dict()
    with pytest.raises(ValueError, match=r"number|lacks|version|no field"):
        classifier_plan_from_dict(document | damage)


def test_images_get_strokes_and_tables_hats_unless_asked_otherwise() -> None:
    assert ClassifierPlan(IMAGES, Budget(1.0)).inputs.dim > 200
    cosines = Training(inputs="cosines", num_coefficients=10)
    assert ClassifierPlan(IMAGES, Budget(1.0), cosines).inputs.dim == 11


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": 0},
        {"num_maps": 0},
        {"clip": 0.0},
        {"look": 1.0},
        {"sampling_rate": 0.0},
        {"projected": 0},
        {"averaged": 2.0},
        {"inverse_temperature": float("nan")},
    ],
)
def test_settings_outside_their_rules_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Training(**settings)  # type: ignore[arg-type]


def test_refusals() -> None:
    unlabelled = load_schema({"name": "t", "columns": [{"name": "x", "kind": "integer", "bounds": [0, 1]}]})
    with pytest.raises(InputError, match="label"):
        ClassifierPlan(unlabelled, Budget(1.0))
    with pytest.raises(UsageError, match="rows"):
        ClassifierPlan(TABLE, Budget(1.0), Training(look=0))
    with pytest.raises(UsageError, match="delta"):
        _ = ClassifierPlan(TABLE, Budget(1.0, 0)).descent
    wide = Training(inputs="cosines", num_coefficients=5000)
    large = load_schema(
        {
            "name": "large",
            "image": {"height": 64, "width": 64},
            "columns": [{"name": "label", "kind": "binary", "categories": [0, 1], "role": "label"}],
        }
    )
    with pytest.raises(UsageError, match="second moments"):
        ClassifierPlan(large, Budget(1.0), wide)
