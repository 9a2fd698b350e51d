"""Subsets of columns, all of them or drawn at public random."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations, islice

from understudy.errors import UsageError
from understudy.features.draws import uniform_stream

TRIES_PER_SUBSET = 200

Subset = tuple[int, ...]


def num_subsets(num_columns: int, size: int) -> int:
    """How many subsets of a size there are."""
    return math.comb(num_columns, size)


def draw_subsets(
    widths: Sequence[int], size: int, count: int, *, apart: set[frozenset[int]], largest: int, seed: int
) -> tuple[Subset, ...]:
    """Different subsets of ``size`` columns, in increasing order of their columns.

    Args:
        widths: number of features of each column.
        size: columns in a subset.
        count: how many subsets; if that is all of them, none is drawn.
        apart: pairs of columns that may not be in one subset.
        largest: products of features that a subset may have.
        seed: public seed.
    """
    tries: Iterable[Subset] = combinations(range(len(widths)), size)
    if count < num_subsets(len(widths), size):
        draws = islice(uniform_stream(seed, len(widths)), TRIES_PER_SUBSET * count)
        tries = (tuple(sorted(draw.argsort()[:size].tolist())) for draw in draws)
    found: set[Subset] = set()
    too_large = False
    for subset in tries:
        if len(found) == count:
            break
        if any(frozenset(pair) in apart for pair in combinations(subset, 2)):
            continue
        if math.prod(widths[j] for j in subset) <= largest:
            found.add(subset)
        else:
            too_large = True
    if too_large and not found:
        raise UsageError(
            "products",
            f"every set of {size} columns has more than {largest} features",
            "Lower the product dimension or the product order",
        )
    return tuple(sorted(found))
