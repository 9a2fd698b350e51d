from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from receipts import unrecorded

from understudy.accounting.dpsgd import DescentCost
from understudy.accounting.mechanisms import Budget
from understudy.errors import InputError, UsageError
from understudy.plan.descent import DescentPlan
from understudy.private.dpsgd.networks import RADIUS, _clipped_sum, _flat, _gradients, noisy_descent
from understudy.private.dpsgd.steps import Descent, clipped
from understudy.private.lattice import to_lattice
from understudy.private.noise import SeededNoise


def row_loss(parameters: dict[str, Any], inputs: Any, label: Any) -> Any:
    hidden = torch.tanh(parameters["first"] @ inputs + parameters["shift"])
    return torch.nn.functional.cross_entropy((parameters["second"] @ hidden)[None], label[None])


def small_network(seed: int = 0) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(seed)
    return {
        "first": torch.randn(4, 3, generator=rng),
        "shift": torch.randn(4, generator=rng),
        "second": torch.randn(2, 4, generator=rng),
    }


def descent(cost: DescentCost, *, clip: float = 1.0, rows: int, **settings: Any) -> Descent:
    return Descent(DescentPlan(Budget(1.0), cost, clip, 1.0, rows), unrecorded(), **settings)


def row_gradients(parameters: dict[str, Any], rows: tuple[Any, Any]) -> Any:
    return _gradients(torch, parameters, row_loss)(_flat(parameters), rows)


def some_rows(count: int = 20) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(count, 3)).astype(np.float32), rng.integers(0, 2, count)


def test_the_gradient_of_each_row_is_autograds() -> None:
    parameters, (inputs, labels) = small_network(), some_rows()
    found = row_gradients(parameters, (inputs, labels))
    for place in range(len(labels)):
        own = {name: tensor.clone().requires_grad_() for name, tensor in parameters.items()}
        row_loss(own, torch.tensor(inputs[place]), torch.tensor(labels[place])).backward()
        expected = np.concatenate([tensor.grad.numpy().ravel() for tensor in own.values()])
        assert found[place] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def moved(rows: tuple[Any, Any], *, clip: float, expected: int, multiplier: float = 1e-4) -> Any:
    """What one step on all rows does to the parameters."""
    parameters = small_network()
    step = descent(DescentCost(1.0, multiplier, 1), clip=clip, rows=expected, noise=SeededNoise(0))
    outcome = noisy_descent(parameters, row_loss, rows, step, block=8)
    return np.concatenate([(parameters[name] - outcome[name]).numpy().ravel() for name in parameters])


def test_a_step_adds_up_gradients_that_were_clipped_one_by_one() -> None:
    rows = some_rows()
    gradients = row_gradients(small_network(), rows).astype(np.float64)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    clip = float(np.median(norms))
    expected = (gradients / np.maximum(1, norms / clip)).sum(axis=0) / 50
    assert moved(rows, clip=clip, expected=50) == pytest.approx(expected, abs=1e-4)


def test_one_row_moves_a_step_by_no_more_than_the_clipping_norm() -> None:
    inputs, labels = some_rows()
    inputs[3] = 1e6
    fewer = np.delete(inputs, 3, axis=0), np.delete(labels, 3)
    apart = moved((inputs, labels), clip=0.25, expected=1) - moved(fewer, clip=0.25, expected=1)
    assert np.linalg.norm(apart) <= 0.25 * (1 + 1e-4)
    inputs[3] = np.nan
    broken = moved((inputs, labels), clip=0.25, expected=1)
    assert broken == pytest.approx(moved(fewer, clip=0.25, expected=1), abs=1e-6)


def test_noise_has_the_deviation_that_was_paid_for() -> None:
    parameters = {"weights": torch.zeros(3000)}
    outcome = noisy_descent(
        parameters,
        lambda p, x: (p["weights"] * x).sum(),
        (np.zeros((0, 3000), np.float32),),
        descent(DescentCost(0.5, 2.0, 1), clip=0.5, rows=100),
    )
    ratio = float((outcome["weights"] ** 2).mean()) / (2.0 * 0.5 / 50) ** 2
    assert abs(ratio - 1) < 6.5 * math.sqrt(2 / 3000)


def test_a_private_network_learns() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 2000)
    inputs = (rng.normal(size=(2000, 3)) + 2.5 * labels[:, None]).astype(np.float32)
    steps: list[int] = []
    settings = descent(DescentCost(0.25, 2.0, 25), rows=2000, progress=lambda done, _: steps.append(done))
    outcome = noisy_descent(small_network(), row_loss, (inputs, labels), settings)
    hidden = np.tanh(inputs @ outcome["first"].numpy().T + outcome["shift"].numpy())
    predicted = (hidden @ outcome["second"].numpy().T).argmax(axis=1)
    assert (predicted == labels).mean() > 0.9
    assert steps == list(range(1, 26))


def test_a_loss_that_looks_at_the_whole_block_is_refused() -> None:
    calls = 0

    def unsteady(parameters: dict[str, Any], inputs: Any, label: Any) -> Any:
        nonlocal calls
        calls += 1
        return row_loss(parameters, inputs, label) * calls

    with pytest.raises(InputError, match="different blocks"):
        noisy_descent(small_network(), unsteady, some_rows(), descent(DescentCost(1.0, 1.0, 1), rows=20))


def test_a_clip_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match="above 0"):
        moved(some_rows(), clip=0.0, expected=10)


def test_private_words_stay_inside() -> None:
    def failing(parameters: dict[str, Any], inputs: Any, label: Any) -> Any:
        if calls.pop():
            raise ValueError("secret cell")
        return row_loss(parameters, inputs, label)

    calls = [True, *([False] * 4)]
    with pytest.raises(InputError, match="ValueError") as refusal:
        noisy_descent(small_network(), failing, some_rows(), descent(DescentCost(1.0, 1.0, 1), rows=20))
    assert "secret" not in str(refusal.value)


def test_a_long_gradient_is_clipped_alike_alone_and_beside_others() -> None:
    # The last block of a step may hold one row or many, as rows were drawn.
    gradients = np.random.default_rng(0).normal(size=(40, 9001))
    together = clipped(gradients, 0.5)
    for place in range(len(gradients)):
        alone = clipped(gradients[place : place + 1], 0.5)[0]
        assert np.array_equal(alone, together[place])


def test_gradients_are_computed_in_blocks_of_one_shape() -> None:
    # Blocks of other shapes may be computed by other means, and how many rows are drawn is private.
    shapes = []

    def gradients(place: Any, rows: Any) -> Any:
        shapes.append([array.shape for array in rows])
        return np.ones((len(rows[0]), 3))

    rows = np.ones((20, 2)), np.ones(20)
    for drawn in (0, 1, 7, 8, 9, 20):
        total = _clipped_sum(gradients, np.zeros(3), rows, np.arange(drawn), clip=2.0, block=8)
        assert total.tolist() == [drawn * int(to_lattice(np.full((1, 3), 0.5), RADIUS)[0, 0])] * 3
    assert all(seen == [(8, 2), (8,)] for seen in shapes)
