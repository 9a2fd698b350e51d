"""Kernels over cells: what they are by their formulas, positive definite, and the same in any batch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch

from understudy.codec import decode, encode
from understudy.features.landmarks import SHAPES, Kernel, Term

Floats = npt.NDArray[np.float64]
SPANS = ((3, 5), (5, 8))
PROFILES: dict[str, Callable[[Floats], float]] = {
    "gaussian": lambda gaps: math.exp(-0.5 * float(gaps @ gaps)),
    "laplace": lambda gaps: math.exp(-float(np.abs(gaps).sum())),
    "matern12": lambda gaps: math.exp(-math.sqrt(float(gaps @ gaps))),
    "matern32": lambda gaps: (1 + (t := math.sqrt(3 * float(gaps @ gaps)))) * math.exp(-t),
    "matern52": lambda gaps: (1 + (t := math.sqrt(5 * float(gaps @ gaps))) + t * t / 3) * math.exp(-t),
}


def rows(count: int, seed: int = 0) -> Floats:
    """Three positions on the grid and two choices; some rows have no listed value."""
    rng = np.random.default_rng(seed)
    cells = np.zeros((count, 8))
    cells[:, :3] = rng.integers(0, 2**16 + 1, (count, 3)) / 2**16
    for start, stop in SPANS:
        slots = rng.integers(-1, stop - start, count)
        listed = np.flatnonzero(slots >= 0)
        cells[listed, start + slots[listed]] = 1.0
    return cells


def product(shape: str, mismatch: float = 0.4) -> Kernel:
    return Kernel(shape, (Term((0, 1, 2), (0.3, 0.5, 1.5), SPANS, mismatch),))


def per_column(shape: str) -> Kernel:
    numbers = tuple(Term((j,), (0.1 * (j + 1),)) for j in range(3))
    return Kernel(shape, (*numbers, *(Term((), (), (span,), 0.25) for span in SPANS)))


each_kernel = pytest.mark.parametrize(
    "kernel",
    [make(shape) for make in (product, per_column) for shape in SHAPES],
    ids=[f"{name} {shape}" for name in ("product", "sum") for shape in SHAPES],
)


def by_hand(kernel: Kernel, left: Floats, right: Floats) -> float:
    total = 0.0
    for term in kernel.terms:
        gaps = (left - right)[list(term.numbers)] / np.asarray(term.length_scales)
        value = PROFILES[kernel.shape](gaps) if term.numbers else 1.0
        for start, stop in term.spans:
            apart = 0.5 * float(((left - right)[start:stop] ** 2).sum())
            value *= term.mismatch**apart
        total += value
    return total / len(kernel.terms)


@each_kernel
def test_a_kernel_is_what_its_formula_says(kernel: Kernel) -> None:
    left, right = rows(6), rows(5, seed=1)
    expected = [[by_hand(kernel, x, y) for y in right] for x in left]
    assert np.abs(kernel(left, right) - expected).max() < 1e-6


@each_kernel
def test_a_row_has_a_kernel_of_exactly_one_with_itself_and_no_larger_one_with_others(kernel: Kernel) -> None:
    gram = kernel(rows(80), rows(80))
    assert (np.diag(gram) == 1.0).all()
    assert gram.min() >= 0.0
    assert gram.max() <= 1.0


@each_kernel
def test_every_gram_matrix_is_positive_semidefinite(kernel: Kernel) -> None:
    gram = kernel(rows(90), rows(90))
    assert np.array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-9


@each_kernel
def test_values_are_the_same_bits_in_any_split(kernel: Kernel) -> None:
    left, right = rows(61), rows(33, seed=2)
    whole = kernel(left, right)
    for size in (1, 2, 7, 30):
        pieces = [kernel(left[i : i + size], right) for i in range(0, len(left), size)]
        assert np.array_equal(np.concatenate(pieces), whole)


@each_kernel
def test_numpy_and_torch_agree_and_single_precision_is_close(kernel: Kernel) -> None:
    left, right = rows(20), rows(20, seed=3)
    there = kernel(torch.from_numpy(left), torch.from_numpy(right)).numpy()
    assert np.abs(there - kernel(left, right)).max() < 1e-12
    single = kernel.between(kernel.sides(left), kernel.sides(right), single=True)
    assert single.dtype == np.float32
    assert np.abs(single - kernel(left, right)).max() < 1e-6


@each_kernel
def test_a_kernel_comes_back_from_its_description(kernel: Kernel) -> None:
    assert decode(Kernel, json.loads(json.dumps(encode(kernel)))) == kernel


def test_many_numbers_take_another_way_to_the_same_distances() -> None:
    """Nine columns go through a product of matrices, three three times over column by column."""
    few = Kernel("gaussian", (Term((0, 1, 2), (0.3, 0.5, 1.5)),))
    roots = tuple(math.sqrt(3) * scale for scale in (0.3, 0.5, 1.5))
    many = Kernel("gaussian", (Term((0, 1, 2) * 3, roots * 3),))
    assert np.abs(few(rows(30), rows(40)) - many(rows(30), rows(40))).max() < 1e-6


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_squared_distances_are_whole_numbers_that_float64_holds(scale: float) -> None:
    term = Term((0, 1, 2), (scale, scale, 3 * scale))
    side = Kernel("gaussian", (term,)).sides(rows(50))[0]
    assert np.array_equal(side.positions, np.rint(side.positions))
    assert 4 * (side.positions**2).sum(axis=1).max() < 2**53


def test_a_mismatch_of_zero_is_an_equality_kernel() -> None:
    kernel = Kernel("gaussian", (Term((), (), SPANS, 0.0),))
    cells = rows(40)
    same = (cells[:, None, 3:] == cells[None, :, 3:]).all(axis=2)
    listed = all(cells[:, a:b].any(axis=1).all() for a, b in SPANS)
    assert not listed  # rows without a listed value are among them
    gram = kernel(cells, cells)
    assert (gram[same] == 1.0).all()
    assert gram[~same].max() < 1e-8


@pytest.mark.parametrize(
    "make",
    [
        lambda: Term((), ()),
        lambda: Term((0,), ()),
        lambda: Term((0,), (0.0,)),
        lambda: Term((0,), (1.0,), (), 1.0),
        lambda: Kernel("cauchy", (Term((0,), (1.0,)),)),
        lambda: Kernel("gaussian", ()),
    ],
)
def test_what_is_no_kernel_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"term|scale|kernel"):
        make()
