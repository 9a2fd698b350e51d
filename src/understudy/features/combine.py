"""Products of feature maps: the map of a product kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat

from understudy.features.base import MAP_KINDS, Array, FeatureMap, Sign, map_from_dict


@dataclass(frozen=True, slots=True)
class Product:
    """All products of a left and a right feature: the kernel is the product of the two kernels.

    |left (x) right| = |left| |right| <= 1.
    """

    left: FeatureMap
    right: FeatureMap

    @property
    def dim(self) -> int:
        """Left times right."""
        return self.left.dim * self.right.dim

    @property
    def sign(self) -> Sign:
        """Inner products multiply, so two nonnegative maps stay nonnegative."""
        signs = {self.left.sign, self.right.sign}
        for sign in (Sign.SIGNED, Sign.NONNEGATIVE):
            if sign in signs:
                return sign
        return Sign.CONSTANT

    def __call__(self, cells: Array) -> Array:
        """Products of features.  # (num_rows, left.dim * right.dim)"""
        xp = array_api_compat.array_namespace(cells)
        products = self.left(cells)[:, :, None] * self.right(cells)[:, None, :]
        return xp.reshape(products, (cells.shape[0], self.dim))

    def to_dict(self) -> dict[str, Any]:
        """Public description."""
        return {"kind": "product", "left": self.left.to_dict(), "right": self.right.to_dict()}


MAP_KINDS["product"] = lambda document: Product(
    left=map_from_dict(document["left"]), right=map_from_dict(document["right"])
)
