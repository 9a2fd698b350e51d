"""Every method, in every variant: no row that an adversary finds moves a stage further than is charged for it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from adversarial_rows import Reach, corner_codes, distance, past_vectors, random_codes, reaches, settled

from understudy import Budget, Neighbours, Schema, load_schema, make_plan
from understudy.errors import UsageError
from understudy.features import Norm
from understudy.methods import METHODS
from understudy.plan.plan import Plan
from understudy.private.passes import Run, sum_table
from understudy.private.sums import Work
from understudy.schema.encode import decode_table

from . import test_image_methods as images
from . import test_methods as tables

PASTS = ("rows", "the last", "alternating")
PERSONS = {"privacy": {"unit": "patient", "max_rows": 3}}


def variants() -> list[tuple[str, str, Schema, dict[str, Any]]]:
    """Every method for tables and for images, as the contract suites have them."""
    found = [
        (method, variant, tables.the_schema(), tables.QUICK[method] | options)
        for method, variants in tables.VARIANTS.items()
        for variant, options in variants.items()
    ]
    found += [
        (method, f"images, {variant}", images.the_schema(), options)
        for method, variants in images.VARIANTS.items()
        for variant, options in variants.items()
    ]
    found += [
        (method, "numeric label", tables.the_schema("number"), tables.QUICK[method]) for method in tables.VARIANTS
    ]
    for method, options in images.VARIANTS.items():
        plain = options["plain"]
        found.append((method, "images, unlabelled", images.the_schema(labelled=False), plain))
        if method != "dp-mepf":  # its encoder is for grey images
            found.append((method, "images, colours", images.the_schema(channels=3), plain))
    return found


def personal(schema: Schema) -> Schema:
    """The same columns, where several rows may be one person's."""
    return load_schema(schema.to_dict() | PERSONS)


def test_every_method_is_attacked() -> None:
    assert {method for method, *_ in variants()} == set(METHODS)


each_variant = pytest.mark.parametrize(
    ("method", "schema", "options"), [pytest.param(m, s, o, id=f"{m}-{v}") for m, v, s, o in variants()]
)
each_noise = pytest.mark.parametrize("delta", [1e-5, 0.0], ids=["gaussian", "laplace"])


def worst(plan: Plan) -> Reach:
    found = reaches(plan, pasts=PASTS, rows=8, climbs=6)
    assert {reach.stage for reach in found} == {stage.name for stage in plan.stages}
    return max(found, key=lambda reach: reach.worst)


@each_variant
@each_noise
def test_no_row_reaches_further_than_is_charged(
    method: str, schema: Schema, options: dict[str, Any], delta: float
) -> None:
    try:
        plan = make_plan(schema, Budget(1.0, delta), method=method, options=options)
    except UsageError:
        assert (method, delta) == ("dp-merf-ae", 0), "a descent has Gaussian noise"
        return
    found = worst(plan)
    assert found.worst <= 1, f"{found.stage}: {float(found.worst)}"
    assert found.worst > Fraction(1, 2), "an adversary who finds nothing proves nothing"


ALL_KINDS = [
    *((method, tables.the_schema(), tables.QUICK[method]) for method in tables.VARIANTS),
    *((m, images.the_schema(), v["plain"]) for m, v in images.VARIANTS.items() if m != "dp-merf-ae"),
]


@pytest.mark.parametrize(
    ("method", "schema", "options"), [pytest.param(*each, id=f"{each[0]}-{len(each[1].used)}") for each in ALL_KINDS]
)
@each_noise
def test_no_person_reaches_further_than_is_charged(
    method: str, schema: Schema, options: dict[str, Any], delta: float
) -> None:
    """A person with more rows than count, as far out as rows go, through the pass that chooses among them."""
    plan = make_plan(personal(schema), Budget(1.0, delta), method=method, options=options)
    assert worst(plan).worst <= 1
    rng = np.random.default_rng(0)
    past = past_vectors(plan, rng)["rows"]
    crowd = random_codes(plan, rng, 20)
    corners = rng.permutation(corner_codes(plan))[:4]
    persons = [np.repeat(corners[:1], 7, axis=0), corners, random_codes(plan, rng, 9)]
    for index, embedding in enumerate(settled(plan, past)):
        work = Work(plan.layout, embedding, plan.lattice)
        charged = sum(plan.mechanism_sensitivities[index])
        norm = Norm.L2 if delta else Norm.L1
        without = summed(plan, work, [(crowd, "crowd")])
        for rows in persons:
            moved = summed(plan, work, [(crowd, "crowd"), (rows, "one")]) - without
            assert distance(moved, norm) <= charged


def summed(plan: Plan, work: Work, people: list[tuple[Any, str]]) -> Any:
    """The sum over tables of people; each of the crowd is somebody else."""
    parts = []
    for codes, name in people:
        ids = [f"{name} {row}" if name == "crowd" else name for row in range(len(codes))]
        parts.append(decode_table(plan.schema, codes).append_column("patient", pa.array(ids)))
    return sum_table(pa.concat_tables(parts), work, query=None, run=Run())[:-1]


def test_an_adversary_finds_a_charge_that_is_too_small() -> None:
    """A plan whose second block is charged half: the search must see it."""
    plan = make_plan(tables.the_schema(), Budget(1.0), method="dp-merf", options={"num_features": 8})
    charged = tuple(tuple(part // 2 for part in parts) for parts in plan.mechanism_sensitivities)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "_sensitivities", lambda self, neighbours: charged)
        cheap = make_plan(tables.the_schema(), Budget(1.0), method="dp-merf", options={"num_features": 8})
        found = reaches(cheap, pasts=PASTS, rows=8, climbs=6)
    by_notion = {reach.neighbours: reach.ratio for reach in found}
    assert by_notion[Neighbours.ADD_REMOVE] > Fraction(19, 10)
