"""Hermite maps in torch: read from a table, and as good as the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from understudy.features import Fourier, Hermite, OneHot, Scales, Tensors
from understudy.features.hermite import best_half_range
from understudy.fits.mmd_loss import STEPS, Interpolated, InterpolatedPairs, trainable

Floats = npt.NDArray[np.float64]
MAPS = {
    "fine": Hermite((0,), (0.02,), 75, best_half_range(0.02)),
    "coarse": Hermite((1,), (0.5,), 3, best_half_range(0.5)),
    "sum of three": Hermite((0, 2, 1), (0.05, 0.3, 0.05), 30, best_half_range(0.05)),
    "order 0": Hermite((0, 1), (0.2, 0.4), 0, 1.0),
}


def positions(num_rows: int, seed: int = 0) -> Floats:
    """Rows of three positions, some at both bounds; single precision loses nothing of them."""
    found = np.random.default_rng(seed).random((num_rows, 3))
    found[:2], found[2:4] = 0.0, 1.0
    return found.astype(np.float32).astype(np.float64)


def single(cells: Floats) -> Any:
    return torch.from_numpy(cells.astype(np.float32))


@pytest.mark.parametrize("name", MAPS)
def test_features_are_the_exact_ones_to_four_digits(name: str):
    cells = positions(2000)
    found = Interpolated(torch, MAPS[name])(single(cells)).double().numpy()
    assert found.shape == (2000, MAPS[name].dim)
    np.testing.assert_allclose(found, MAPS[name](cells), atol=1e-4)


@pytest.mark.parametrize("name", MAPS)
def test_entries_of_the_table_are_exact_and_both_bounds_among_them(name: str):
    cells = np.repeat(np.array([0.0, 0.25, 0.5, (STEPS - 1) / STEPS, 1.0])[:, None], 3, axis=1)
    found = Interpolated(torch, MAPS[name])(single(cells)).double().numpy()
    np.testing.assert_allclose(found, MAPS[name](cells), atol=1e-6)


@pytest.mark.parametrize("name", ["fine", "coarse", "sum of three"])
def test_slopes_are_those_of_the_exact_map(name: str):
    map_, step = MAPS[name], 1e-6
    middles = np.clip((np.floor(positions(400) * STEPS) + 0.5) / STEPS, 0, 1 - 0.5 / STEPS)
    cells = single(middles).requires_grad_()
    features = Interpolated(torch, map_)(cells)
    largest = 0.0
    for feature in range(0, map_.dim, 7):
        (found,) = torch.autograd.grad(features[:, feature].sum(), cells, retain_graph=True)
        number = map_.numbers[feature // (map_.order + 1)]
        moved = np.eye(3)[number] * step
        exact = (map_(middles + moved) - map_(middles - moved))[:, feature] / (2 * step)
        size = 1 / min(map_.length_scales)  # what slopes of such a kernel's features reach
        np.testing.assert_allclose(found[:, number].numpy(), exact, atol=1e-3 * size)
        others = [i for i in range(3) if i != number]
        assert float(found[:, others].abs().max()) == 0.0
        largest = max(largest, float(np.abs(exact).max()) / size)
    assert largest > 0.05  # so flat features would fail


@pytest.mark.parametrize("bound", [0.0, 1.0])
def test_there_is_a_slope_at_a_bound_too(bound: float):
    map_ = MAPS["coarse"]
    cells = torch.full((1, 3), bound, requires_grad=True)
    Interpolated(torch, map_)(cells)[0, 1].backward()
    inside = np.full((1, 3), abs(bound - 1e-5))
    exact = (map_(np.full((1, 3), bound)) - map_(inside))[0, 1] / (bound - inside[0, 0])
    assert float(cells.grad[0, 1]) == pytest.approx(exact, abs=1e-3)
    assert abs(exact) > 0.1


def test_products_have_interpolated_factors_and_other_maps_stay_as_they_are():
    fourier = Fourier((0, 1), (1.0, 1.0), (Scales(2, 0.1, 1.0),), 10, 0)
    assert trainable(torch, fourier) is fourier
    products = Tensors((MAPS["fine"], OneHot(((3, 5),)), MAPS["coarse"]), ((0, 1), (0, 2), (1, 2)))
    found = trainable(torch, products)
    assert isinstance(found, Tensors)
    kinds = [type(factor) for factor in found.factors]
    assert kinds == [Interpolated, OneHot, Interpolated]
    cells = np.concatenate([positions(50), np.eye(2)[np.arange(50) % 2]], axis=1)
    exact = products(cells)
    np.testing.assert_allclose(found(single(cells)).numpy(), exact, atol=1e-4)
    means, norms = found.means(single(cells), [20, 30])
    np.testing.assert_allclose(means.numpy(), [exact[:20].mean(0), exact[20:].mean(0)], atol=1e-4)
    squares = (exact**2).sum(1)
    np.testing.assert_allclose(norms.numpy(), [squares[:20].mean(), squares[20:].mean()], atol=1e-3)


@pytest.mark.parametrize("order", [0, 4, 11])
def test_pairs_of_numbers_with_one_map_are_taken_together(order: int):
    factors = tuple(Hermite((j,), (0.2,), order, best_half_range(0.2)) for j in (2, 0, 1))
    map_ = Tensors(factors, ((0, 1), (2, 1), (0, 2)))
    together = trainable(torch, map_)
    assert isinstance(together, InterpolatedPairs)
    assert together.dim == map_.dim
    cells = positions(60)
    found, norms = together.means(single(cells), [20, 40])
    wanted, exact_norms = map_.means(cells, [20, 40])
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4)
    np.testing.assert_allclose(norms.numpy(), exact_norms, atol=1e-4)


def test_other_products_stay_as_they_are():
    one, other = (Hermite((j,), (scale,), 3, 2.0) for j, scale in ((0, 0.2), (1, 0.3)))
    for map_ in (Tensors((one, other), ((0, 1),)), Tensors((one, one), ((0, 1, 1),))):
        assert isinstance(trainable(torch, map_), Tensors)
