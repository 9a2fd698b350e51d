"""Coordinates in the span of public points: projections, exact products, and a mean that converges."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from understudy import load_schema
from understudy.features import Kernel, Landmarks, Points, Term
from understudy.features.landmarks import KERNEL_BITS, kernel_sums, times_gram
from understudy.features.points import points_of_codes
from understudy.rules.pivots import pivot_points, spanned_by
from understudy.schema import Layout

Floats = npt.NDArray[np.float64]
COLUMNS = [
    {"name": "x", "kind": "continuous", "bounds": [0, 1]},
    {"name": "y", "kind": "continuous", "bounds": [0, 1]},
    {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"]},
]
LAYOUT = Layout(load_schema({"columns": COLUMNS}))
KERNELS = {
    "gaussian": Kernel("gaussian", (Term((0, 1), (0.4, 0.4), ((2, 5),), 0.5),)),
    "wide": Kernel("gaussian", (Term((0, 1), (2.0, 2.0)),)),
    "laplace": Kernel("laplace", (Term((0, 1), (0.5, 0.5), ((2, 5),), 0.2),)),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def points(count: int, seed: int = 0) -> Points:
    rng = np.random.default_rng(seed)
    codes = np.stack([*rng.integers(0, 2**32, (2, count)), rng.integers(0, 3, count)], axis=1).astype(np.int64)
    return points_of_codes(LAYOUT, codes)


def landmarks(kernel: Kernel, most: int = 40) -> Landmarks:
    candidates = points(60)
    places, _ = pivot_points(kernel, candidates, np.ones(60), most=most)
    return Landmarks(kernel, candidates, tuple(int(place) for place in places))


@each_kernel
def test_coordinates_have_the_inner_products_of_projections(kernel: Kernel) -> None:
    map_, cells = landmarks(kernel), points(50, seed=1).cells
    spanning = map_.spanning.cells
    inverse = np.linalg.pinv(kernel(spanning, spanning), hermitian=True)
    across = kernel(cells, spanning)
    features = map_(cells) / map_.shortening
    assert np.abs(features @ features.T - across @ inverse @ across.T).max() < 2e-3


@each_kernel
def test_points_that_span_the_space_keep_their_kernel(kernel: Kernel) -> None:
    map_ = landmarks(kernel)
    features = map_(map_.spanning.cells) / map_.shortening
    gram = kernel(map_.spanning.cells, map_.spanning.cells)
    assert np.abs(features @ features.T - gram).max() < 2e-3


@each_kernel
def test_no_row_is_longer_than_one_and_little_is_taken_off(kernel: Kernel) -> None:
    map_ = landmarks(kernel)
    norms = np.linalg.norm(map_(points(3000, seed=2).cells), axis=1)
    assert norms.max() <= 1.0
    assert 0.97 < map_.shortening < 1.0


@each_kernel
def test_products_are_those_of_whole_numbers_to_the_last_bit(kernel: Kernel) -> None:
    """In Python's integers, which never round; the two parts are added as floats, as the map does."""
    map_, cells = landmarks(kernel), points(4, seed=3).cells
    whole = np.rint(kernel(cells, map_.spanning.cells) * 2.0**KERNEL_BITS)
    found = map_(cells)
    (coarse, coarse_unit), (fine, fine_unit) = map_._whole_parts
    for part in (coarse, fine):
        assert np.array_equal(part, np.rint(part))
        assert np.abs(part).sum(axis=0).max() * 2.0**KERNEL_BITS < 2**53
    for row, values in zip(whole.tolist(), found, strict=True):
        for column, value in enumerate(values):
            sums = [
                sum(int(a) * int(b) for a, b in zip(row, part[:, column].tolist(), strict=True))
                for part in (coarse, fine)
            ]
            first = sums[0] * (2.0**-KERNEL_BITS / coarse_unit)
            second = sums[1] * (2.0**-KERNEL_BITS / fine_unit)
            assert value == first + second


def test_the_two_parts_together_are_the_inverse_to_many_digits() -> None:
    map_ = landmarks(KERNELS["gaussian"])
    (coarse, coarse_unit), (fine, fine_unit) = map_._whole_parts
    rebuilt = coarse / coarse_unit + fine / fine_unit
    assert np.abs(rebuilt - map_._inverse.T * map_.shortening).max() < 1e-12


@each_kernel
def test_weights_have_the_coordinates_that_were_asked_for(kernel: Kernel) -> None:
    map_ = landmarks(kernel, most=12)
    asked = np.random.default_rng(4).standard_normal(map_.dim) / 10
    weights = map_.weights_of(asked)
    assert np.abs(map_.precise(map_.spanning.cells).T @ weights - asked).max() < 1e-6


@each_kernel
def test_rounded_coordinates_are_the_precise_ones_but_for_the_last_digits(kernel: Kernel) -> None:
    map_, cells = landmarks(kernel), points(200, seed=9).cells
    assert np.abs(map_(cells) - map_.precise(cells)).max() <= 1 - map_.shortening


def mean_outside(map_: Landmarks, cells: Floats) -> float:
    """Squared distance of the mean of rows' kernels to the span (the paper's projection error)."""
    kernel = map_.kernel
    inside = (map_(cells) / map_.shortening).mean(axis=0)
    return float(kernel(cells, cells).mean() - inside @ inside)


@each_kernel
def test_what_is_left_out_of_the_mean_falls_with_every_point_to_almost_nothing(kernel: Kernel) -> None:
    """Lemma 10 of the paper, which is the part of its Theorem 2 that has no noise in it."""
    cells, candidates = points(150, seed=5).cells, points(300, seed=6)
    places, _ = pivot_points(kernel, candidates, np.ones(300), most=200)
    sizes = [size for size in (1, 4, 16, 64, 200) if size <= len(places)]
    left = [mean_outside(spanned_by(kernel, candidates.take(places[:n])), cells) for n in sizes]
    assert all(after <= before + 1e-4 for before, after in itertools.pairwise(left))
    assert left[-1] < 0.05 * left[0]


@each_kernel
def test_the_reach_of_kernel_sums_is_proved_and_not_much_too_long(kernel: Kernel) -> None:
    candidates = points(80)
    map_ = kernel_sums(kernel, candidates)
    largest = float(np.linalg.eigvalsh(kernel(candidates.cells, candidates.cells))[-1])
    assert largest <= map_.reach**2 <= 1.3 * largest
    norms = np.linalg.norm(map_(points(3000, seed=7).cells), axis=1)
    assert norms.max() <= 1 + 1e-6


def test_products_with_the_gram_matrix_are_those_of_the_whole_matrix() -> None:
    kernel, candidates = KERNELS["gaussian"], points(70)
    gram = kernel(candidates.cells, candidates.cells)
    vector = np.random.default_rng(8).standard_normal(70)
    images, squares = times_gram(kernel, candidates, vector)
    assert np.abs(images - gram @ vector).max() < 1e-5
    assert np.abs(squares - (gram**2).sum(axis=1)).max() < 1e-5
