from __future__ import annotations

import numpy as np
import pytest
import torch

from understudy.classifier.maps import LocallyLinearMaps, MapShape, answer_gradients, class_scores


def some_maps(**settings: int) -> LocallyLinearMaps:
    shape = MapShape(num_features=6, num_classes=3, inverse_temperature=1.5, **settings)
    rng = np.random.default_rng(0)
    return LocallyLinearMaps(shape, rng.normal(size=(shape.num_maps, shape.num_classes, shape.map_dim)))


@pytest.mark.parametrize("settings", [{}, {"num_maps": 4}, {"num_maps": 2, "projected": 3}])
def test_scores_are_the_papers_formula(settings: dict[str, int]) -> None:
    maps = some_maps(**settings)
    inputs = np.random.default_rng(1).normal(size=(5, 6))
    found = maps.scores(inputs)
    for row in range(5):
        for k in range(3):
            answers = []
            for m in range(maps.shape.num_maps):
                seen = inputs[row]
                if maps.shape.projections is not None:
                    seen = seen @ maps.shape.projections[m]
                answers.append(float(maps.weights[m, k] @ seen))
            weights = np.exp(1.5 * np.array(answers))
            expected = float((weights / weights.sum()) @ np.array(answers))
            assert found[row, k] == pytest.approx(expected)
    assert maps.probabilities(inputs).sum(axis=1) == pytest.approx(np.ones(5))
    assert maps.importances(inputs).sum(axis=1) == pytest.approx(np.ones((5, 3)))


def test_one_map_per_class_is_logistic_regression() -> None:
    maps = some_maps()
    inputs = np.random.default_rng(1).normal(size=(5, 6))
    assert maps.scores(inputs) == pytest.approx(inputs @ maps.weights[0].T)


def test_filters_on_inputs_give_the_answers_of_projected_maps() -> None:
    maps = some_maps(num_maps=2, projected=3)
    inputs = np.random.default_rng(1).normal(size=(5, 6))
    assert maps.answers(inputs) == pytest.approx(np.einsum("mkd,nd->nmk", maps.filters, inputs))


def test_projections_are_public_and_differ_by_map() -> None:
    first, again = (some_maps(num_maps=2, projected=3, seed=7).shape.projections for _ in range(2))
    assert first is not None
    assert again is not None
    assert np.array_equal(first, again)
    assert not np.array_equal(first[0], first[1])


def test_derivatives_by_answers_are_autograds() -> None:
    rng = np.random.default_rng(2)
    answers, labels = rng.normal(0, 2, (7, 4, 3)), rng.integers(0, 3, 7)
    found = answer_gradients(answers, labels, 0.7)
    tensor = torch.tensor(answers, requires_grad=True)
    scores = (torch.softmax(0.7 * tensor, dim=1) * tensor).sum(dim=1)
    torch.nn.functional.cross_entropy(scores, torch.tensor(labels), reduction="sum").backward()
    assert tensor.grad is not None
    assert found == pytest.approx(tensor.grad.numpy())


def test_large_scores_do_not_overflow() -> None:
    scores, importances = class_scores(np.array([[[1e4], [-1e4]]]), 10.0)
    assert scores[0, 0] == 1e4
    assert importances[0, :, 0] == pytest.approx([1.0, 0.0])
    maps = LocallyLinearMaps(MapShape(num_features=1, num_classes=2), np.array([[[1e6], [0.0]]]))
    assert maps.probabilities(np.ones((1, 1)))[0] == pytest.approx([1.0, 0.0])
