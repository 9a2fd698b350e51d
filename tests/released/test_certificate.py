from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.accounting.mechanisms import GAUSSIAN, Budget, Neighbours, round_up
from understudy.methods import balog_features, balog_subspace, dp_merf, dp_spectrum
from understudy.plan.plan import ROW_CAP, Plan
from understudy.released.certificate import build_certificate, render_html
from understudy.schema import load_schema

DOCUMENT: dict[str, Any] = {
    "name": "<b>bold</b> & co",
    "columns": [
        {"name": "x", "kind": "continuous", "bounds": [0, 1], "bounds_from": "law"},
        {"name": "n", "kind": "integer", "bounds": [0, 90], "bounds_from": "rounded"},
        {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
    ],
}
FACTS = {"created": "now", "is_private": True, "noise": "exact", "software": {"understudy": "0"}}


def plan_for(**options: Any) -> Plan:
    return dp_merf(load_schema(DOCUMENT), Budget(1.0), **({"num_features": 4} | options))


def certificate_of(plan: Plan, **facts: Any) -> dict[str, Any]:
    return build_certificate(plan, FACTS | facts, fingerprint="f" * 64)


def assumptions(certificate: dict[str, Any]) -> set[str]:
    return {assumption["name"] for assumption in certificate["assumptions"]}


@settings(deadline=None)
@given(value=st.floats(min_value=1e-300, max_value=1e300))
def test_rounding_up_never_understates_and_keeps_four_digits(value: float) -> None:
    assert value <= round_up(value) <= value * 1.0011


@pytest.mark.parametrize(("value", "rounded"), [(1.0, 1.0), (0.99999, 1.0), (1.00001, 1.001), (0, 0), (math.inf,) * 2])
def test_rounding_up_of_known_values(value: float, rounded: float) -> None:
    assert round_up(value) == rounded


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_certificate_states_what_the_plan_guarantees(neighbours: Neighbours) -> None:
    plan = plan_for(neighbours=neighbours, num_rows=77)
    found = certificate_of(plan)
    guarantee = found["guarantee"]
    assert plan.epsilon() <= guarantee["epsilon"] <= plan.epsilon() * 1.0011
    assert guarantee["delta"] == plan.budget.delta
    assert guarantee["neighbours"] == neighbours.value
    for notion in Neighbours:
        stated = guarantee[f"epsilon_{notion.value.replace('-', '_')}"]
        assert plan.epsilon(notion) <= stated <= plan.epsilon(notion) * 1.0011
    epsilons = [epsilon for _, epsilon in guarantee["curve"]]
    assert epsilons == sorted(epsilons), "a smaller delta cannot have a smaller epsilon"
    assert guarantee["mu"] ** 2 >= sum(plan.cost())


def test_odds_are_true_in_both_their_parts() -> None:
    """The privacy loss passes epsilon more often than delta: the page must not say 'delta'."""
    plan = plan_for()
    odds = certificate_of(plan)["odds"]
    epsilon = plan.epsilon()
    assert odds["suspicion_to_percent"] >= 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
    assert odds["except_with_probability"] >= GAUSSIAN.exceedance(plan.cost(), epsilon)
    assert odds["except_with_probability"] > 10 * plan.budget.delta


def test_a_private_row_count_is_called_private_and_a_public_one_is_told() -> None:
    assert certificate_of(plan_for())["public"]["rows"].startswith("private")
    public = plan_for(neighbours=Neighbours.REPLACE_ONE, num_rows=77)
    assert certificate_of(public)["public"]["rows"] == "public: 77"


def test_noise_without_privacy_is_called_not_private() -> None:
    assert certificate_of(plan_for())["status"] == "PRIVATE"
    for facts in ({"is_private": False}, {"is_private": None}):
        found = certificate_of(plan_for(), **facts)
        assert found["status"] == "NOT PRIVATE"
        assert "This release is NOT PRIVATE" in page_of(found)
        assert "are right at most" not in page_of(found)


def page_of(certificate: dict[str, Any]) -> str:
    facts = {"query": None, "ledger": None}
    return render_html(json.loads(json.dumps(facts | certificate)))


def test_a_query_adds_the_assumption_that_it_works_row_by_row() -> None:
    assert "row by row query" not in assumptions(certificate_of(plan_for()))
    found = certificate_of(plan_for(), query="SELECT x, n, y FROM data")
    assert "row by row query" in assumptions(found)
    assert "SELECT x, n, y FROM data" in page_of(found)


def test_bounds_that_came_from_data_or_from_nowhere_are_named() -> None:
    found = certificate_of(plan_for())
    assert {"bounds from data", "source of bounds"} <= assumptions(found)
    assert found["public"]["sources"] == {"law": 1, "not stated": 1, "rounded": 1}


@pytest.mark.parametrize("look", [False, True])
def test_rows_that_were_given_as_public_points_are_called_unprotected(look: bool) -> None:
    rows = {"x": [0.1, 0.2, 0.9], "n": [1, 50, 90], "y": ["no", "yes", "no"]}
    plan = balog_subspace(load_schema(DOCUMENT), Budget(1.0), public_points=rows, look=look)
    found = certificate_of(plan)
    assert found["public"]["given_points"] == 3
    (told,) = [a["statement"] for a in found["assumptions"] if a["name"] == "public points"]
    assert "The 3 rows" in told
    assert "outside the guarantee" in told
    assert told in page_of(found)
    assert "Public points: 3 given rows" in page_of(found)


def test_points_that_were_drawn_or_that_are_not_there_need_no_assumption() -> None:
    schema, budget = load_schema(DOCUMENT), Budget(1.0)
    drawn = balog_subspace(schema, budget, num_candidates=20)
    found = balog_features(schema, budget, num_features=4, num_candidates=20)
    for plan in (drawn, found, plan_for()):
        assert "public points" not in assumptions(certificate_of(plan))
        assert "Public points" not in page_of(certificate_of(plan))


def test_the_row_cap_is_among_the_assumptions() -> None:
    (size,) = [a for a in certificate_of(plan_for())["assumptions"] if a["name"] == "size"]
    assert f"{ROW_CAP:,}" in size["statement"]


def test_a_ledger_row_is_cited_and_its_absence_told() -> None:
    without = certificate_of(plan_for())["composition"]
    assert "No ledger" in without["in_words"]
    with_one = certificate_of(plan_for(), ledger={"key": "k-1", "row": 3})
    assert with_one["composition"]["ledger"] == {"key": "k-1", "row": 3}
    assert "k-1" in page_of(with_one)


def test_names_from_the_schema_cannot_write_into_the_page() -> None:
    page = page_of(certificate_of(plan_for(), query="<script>alert(1)</script>"))
    assert "<b>bold</b>" not in page
    assert "<script>" not in page


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_page_fits_both_notions_of_neighbours(neighbours: Neighbours) -> None:
    page = page_of(certificate_of(plan_for(neighbours=neighbours, num_rows=77)))
    assert ("rather than another" in page) == (neighbours is Neighbours.REPLACE_ONE)
    assert ("the row count is public" in page) == (neighbours is Neighbours.REPLACE_ONE)


# Laplace noise


def pure_plan(**options: Any) -> Plan:
    return dp_merf(load_schema(DOCUMENT), Budget(1.0, 0), **({"num_features": 4} | options))


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_pure_certificate_states_mechanism_l1_sensitivity_scale_and_epsilon(neighbours: Neighbours) -> None:
    plan = pure_plan(neighbours=neighbours, num_rows=77, length_scale="private")
    found = certificate_of(plan)
    assert found["mechanism"]["name"].startswith("Discrete Laplace noise")
    assert found["guarantee"]["delta"] == 0.0
    assert found["guarantee"]["curve"] == []
    for notion in Neighbours:
        stated = found["guarantee"][f"epsilon_{notion.value.replace('-', '_')}"]
        assert plan.epsilon(notion) <= stated <= plan.epsilon(notion) * 1.0011
    for index, stage in enumerate(found["mechanism"]["stages"]):
        assert stage["sensitivity_norm"] == "L1"
        assert stage["noise_scale"] == plan.noise_scales[index] / plan.lattice
        assert stage["noise_std"] == pytest.approx(math.sqrt(2) * stage["noise_scale"], rel=1e-9)
        exact = sum(plan.mechanism_sensitivities[index]) / plan.lattice
        assert exact <= stage["sensitivity"] <= exact * 1.0011
        assert stage["sensitivity"] / stage["noise_scale"] == pytest.approx(stage["epsilon"], rel=3e-3)
    stages = found["mechanism"]["stages"]
    assert sum(stage["epsilon"] for stage in stages) == pytest.approx(plan.epsilon(), rel=2e-3)
    assert found["composition"]["rule"] == "epsilon adds up over releases"


def test_pure_odds_have_no_exception() -> None:
    odds = certificate_of(pure_plan())["odds"]
    bound = 100 * math.e / (1 + math.e)
    assert bound <= odds["best_guess_percent"] <= bound * 1.001
    assert odds["suspicion_to_percent"] == odds["best_guess_percent"]
    assert odds["except_with_probability"] == 0


def test_the_page_of_a_pure_certificate_speaks_of_no_delta_but_its_absence() -> None:
    page = page_of(certificate_of(pure_plan()))
    assert "without any delta: pure differential privacy" in page
    assert "without exception" in page
    assert "sensitivity (L1)" in page
    assert "scale of noise" in page
    for words in ("at delta", "at other deltas", "except with probability", "exact trade-off"):
        assert words not in page
    gaussian = page_of(certificate_of(plan_for()))
    assert "at delta 1e-05" in gaussian
    assert "(L1)" not in gaussian


def test_an_image_set_is_one_line():
    schema = load_schema(
        {
            "image": {"height": 20, "width": 30, "channels": 3},
            "columns": [{"name": "kind", "kind": "binary", "role": "label", "categories": [0, 1]}],
        }
    )
    plan = dp_spectrum(schema, Budget(1.0))
    public = build_certificate(plan, {"is_private": True}, fingerprint="f")["public"]
    assert [column["name"] for column in public["columns"]] == ["image", "kind"]
    assert "20 x 30 x 3" in public["columns"][0]["domain"]
    assert public["columns_not_shown"] == 0


@pytest.mark.parametrize("components", [1, 4])
def test_images_that_a_basis_was_found_in_are_called_unprotected(components: int) -> None:
    schema = load_schema({"name": "dots", "image": {"height": 3, "width": 3}, "columns": []})
    assert schema.image is not None
    grey = np.random.default_rng(0).integers(0, 256, (30, 9))
    basis = dict(zip(schema.image.names, grey.T.tolist(), strict=True))
    options: dict[str, Any] = {"num_coefficients": 4, "components": components}
    plan = dp_spectrum(schema, Budget(1.0), basis=basis, **options)
    found = certificate_of(plan)
    (told,) = [a["statement"] for a in found["assumptions"] if a["name"] == "public images"]
    assert "outside the guarantee" in told
    assert told in page_of(found)
    cosines = dp_spectrum(schema, Budget(1.0), **options)
    assert "public images" not in assumptions(certificate_of(cosines))
