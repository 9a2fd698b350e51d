"""Training an image network: the loop, batches in turn, and a decoder that stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from understudy import Budget, fit_release, load_schema, make_plan, release_table
from understudy.fits.images import ImageTraining
from understudy.fits.mmd_loss import Term, descend, loss_terms
from understudy.private.spending import Receipt

SCHEMA = load_schema({"name": "dots", "rows": 300, "image": {"height": 2, "width": 3}})
TINY = ImageTraining(hidden=(6,), channels=(4,), steps=4, batch=20)


class Silence:
    """No noise at all."""

    name, is_private = "none", False

    def add_noise(self, sums: np.ndarray, noise_std: int, receipt: Receipt) -> np.ndarray:
        return sums

    add_laplace_noise = add_noise


def released(method: str, **options: Any) -> Any:
    pixels = np.random.default_rng(0).integers(0, 256, (300, 6))
    rows = dict(zip(SCHEMA.image.names, pixels.T, strict=True))
    plan = make_plan(SCHEMA, Budget(1.0), method=method, options={"training": TINY, "num_features": 50} | options)
    return release_table(pa.table(rows), plan, noise=Silence())


def test_the_loop_finds_the_least_loss_and_tells_how_far_it_is():
    place = torch.tensor([3.0, -2.0], requires_grad=True)
    seen: list[tuple[int, int, float]] = []
    term = Term(lambda cells: (cells**2).sum())
    training = ImageTraining(steps=300, learning_rate=0.1)
    descend([place], [term], lambda: place, training=training, progress=lambda *state: seen.append(state))
    assert float((place.detach() ** 2).sum()) < 1e-3
    assert seen[-1][:2] == (300, 300)
    assert [done for done, _, _ in seen] == list(range(20, 301, 20))


def test_every_batch_stands_for_all_rows_and_their_mean_is_the_whole_embedding():
    """A batch's target is its sum times the number of batches, over all rows."""
    whole, parts = released("dp-merf"), released("dp-merf", mini_batches=4)
    sizes = np.array([20])
    rng = np.random.default_rng(0)
    (one,), (four,) = (
        [term.loss.pieces for term in loss_terms(each, sizes, rng, features_per_step=50)] for each in (whole, parts)
    )
    assert (len(one), len(four)) == (1, 4)
    mean = torch.stack([target for _, target in four]).mean(0)
    assert mean.numpy() == pytest.approx(one[0][1].numpy(), abs=1e-3)
    assert all(map_.dim == 50 for map_, _ in four)


def test_a_decoder_that_was_released_is_not_trained_any_further():
    release = released("dp-merf-ae", descent_steps=3)
    learnt, made = dict(release.weights), fit_release(release)
    assert np.array_equal(made.weights["decoder.0.weight"], learnt["decoder.0.weight"].T)
    assert np.array_equal(made.weights["decoder.2.bias"], learnt["decoder.1.bias"])


def test_settings_that_are_not_given_are_those_of_the_architecture():
    assert ImageTraining().network.hidden == (200,)
    assert ImageTraining(architecture="connected").network.hidden == (500, 500)
    assert ImageTraining(hidden=[7]).network.hidden == (7,)
