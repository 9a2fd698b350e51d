from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.features import Hermite, Mahalanobis
from understudy.features.hermite import (
    HIGHEST_ORDER,
    SEED_EXPONENT,
    best_half_range,
    mehler_features,
    rho_of_length_scale,
)
from understudy.schema.columns import POSITION_BITS

Floats = npt.NDArray[np.float64]
RHOS = (1e-6, 0.01, 1 / 3, 0.9, 0.999, 1 - 1e-9)


def features_of(points: Sequence[float], rho: float, order: int) -> Floats:
    """Features of single points.  # (points, order + 1)"""
    column = np.asarray(points, dtype=np.float64)[:, None]
    found: Floats = mehler_features(column, (rho,), order)[:, 0, :]
    return found


def on_grid(positions: Floats) -> Floats:
    return np.rint(positions * 2.0**POSITION_BITS) / 2.0**POSITION_BITS


# The kernel


def errors_under_the_normal(order: int) -> tuple[float, float]:
    """Mean absolute and root mean squared kernel error, by a rule that is exact to rounding.

    The trapezoid rule converges faster than any power for integrands this smooth, and what lies
    outside [-9, 9] has a probability of 4e-19.
    """
    points = np.linspace(-9.0, 9.0, 721)
    weights = np.exp(-(points**2) / 2)
    weights /= weights.sum()
    features = features_of(points, 1 / 3, order)
    kernel = np.exp(-((points[:, None] - points) ** 2) * 3 / 8)  # rho / (1 - rho^2) = 3/8
    error = kernel - features @ features.T
    return (float(weights @ np.abs(error) @ weights), math.sqrt(float(weights @ error**2 @ weights)))


@pytest.mark.parametrize("order", range(1, 21))
def test_the_kernel_error_is_within_the_bound_of_the_paper(order: int) -> None:
    """Prop. B.1, eq. 17: rho = 1/3 and standard normal points, for features of orders 0..C."""
    bound = (1 / 3) ** order / (3 * math.sqrt(2))
    mean, root_mean_square = errors_under_the_normal(order)
    assert 0 < mean <= bound
    # The bound is Jensen's: it is the root mean square, and that is met with equality. A feature
    # too few would be three times off.
    assert root_mean_square == pytest.approx(bound, rel=1e-4)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 50, 150, HIGHEST_ORDER])
@pytest.mark.parametrize("rho", RHOS)
def test_features_are_those_of_the_closed_formula(order: int, rho: float) -> None:
    points = [0.0, 1e-9, -0.3, 1.0, -2.5, 7.0, 20.0, -26.0]
    found = features_of(points, rho, order)[:, order]
    for point, value in zip(points, found.tolist(), strict=True):
        exact = closed_formula(order, point, rho)
        assert abs(value - exact) <= 2e-13 + 1e-9 * abs(exact), point


def closed_formula(order: int, point: float, rho: float) -> float:
    """phi_c(x) from the polynomial's own coefficients, with digits to spare for what cancels."""
    with mpmath.workdps(500):
        x, r = mpmath.mpf(point), mpmath.mpf(rho)
        polynomial = mpmath.fsum(
            (-1) ** m * (2 * x) ** (order - 2 * m) / (mpmath.factorial(m) * mpmath.factorial(order - 2 * m))
            for m in range(order // 2 + 1)
        )  # H_c(x) / c!
        scale = (1 - r**2) ** (mpmath.mpf(1) / 4) * mpmath.sqrt((r / 2) ** order * mpmath.factorial(order))
        return float(scale * polynomial * mpmath.exp(-(x**2) * r / (1 + r)))


def test_a_lower_order_gives_the_first_features_of_a_higher_one() -> None:
    points = np.linspace(-4, 4, 9)
    rich = features_of(points, 0.4, HIGHEST_ORDER)
    for order in (0, 1, 2, 7, 299):
        poor = features_of(points, 0.4, order)
        assert poor.shape == (9, order + 1)
        assert np.array_equal(poor, rich[:, : order + 1])


def test_every_column_has_a_rho_of_its_own() -> None:
    points = np.random.default_rng(0).normal(size=(6, 3))
    rhos = (0.1, 1 / 3, 0.95)
    together = mehler_features(points, rhos, 9)
    assert together.shape == (6, 3, 10)
    for column, rho in enumerate(rhos):
        assert np.array_equal(together[:, column, :], features_of(points[:, column], rho, 9))


# The norm


@settings(max_examples=300, deadline=None)
@given(
    point=st.one_of(st.floats(-60, 60), st.floats(allow_nan=False, allow_infinity=True)),
    rho=st.one_of(st.floats(1e-12, 1 - 1e-12), st.sampled_from(RHOS)),
    order=st.integers(0, HIGHEST_ORDER),
)
def test_no_point_has_features_of_a_norm_above_one(point: float, rho: float, order: int) -> None:
    found = features_of([point], rho, order)[0]
    assert np.isfinite(found).all()
    assert math.sqrt(math.fsum(value**2 for value in found.tolist())) <= 1 + 1e-12


@pytest.mark.parametrize("rho", [0.01, 1 / 3, 0.9])
def test_many_features_reach_the_norm_and_none_leaves_it(rho: float) -> None:
    """The kernel of a point with itself is one: the norm is a bound that is met."""
    points = np.linspace(-6, 6, 241)
    norms = np.linalg.norm(features_of(points, rho, HIGHEST_ORDER), axis=1)
    assert np.abs(norms - 1).max() < 1e-12


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("point", [1e3, 1e8, 1e155, 1e308, math.inf])
def test_points_far_outside_are_finite_and_bounded(point: float, rho: float) -> None:
    found = features_of([point, -point], rho, HIGHEST_ORDER)
    assert np.isfinite(found).all()
    assert (np.linalg.norm(found, axis=1) <= 1 + 1e-12).all()
    signs = np.where(np.arange(HIGHEST_ORDER + 1) % 2, -1.0, 1.0)
    assert np.array_equal(found[1], found[0] * signs)


@pytest.mark.parametrize("rho", [*RHOS, 0.5, 0.99, 1 - 1e-13])
def test_where_points_are_moved_to_every_feature_is_below_1e_100(rho: float) -> None:
    edge = math.sqrt(SEED_EXPONENT * (1 + rho) / rho)
    found = features_of([edge, 2 * edge, -1e300], rho, HIGHEST_ORDER)
    assert 0 < np.abs(found).max() < 1e-100
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(np.abs(found[0]), np.abs(found[2]))
    # Further out they are smaller still, so that nothing of note is lost by moving points in.
    exact = [abs(closed_formula(HIGHEST_ORDER, factor * edge, rho)) for factor in (1, 1.01, 1.5)]
    assert 1e-100 > exact[0] > exact[1] > exact[2]


# The two names of a kernel


def exact_rho(length_scale: float) -> Any:
    square = mpmath.mpf(length_scale) ** 2
    return -square + mpmath.sqrt(square**2 + 1)


@settings(max_examples=200, deadline=None)
@given(exponent=st.floats(-3, 6))
def test_rho_has_all_its_digits_at_any_length_scale(exponent: float) -> None:
    length_scale = 10.0**exponent
    with mpmath.workdps(60):
        exact = exact_rho(length_scale)
        found = mpmath.mpf(rho_of_length_scale(length_scale))
        assert abs(found / exact - 1) < 1e-15
        # The relation itself: rho / (1 - rho^2) = 1 / (2 s^2)
        assert abs(exact / (1 - exact**2) * 2 * mpmath.mpf(length_scale) ** 2 - 1) < 1e-30


@pytest.mark.parametrize("length_scale", [1e4, 1e5, 1e6])
def test_rho_is_right_where_the_naive_formula_has_no_digit_left(length_scale: float) -> None:
    naive = -(length_scale**2) + math.sqrt(length_scale**4 + 1)
    with mpmath.workdps(60):
        exact = float(exact_rho(length_scale))
    assert abs(naive / exact - 1) > 0.1
    assert rho_of_length_scale(length_scale) == pytest.approx(exact, rel=1e-15)


# The map of several numbers


def gaussian(positions: Floats, length_scale: float) -> Floats:
    found: Floats = np.exp(-((positions[:, None] - positions) ** 2) / 2 / length_scale**2)
    return found


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.5])
def test_the_kernel_is_the_mean_of_gaussians_in_units_of_the_range(factor: float) -> None:
    """Each column has its own length scale, and no half range changes the kernel."""
    shortest, scales = 0.1, (0.1, 1.0, 0.25)
    half_range = factor * best_half_range(shortest)
    order = math.ceil(2.5 / shortest * max(factor, 1 / factor) ** 2)
    map_ = Hermite((2, 0, 1), scales, order, half_range)
    cells = on_grid(np.random.default_rng(1).random((40, 3)))
    cells[0], cells[1] = 0.0, 1.0
    exact = np.mean([gaussian(cells[:, j], s) for j, s in zip((2, 0, 1), scales, strict=True)], 0)
    features = map_(cells)
    assert np.abs(features @ features.T - exact).max() < 1e-3
    richer = Hermite((2, 0, 1), scales, 2 * order, half_range)(cells)
    assert np.abs(richer @ richer.T - exact).max() < 1e-9


def test_features_run_by_number_and_then_by_order() -> None:
    map_ = Hermite((1, 0), (0.3, 0.7), 4, 2.0)
    cells = on_grid(np.random.default_rng(2).random((5, 2)))
    parts = [Hermite((1,), (0.3,), 4, 2.0)(cells), Hermite((0,), (0.7,), 4, 2.0)(cells)]
    assert map_.dim == 10
    assert np.array_equal(map_(cells), np.concatenate(parts, axis=1) / math.sqrt(2))


def test_the_order_for_a_length_scale_is_about_two_and_a_half_over_it() -> None:
    """With the best half range, ceil(2.5 / s) orders carry the kernel; a tenth of them do not."""
    positions = np.linspace(0, 1, 65)[:, None]
    for scale in (0.02, 0.05, 0.2):
        exact = gaussian(positions[:, 0], scale)
        enough, few = (
            Hermite((0,), (scale,), math.ceil(part * 2.5 / scale), best_half_range(scale))(positions)
            for part in (1.0, 0.1)
        )
        assert np.abs(enough @ enough.T - exact).max() < 1e-3
        assert np.abs(few @ few.T - exact).max() > 0.1


@pytest.mark.parametrize("order", [-1, HIGHEST_ORDER + 1])
def test_an_order_out_of_range_is_refused(order: int) -> None:
    with pytest.raises(ValueError, match="order"):
        Hermite((0,), (0.1,), order, 1.0)
    with pytest.raises(ValueError, match="order"):
        Mahalanobis((0,), ((1.0,),), order)


def test_single_precision_cells_have_features_as_good_as_their_positions() -> None:
    map_ = Hermite((0, 1), (0.02, 0.4), HIGHEST_ORDER, best_half_range(0.02))
    cells = on_grid(np.random.default_rng(3).random((30, 2)))
    there = map_(torch.from_numpy(cells).to(torch.float32))
    assert there.dtype is torch.float32
    assert np.abs(there.double().numpy() - map_(cells)).max() < 1e-7


# Mahalanobis kernels

MATRICES = {2: ((3.0, 1.2), (1.2, 2.0)), 3: ((2.0, 0.5, -0.3), (0.5, 1.0, 0.2), (-0.3, 0.2, 1.5))}


@pytest.mark.parametrize(("width", "order"), [(2, 24), (3, 20)])
def test_the_generalised_kernel_is_that_of_the_matrix(width: int, order: int) -> None:
    matrix = np.array(MATRICES[width])
    numbers = tuple(range(width))[::-1]
    map_ = Mahalanobis(numbers, MATRICES[width], order)
    cells = on_grid(np.random.default_rng(4).random((30, width)))
    cells[0], cells[1] = 0.0, 1.0
    steps = (cells[:, None, :] - cells)[:, :, list(numbers)]
    exact = np.exp(-np.einsum("abi,ij,abj->ab", steps, matrix, steps))
    features = map_(cells)
    assert features.shape == (30, map_.dim) == (30, (order + 1) ** width)
    assert np.abs(features @ features.T - exact).max() < 1e-6
    poor = Mahalanobis(numbers, MATRICES[width], 2)(cells)
    assert np.abs(poor @ poor.T - exact).max() > 1e-4


def test_the_generalised_features_are_products_of_single_ones_in_turned_coordinates() -> None:
    """With a diagonal matrix they are the tensor products of Hermite features of each number."""
    map_ = Mahalanobis((0, 1), ((3.0, 0.0), (0.0, 0.5)), 6)
    cells = on_grid(np.random.default_rng(5).random((8, 2)))
    points = (cells - 0.5) * np.sqrt(8 / 3 * np.array([3.0, 0.5]))
    first, second = (features_of(points[:, j], 1 / 3, 6) for j in range(2))
    expected = np.einsum("ni,nj->nij", first, second).reshape(8, -1)
    assert np.abs(map_(cells) - expected).max() < 1e-6


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e12])
def test_turned_coordinates_are_exact_products_whatever_the_batch(factor: float) -> None:
    """No rounding at all, so that no row depends on how a library blocks its products."""
    matrix = tuple(tuple(factor * value for value in row) for row in MATRICES[3])
    stretch = Mahalanobis((0, 1, 2), matrix, 2).stretch
    wanted = (8 / 3) * np.array(matrix)
    assert np.abs(stretch @ stretch - wanted).max() < 1e-6 * max(1.0, np.abs(wanted).max())
    centred = on_grid(np.random.default_rng(6).random((20, 3))) - 0.5
    for row, points in zip(centred.tolist(), (centred @ stretch).tolist(), strict=True):
        for column, point in zip(stretch.T.tolist(), points, strict=True):
            terms = [Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)]
            assert Fraction(point) == sum(terms)


@pytest.mark.parametrize(
    "matrix",
    [
        ((1.0, 0.2), (0.3, 1.0)),
        ((1.0, 2.0), (2.0, 1.0)),
        ((1.0, 1.0), (1.0, 1.0)),
        ((0.0, 0.0), (0.0, 0.0)),
        ((-1.0, 0.0), (0.0, 1.0)),
        ((math.nan, 0.0), (0.0, 1.0)),
    ],
    ids=["not symmetric", "indefinite", "singular", "zero", "negative", "not a number"],
)
def test_a_matrix_of_no_distance_is_refused(matrix: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ValueError, match="symmetric and positive definite"):
        Mahalanobis((0, 1), matrix, 3)
