from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from receipts import unrecorded

from understudy import Budget, create_ledger, load_schema, make_plan, release_table
from understudy.accounting.dpsgd import DescentCost
from understudy.accounting.mechanisms import NO_CHARGE, Charge, Neighbours
from understudy.errors import BudgetError, InputError, UsageError
from understudy.files import to_json, write_directory
from understudy.networks import EncoderTraining, load_encoder, save_encoder
from understudy.networks.public import document_of
from understudy.plan.descent import DescentPlan
from understudy.plan.encoder import ExtractorPlan, extractor_plan_from_dict
from understudy.plan.plan import Plan, plan_from_dict
from understudy.private.dpsgd import networks
from understudy.private.dpsgd.encoder import _rows, train_private_encoder
from understudy.private.dpsgd.networks import noisy_descent
from understudy.private.dpsgd.steps import Descent
from understudy.private.ledger import read_ledger
from understudy.private.noise import SeededNoise
from understudy.released import verify_release
from understudy.released.encoder import PrivateEncoder, load_private_encoder, verify_encoder
from understudy.schema import PrivacyUnit

ROWS = 120
TRAINING = EncoderTraining(
    depths=(3,), strides=(1,), kernels=(3,), components=4, steps=20, batch=60, learning_rate=0.05
)
LABEL = {"name": "label", "kind": "categorical", "role": "label", "categories": ["a", "b"], "nullable": True}
SCHEMA = load_schema({"name": "dots", "rows": ROWS, "image": {"height": 4, "width": 4}, "columns": [LABEL]})


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
    assert 1.8 < made.encoder.private_cost["epsilon"] <= 2.0
    again = load_encoder(tmp_path / "made")
    told = made.encoder.sha256, made.encoder.private_cost
    assert (again.sha256, again.private_cost) == told
    whole = load_private_encoder(tmp_path / "made")
    assert (whole.fingerprint, whole.plan.fingerprint) == (made.fingerprint, plan_of().fingerprint)
    other = train_private_encoder(table(), plan_of())
    assert other.encoder.sha256 != made.encoder.sha256, "noise has no seed"


def test_classes_are_learnt_where_noise_is_small():
    plan = plan_of()
    rows, loss = _rows(table(), plan), plan.row_loss(torch)
    learnt = noisy_descent(
        plan.start(torch),
        loss,
        rows,
        Descent(
            DescentPlan(plan.budget, DescentCost(1.0, 0.01, 30), 1.0, 0.05, ROWS),
            unrecorded(),
            SeededNoise(0),
            rule="adam",
        ),
    )
    tensors = [torch.from_numpy(each) for each in rows]
    before, after = (
        float(torch.func.vmap(loss, in_dims=(None, 0, 0, 0))(place, *tensors).mean())
        for place in (plan.start(torch), learnt)
    )
    assert after < 0.3 < before


def test_a_row_without_a_label_moves_nothing():
    plan = plan_of()
    rows = _rows(table(nulls=3), plan)
    start = plan.start(torch)
    gradients = networks._gradients(torch, start, plan.row_loss(torch))(networks._flat(start), rows)
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
    assert plan.descent.charge.slack == 0
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


def release_plan(encoder: PrivateEncoder, epsilon: float = 3.0) -> Plan:
    options = {"encoder": encoder.network("own"), "steps": 1}
    return make_plan(SCHEMA, Budget(epsilon), method="dp-mepf", options=options)


@pytest.fixture(scope="module")
def learnt() -> PrivateEncoder:
    return train_private_encoder(table(), plan_of(2.0))


@pytest.fixture(scope="module")
def tested() -> PrivateEncoder:
    return train_private_encoder(table(), plan_of(2.0), noise=SeededNoise(0))


def test_the_guarantee_of_a_release_is_that_of_its_moments_and_of_the_network_together(
    learnt: PrivateEncoder, tmp_path: Path
):
    plan, ledger = release_plan(learnt), tmp_path / "ledger.db"
    create_ledger(ledger, Budget(4.0))
    release_table(table(), plan, directory=tmp_path / "made", ledger=ledger)
    stated = json.loads((tmp_path / "made" / "certificate.json").read_bytes())
    cost = learnt.encoder.private_cost
    charges = [Charge(Fraction(cost["mu_squared"]), Fraction(cost["slack"])), *(Charge(each) for each in plan.cost())]
    together = sum(charges, NO_CHARGE).epsilon(1e-5)
    assert 3.0 < together < 5.0
    guarantee, odds = stated["guarantee"], stated["odds"]
    assert plan.epsilon() == together <= guarantee["epsilon"] < together * 1.001
    assert guarantee["epsilon_add_remove"] == guarantee["epsilon"]
    assert 2.99 < guarantee["epsilon_alone"] <= 3.0
    assert 1.8 < guarantee["epsilon_of_the_network"] <= 2.0
    assert guarantee["mu"] ** 2 >= sum(charge.mu_squared for charge in charges)
    for delta, epsilon in guarantee["curve"]:
        assert epsilon >= sum(charges, NO_CHARGE).epsilon(delta) > plan.own_epsilon(delta=delta)
    assert [delta for delta, _ in guarantee["curve"]] == [1e-3, 1e-4, 1e-5, 1e-6]  # slack is 1e-7
    alone = plan.mechanism.best_guess(plan.cost())
    assert plan.best_guess > alone + 0.01
    assert odds["best_guess_percent"] >= 100 * plan.best_guess
    assert odds["suspicion_to_percent"] >= 100 / (1 + np.exp(-together))
    assert plan.mechanism.exceedance(plan.cost(), plan.epsilon()) < plan.exceedance < 1e-3
    found = verify_release(tmp_path / "made")
    assert (found.epsilon, found.is_private) == (together, True)
    assert found.epsilon_alone == plan.own_epsilon() <= plan.budget.epsilon
    said = {each["name"]: each["statement"] for each in stated["assumptions"]}
    assert "public network" not in said
    assert "noise of the network" not in said
    assert "The guarantee above counts both" in said["network learnt from the same rows"]
    page = (tmp_path / "made" / "certificate.html").read_text()
    assert "privately learnt network own" in page
    assert f"epsilon {guarantee['epsilon_alone']} this release" in page
    # A ledger was charged for the encoder when it was made; here only for what is new.
    (row,) = read_ledger(ledger).rows
    assert Fraction(row.units, 2**40) == pytest.approx(float(sum(plan.cost())), rel=1e-9)


@pytest.mark.parametrize(
    ("budget", "wish", "where"),
    [
        (Budget(1.0, 0.0), {}, "delta"),
        (Budget(1.0, 1e-8), {}, "delta"),
        (Budget(1.0), {"neighbours": "replace-one", "num_rows": ROWS}, "neighbours"),
    ],
)
def test_a_plan_whose_cost_does_not_add_to_that_of_the_network_is_refused(
    learnt: PrivateEncoder, budget: Budget, wish: dict[str, Any], where: str
):
    options = {"encoder": learnt.network("own"), "steps": 1, **wish}
    with pytest.raises(UsageError) as refusal:
        make_plan(SCHEMA, budget, method="dp-mepf", options=options)
    assert refusal.value.where == where


@pytest.mark.parametrize("cost", ["-1", "1e999999999", "x", "1/2/3"])
def test_a_plan_with_a_cost_that_is_none_is_damaged(learnt: PrivateEncoder, cost: str):
    document = json.loads(json.dumps(release_plan(learnt).to_dict()))
    document["settings"]["encoder"]["private_cost"]["mu_squared"] = cost
    with pytest.raises(InputError, match="damaged"):
        plan_from_dict(document)


@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_plan_that_does_not_say_what_its_network_cost_is_damaged(learnt: PrivateEncoder, name: str):
    """The certificate repeats it: it must not be missed after the charge."""
    document = json.loads(json.dumps(release_plan(learnt).to_dict()))
    del document["settings"]["encoder"]["private_cost"][name]
    with pytest.raises(InputError, match="damaged"):
        plan_from_dict(document)


def test_a_network_learnt_with_noise_for_tests_is_not_private_nor_is_what_is_made_with_it(
    tested: PrivateEncoder, tmp_path: Path
):
    again = tmp_path / "encoder"
    train_private_encoder(table(), plan_of(2.0), directory=again, noise=SeededNoise(0))
    assert not load_encoder(again).private_cost["is_private"]
    assert not verify_encoder(again).is_private
    assert json.loads((again / "certificate.json").read_bytes())["status"] == "NOT PRIVATE"
    plan = release_plan(tested)
    release = release_table(table(), plan, directory=tmp_path / "made")  # with real noise
    assert dict(release.facts)["is_private"]
    assert not release.is_private
    assert not verify_release(tmp_path / "made").is_private
    stated = json.loads((tmp_path / "made" / "certificate.json").read_bytes())
    assert stated["status"] == "NOT PRIVATE"
    page = (tmp_path / "made" / "certificate.html").read_text()
    assert "NOT PRIVATE" in page
    assert "The network it was made with is not" in page
    assert "DIFFERENTIALLY PRIVATE" not in page


def test_a_release_made_with_noise_for_tests_is_not_given_back_by_its_key(tested: PrivateEncoder, tmp_path: Path):
    ledger, plan = tmp_path / "ledger.db", release_plan(tested, 1.0)
    create_ledger(ledger, Budget(9.0))
    first, second = (release_table(table(), plan, directory=tmp_path / name, ledger=ledger, key="k") for name in "ab")
    assert first.fingerprint != second.fingerprint
    assert len(read_ledger(ledger).rows) == 2


def test_an_encoder_has_a_certificate_and_a_mark_in_the_ledger(tmp_path: Path):
    ledger, made = tmp_path / "ledger.db", tmp_path / "made"
    create_ledger(ledger, Budget(4.0), reserve=0.05)
    encoder = train_private_encoder(table(), plan_of(), directory=made, ledger=ledger, key="k")
    (row,) = read_ledger(ledger).rows
    assert (row.key, row.state, row.directory) == ("k", "published", str(made.resolve()))
    assert row.fingerprint == encoder.fingerprint
    stated = json.loads((made / "certificate.json").read_bytes())
    assert (stated["status"], stated["table"]) == ("PRIVATE", "dots")
    assert 1.8 < stated["guarantee"]["epsilon"] <= 2.0
    assert stated["guarantee"]["unit"] == "row"
    mechanism, descent = stated["mechanism"], plan_of().descent.cost
    assert (mechanism["sampling_rate"], mechanism["steps"], mechanism["clip"]) == (0.5, 20, 1.0)
    assert mechanism["noise_multiplier"] == descent.noise_multiplier
    numbers = sum(value.numel() for value in plan_of().start(torch).values())
    assert mechanism["stages"][0]["numbers_released"] == numbers
    assert stated["composition"]["ledger"] == {"key": "k", "row": 1}
    assert "torch" in stated["software"]
    found = verify_encoder(made)
    assert (found.fingerprint, found.is_private) == (encoder.fingerprint, True)
    assert found.epsilon <= 2.0
    assert "DIFFERENTIALLY PRIVATE" in (made / "certificate.html").read_text()
    assert not re.search(rf"\b{ROWS - 1}\b", json.dumps(stated))  # as a number: a hash may hold these digits


def test_the_same_key_gives_the_stored_encoder_back_while_it_is_there_and_whole(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0), reserve=0.2)
    settings: dict[str, Any] = {"ledger": ledger, "key": "k"}
    first = train_private_encoder(table(), plan_of(1.0), directory=tmp_path / "a", **settings)
    again = train_private_encoder("no file", plan_of(1.0), directory=tmp_path / "b", **settings)
    assert again.fingerprint == first.fingerprint == verify_encoder(tmp_path / "b").fingerprint
    assert len(read_ledger(ledger).rows) == 1
    with pytest.raises(InputError, match="another plan"):
        train_private_encoder(table(), plan_of(2.0), **settings)
    kept = tmp_path / "a" / "encoder.json"
    kept.write_bytes(kept.read_bytes().replace(b'"created": "2', b'"created": "3'))
    other = train_private_encoder(table(), plan_of(1.0), directory=tmp_path / "c", **settings)
    assert other.fingerprint != first.fingerprint
    assert len(read_ledger(ledger).rows) == 2


def test_an_encoder_with_noise_for_tests_is_not_given_back_by_its_key(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0), reserve=0.2)
    settings: dict[str, Any] = {"ledger": ledger, "key": "k"}
    where = tmp_path / "a"
    train_private_encoder(table(), plan_of(1.0), directory=where, noise=SeededNoise(0), **settings)
    assert train_private_encoder(table(), plan_of(1.0), **settings).is_private
    assert len(read_ledger(ledger).rows) == 2


@pytest.mark.parametrize(
    "change", [{"mu_squared": "1/1000"}, {"noise_multiplier": 0.5}, {"is_private": False}], ids=list
)
def test_a_cost_that_does_not_follow_from_the_plan_is_found(
    learnt: PrivateEncoder, tmp_path: Path, change: dict[str, Any]
):
    """Though hash, certificate and page are those of the changed cost."""
    cost = learnt.encoder.private_cost | change
    forged = replace(learnt, encoder=replace(learnt.encoder, private_cost=cost))
    write_directory(tmp_path / "made", forged.files())
    with pytest.raises(InputError, match=r"does not follow from its plan|damaged"):
        verify_encoder(tmp_path / "made")


@pytest.mark.parametrize("name", ["certificate.json", "certificate.html", "schema.yaml", "more"])
def test_a_changed_or_added_file_is_found(learnt: PrivateEncoder, tmp_path: Path, name: str):
    made = write_directory(tmp_path / "made", learnt.files())
    assert verify_encoder(made).is_private
    with (made / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(InputError, match="changed or damaged"):
        verify_encoder(made)


def test_an_encoder_with_a_certificate_but_without_its_cost_is_refused(learnt: PrivateEncoder, tmp_path: Path):
    public = replace(learnt.encoder, private_cost=None)
    made = write_directory(tmp_path / "made", learnt.files())
    (made / "encoder.json").write_bytes(to_json(document_of(public)))
    with pytest.raises(InputError, match="missing or damaged"):
        load_encoder(made)
    # Without all that says otherwise it is taken for public, and certificates state that as an assumption.
    save_encoder(public, tmp_path / "stripped")
    with pytest.raises(InputError, match="is public"):
        verify_encoder(tmp_path / "stripped")
    options = {"encoder": tmp_path / "stripped", "steps": 1}
    release = release_table(table(), make_plan(SCHEMA, Budget(1.0), method="dp-mepf", options=options))
    said = json.loads(release.files()["certificate.json"])["assumptions"]
    assert "public network" in {each["name"] for each in said}


def test_an_encoder_of_an_earlier_version_loads_and_its_noise_is_an_assumption(learnt: PrivateEncoder, tmp_path: Path):
    told = {"is_private", "noise"}
    cost = {name: value for name, value in learnt.encoder.private_cost.items() if name not in told}
    save_encoder(replace(learnt.encoder, private_cost=cost), tmp_path / "old")
    with pytest.raises(InputError, match="earlier version"):
        verify_encoder(tmp_path / "old")
    options = {"encoder": tmp_path / "old", "steps": 1}
    plan = make_plan(SCHEMA, Budget(1.0), method="dp-mepf", options=options)
    assert plan.epsilon() > 2.0
    release = release_table(table(), plan)
    said = json.loads(release.files()["certificate.json"])["assumptions"]
    assert "noise of the network" in {each["name"] for each in said}


def test_a_plan_comes_back_from_its_description():
    plan = plan_of(num_rows=77, clip=0.5)
    document = json.loads(json.dumps(plan.to_dict()))
    again = extractor_plan_from_dict(document)
    assert (again.fingerprint, again.cost({"is_private": True, "noise": "n"})["clip"]) == (plan.fingerprint, 0.5)


def test_a_machine_whose_gradients_hang_on_the_block_is_refused_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0), reserve=0.05)
    gradients = networks._gradients

    def mixed(*args: Any) -> Any:
        compute = gradients(*args)
        return lambda place, rows: compute(place, rows) + rows[0].astype(np.float32).mean()

    monkeypatch.setattr(networks, "_gradients", mixed)
    with pytest.raises(InputError, match="computes a row's gradient differently"):
        train_private_encoder(table(), plan_of(), ledger=ledger, directory=tmp_path / "made")
    assert read_ledger(ledger).rows == ()
    assert not (tmp_path / "made").exists()


def test_images_without_classes_are_refused():
    plain = load_schema({"name": "x", "image": {"height": 4, "width": 4}, "columns": []})
    with pytest.raises(UsageError, match="named classes"):
        ExtractorPlan(plain, Budget(1.0))
