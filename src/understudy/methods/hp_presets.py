"""The settings of the DP-HP paper's experiments, by name."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.accounting import Budget, mu_squared_of_budget
from understudy.errors import UsageError


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings of one experiment; ``split`` is the sum kernel's share of epsilon (and of delta).

    ``length_scale`` is that of both kernels, a standard deviation in units of a column's range, where
    the paper states one.
    """

    order: int
    product_order: int
    product_dim: int
    gamma: float
    split: float
    length_scale: float | None = None

    def product_share(self, budget: Budget) -> float:
        """The product kernel's share of the budget, as the split of epsilon has it."""
        if budget.is_pure:
            return 1 - self.split
        parts = [
            float(mu_squared_of_budget(Budget(share * budget.epsilon, budget.delta / 2)))
            for share in (self.split, 1 - self.split)
        ]
        return parts[1] / sum(parts)


PRESETS = {
    "adult": Preset(100, 5, 5, 0.1, 0.6),
    "census": Preset(100, 5, 5, 0.1, 0.6),
    "cervical": Preset(20, 13, 5, 1, 0.6),
    "credit": Preset(20, 7, 5, 1, 0.6),
    "epileptic": Preset(20, 5, 7, 0.1, 0.6),
    "isolet": Preset(150, 13, 5, 1, 0.6),
    "covtype": Preset(10, 7, 2, 1, 0.6),
    "intrusion": Preset(7, 5, 5, 1, 0.6),
    "adult-marginals-0.3": Preset(100, 10, 5, 1, 0.5),
    "adult-marginals-0.1": Preset(100, 5, 7, 1, 0.5),
    "census-marginals": Preset(100, 5, 7, 0.1, 0.5),
    "mnist": Preset(100, 20, 2, 1 / 20, 0.8, math.sqrt(0.005)),
    "fashion-mnist": Preset(100, 20, 2, 1 / 10, 0.8, math.sqrt(0.15)),
}
"""Tables 4, 6 and 9 of the paper. For tables its length scales and ranges are statistics of private rows and
are not taken over; both follow from the orders here. For images it states constants on pixels from 0 to 1: its
"kernel length" is the square of a length scale, as its code has exp(-(x - y)^2 / (2 kernel length))."""


def preset_by_name(name: str) -> Preset:
    """A preset, or a refusal that lists them."""
    if name in PRESETS:
        return PRESETS[name]
    raise UsageError("preset", f"'{name}' is unknown", "Presets are " + ", ".join(PRESETS))
