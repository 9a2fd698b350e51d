from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from receipts import unrecorded

from understudy.accounting.dpsgd import DescentCost
from understudy.accounting.mechanisms import Budget
from understudy.classifier.maps import MapShape
from understudy.errors import InputError
from understudy.plan.descent import DescentPlan
from understudy.private.dpsgd import classifier
from understudy.private.dpsgd.classifier import (
    RADIUS,
    WEIGHT_UNIT,
    IntegerRows,
    exact_answers,
    gradient_sum,
    integer_inputs,
    train_maps,
)
from understudy.private.dpsgd.steps import Descent
from understudy.private.noise import SeededNoise

Floats = npt.NDArray[np.float64]
SHAPES = [
    MapShape(num_features=5, num_classes=3),
    MapShape(num_features=6, num_classes=3, num_maps=4, inverse_temperature=2.0),
    MapShape(num_features=9, num_classes=2, num_maps=3, inverse_temperature=0.5, projected=4),
]
over_shapes = pytest.mark.parametrize("shape", SHAPES, ids=["linear", "maps", "projected"])


def rows_for(shape: MapShape, count: int = 30, seed: int = 0) -> IntegerRows:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(count, shape.num_features))
    inputs *= 0.4 / np.linalg.norm(inputs, axis=1, keepdims=True)  # short enough for projections
    return IntegerRows(integer_inputs(inputs), rng.integers(0, shape.num_classes, count))


def descent(cost: DescentCost, *, clip: float = 1.0, rows: int, rate: float = 1.0, **settings: Any) -> Descent:
    return Descent(DescentPlan(Budget(1.0), cost, clip, rate, rows), unrecorded(), **settings)


def some_weights(shape: MapShape, scale: float = 2.0) -> Floats:
    rng = np.random.default_rng(5)
    return rng.normal(0.0, scale, (shape.num_maps, shape.num_classes, shape.map_dim))


def autograd(shape: MapShape, weights: Floats, inputs: Floats, label: int) -> Floats:
    """The gradient of one row's cross-entropy, by torch and by nothing of ours."""
    parameters = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    seen = torch.tensor(inputs).expand(shape.num_maps, -1)
    if shape.projections is not None:
        seen = torch.stack([torch.tensor(inputs) @ torch.tensor(p) for p in shape.projections])
    answers = torch.einsum("mkd,md->mk", parameters, seen)
    importance = torch.softmax(shape.inverse_temperature * answers, dim=0)
    scores = (importance * answers).sum(dim=0)
    torch.nn.functional.cross_entropy(scores[None], torch.tensor([label])).backward()
    assert parameters.grad is not None
    return np.asarray(parameters.grad.numpy())


@over_shapes
def test_the_gradient_of_each_row_is_autograds(shape: MapShape) -> None:
    rows, weights = rows_for(shape), some_weights(shape)
    for place in range(len(rows.labels)):
        expected = autograd(shape, weights, rows.inputs[place] / RADIUS, int(rows.labels[place]))
        found = gradient_sum(rows, shape, weights, np.array([place]), clip=50.0)
        # Derivatives are rounded at 50 / 2^14.
        assert found / RADIUS**2 * 50.0 == pytest.approx(expected, abs=6e-3)


@over_shapes
def test_a_long_gradient_is_shortened_and_keeps_its_direction(shape: MapShape) -> None:
    rows, weights = rows_for(shape), some_weights(shape, scale=4.0)
    clip, seen_long = 0.1, 0
    for place in range(len(rows.labels)):
        whole = autograd(shape, weights, rows.inputs[place] / RADIUS, int(rows.labels[place]))
        found = gradient_sum(rows, shape, weights, np.array([place]), clip=clip) / RADIUS**2 * clip
        assert np.linalg.norm(found) <= clip
        if np.linalg.norm(whole) > 1.5 * clip:
            seen_long += 1
            cosine = (found * whole).sum() / np.linalg.norm(found) / np.linalg.norm(whole)
            assert cosine > 0.999
    assert seen_long > 3


@over_shapes
@given(data=st.data())
def test_no_row_moves_a_sum_further_than_the_radius(shape: MapShape, data: st.DataObject) -> None:
    numbers = st.floats(allow_nan=True, allow_infinity=True)
    row = data.draw(st.lists(numbers, min_size=shape.num_features, max_size=shape.num_features))
    weights = some_weights(shape, scale=data.draw(st.sampled_from([0.1, 10.0, 1e4, 1e12])))
    label = data.draw(st.integers(0, shape.num_classes - 1))
    rows = IntegerRows(integer_inputs(np.array([row])), np.array([label]))
    clip = data.draw(st.sampled_from([1e-6, 0.5, 100.0]))
    found = gradient_sum(rows, shape, weights, np.array([0]), clip=clip)
    assert sum(int(number) ** 2 for number in found.ravel()) <= RADIUS**4


@over_shapes
def test_a_sum_is_the_exact_sum_over_rows_in_any_blocks(shape: MapShape, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, weights = rows_for(shape, count=200), some_weights(shape)
    every = np.arange(200)
    whole = gradient_sum(rows, shape, weights, every, clip=0.7)
    singles = sum(gradient_sum(rows, shape, weights, every[i : i + 1], clip=0.7) for i in every)
    monkeypatch.setattr(classifier, "BLOCK_NUMBERS", 100)
    assert np.array_equal(whole, singles)
    assert np.array_equal(whole, gradient_sum(rows, shape, weights, every[::-1], clip=0.7))


def test_answers_are_exact_however_many_inputs_there_are() -> None:
    """In single precision they would be rounded, and on some machines otherwise in another block."""
    rng = np.random.default_rng(0)
    seen = rng.integers(-RADIUS, RADIUS, (1, 30, 400)).astype(np.float64)
    whole_weights = rng.integers(-(2**22), 2**22, (1, 4, 400)).astype(np.float64)
    products = seen[0].astype(np.int64).astype(object) @ whole_weights[0].astype(np.int64).astype(object).T
    assert max(abs(number) for number in products.ravel()) < 2**53
    expected = products.astype(np.float64) / (RADIUS * WEIGHT_UNIT)
    assert np.array_equal(exact_answers(seen, whole_weights)[0], expected)
    shape = MapShape(num_features=400, num_classes=4)
    rows, weights = rows_for(shape, count=300), some_weights(shape, scale=20.0)
    every = np.arange(300)
    whole = gradient_sum(rows, shape, weights, every, clip=1.5)
    singles = sum(gradient_sum(rows, shape, weights, every[i : i + 1], clip=1.5) for i in every)
    assert np.array_equal(whole, singles)


def test_a_step_without_rows_is_noise_alone() -> None:
    shape = SHAPES[1]
    rows = rows_for(shape)
    assert not gradient_sum(rows, shape, some_weights(shape), np.empty(0, np.int64), clip=1.0).any()
    nobody = IntegerRows(rows.inputs[:0], rows.labels[:0])
    maps = train_maps(nobody, shape, descent(DescentCost(0.5, 1.0, 3), rows=10, rate=0.1))
    assert np.isfinite(maps.weights).all()
    assert not np.array_equal(maps.weights, shape.first_weights())


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_noise_has_the_deviation_that_was_paid_for(rate: float) -> None:
    shape = MapShape(num_features=4000, num_classes=2)
    nobody = IntegerRows(np.zeros((0, 4000), np.int16), np.zeros(0, np.int64))
    clip, expected, multiplier = 0.5, 200, 3.0
    maps = train_maps(nobody, shape, descent(DescentCost(rate, multiplier, 1), clip=clip, rows=expected))
    deviation = multiplier * clip / (rate * expected)
    ratio = (maps.weights**2).mean() / deviation**2
    assert abs(ratio - 1) < 6.5 * math.sqrt(2 / maps.weights.size)


def test_steps_do_not_depend_on_how_many_rows_were_drawn_or_are_there() -> None:
    shape = SHAPES[0]
    rows = rows_for(shape, count=40)
    twice = IntegerRows(np.tile(rows.inputs, (2, 1)), np.tile(rows.labels, 2))
    moved = []
    for each in (rows, twice):
        maps = train_maps(each, shape, descent(DescentCost(1.0, 1e-5, 1), rows=40, noise=SeededNoise(0)))
        moved.append(maps.weights)
    assert moved[1] == pytest.approx(2 * moved[0], abs=1e-4)


def test_private_maps_learn_what_rows_have_in_common() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    inputs = rng.normal(0.0, 0.2, (4000, 3)) + np.where(labels[:, None] == 1, 0.5, -0.5)
    rows = IntegerRows(integer_inputs(inputs / 2), labels)
    shape = MapShape(num_features=3, num_classes=2)
    done: list[tuple[int, int]] = []
    settings = {"rate": 4.0, "averaged": 0.5, "progress": lambda *each: done.append(each)}
    maps = train_maps(rows, shape, descent(DescentCost(0.25, 4.0, 40), rows=4000, **settings))
    assert (maps.scores(inputs / 2).argmax(axis=1) == labels).mean() > 0.95
    assert done == [(step, 40) for step in range(1, 41)]


def test_two_runs_differ_because_noise_has_no_seed() -> None:
    shape, rows = SHAPES[0], rows_for(SHAPES[0])
    first, second = (train_maps(rows, shape, descent(DescentCost(1.0, 1.0, 2), rows=30)) for _ in range(2))
    assert not np.array_equal(first.weights, second.weights)


def test_a_machine_that_mixes_rows_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    true_gradients = classifier.answer_gradients

    def mixed(answers: Floats, labels: npt.NDArray[np.int64], beta: float) -> Floats:
        return true_gradients(answers, labels, beta) * (1 + 1e-3 * len(labels))

    monkeypatch.setattr(classifier, "answer_gradients", mixed)
    with pytest.raises(InputError, match="differently in different blocks"):
        classifier.check_row_independence(SHAPES[1], some_weights(SHAPES[1]), 10.0)
