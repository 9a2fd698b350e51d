from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from understudy import Budget, fit_release, load_schema, make_plan, release_table
from understudy.fits.images import Moments, MovingAverage, PerceptualTraining, _Judge
from understudy.generators.image_architectures import Architecture
from understudy.networks.public import Intake, network_of_module
from understudy.released import Release

ROWS = 400
SCHEMA = load_schema(
    {
        "name": "dots",
        "rows": ROWS,
        "image": {"height": 3, "width": 3},
        "columns": [{"name": "kind", "kind": "categorical", "role": "label", "categories": ["a", "b", "c"]}],
    }
)
ENCODER = network_of_module(torch.nn.Sequential(torch.nn.Flatten()), name="as they are", intake=Intake(), layers=("0",))
TRAINING = PerceptualTraining(
    hidden=(16,), noise_dim=3, steps=200, batch=30, judged=30, checkpoints=4, learning_rate=0.01
)


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    kinds = rng.choice(3, ROWS, p=[0.5, 0.3, 0.2])
    pixels = rng.integers(0, 60, (ROWS, 9))
    pixels[np.arange(ROWS), kinds * 3] += 190
    columns = dict(zip(SCHEMA.image.names, pixels.T, strict=True))
    return pa.table(columns | {"kind": np.array(["a", "b", "c"])[kinds]})


def released(epsilon: float = 50.0, **options: object) -> Release:
    wish = {"encoder": ENCODER, "multiply": "0", "training": TRAINING} | options
    return release_table(table(), make_plan(SCHEMA, Budget(epsilon), method="dp-mepf", options=wish))


@pytest.fixture(scope="module")
def release() -> Release:
    return released()


def test_means_of_a_batch_are_those_of_its_classes(release: Release):
    sizes = np.array([2, 3, 4])
    blocks = {block.name: block for block in release.blocks}
    values = torch.rand(9, 9)
    rows = np.split(values.numpy(), [2, 5])
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in rows]
    first = Moments(torch, release, blocks["first"], sizes).means({"0": values})
    assert first.numpy() == pytest.approx(np.stack([each.mean(0) for each in unit]), abs=1e-6)
    products = Moments(torch, release, blocks["products"], sizes).means({"0": values})
    expected = [(each.T @ each / len(each)).ravel() for each in unit]
    assert products.numpy() == pytest.approx(np.stack(expected), abs=1e-6)


def test_released_products_are_symmetric(release: Release):
    block = next(block for block in release.blocks if block.name == "products")
    target = Moments(torch, release, block, np.array([2, 3, 4])).target.reshape(3, 9, 9)
    assert torch.equal(target, target.transpose(1, 2))
    raw = release.sums("products").reshape(3, 9, 9)
    assert not np.array_equal(raw, raw.transpose(0, 2, 1)), "each half has noise of its own"


def test_the_moving_average_settles_on_what_batches_are_off_by(release: Release):
    block = next(block for block in release.blocks if block.name == "first")
    average = MovingAverage(torch, Moments(torch, release, block, np.array([2, 3, 4])))
    optimiser = torch.optim.Adam([average.remembered], lr=0.05, betas=(0.5, 0.999))
    source = torch.Generator().manual_seed(0)
    away = torch.ones_like(average.remembered) * 0.7
    for step in range(600):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - step / 600)
        average.remember(away + torch.randn(away.shape, generator=source))
        optimiser.step()
    assert float((average.remembered.detach() - away).abs().mean()) < 0.35
    off = away.clone().requires_grad_()
    average.loss(off).backward()
    slope = average.moments.shares[:, None] * average.remembered.detach() / off.shape[1]
    assert torch.allclose(off.grad, slope), "the generator follows what is remembered"


def test_the_checkpoint_is_the_one_that_the_noisier_stage_likes_best(release: Release, monkeypatch: pytest.MonkeyPatch):
    scores = iter([3.0, 1.0, 2.0, 5.0])
    states = []

    def score(self: object, module: torch.nn.Module) -> float:
        states.append({name: value.clone() for name, value in module.state_dict().items()})
        return next(scores)

    monkeypatch.setattr(_Judge, "score", score)
    kept = fit_release(release).weights
    assert len(states) == 4
    for name, value in states[1].items():
        assert np.array_equal(kept[name], value.numpy())
    assert any(not np.array_equal(kept[n], value.numpy()) for n, value in states[3].items())


def test_the_judge_likes_images_of_the_table_better_than_others(release: Release):
    judge = _Judge(torch, release, TRAINING)

    class Draws(torch.nn.Module):
        def __init__(self, bright: int) -> None:
            super().__init__()
            self.bright = bright

        def forward(self, drawn: torch.Tensor) -> torch.Tensor:
            images = torch.full((len(drawn), 9), 0.1)
            places = (drawn[:, -3:].argmax(1) * 3 + self.bright) % 9
            images[torch.arange(len(drawn)), places] = 0.85
            return images.reshape(-1, 1, 3, 3)

    assert judge.score(Draws(0)) < judge.score(Draws(1))


def test_early_stopping_has_noise_of_its_own_in_the_plan():
    plan = released().plan
    assert [stage.name for stage in plan.stages] == ["moments", "stopping"]
    assert plan.noise_stds[1] > 9 * plan.noise_stds[0]
    assert sum(stage.share for stage in plan.stages) == pytest.approx(1.0)
    again = [released(epsilon=1.0).vectors[1] for _ in range(2)]
    assert (again[0] != again[1]).mean() > 0.9, "the same rows, and other noise"


def test_without_a_share_there_is_no_stage_and_the_last_step_is_kept():
    plain = released(stopping=0)
    assert len(plain.plan.stages) == 1
    assert fit_release(plain).sample(5).num_rows == 5


@pytest.mark.parametrize("kind", ["clouds", "residual"])
def test_networks_make_images_of_any_shape_that_differ_by_class(kind: str):
    for channels, height, width in ((1, 5, 7), (3, 8, 4)):
        shape = replace(SCHEMA.image, height=height, width=width, channels=channels)
        architecture = Architecture(kind, noise_dim=2, hidden=(8,), channels=(6, 4))
        module = architecture.build(torch, shape, 3).eval()
        noise = torch.ones(3, 2)
        drawn = torch.cat([noise, torch.eye(3)], dim=1)
        images = module(drawn).detach()
        assert images.shape == (3, channels, height, width)
        assert 0 <= float(images.min()) <= float(images.max()) <= 1
        assert not torch.allclose(images[0], images[1])
