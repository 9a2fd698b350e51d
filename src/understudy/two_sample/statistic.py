"""From squared differences and their null distribution to one statistic, p-values and what can be found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import gammaincc, ndtr

from understudy.arrays import Floats
from understudy.two_sample.null_distribution import Contrast, NullDistribution
from understudy.two_sample.parts import Parts
from understudy.two_sample.results import Comparison, Difference, Question

ENOUGH_DRAWS = 20
"""With fewer draws beyond the observed value, the tail is read off a fitted null."""

POWER = 0.8
"""Share of comparisons in which a difference that counts as detectable is found."""

SHADE = 1e-4
"""What a view counts for at least, in squared length of the mean embedding."""


def weigh(
    parts: Parts,
    contrasts: Sequence[Contrast],
    null: NullDistribution,
    *,
    question: Question,
    level: float,
    size: float,
    rows: tuple[float, float],
) -> Comparison:
    """Sum the views with public weights, and read off what they say; differences of sums are divided by ``size``."""
    weights = _weights(null)
    scale = weights / size**2
    whole = null.lengths(np.arange(len(scale)), scale)
    observed, draws = whole.observed, whole.draws
    threshold = float(np.quantile(draws, 1 - level))
    found = detectable(draws, whole.inner, threshold)
    # Copies of a row drawn at random, in place of a share of the rows, move the embedding so far.
    reach = float(weights @ (null.selves - null.means))
    owners = [view.columns for each in contrasts for view in each.views]
    return Comparison(
        question=question,
        level=level,
        p_value=p_value(observed, draws),
        distance=math.sqrt(observed),
        by_chance=math.sqrt(float(draws.mean())),
        threshold=math.sqrt(threshold),
        effect=math.sqrt(max(0.0, observed - float(draws.mean()))),
        detectable=found,
        detectable_share=min(1.0, found / math.sqrt(reach)) if reach > 0 else None,
        rows=rows,
        columns=_differences(owners, null, scale, level, are_single=True),
        together=_differences(owners, null, scale, level, are_single=False),
        compared=tuple(parts.compared),
        left_out=tuple(parts.left_out),
        draws=np.sqrt(draws),
    )


def _weights(null: NullDistribution) -> Floats:
    """How much each view counts, so that the sum finds much; they add up to one.

    A view counts by the difference that is to be expected over the variance of its noise: the weights of
    best power. Expected is one in proportion to the mean embedding, as far as rows vary at all (if
    they do not, there is nothing to be seen but more of the same).
    """
    selves = np.where(np.isnan(null.selves), np.maximum(1.0, null.means), null.selves)
    expected = null.means * (1 - null.means / np.maximum(selves, 1e-12))
    weights = (np.maximum(expected, 0.0) + SHADE) / null.spread
    return np.asarray(weights / weights.sum())


def _differences(
    owners: list[tuple[str, ...]], null: NullDistribution, scale: Floats, level: float, *, are_single: bool
) -> tuple[Difference, ...]:
    """Single columns, or sets of columns, by themselves; the least likely first."""
    made = []
    for columns in dict.fromkeys(each for each in owners if (len(each) == 1) == are_single):
        views = np.array([i for i, owner in enumerate(owners) if owner == columns])
        own = null.lengths(views, scale)
        threshold = math.sqrt(float(np.quantile(own.draws, 1 - level)))
        p = p_value(own.observed, own.draws)
        made.append(Difference(columns, math.sqrt(own.observed), threshold, p, p))
    adjusted = holm([each.p_value for each in made])
    corrected = [replace(one, adjusted=p) for one, p in zip(made, adjusted, strict=True)]
    return tuple(sorted(corrected, key=lambda each: (each.p_value, -each.distance)))


def p_value(observed: float, draws: Floats) -> float:
    """How often noise and chance alone give as much.

    The share of draws beyond, counting the observed value as one; where few are, what a gamma law
    with the draws' mean, variance and skewness says (a weighted sum of chi-squares is close to it).
    """
    beyond = int((draws >= observed).sum())
    if beyond >= ENOUGH_DRAWS:
        return (beyond + 1) / (len(draws) + 1)
    deviation = float(draws.std())
    if deviation == 0:
        return 1.0 if observed <= draws[0] else 0.0
    z = (draws - draws.mean()) / deviation
    skewness, reach = float((z**3).mean()), (observed - float(draws.mean())) / deviation
    if skewness < 1e-3:
        tail = float(ndtr(-reach))
    else:
        shape = 4 / skewness**2
        tail = float(gammaincc(shape, max(0.0, shape + reach * math.sqrt(shape))))
    return min(tail, ENOUGH_DRAWS / (len(draws) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values that stay valid however many there are (Holm 1979)."""
    order, count = np.argsort(p_values, kind="stable"), len(p_values)
    found = np.ones(count)
    scaled = np.minimum(1.0, np.arange(count, 0, -1) * np.asarray(p_values)[order])
    found[order] = np.maximum.accumulate(scaled)
    return found.tolist()


def detectable(draws: Floats, inner: Floats, threshold: float) -> float:
    """The length of a difference that is found in four of five comparisons.

    Its direction is drawn from the null distribution itself: where noise and chance are large, differences are
    sought too. |e + t u|^2 = |e|^2 + 2 t e.u + t^2 for draws e and directions u.
    """
    errors, cosines = draws[0::2], inner / np.sqrt(draws[1::2])
    low, high = 0.0, 2 * math.sqrt(threshold + float(draws.max()))
    for _ in range(60):
        t = (low + high) / 2
        found = float(np.mean(errors + 2 * t * cosines + t**2 > threshold))
        low, high = (t, high) if found < POWER else (low, t)
    return high
