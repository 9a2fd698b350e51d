from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.features import Fourier, Scales
from understudy.features.exact import EXACT_BITS, cosines_and_sines, phases_of
from understudy.schema.columns import POSITION_BITS

Floats = npt.NDArray[np.float64]
PLAIN = ((0.2, 0.6, 1.5), (Scales(3, 1.0, 1.0),))
MIXTURE = ((1.0, 0.5, 2.0), (Scales(1, 0.05, 0.5), Scales(2, 0.1, 0.7), Scales(3, 0.3, 0.3)))
# From raw PCG64 bits by mpmath at 40 digits, in turns times 2^16.
GOLDEN_FREQUENCIES = [[810665, 95965, 0, -103635], [0, 173394, 248037, 59650], [0, -4196, 0, -89006]]
STEPS = np.array([[0.1, 0, 0], [0, 0.3, 0], [0, 0, 1.0], [0.15, -0.2, 0.5], [0.9, 0.9, 0.9]])
STARTS = np.where(STEPS < 0, 1.0, 0.0)


def on_grid(positions: Floats) -> Floats:
    return np.rint(positions * 2.0**POSITION_BITS) / 2.0**POSITION_BITS


def part_kernel(step: Floats, scales: tuple[float, ...], part: Scales) -> float:
    """Average over the part's column subsets and its log-uniform scale, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    ratio = math.log(part.longest / part.shortest)
    lengths = part.shortest * np.exp(ratio * (nodes + 1) / 2)
    total, subsets = 0.0, list(itertools.combinations(range(len(step)), part.size))
    for subset in subsets:
        distance = sum((step[j] / scales[j]) ** 2 for j in subset)
        total += float(np.sum(weights / 2 * np.exp(-distance / 2 / lengths**2)))
    return total / len(subsets)


def kernel_and_deviation(step: Floats, scales: tuple[float, ...], parts: tuple[Scales, ...]) -> tuple[float, float]:
    """The exact kernel, and the deviation of one frequency's cos around its part's kernel."""
    means = [part_kernel(step, scales, part) for part in parts]
    squares = [(1 + part_kernel(2 * step, scales, part)) / 2 for part in parts]
    variances = [square - mean**2 for square, mean in zip(squares, means, strict=True)]
    return float(np.mean(means)), math.sqrt(max(0.0, float(np.mean(variances))))


def errors(scales: tuple[float, ...], parts: tuple[Scales, ...], num_features: int, seeds: range) -> Floats:
    """Kernel errors over the deviation that theory gives them.  # (seeds, steps)"""
    exact = [kernel_and_deviation(step, scales, parts) for step in on_grid(STEPS)]
    predicted = np.array([deviation for _, deviation in exact]) / math.sqrt(num_features / 2)
    found = []
    for seed in seeds:
        map_ = Fourier((0, 1, 2), scales, parts, num_features, seed)
        left, right = map_(STARTS), map_(STARTS + on_grid(STEPS))
        found.append((left.astype(float) * right).sum(axis=1) - [kernel for kernel, _ in exact])
    return np.array(found) / predicted


@pytest.mark.parametrize("kernel", [PLAIN, MIXTURE], ids=["one Gaussian", "a mixture"])
@pytest.mark.parametrize("num_features", [60, 600, 6000])
def test_the_kernel_error_falls_like_one_over_the_root_of_the_features(
    kernel: tuple[tuple[float, ...], tuple[Scales, ...]], num_features: int
) -> None:
    found = errors(*kernel, num_features, range(150))
    spread = np.sqrt((found**2).mean(axis=0))
    assert (np.abs(found.mean(axis=0)) < 5 / math.sqrt(150)).all(), "biased"
    assert (spread > 0.75).all(), "errors are smaller than theory allows"
    assert (spread < 1.3).all(), "errors are larger than predicted"


def test_each_column_has_its_own_length_scale() -> None:
    map_ = Fourier((0, 1), (0.1, 1.0), (Scales(2, 1.0, 1.0),), 40_000, 0)
    start, along_first, along_second = map_(np.array([[0.5, 0.5], [0.625, 0.5], [0.5, 0.625]]))
    assert abs(start @ along_first - math.exp(-(1.25**2) / 2)) < 0.02
    assert abs(start @ along_second - math.exp(-(0.125**2) / 2)) < 0.02


def test_a_scale_reads_the_columns_it_names_in_their_order() -> None:
    parts = (Scales(2, 1.0, 1.0),)
    near, far = Fourier((2, 0), (0.3, 0.7), parts, 20, 4), Fourier((0, 1), (0.3, 0.7), parts, 20, 4)
    cells = on_grid(np.random.default_rng(0).random((9, 3)))
    assert np.array_equal(near(cells), far(cells[:, [2, 0]]))


def test_frequencies_are_a_fixed_function_of_the_seed() -> None:
    """Whoever fits a release must draw the very frequencies that its owner drew."""
    parts = (Scales(1, 0.004, 0.5), Scales(3, 0.1, 0.1))
    whole = Fourier((0, 1, 2), (1.0, 0.5, 2.0), parts, 8, 7).frequencies * 2**16
    units = np.array([32, 8, 8, 4])  # 15 bits and a sign for the largest of each
    assert np.array_equal(whole / units, np.rint(whole / units))
    assert (np.abs(whole - GOLDEN_FREQUENCIES) <= units / 2).all()
    assert np.abs(whole / units).max() < 2**15 <= 2 * np.abs(whole / units).max(axis=0).min()


def test_frequencies_are_16_bit_numbers_of_steps_and_phases_shifted_products() -> None:
    """What the compiled sums multiply is what everybody else multiplies."""
    parts = (Scales(1, 0.004, 0.5), Scales(3, 0.02, 3.0), Scales(2, 1e-9, 1e-9), Scales(3, 1e9, 1e9))
    map_ = Fourier((0, 1, 2), (1.0, 0.5, 2.0), parts, 400, 3)
    steps, shifts = map_.steps
    assert steps.dtype == np.int16
    assert shifts.min() == 0
    assert shifts.max() == 16
    positions = np.random.default_rng(0).integers(0, 2**16, (20, 3))
    products = (positions @ steps.astype(np.int64)) << shifts
    turns = (positions / 2**16) @ map_.frequencies
    assert np.array_equal(products.astype(np.int32), phases_of(turns))
    again = Fourier((0, 1, 2), (1.0, 0.5, 2.0), parts, 400, 3)
    again.__dict__["frequencies"] = map_.frequencies
    assert np.array_equal(again.steps[0], steps)


def test_the_last_position_is_taken_as_the_one_before_it() -> None:
    map_ = Fourier((0,), (0.01,), (Scales(1, 1, 1),), 8, 0)
    last, before = map_(np.array([[1.0], [1 - 2**-16]]))
    assert np.array_equal(last, before)


def test_another_seed_draws_other_frequencies() -> None:
    one, other = (Fourier((0,), (1.0,), (Scales(1, 1, 1),), 8, seed).frequencies for seed in (0, 1))
    assert (one != other).all()


def test_phases_are_the_exact_products_of_positions_and_frequencies() -> None:
    width = 24
    map_ = Fourier(tuple(range(width)), (0.01,) * width, (Scales(width, 1, 1),), 200, 11)
    cells = on_grid(np.random.default_rng(1).random((30, width)))
    bits = 2 ** max(Fraction(value).denominator for value in map_.frequencies.ravel()).bit_length()
    frequencies = [[int(value * bits) for value in row] for row in map_.frequencies.tolist()]
    positions = [[int(value * 2**POSITION_BITS) for value in row] for row in cells.tolist()]
    # Python integers: no rounding at all.
    turns = np.array(
        [
            [
                float(_nearest_zero(sum(map(int.__mul__, row, column)), bits * 2**POSITION_BITS))
                for column in zip(*frequencies, strict=True)
            ]
            for row in positions
        ]
    )
    phases = (turns * 2**32).astype(np.int64).astype(np.int32)
    expected = np.concatenate(cosines_and_sines(phases), axis=1) * math.sqrt(2 / 200)
    assert np.array_equal(map_(cells), expected)


def test_networks_are_trained_through_nearly_the_features_that_rows_have() -> None:
    map_ = Fourier((0, 1, 2), (0.1,) * 3, (Scales(3, 1, 1),), 64, 5)
    cells = on_grid(np.random.default_rng(4).random((50, 3)))
    trained = map_(torch.tensor(cells)).numpy()
    assert np.abs(trained - map_(cells)).max() < 4e-7


def _nearest_zero(numerator: int, denominator: int) -> Fraction:
    turns = Fraction(numerator, denominator)
    return turns - round(turns)


@settings(max_examples=60, deadline=None)
@given(exponent=st.floats(-12, 6), width=st.integers(1, 12), seed=st.integers(0, 2**32), size=st.integers(1, 12))
def test_phases_fit_in_the_exact_range_of_double_precision_at_any_scale(
    exponent: float, width: int, seed: int, size: int
) -> None:
    part = Scales(min(size, width), 10.0**exponent, 10.0**exponent)
    frequencies = Fourier(tuple(range(width)), (1.0,) * width, (part,), 16, seed).frequencies
    exact = [[Fraction(value) for value in column] for column in frequencies.T.tolist()]
    bits = [_lowest_bit(value) for column in exact for value in column if value]
    unit = min(bits, default=Fraction(1))  # at the longest scales all are rounded to zero
    for column in exact:
        reach = sum((abs(value) for value in column), Fraction(0))
        assert reach / unit * 2**POSITION_BITS < 2 ** (EXACT_BITS + 1)


def _lowest_bit(value: Fraction) -> Fraction:
    """The largest power of two of which a binary fraction is a multiple."""
    return Fraction(value.numerator & -value.numerator, value.denominator)


def test_a_slice_is_a_map_of_its_own_with_some_of_the_frequencies() -> None:
    map_ = Fourier((0, 1), (0.3, 0.4), (Scales(2, 1, 1),), 40, 2)
    cells = on_grid(np.random.default_rng(2).random((5, 2)))
    piece, columns = map_.slice(3, 9)
    assert piece.dim == len(columns) == 12
    scaled = map_(cells)[:, columns] * math.sqrt(40 / 12)
    assert np.abs(piece(cells) - scaled).max() < 1e-6
    assert np.abs(np.linalg.norm(piece(cells), axis=1) - 1).max() < 1e-6
