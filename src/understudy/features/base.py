"""What a feature map is: an interface, and how one is named in a file."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Protocol

from understudy.codec import Registry

Array = Any
"""A NumPy array or a torch tensor; maps speak the array-API namespace of what they get."""


class Sign(StrEnum):
    """What is known of the inner product of two rows' features.

    It decides how far one row can move a sum when it is *replaced*: not at all if the
    features are constant, by sqrt(2) norms if no inner product is negative, else by two norms.
    """

    CONSTANT = "constant"
    NONNEGATIVE = "nonnegative"
    SIGNED = "signed"

    @property
    def replace_factor_squared(self) -> int:
        """Largest squared distance between two rows' features, in squared norm bounds."""
        return {"constant": 0, "nonnegative": 2, "signed": 4}[self.value]


class Norm(StrEnum):
    """How it is measured how far a row can move a sum.

    Gaussian noise is paid for by Euclidean norms (L2), whose squares add up over blocks; Laplace
    noise by sums of absolute values (L1), which add up themselves.
    """

    L1 = "l1"
    L2 = "l2"

    def dilution(self, parts: int) -> float:
        """What the noise on each of several parts, which share a norm equally, is larger by."""
        return math.sqrt(parts) if self is Norm.L2 else float(parts)

    def parts(self, dilution: float) -> float:
        """How many parts dilute one another so much."""
        return dilution**2 if self is Norm.L2 else dilution

    def weight(self, share: float) -> float:
        """The norm that has this share of what noise is paid for by."""
        return math.sqrt(share) if self is Norm.L2 else share


class FeatureMap(Protocol):
    """Cells in, features out.

    Guarantee:
        For cells as ``Layout.expand`` makes them (``Tables``: for codes), every row's features have Euclidean norm at
        most 1, depend on that row alone (bit for bit, in NumPy float64), and have the stated
        ``sign``. The private side checks the norm again, in integers.
    """

    @property
    def dim(self) -> int:
        """Number of features."""

    @property
    def sign(self) -> Sign:
        """What is known of inner products of two rows' features."""

    def __call__(self, cells: Array) -> Array:
        """Features of each row.  # (num_rows, width) -> (num_rows, dim)"""


MAP_KINDS: Registry[FeatureMap] = Registry(FeatureMap)
"""Every kind of map by the name it has in files; the conformance suite runs over this."""
