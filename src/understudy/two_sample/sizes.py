"""How many rows stand behind a release, and how the comparison allows for not knowing it exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.accounting import Neighbours
from understudy.arrays import Floats
from understudy.released import Release
from understudy.released.tables import total_rows
from understudy.two_sample.parts import Part

CLEAR = 6.0
"""Deviations of noise beyond which a number may tell how the sizes of two tables compare."""


@dataclass(frozen=True)
class Pull:
    """What a part says of the row count: gain . numbers less ``offset``, as a weight of ``scale``."""

    gain: Floats
    scale: float
    offset: float = 0.0


@dataclass(frozen=True)
class Sizes:
    """Rows of the release (the first, if there are two), how many times those of the other side, and
    what each part says of it; nothing if counts are known.
    """

    num_rows: float
    ratio: float
    pulls: list[Pull]


def row_count(release: Release) -> float:
    """The row count that a release states: public under replace-one, else noisy and at least 1."""
    return total_rows(release).rows


def is_known(release: Release) -> bool:
    """Whether the row count is public."""
    return release.plan.neighbours is Neighbours.REPLACE_ONE


def no_pull(part: Part) -> Pull:
    """A part that is not asked how many rows there are."""
    return Pull(np.zeros_like(part.noise[0]), 0.0)


def sizes_against_means(
    release: Release, parts: Sequence[Part], means: Sequence[Floats], variances: Sequence[Floats], other_rows: int
) -> Sizes:
    """The row count that brings the release nearest to public means.

    All numbers tell of it, as each should be its mean times the row count: the noisy count alone would
    move all of them together, by more than their own noise.
    """
    guess = row_count(release)
    if is_known(release):
        return Sizes(guess, guess / other_rows, [no_pull(part) for part in parts])
    chance, pulls, rows = guess + guess**2 / other_rows, [], 0.0
    for part, mean, variance in zip(parts, means, variances, strict=True):
        gain = _signal(part, mean) / _doubt(part, part.noise[0] ** 2, chance * variance)
        pulls.append(Pull(gain, float(gain @ mean)))
        rows += float(gain @ part.sums[0])
    rows = max(1.0, rows / sum(pull.scale for pull in pulls))
    return Sizes(rows, rows / other_rows, pulls)


def sizes_of_releases(releases: Sequence[Release], parts: Sequence[Part], variances: Sequence[Floats]) -> Sizes:
    """How many times the rows of the second the first release has, from numbers clear in both."""
    first, second = (row_count(release) for release in releases)
    if all(is_known(release) for release in releases):
        return Sizes(first, first / second, [no_pull(part) for part in parts])
    over, under, found = 0.0, 0.0, []
    for part, variance in zip(parts, variances, strict=True):
        (one, other), (noise, noises) = part.sums, (part.noise[0] ** 2, part.noise[1] ** 2)
        pooled = one + other
        clear = (np.abs(pooled) > CLEAR * np.sqrt(noise + noises)) | part.is_count
        doubt = _doubt(part, noise + noises, (first + second) * variance)
        gain = np.where(clear, _signal(part, pooled) / doubt, 0.0)
        # The pooled sums hold the noise of both; its squares are known and taken off.
        own, others = (float(np.where(clear, square / doubt, 0.0).sum()) for square in (noise, noises))
        over += float(gain @ one) - own
        under += float(gain @ other) - others
        scale = (float(gain @ pooled) - own - others) / (first + second)
        found.append((gain, max(0.0, scale), own, others))
    ratio = over / under if min(over, under) > 0 else first / second
    pulls = [Pull(gain, scale, own - ratio * others) for gain, scale, own, others in found]
    return Sizes(first, ratio, pulls)


def _signal(part: Part, values: Floats) -> Floats:
    """What numbers are held against; counts by label add up to the row count, whatever their shares."""
    return np.full_like(values, values.sum()) if part.is_count else values


def _doubt(part: Part, noise: Floats, chance: Floats) -> Floats:
    """Variance of each number, or of the total of counts."""
    return np.full_like(noise, noise.sum()) if part.is_count else noise + chance
