"""Subsets of columns: all, or as many as asked for, drawn with a public seed."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from understudy.errors import UsageError
from understudy.methods.common import Subset, draw_subsets


def drawn(widths: list[int], size: int, count: int, **options: Any) -> tuple[Subset, ...]:
    settings: dict[str, Any] = {"apart": set(), "largest": 10**9, "seed": 0, **options}
    return draw_subsets(widths, size, count, **settings)


@pytest.mark.parametrize("count", [10, 11, 5000])
def test_all_subsets_are_taken_in_order_if_that_many_are_wanted(count: int):
    assert drawn([3] * 5, 2, count) == tuple(combinations(range(5), 2))


@pytest.mark.parametrize(("size", "count"), [(2, 1), (2, 40), (3, 100), (5, 7)])
def test_drawn_subsets_are_different_sorted_and_as_many_as_asked_for(size: int, count: int):
    found = drawn([3] * 12, size, count)
    assert len(set(found)) == len(found) == count
    assert found == tuple(sorted(found))
    assert all(len(subset) == size for subset in found)
    assert all(tuple(sorted(set(subset))) == subset for subset in found)
    assert all(0 <= j < 12 for subset in found for j in subset)


def test_every_subset_is_as_likely_as_the_others():
    found = [drawn([3] * 6, 2, 3, seed=seed) for seed in range(1000)]
    pairs = [*combinations(range(6), 2)]
    seen = np.array([sum(pair in subsets for subsets in found) for pair in pairs])
    deviation = np.sqrt(1000 * 0.2 * 0.8)
    assert (np.abs(seen - 200) < 5 * deviation).all()


def test_the_same_seed_draws_the_same_subsets_and_another_others():
    assert drawn([3] * 20, 2, 10, seed=4) == drawn([3] * 20, 2, 10, seed=4)
    assert drawn([3] * 20, 2, 10, seed=4) != drawn([3] * 20, 2, 10, seed=5)


@pytest.mark.parametrize("count", [20, 60])  # some are drawn, or all are taken
def test_columns_that_are_kept_apart_are_in_no_subset_together(count: int):
    apart = {frozenset((0, 1)), frozenset((2, 5))}
    found = drawn([3] * 8, 3, count, apart=apart)
    pairs = {frozenset(pair) for subset in found for pair in combinations(subset, 2)}
    assert not pairs & apart
    assert len(found) == min(count, 56 - 2 * 6)
    assert {j for subset in found for j in subset} == set(range(8))


@pytest.mark.parametrize("count", [3, 10])
def test_subsets_with_too_many_features_are_left_out(count: int):
    widths = [10, 20, 30, 2, 3]
    found = drawn(widths, 2, count, largest=60)
    fit = [(i, j) for i, j in combinations(range(5), 2) if widths[i] * widths[j] <= 60]
    assert len(fit) == 6
    assert set(found) <= set(fit)
    assert len(found) == min(count, 6)


@pytest.mark.parametrize("count", [1, 100])
def test_if_no_subset_is_small_enough_it_says_so(count: int):
    with pytest.raises(UsageError, match="every set of 2 columns has more than 99 features"):
        drawn([10] * 6, 2, count, largest=99)


def test_none_wanted_is_none_given():
    assert drawn([3] * 6, 2, 0) == ()
