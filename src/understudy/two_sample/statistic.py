"""From squared differences and their null law to one statistic, p-values and what can be found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from understudy.arrays import Floats
from understudy.two_sample.null_distribution import Contrast, Law, detectable, holm, p_value
from understudy.two_sample.parts import Parts
from understudy.two_sample.results import Comparison, Difference, Question

SHADE = 1e-4
"""What a view counts for at least, in squared length of the mean embedding."""


@dataclass(frozen=True)
class Setting:
    """What was asked, of how many rows; ``size`` is what differences of sums are divided by."""

    question: Question
    level: float
    size: float
    rows: tuple[float, float]


def weigh(parts: Parts, contrasts: Sequence[Contrast], law: Law, setting: Setting) -> Comparison:
    """Sum the views with public weights, and read off what they say."""
    weights = _weights(law)
    scale = weights / setting.size**2
    whole = law.lengths(np.arange(len(scale)), scale)
    observed, draws = whole.observed, whole.draws
    threshold = float(np.quantile(draws, 1 - setting.level))
    found = detectable(draws, whole.inner, threshold)
    # Copies of a row drawn at random, in place of a share of the rows, move the embedding so far.
    reach = float(weights @ (law.selves - law.means))
    owners = [view.columns for each in contrasts for view in each.views]
    return Comparison(
        question=setting.question,
        level=setting.level,
        p_value=p_value(observed, draws),
        distance=math.sqrt(observed),
        by_chance=math.sqrt(float(draws.mean())),
        threshold=math.sqrt(threshold),
        effect=math.sqrt(max(0.0, observed - float(draws.mean()))),
        detectable=found,
        detectable_share=min(1.0, found / math.sqrt(reach)) if reach > 0 else None,
        rows=setting.rows,
        columns=_differences(owners, law, scale, setting.level, are_single=True),
        together=_differences(owners, law, scale, setting.level, are_single=False),
        compared=tuple(parts.compared),
        left_out=tuple(parts.left_out),
        draws=np.sqrt(draws),
    )


def _weights(law: Law) -> Floats:
    """How much each view counts, so that the sum finds much; they add up to one.

    A view counts by the difference that is to be expected over the variance of its noise: the weights of
    best power. Expected is one in proportion to the mean embedding, as far as rows vary at all (if
    they do not, there is nothing to be seen but more of the same).
    """
    selves = np.where(np.isnan(law.selves), np.maximum(1.0, law.means), law.selves)
    expected = law.means * (1 - law.means / np.maximum(selves, 1e-12))
    weights = (np.maximum(expected, 0.0) + SHADE) / law.spread
    return np.asarray(weights / weights.sum())


def _differences(
    owners: list[tuple[str, ...]], law: Law, scale: Floats, level: float, *, are_single: bool
) -> tuple[Difference, ...]:
    """Single columns, or sets of columns, by themselves; the least likely first."""
    made = []
    for columns in dict.fromkeys(each for each in owners if (len(each) == 1) == are_single):
        views = np.array([i for i, owner in enumerate(owners) if owner == columns])
        own = law.lengths(views, scale)
        threshold = math.sqrt(float(np.quantile(own.draws, 1 - level)))
        p = p_value(own.observed, own.draws)
        made.append(Difference(columns, math.sqrt(own.observed), threshold, p, p))
    adjusted = holm([each.p_value for each in made])
    corrected = [replace(one, adjusted=p) for one, p in zip(made, adjusted, strict=True)]
    return tuple(sorted(corrected, key=lambda each: (each.p_value, -each.distance)))
