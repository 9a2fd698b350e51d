"""How many features of one row can be other than zero: few, where features are counts.

By Cauchy and Schwarz a row of Euclidean norm 1 with k such features has an L1 norm of at most
sqrt(k). Nothing private rests on this number: the private side checks L1 norms row by row. It
decides how large features may be made without being cut there.
"""

from __future__ import annotations

import math

from understudy.features.base import FeatureMap
from understudy.features.buckets import Buckets
from understudy.features.combine import Tensors
from understudy.features.grid import Constant, Grid, OneHot
from understudy.features.spectrum import Lengths, Sides
from understudy.features.tables import Tables


def most_nonzeros(map_: FeatureMap) -> int:
    """The largest number of features of one row that are not zero."""
    match map_:
        case Constant() | Lengths() | Buckets() | Sides():
            return 1
        case OneHot(spans=spans):
            return len(spans)
        case Grid(numbers=numbers):
            return len(numbers)
        case Tables(subsets=subsets):
            return len(subsets)
        case Tensors(subsets=subsets):
            return sum(nonzeros_of(map_, subset) for subset in subsets)
    return map_.dim


def l1_bound(map_: FeatureMap) -> float:
    """The largest sum of absolute values of a row's features, if their norm is what it should be.

    Of P subsets of a product each has a norm of 1 / sqrt(P) at most, and its own number of features.
    """
    if not isinstance(map_, Tensors):
        return math.sqrt(most_nonzeros(map_))
    roots = (math.sqrt(nonzeros_of(map_, subset)) for subset in map_.subsets)
    return sum(roots) / math.sqrt(len(map_.subsets))


def nonzeros_of(map_: Tensors, part: tuple[int, ...]) -> int:
    """The same for the products of some of a map's factors."""
    return math.prod(most_nonzeros(map_.factors[j]) for j in part)
