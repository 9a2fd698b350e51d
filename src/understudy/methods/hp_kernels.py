"""The sum and product kernels of DP-HP: what was asked for, and what the plan makes of it.

Sizes follow from the schema, the budget and the planned row count alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import cast

from understudy.accounting.mechanisms import Budget, mu_squared_of_budget
from understudy.errors import UsageError
from understudy.features import FeatureMap, Hermite, Norm, OneHot, Tensors
from understudy.features.hermite import HIGHEST_ORDER, best_half_range
from understudy.methods.common import Terms, checked_scale, draw_subsets, length_scales


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

    def wish(self, budget: Budget) -> Wish:
        """The settings, with the product kernel's share of the budget as the split of epsilon has it."""
        parts = [self.split, 1 - self.split]
        if not budget.is_pure:
            budgets = [Budget(share * budget.epsilon, budget.delta / 2) for share in parts]
            parts = [float(mu_squared_of_budget(each)) for each in budgets]
        share, scale = parts[1] / sum(parts), self.length_scale
        sizes = (self.order, self.product_order, self.product_dim)
        return Wish(*sizes, FRESH_RELEASES, self.gamma, share, scale, scale)


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


ORDER_TIMES_SCALE = 1.5
"""Orders up to 1.5 / s carry a Gaussian kernel of length scale s (``best_half_range``)."""

COARSEST_ORDER = 10
FINEST_ORDER = 150
COARSEST_PRODUCT_ORDER = 4
FINEST_PRODUCT_ORDER = 30
"""Between which orders of Hermite features are planned, of single columns and of products: higher as noise falls."""

TOLERATED_ENERGY = 0.01
"""Noise energy that the features of one column or pair may hold, of an energy of at most 1."""

TOLERATED_NOISE = 0.02
"""Deviation of the noise on a mean feature. More products than it allows only dilute each other."""

CLEAR_NOISE = {Norm.L2: TOLERATED_NOISE, Norm.L1: 0.0004}
"""Unless half the budget measures every single column as well, there are no products at all. Laplace
noise grows with their features too, and on Adult they paid from there on."""

PLANNED_SHARE = 0.8
"""Share of the budget for the product kernel, until orders are known."""

MOST_SUBSETS = 1500
"""Subsets of columns whose products are planned."""

MOST_NUMBERS = 300_000
"""Features that plans aim for, over all classes."""

LARGEST_SUBSET = 2**20
"""Features of one subset's product."""

LARGEST_RELEASE = 10_000_000
"""Features of all products over all classes; plans that need more are refused."""

FRESH_RELEASES = 8
"""Subsets of columns that are each released by themselves, as the paper does every epoch."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller has asked for; None where the plan is to decide."""

    order: int | None = None
    product_order: int | None = None
    product_dim: int | None = None
    num_products: int | None = None
    gamma: float | None = None
    product_share: float | None = None
    length_scale: float | Mapping[str, float] | None = None
    product_length_scale: float | None = None

    def __post_init__(self) -> None:
        for name in ("order", "product_order"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and 0 <= value <= HIGHEST_ORDER):
                raise UsageError(name.replace("_", " "), f"must be a whole number between 0 and {HIGHEST_ORDER}")
        if self.product_dim is not None and not 2 <= self.product_dim <= 8:
            raise UsageError("product dimension", "must lie between 2 and 8")
        if isinstance(self.length_scale, str):
            raise UsageError("length scale", "must be a number, or a number per column, for dp-hp")
        if self.product_length_scale is not None:
            checked_scale(self.product_length_scale)
        if self.num_products is not None and self.num_products < 0:
            raise UsageError("products", "must be 0 or more")
        if self.gamma is not None and not (0 < self.gamma < math.inf):
            raise UsageError("gamma", "must be a number above 0")
        if self.product_share is not None and not 1e-4 <= self.product_share <= 1 - 1e-4:
            raise UsageError("product share", "must lie between 0.0001 and 0.9999")

    def filled(self, other: Wish) -> Wish:
        """The same, with ``other`` where nothing was asked for."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(other, **{name: value for name, value in own.items() if value is not None})


IMAGE_KERNELS = Wish(order=10, product_order=3, num_products=1500, product_share=0.5, product_length_scale=0.5)
"""Pixels are many and mostly dark or bright: a few features of each tell which."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """The maps of both kernels; ``sum_parts`` are the shares of numbers and choices in the sum."""

    sum_maps: Mapping[str, FeatureMap]
    sum_parts: Mapping[str, float]
    products: Tensors | None
    product_share: float
    gamma: float | None

    def losses(self, squares: Mapping[str, float]) -> dict[str, float]:
        """Weight of each block in the loss.

        By default its share of the squared norm, which goes as one over the variance of its
        noise; with ``gamma``, gamma for products and 1 for the sum.
        """
        if self.gamma is None:
            return dict(squares)
        return {name: self.sum_parts.get(name, self.gamma) for name in squares}

    @property
    def explanation(self) -> list[str]:
        """What the plan has chosen, for people."""
        found = []
        if "numbers" in self.sum_maps:
            numbers = cast(Hermite, self.sum_maps["numbers"])
            scales = sorted(set(numbers.length_scales))
            text = f"{scales[0]:.3g}" + (f" to {scales[-1]:.3g}" if len(scales) > 1 else "")
            found.append(
                f"sum kernel: {len(numbers.numbers)} numbers to order {numbers.order} "
                f"(length scale {text} of a column's range)"
            )
        if self.products is None:
            return [*found, "product kernel: none; the budget goes to single columns"]
        factors, subsets = self.products.factors, self.products.subsets
        size = len(subsets[0])
        orders = [factor.dim - 1 for factor in factors if not factor.is_linear]  # those of single numbers
        order = f", numbers to order {orders[0]}" if orders else ""
        found.append(
            f"product kernel: {len(subsets)} of {math.comb(len(factors), size)} sets of {size} columns{order}; "
            f"{100 * self.product_share:.0f} % of the budget"
        )
        return found


def plan_kernels(terms: Terms, wish: Wish, *, seed: int) -> Kernels:
    """Settle both kernels."""
    layout, norm = terms.layout, terms.norm
    counts = {"numbers": len(layout.numbers), "choices": len(terms.spans)}
    num_columns = sum(counts.values())
    products = _products(terms, wish, seed)
    share = (wish.product_share or PLANNED_SHARE) if products is not None else 0.0
    sum_maps: dict[str, FeatureMap] = {}
    if layout.numbers:
        limit = MOST_NUMBERS // (terms.num_labels * len(layout.numbers))
        noise = terms.noise((1 - share) / num_columns)
        # Of c features the noise together is c times as large as that of one, or for L2 sqrt(c).
        allowed = min(norm.parts(math.sqrt(TOLERATED_ENERGY) / noise), limit)
        scales = None if wish.length_scale is None else length_scales(layout.numbers, wish.length_scale)
        numbers = tuple(range(len(layout.numbers)))
        sum_maps["numbers"] = _hermite(numbers, wish.order, scales, allowed, (COARSEST_ORDER, FINEST_ORDER))
    if terms.spans:
        sum_maps["choices"] = OneHot(terms.spans)
    if products is not None and wish.product_share is None:
        # Least noise of k_sum + gamma k_product: shares go as the roots of size times weight. (Shares
        # of mu squared; a plan with Laplace noise turns them into its own.)
        roots = [math.sqrt(sum(map_.dim for map_ in sum_maps.values())), math.sqrt((wish.gamma or 1.0) * products.dim)]
        share = roots[1] / sum(roots)
    sum_parts = {name: counts[name] / num_columns for name in sum_maps}
    return Kernels(sum_maps, sum_parts, products, share, wish.gamma)


def _products(terms: Terms, wish: Wish, seed: int) -> Tensors | None:
    """Products over all subsets, or over as many drawn ones as the noise leaves room for."""
    layout, norm, dim = terms.layout, terms.norm, wish.product_dim or 2
    num_columns = len(layout.numbers) + len(terms.spans)
    share = wish.product_share or PLANNED_SHARE
    allowed = max(1, math.floor(norm.parts(TOLERATED_NOISE / terms.noise(share))))
    clear = terms.noise(0.5) * norm.dilution(num_columns) <= CLEAR_NOISE[norm]
    planned = min(allowed, MOST_SUBSETS) if clear else 0
    count = min(planned if wish.num_products is None else wish.num_products, math.comb(num_columns, dim))
    if count == 0:
        return None
    widths = [stop - start for start, stop in terms.spans]
    scales = None if wish.product_length_scale is None else (wish.product_length_scale,)
    fit = _largest_order(len(layout.numbers), widths, dim, MOST_NUMBERS / (terms.num_labels * count))
    quiet = math.sqrt(norm.parts(math.sqrt(TOLERATED_ENERGY) / terms.noise(share / count)))
    bounds = (COARSEST_PRODUCT_ORDER, FINEST_PRODUCT_ORDER)
    number = _hermite((0,), wish.product_order, scales, min(quiet, fit), bounds)
    numbers = [replace(number, numbers=(j,)) for j in range(len(layout.numbers))]
    factors: tuple[FeatureMap, ...] = (*numbers, *(OneHot((span,)) for span in terms.spans))
    subsets = draw_subsets(
        [factor.dim for factor in factors],
        dim,
        count,
        apart=_numbers_and_flags(terms),
        largest=LARGEST_SUBSET,
        seed=seed,
    )
    products = Tensors(factors, subsets) if subsets else None
    if products is not None and products.dim * terms.num_labels > LARGEST_RELEASE:
        raise UsageError(
            "products",
            f"would release {products.dim * terms.num_labels} numbers",
            "Lower the product order, the product dimension or the number of products",
        )
    return products


def _hermite(
    numbers: tuple[int, ...],
    order: int | None,
    scales: tuple[float, ...] | None,
    allowed: float,
    bounds: tuple[int, int],
) -> Hermite:
    """Features to the order that was asked for, or that the length scales need, or that noise allows.

    Length scales that nobody asked for are the one that the order carries.
    """
    if order is None and scales is not None:
        order = min(HIGHEST_ORDER, max(1, math.ceil(ORDER_TIMES_SCALE / min(scales))))
    elif order is None:
        order = round(min(max(allowed, bounds[0]), bounds[1]))
    scales = scales or (ORDER_TIMES_SCALE / max(1, order),) * len(numbers)
    return Hermite(numbers, scales, order, best_half_range(min(scales)))


def _largest_order(num_numbers: int, widths: list[int], dim: int, room: float) -> int:
    """The highest order at which a typical product of ``dim`` columns has ``room`` features."""
    num_columns = num_numbers + len(widths)
    for order in range(FINEST_PRODUCT_ORDER, 0, -1):
        mean = (num_numbers * (order + 1) + sum(widths)) / num_columns
        if mean**dim <= room:
            return order
    return 1


def _numbers_and_flags(terms: Terms) -> set[frozenset[int]]:
    """Pairs of a number and its own null flag: one tells of the other already."""
    layout = terms.layout
    place = {span: len(layout.numbers) + i for i, span in enumerate(terms.spans)}
    flags = [choice for choice in layout.choices if choice.flags_null]
    return {frozenset((layout.numbers.index(flag.column), place[flag.start, flag.stop])) for flag in flags}
