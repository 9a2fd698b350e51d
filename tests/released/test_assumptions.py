"""Every product of private rows states what it rests on, by the same sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy.accounting.mechanisms import Budget
from understudy.classifier.model import classifier_certificate
from understudy.classifier.plan import ClassifierPlan, Training
from understudy.methods import make_plan
from understudy.networks import EncoderTraining
from understudy.plan.encoder import ExtractorPlan
from understudy.released.assumptions import shared_assumptions
from understudy.released.certificate import build_certificate
from understudy.released.encoder import encoder_certificate
from understudy.schema import Schema, load_schema

LABEL = {
    "name": "ill",
    "kind": "categorical",
    "role": "label",
    "categories": ["no", "yes"],
    "bounds_from": "definition",
}
ALWAYS = {"one row, one unit", "public schema", "types fixed in advance", "randomness", "size", "trusted curator"}


def schema_of(sources: tuple[str, ...]) -> Schema:
    numbers = [
        {"name": f"x{i}", "kind": "integer", "bounds": [0, 9], "bounds_from": source}
        for i, source in enumerate(sources)
    ]
    return load_schema({"name": "t", "rows": 100, "columns": [*numbers, LABEL]})


def images_of(sources: tuple[str, ...]) -> Schema:
    source = sources[0] if sources else "definition"
    columns = [LABEL | {"bounds_from": source}]
    return load_schema({"name": "t", "rows": 100, "image": {"height": 4, "width": 4}, "columns": columns})


def release(schema: Schema, facts: dict[str, Any]) -> dict[str, Any]:
    plan = make_plan(schema, Budget(1.0), method="dp-merf", options={"num_features": 4})
    return build_certificate(plan, facts, fingerprint="")


def classifier(schema: Schema, facts: dict[str, Any]) -> dict[str, Any]:
    plan = ClassifierPlan(schema, Budget(1.0), Training(steps=3))
    return classifier_certificate(plan, facts, fingerprint="")


def encoder(schema: Schema, facts: dict[str, Any]) -> dict[str, Any]:
    training = EncoderTraining(depths=(2,), strides=(1,), kernels=(3,), components=2, steps=3, batch=100)
    plan = ExtractorPlan(schema, Budget(1.0), training)
    return encoder_certificate(plan, facts, fingerprint="")


@pytest.mark.parametrize(
    ("source", "name"), [("rounded", "bounds from data"), ("not stated", "source of bounds"), ("law", None)]
)
@pytest.mark.parametrize(
    ("certified", "schema"),
    [(release, schema_of), (classifier, schema_of), (encoder, images_of)],
    ids=["release", "classifier", "encoder"],
)
def test_a_certificate_states_what_every_product_rests_on(
    certified: Callable[[Schema, dict[str, Any]], dict[str, Any]],
    schema: Callable[[tuple[str, ...]], Schema],
    source: str,
    name: str | None,
):
    facts = {"is_private": True, "query": "select * from data"}
    described = schema((source,))
    stated = {each["name"]: each["statement"] for each in certified(described, facts)["assumptions"]}
    shared = dict(shared_assumptions(described, facts))
    assert shared.items() <= stated.items()
    assert {*ALWAYS, "row by row query"} <= set(shared)
    from_bounds = {"bounds from data", "source of bounds"} & set(stated)
    assert from_bounds == ({name} if name else set())
