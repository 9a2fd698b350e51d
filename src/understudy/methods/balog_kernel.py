"""Kernels of the weighted database release: what the options mean, and public defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from understudy.errors import UsageError
from understudy.features.kernels import SHAPES, Kernel, Term
from understudy.methods.common import checked_scale, scales_by_name
from understudy.schema import Layout

Join = Literal["product", "sum"]
JOINS: tuple[Join, ...] = ("product", "sum")

PRODUCT_SCALE = 0.25
SUM_SCALE = 0.1
"""Default length scales, in units of a column's range. In a product of d numbers it is times sqrt(d),
as distances grow with it: two rows drawn at random keep a kernel value of about a quarter."""


def balog_kernel(
    layout: Layout,
    *,
    shape: str = "gaussian",
    join: Join = "product",
    length_scale: float | Mapping[str, float] | None = None,
    mismatch: float | None = None,
) -> Kernel:
    """The kernel that the options describe.

    Args:
        layout: the columns.
        shape: of the kernel of numbers, one of ``SHAPES``.
        join: ``product`` of all columns, which sees everything they do together, or ``sum`` of
            single columns (a mean, so that k(x, x) stays 1).
        length_scale: in units of each column's range: one for all, or by column name.
        mismatch: kernel value of two different values of a choice. By default exp(-1 / c) in a
            product with c choices, so that rows differing in all of them keep 1 / e, and 0 in a sum.
    """
    if shape not in SHAPES:
        raise UsageError("kernel", f"'{shape}' is unknown", "Kernels are " + ", ".join(SHAPES))
    if join not in JOINS:
        raise UsageError("join", "must be one of " + ", ".join(JOINS))
    if mismatch is not None and not 0 <= mismatch < 1:
        raise UsageError("mismatch", "must be at least 0 and below 1", "0.5 is a common choice")
    scales = _scales(layout.numbers, length_scale, join)
    numbers = tuple(range(len(layout.numbers)))
    spans = {choice.column: (choice.start, choice.stop) for choice in layout.choices}
    if join == "product":
        apart = math.exp(-1 / max(1, len(spans))) if mismatch is None else mismatch
        return Kernel(shape, (Term(numbers, scales, tuple(spans.values()), apart),))
    terms = [
        Term((i,), (scales[i],), (spans.pop(name),) if name in spans else (), mismatch or 0.0)
        for i, name in enumerate(layout.numbers)
    ]
    terms += [Term((), (), (span,), mismatch or 0.0) for span in spans.values()]
    return Kernel(shape, tuple(terms))


def _scales(names: tuple[str, ...], length_scale: float | Mapping[str, float] | None, join: Join) -> tuple[float, ...]:
    if isinstance(length_scale, Mapping):
        return scales_by_name(names, length_scale)
    if length_scale is None:
        root = math.sqrt(len(names)) if join == "product" else 1.0
        length_scale = (PRODUCT_SCALE if join == "product" else SUM_SCALE) * root
    if not isinstance(length_scale, int | float):
        raise UsageError("length scale", "must be a number, or a number per column")
    return (checked_scale(float(length_scale)),) * len(names)


def kernel_words(kernel: Kernel, layout: Layout) -> str:
    """A kernel in a few words."""
    scales = sorted({scale for term in kernel.terms for scale in term.length_scales})
    reach = f", length scale {scales[0]:.3g}" if scales else ""
    reach += f" to {scales[-1]:.3g}" if len(scales) > 1 else ""
    mismatch = max(term.mismatch for term in kernel.terms)
    choices = f", mismatch {mismatch:.3g}" if layout.choices else ""
    how = "product" if len(kernel.terms) == 1 else f"mean of {len(kernel.terms)}"
    return f"{kernel.shape} kernel, {how}{reach}{choices}"
