from __future__ import annotations

import itertools
import math
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from understudy.features import (
    Cells,
    Constant,
    FeatureMap,
    Fourier,
    Grid,
    Hermite,
    OneHot,
    Scales,
    Sign,
    Tables,
    Tensors,
    product,
)
from understudy.features.combine import tensor

Floats = npt.NDArray[np.float64]
GAUSSIAN = Fourier((0,), (0.3,), (Scales(1, 1.0, 1.0),), 20, 0)
CHOICE = OneHot(((1, 4),))
CELLS = np.array([[0.25, 1, 0, 0], [0.5, 0, 1, 0], [0.75, 0, 0, 0], [1.0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("left", "right"), [(GAUSSIAN, CHOICE), (CHOICE, GAUSSIAN), (GAUSSIAN, GAUSSIAN), (Grid((0,), 3), Constant())]
)
def test_the_kernel_of_a_product_is_the_product_of_kernels(left: FeatureMap, right: FeatureMap) -> None:
    gram = [map_(CELLS) @ map_(CELLS).T for map_ in (left, right, product(left, right))]
    assert np.abs(gram[0] * gram[1] - gram[2]).max() < 1e-6


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (Constant(), Constant(), Sign.CONSTANT),
        (Constant(), CHOICE, Sign.NONNEGATIVE),
        (CHOICE, CHOICE, Sign.NONNEGATIVE),
        (GAUSSIAN, CHOICE, Sign.SIGNED),
        (Constant(), GAUSSIAN, Sign.SIGNED),
        (GAUSSIAN, GAUSSIAN, Sign.SIGNED),
    ],
)
def test_a_product_promises_no_more_than_its_weaker_side(left: FeatureMap, right: FeatureMap, sign: Sign) -> None:
    assert product(left, right).sign is sign
    assert product(right, left).sign is sign


# Many subsets at once

HERMITES = tuple(Hermite((j,), (0.2 + 0.1 * j,), 4 + j, 2.0) for j in range(3))
CHOICES = (OneHot(((3, 5),)), OneHot(((5, 8),)))
FACTORS: tuple[FeatureMap, ...] = (*HERMITES, *CHOICES)
PAIRS = tuple(itertools.combinations(range(5), 2))
TRIPLES = tuple(itertools.combinations(range(5), 3))
CASES = {
    "all pairs": Tensors(FACTORS, PAIRS),
    "pairs of other factors": Tensors(FACTORS, ((4, 1), (1, 0), (0, 4))),
    "a few pairs": Tensors(FACTORS, ((0, 4), (1, 3))),
    "a factor with itself": Tensors(FACTORS, ((0, 0), (3, 0))),
    "all triples": Tensors(FACTORS, TRIPLES),
    "sizes mixed": Tensors(FACTORS, ((0, 1), (2, 3, 4), (0, 1, 2, 3, 4), (3, 0))),
    "disjoint pairs": Tensors(FACTORS * 5, tuple((j, j + 1) for j in range(0, 24, 2))),
    "one pair": product(FACTORS[2], FACTORS[4]),
    "with a constant": Tensors((*FACTORS, Constant()), ((0, 5), (5, 3), (5, 1, 2))),
}
SPARSE = {"disjoint pairs", "all triples", "sizes mixed", "with a constant"}
each_case = pytest.mark.parametrize("map_", CASES.values(), ids=CASES)


def random_cells(count: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    cells = np.zeros((count, 8))
    cells[:, :3] = rng.integers(0, 2**16 + 1, (count, 3)) / 2**16
    for start, stop in ((3, 5), (5, 8)):
        chosen = rng.integers(start, stop + 1, count)  # stop: an unlisted value
        listed = chosen < stop
        cells[np.flatnonzero(listed), chosen[listed]] = 1.0
    return cells


def explicit(map_: Tensors, cells: Floats) -> Floats:
    """Outer products, written out for every row and subset."""
    single = [np.asarray(factor(cells), dtype=np.float64) for factor in map_.factors]
    rows = [
        np.concatenate([reduce(np.multiply.outer, [single[j][i] for j in subset]).ravel() for subset in map_.subsets])
        for i in range(len(cells))
    ]
    return np.array(rows) / math.sqrt(len(map_.subsets))


def test_the_cases_cover_both_ways_to_sum() -> None:
    assert {name for name, map_ in CASES.items() if not map_.is_dense} == SPARSE


@each_case
def test_features_are_explicit_outer_products(map_: Tensors) -> None:
    cells = random_cells(17)
    expected = explicit(map_, cells)
    assert expected.shape == (17, map_.dim)
    assert np.abs(map_(cells) - expected).max() < 1e-14
    assert map_.dim == sum(map_.sizes)


@each_case
def test_the_kernel_is_the_mean_over_subsets_of_products_of_kernels(map_: Tensors) -> None:
    cells = random_cells(23, 1)
    grams = [factor(cells) @ factor(cells).T for factor in map_.factors]
    expected = np.mean([math.prod(grams[j] for j in subset) for subset in map_.subsets], axis=0)
    features = map_(cells)
    assert np.abs(features @ features.T - expected).max() < 1e-13


@each_case
@pytest.mark.parametrize("sizes", [(31,), (7, 1, 23), (1,) * 31])
@pytest.mark.parametrize("library", ["numpy", "torch", "torch, single"])
def test_means_are_those_of_explicit_features(map_: Tensors, sizes: tuple[int, ...], library: str) -> None:
    cells = random_cells(31, 2)
    features = explicit(map_, cells)
    edges = np.cumsum([0, *sizes])
    groups = [features[a:b] for a, b in itertools.pairwise(edges)]
    means, norms = map_.means(given_to(library, cells), sizes)
    tolerance = 1e-6 if library == "torch, single" else 1e-13
    assert means.shape == (len(sizes), map_.dim)
    expected = np.array([group.mean(axis=0) for group in groups])
    assert np.abs(np.asarray(means) - expected).max() < tolerance
    squares = np.array([(group**2).sum(axis=1).mean() for group in groups])
    assert np.abs(np.asarray(norms) - squares).max() < tolerance


def given_to(library: str, cells: Floats) -> Any:
    if library == "numpy":
        return cells
    tensors = torch.from_numpy(cells)
    return tensors.to(torch.float32) if library == "torch, single" else tensors


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_means_of_factors_of_different_precision_are_no_error(precision: torch.dtype) -> None:
    """Fourier features are single whatever the cells are; memberships are like the cells."""
    map_ = Tensors((GAUSSIAN, CHOICE, Constant()), ((0, 1), (0, 1, 2)))
    means, norms = map_.means(torch.from_numpy(CELLS).to(precision), [3, 1])
    features = map_(CELLS)
    assert np.abs(np.asarray(means) - [features[:3].mean(axis=0), features[3]]).max() < 1e-6
    assert norms.shape == (2,)


@each_case
def test_gradients_flow_through_means(map_: Tensors) -> None:
    cells = torch.from_numpy(random_cells(9, 3)).requires_grad_()
    means, _ = map_.means(cells, [4, 5])
    means.sum().backward()
    found = np.asarray(cells.grad).copy()
    again = torch.from_numpy(random_cells(9, 3)).requires_grad_()
    features = map_(again)
    (features[:4].mean(0).sum() + features[4:].mean(0).sum()).backward()
    assert np.abs(found).max() > 0
    assert np.abs(found - np.asarray(again.grad)).max() < 1e-11


@each_case
def test_a_part_has_some_of_the_subsets_and_says_where_they_lie(map_: Tensors) -> None:
    cells = random_cells(6, 4)
    whole, count = map_(cells), len(map_.subsets)
    for start, stop in itertools.combinations(range(count + 1), 2):
        part, place, scale = map_.part(slice(start, stop))
        assert part.subsets == map_.subsets[start:stop]
        assert scale == math.sqrt(count / (stop - start))
        assert np.abs(part(cells) - whole[:, place] * scale).max() < 1e-14
        assert part.dim == place.stop - place.start
    # A part that runs past the end is cut off there, as slices are.
    part, place, _ = map_.part(slice(count - 1, count + 5))
    assert part.subsets == map_.subsets[-1:]
    assert place.stop == map_.dim


@each_case
def test_apart_has_a_map_for_every_subset(map_: Tensors) -> None:
    cells = random_cells(6, 5)
    found = np.concatenate([each(cells) for each in map_.apart()], axis=1)
    assert [each.subsets for each in map_.apart()] == [(subset,) for subset in map_.subsets]
    assert np.abs(found / math.sqrt(len(map_.subsets)) - map_(cells)).max() < 1e-14


@each_case
def test_halves_make_up_their_subset_in_order(map_: Tensors) -> None:
    cells = random_cells(5, 6)
    single = map_.single(cells)
    for subset, (first, second) in zip(map_.subsets, map_.halves, strict=True):
        assert first + second == subset
        assert 0 <= len(first) - len(second) <= 1
        outer = tensor([tensor([single[j] for j in half]) for half in (first, second)])
        assert np.abs(outer - tensor([single[j] for j in subset])).max() < 1e-15
        assert map_.size_of(first) * map_.size_of(second) == map_.size_of(subset)


@pytest.mark.parametrize("subsets", [((0,),), ((0, 1), (2,)), ((),), ()])
def test_a_product_of_fewer_than_two_factors_is_refused(subsets: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="two factors or more"):
        Tensors(FACTORS, subsets)


def test_only_factors_that_are_taken_are_computed_and_decide_the_sign() -> None:
    some = Tensors(FACTORS, ((3, 4),))
    assert some.sign is Sign.NONNEGATIVE
    assert set(some.single(random_cells(2))) == {3, 4}
    assert some.size_of_stack == 5


def test_a_factor_that_reads_codes_is_refused_as_a_product_is_given_cells() -> None:
    counts = Tables((Cells(0, 4),), ((0,),))
    with pytest.raises(ValueError, match="reads codes"):
        Tensors((counts, FACTORS[0]), ((0, 1),))
