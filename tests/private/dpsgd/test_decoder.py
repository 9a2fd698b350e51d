"""A decoder learns from private images through noisy descent, and the encoder stays inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from receipts import unrecorded

from understudy import Budget, create_ledger, load_schema, make_plan, release_table
from understudy.errors import InputError
from understudy.plan.descent import DecoderPlan
from understudy.plan.plan import Plan
from understudy.private.dpsgd import networks
from understudy.private.dpsgd.networks import read_images, row_gradients, train_decoder
from understudy.private.ledger import read_ledger
from understudy.private.spending import Receipt


class Silence:
    """No noise at all."""

    name, is_private = "none", False

    def add_noise(self, sums: np.ndarray, noise_std: int, receipt: Receipt) -> np.ndarray:
        return sums

    def add_laplace_noise(self, sums: np.ndarray, scale: int, receipt: Receipt) -> np.ndarray:
        return sums


def the_plan(*, steps: int = 80) -> Plan:
    label = {"name": "side", "kind": "categorical", "role": "label", "categories": ["left", "right"]}
    schema = load_schema({"name": "halves", "rows": 300, "image": {"height": 2, "width": 4}, "columns": [label]})
    return make_plan(schema, Budget(5.0), method="dp-merf-ae", options={"descent_steps": steps})


def halves(count: int = 300) -> pd.DataFrame:
    """One half of the picture is bright."""
    rng = np.random.default_rng(0)
    left = rng.random(count) < 0.5
    bright = np.where(left[:, None, None], [1, 1, 0, 0], [0, 0, 1, 1]).repeat(2, axis=1)
    pixels = np.rint(200 * bright + rng.uniform(0, 40, bright.shape)).reshape(count, 8)
    names = [f"pixel_{row}_{column}" for row in range(2) for column in range(4)]
    frame = pd.DataFrame(pixels.astype(int), columns=names)
    return frame.assign(side=np.where(left, "left", "right"))


def decoder_of(plan: Plan) -> DecoderPlan:
    assert plan.descent is not None
    return plan.descent


def test_images_and_labels_are_read_as_numbers_between_zero_and_one():
    frame = halves(20)
    images, labels = read_images(frame, the_plan(), query=None)
    assert images == pytest.approx(frame.iloc[:, :8].to_numpy() / 255, abs=1e-4)
    assert np.array_equal(labels[:, 0] == 1, frame["side"] == "left")
    assert (labels.sum(axis=1) == 1).all()


def test_what_is_handed_out_is_the_decoder_and_it_makes_images_of_codes():
    plan = the_plan()
    rows = read_images(halves(), plan, query=None)
    found = train_decoder(rows, decoder_of(plan), noise=Silence(), receipt=unrecorded())
    assert {name.split(".")[0] for name in found} == {"decoder"}
    network = decoder_of(plan).network
    places = 2 * network.margin * torch.eye(network.code_dim)[:2]
    weights = {name: torch.from_numpy(value) for name, value in found.items()}
    decoded = network.decode(weights, places).numpy().reshape(2, 2, 4)
    assert decoded[0, :, :2].mean() > decoded[0, :, 2:].mean() + 0.3
    assert decoded[1, :, 2:].mean() > decoded[1, :, :2].mean() + 0.3


def test_an_images_gradient_hangs_on_that_image_alone():
    """With the paper's encoder, trained on all images without noise, it would not."""
    network = decoder_of(the_plan()).network
    weights = {n: torch.from_numpy(v) for n, v in network.first_parameters(0).items()}
    images, labels = read_images(halves(16), the_plan(), query=None)
    whole = row_gradients(weights, network.loss, (images, labels))
    other = images.copy()
    other[1:] = 0.5
    changed = row_gradients(weights, network.loss, (other, labels))
    assert changed[0] == pytest.approx(whole[0], abs=1e-6)
    assert not np.allclose(changed[1], whole[1])


def test_a_machine_whose_gradients_hang_on_the_block_is_refused_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ledger = tmp_path / "ledger.db"
    create_ledger(ledger, Budget(9.0), reserve=0.05)
    gradients = networks._gradients

    def mixed(*args: Any) -> Any:
        compute = gradients(*args)
        return lambda place, rows: compute(place, rows) + rows[0].mean()

    monkeypatch.setattr(networks, "_gradients", mixed)
    with pytest.raises(InputError, match="computes a row's gradient differently"):
        release_table(halves(60), the_plan(steps=2), ledger=ledger, directory=tmp_path / "made")
    assert read_ledger(ledger).rows == ()
    assert not (tmp_path / "made").exists()
