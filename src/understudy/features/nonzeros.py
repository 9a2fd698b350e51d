"""How many features of one row can be other than zero: few, where features are counts.

By Cauchy and Schwarz a row of Euclidean norm 1 with k such features has an L1 norm of at most
sqrt(k). Nothing private rests on this number: the private side checks L1 norms row by row. It
decides how large features may be made without being cut there.
"""

from __future__ import annotations

import math

from understudy.features.base import FeatureMap
from understudy.features.combine import Tensors
from understudy.features.grid import Constant, Grid, OneHot
from understudy.features.tables import Tables


def most_nonzeros(map_: FeatureMap) -> int:
    """The largest number of features of one row that are not zero."""
    match map_:
        case Constant():
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


def nonzeros_of(map_: Tensors, part: tuple[int, ...]) -> int:
    """The same for the products of some of a map's factors."""
    return math.prod(most_nonzeros(map_.factors[j]) for j in part)
