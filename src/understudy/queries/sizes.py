"""How many rows stand behind a release, and how the comparison allows for not knowing it exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.accounting import Neighbours
from understudy.published import Release
from understudy.queries.parts import Part

Floats = npt.NDArray[np.float64]

CLEAR = 6.0
"""Deviations of noise beyond which a number may tell how the sizes of two tables compare."""


@dataclass(frozen=True)
class Sizes:
    """Rows of the release (the first, if there are two), and how many times those of the other side.

    ``gains`` are what the estimate takes from the errors of each part's numbers; zero if counts are known.
    """

    num_rows: float
    ratio: float
    gains: list[Floats]


def counted_rows(release: Release) -> float:
    """The row count that a release states: public under replace-one, else noisy and at least 1."""
    if is_known(release):
        return float(release.plan.num_rows or 1)
    return max(1.0, float(release.sums("count").sum()))


def is_known(release: Release) -> bool:
    """Whether the row count is public."""
    return release.plan.neighbours is Neighbours.REPLACE_ONE


def sizes_against_means(
    release: Release,
    parts: Sequence[Part],
    means: Sequence[Floats],
    variances: Sequence[Floats],
    other_rows: int,
) -> Sizes:
    """The row count that brings the release nearest to public means.

    All numbers tell of it, as each should be its mean times the row count: the noisy count alone would move
    all of them together, by more than their own noise.
    """
    if is_known(release):
        rows = counted_rows(release)
        return Sizes(rows, rows / other_rows, [np.zeros_like(mean) for mean in means])
    guess = counted_rows(release)
    chance = guess + guess**2 / other_rows
    gains = [
        mean / (part.noise[0] ** 2 + chance * variance)
        for part, mean, variance in zip(parts, means, variances, strict=True)
    ]
    scale = sum(float(g @ m) for g, m in zip(gains, means, strict=True))
    gains = [gain / scale for gain in gains]
    rows = max(1.0, sum(float(g @ part.sums[0]) for g, part in zip(gains, parts, strict=True)))
    return Sizes(rows, rows / other_rows, gains)


def sizes_of_releases(
    releases: Sequence[Release], parts: Sequence[Part], variances: Sequence[Floats]
) -> Sizes:
    """How many times the rows of the second the first release has, from numbers that are clear in both."""
    first, second = (counted_rows(release) for release in releases)
    if all(is_known(release) for release in releases):
        return Sizes(first, first / second, [np.zeros_like(part.noise[0]) for part in parts])
    gains, over, under, both = [], 0.0, 0.0, 0.0
    for part, variance in zip(parts, variances, strict=True):
        (one, other), (noise, noises) = part.sums, (part.noise[0] ** 2, part.noise[1] ** 2)
        pooled, doubt = one + other, noise + noises
        clear = (np.abs(pooled) > CLEAR * np.sqrt(doubt)) | part.is_count
        gain = np.where(clear, pooled / (doubt + (first + second) * variance), 0.0)
        # Noise is in the pooled sums too; its squares are known and taken off.
        weight = np.where(clear, 1 / (doubt + (first + second) * variance), 0.0)
        over += float(gain @ one - weight @ noise)
        under += float(gain @ other - weight @ noises)
        both += float(gain @ pooled - weight @ doubt) / (first + second)
        gains.append(gain)
    if min(over, under, both) <= 0:
        over, under, both = first, second, 1.0
        gains = [np.where(part.is_count, 1.0, np.zeros_like(part.noise[0])) for part in parts]
    return Sizes(first, over / under, [gain / both for gain in gains])
