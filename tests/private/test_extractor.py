from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from understudy import Budget, create_ledger, load_schema, make_plan, release_table
from understudy.accounting import Neighbours
from understudy.accounting.descent import Charge, DescentCost, epsilon_of_charges
from understudy.encoders import EncoderTraining, load_encoder
from understudy.encoders.extractor import ExtractorPlan
from understudy.errors import BudgetError, InputError, UsageError
from understudy.private.descent.networks import noisy_descent, row_gradients
from understudy.private.descent.steps import Steps
from understudy.private.extractor import _rows, train_private_encoder
from understudy.private.ledger import read_ledger
from understudy.private.noise import SeededNoise
from understudy.published.certificate import build_certificate
from understudy.schema import PrivacyUnit

ROWS = 120
TRAINING = EncoderTraining(
    depths=(3,), strides=(1,), kernels=(3,), components=4, steps=20, batch=60, learning_rate=0.05
)
LABEL = {
    "name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b"], "nullable": True,
}  # fmt: skip
SCHEMA = load_schema({
    "name": "dots", "rows": ROWS, "image": {"height": 4, "width": 4}, "columns": [LABEL],
})  # fmt: skip


def plan_of(epsilon: float = 2.0, **wish: Any) -> ExtractorPlan:
    return ExtractorPlan(SCHEMA, Budget(epsilon), TRAINING, **wish)


def table(*, nulls: int = 0) -> pa.Table:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, ROWS)
    pixels = rng.integers(0, 60, (ROWS, 16)) + 190 * codes[:, None]
    labels: list[str | None] = ["ab"[code] for code in codes]
    labels[:nulls] = [None] * nulls
    return pa.table(dict(zip(SCHEMA.image.names, pixels.T, strict=True)) | {"label": labels})


def test_an_encoder_is_learnt_kept_and_says_what_it_cost(tmp_path: Path):
    made = train_private_encoder(table(), plan_of(), directory=tmp_path / "made")
    assert 1.8 < made.private_cost["epsilon"] <= 2.0
    again = load_encoder(tmp_path / "made")
    assert (again.sha256, again.private_cost) == (made.sha256, made.private_cost)
    other = train_private_encoder(table(), plan_of())
    assert other.sha256 != made.sha256, "noise has no seed"


def test_classes_are_learnt_where_noise_is_small():
    plan = plan_of()
    rows, loss = _rows(table(), plan), plan.row_loss(torch)
    learnt = noisy_descent(
        plan.start(torch), loss, rows, cost=DescentCost(1.0, 0.01, 30), clip=1.0,
        expected_rows=float(ROWS), steps=Steps(0.05, rule="adam"), noise=SeededNoise(0),
    )  # fmt: skip
    tensors = [torch.from_numpy(each) for each in rows]
    before, after = (
        float(torch.func.vmap(loss, in_dims=(None, 0, 0, 0))(place, *tensors).mean())
        for place in (plan.start(torch), learnt)
    )
    assert after < 0.3 < before


def test_a_row_without_a_label_moves_nothing():
    plan = plan_of()
    rows = _rows(table(nulls=3), plan)
    gradients = row_gradients(plan.start(torch), plan.row_loss(torch), rows)
    assert (gradients[:3] == 0).all()
    assert (np.abs(gradients[3:]).max(axis=1) > 0).all()


def test_a_ledger_is_charged_before_and_caps_both_releases(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(4.0), reserve=0.05)
    train_private_encoder(table(), plan_of(2.0), ledger=ledger)
    (row,) = read_ledger(ledger).rows
    assert row.description == "encoder on dots"
    with pytest.raises(BudgetError):
        train_private_encoder(table(), plan_of(3.9), ledger=ledger)
    assert len(read_ledger(ledger).rows) == 1


def test_a_ledger_of_replaced_rows_is_refused(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(4.0), neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(InputError, match="add-remove"):
        train_private_encoder(table(), plan_of(), ledger=ledger)


def test_a_pure_ledger_is_refused_though_nothing_is_sampled(tmp_path: Path):
    # Without sampling there is no slack, and mu squared would pass for an epsilon.
    ledger, plan = tmp_path / "ledger.db", plan_of(num_rows=60)
    create_ledger(ledger, Budget(4.0, 0.0))
    assert plan.charge.slack == 0
    with pytest.raises(InputError, match="pure differential privacy"):
        train_private_encoder(table(), plan, ledger=ledger)
    assert read_ledger(ledger).rows == ()


def test_people_with_several_images_are_not_taken_for_rows(tmp_path: Path):
    people = replace(SCHEMA, privacy=PrivacyUnit("person", 3))
    with pytest.raises(UsageError, match="protects every person"):
        ExtractorPlan(people, Budget(2.0), TRAINING)
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0), reserve=0.05)
    visits = table().append_column("person", pa.array([str(i % 50) for i in range(ROWS)]))
    per_person = make_plan(people, Budget(1.0), method="dp-merf", options={"num_features": 4})
    release_table(visits, per_person, ledger=ledger)
    with pytest.raises(InputError, match="holds releases per person"):
        train_private_encoder(table(), plan_of(), ledger=ledger)
    learnt = train_private_encoder(table(), plan_of()).network("own")
    with pytest.raises(UsageError, match="at a cost per row"):
        make_plan(people, Budget(1.0), method="dp-mepf", options={"encoder": learnt})


def test_the_certificate_of_a_release_adds_what_the_network_cost():
    encoder = train_private_encoder(table(), plan_of(2.0))
    options = {"encoder": encoder.network("own"), "steps": 1}
    plan = make_plan(SCHEMA, Budget(3.0), method="dp-mepf", options=options)
    release = release_table(table(), plan)
    said = {
        each["name"]: each["statement"]
        for each in build_certificate(plan, dict(release.facts), fingerprint="x")["assumptions"]
    }
    assert "public network" not in said
    words = said["network learnt from the same rows"]
    cost = encoder.private_cost
    charges = [
        Charge(Fraction(cost["mu_squared"]), Fraction(cost["slack"])),
        *(Charge(each) for each in plan.cost()),
    ]
    together = epsilon_of_charges(charges, 1e-5)
    assert 3.0 < together < 5.0
    told = float(words.split("both together have epsilon ")[1].split()[0])
    assert together <= told < together * 1.001


def test_images_without_classes_are_refused():
    plain = load_schema({"name": "x", "image": {"height": 4, "width": 4}, "columns": []})
    with pytest.raises(UsageError, match="named classes"):
        ExtractorPlan(plain, Budget(1.0))
