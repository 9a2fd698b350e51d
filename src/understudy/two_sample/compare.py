"""Whether two tables come from one population, one of them known only by its noisy release.

The distance is a maximum mean discrepancy: a weighted sum of squared differences of the released
features (docs/compare.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.arrays import Floats
from understudy.errors import InputError, UsageError
from understudy.files import refusing_damage
from understudy.released import Release
from understudy.released.tables import NoisyCount, total_rows
from understudy.schema import Schema
from understudy.two_sample.null_distribution import Contrast, Noise, Pull, draw_null, views_of
from understudy.two_sample.parts import Part, PublicRows, code_rows, find_parts
from understudy.two_sample.results import Comparison, Question
from understudy.two_sample.statistic import weigh

NUM_DRAWS = 2000
MOST_ROWS = 4000
MOST_FEATURES = 40_000_000
"""Draws of the null distribution; public rows whose covariance is used, at most, and by their features."""

FEWEST_ROWS = 30
CLEAR = 6.0
"""Deviations of noise beyond which a number may tell how the sizes of two tables compare."""

CODING = ("kind", "role", "bounds", "categories", "nullable", "unknown", "resolution", "scale_hint")
"""What must agree of a column so that its codes mean the same."""


@refusing_damage("release")
def compare_with_rows(
    release: Release,
    data: Any,
    *,
    question: Question = Question.SAME_POPULATION,
    level: float = 0.05,
    num_draws: int = NUM_DRAWS,
    seed: int = 0,
) -> Comparison:
    """Compare a release with rows that are public.

    Args:
        release: noisy sums of private rows.
        data: a table with the release's columns; **it is treated as public**, and what comes out
            tells of its rows without protection.
        question: whether both are samples of one population, or whether these are the very rows.
        level: how often a difference may be claimed where there is none.
        num_draws: draws of the null distribution.
        seed: of those draws.
    """
    rows = PublicRows(release.plan.layout, code_rows(release.plan.schema, data))
    if len(rows) < FEWEST_ROWS:
        raise InputError("the other rows", f"are fewer than {FEWEST_ROWS}", "Compare with more rows")
    return _compare([release], rows, question, level, num_draws, seed)


@refusing_damage("release")
def compare_releases(
    first: Release,
    second: Release,
    *,
    rows: Any = None,
    question: Question = Question.SAME_POPULATION,
    level: float = 0.05,
    num_draws: int = NUM_DRAWS,
    seed: int = 0,
) -> Comparison:
    """Compare two releases, on the numbers that both hold.

    Args:
        first: noisy sums of private rows.
        second: a release of the same columns, for the same features.
        rows: synthetic rows of a generator of either release (a few thousand), which show how the
            released numbers vary from sample to sample; not needed for the question of the same rows.
        question: whether both are samples of one population, or of the very same rows.
        level: how often a difference may be claimed where there is none.
        num_draws: draws of the null distribution.
        seed: of those draws.
    """
    check_same_columns(first.plan.schema, second.plan.schema)
    if question is Question.SAME_ROWS:
        return _compare([first, second], None, question, level, num_draws, seed)
    if rows is None:
        raise UsageError("rows", "are needed to know what chance does", "Sample a generator")
    known = PublicRows(first.plan.layout, code_rows(first.plan.schema, rows))
    return _compare([first, second], known, question, level, num_draws, seed)


def _compare(
    releases: Sequence[Release], rows: PublicRows | None, question: Question, level: float, num_draws: int, seed: int
) -> Comparison:
    """Compare a release with public rows, or two releases, of which ``rows`` show what chance does to them."""
    _check_level(level, num_draws)
    rng, shared = np.random.default_rng(seed), find_parts(releases)
    parts, counts = shared.found, [total_rows(release) for release in releases]
    if rows is None:
        means, matrices = [_clear_means(part, counts[0].rows + counts[1].rows) for part in parts], [None] * len(parts)
    else:
        means, matrices = _means(parts, rows), _matrices(parts, rows, rng)
    if rows is not None and len(releases) == 1:  # they stand in for a release without noise
        counts.append(NoisyCount(float(len(rows)), 0.0))
        others = [len(rows) * mean for mean in means]
    else:
        others = [part.sums[1] for part in parts]
    if question is Question.SAME_ROWS:
        size = counts[0].rows if rows is None else float(len(rows))
        sizes, sampling = known_sizes(parts, size, 1.0), 0.0
    else:
        sizes = estimated_sizes(counts, parts, means, [_variance(matrix) for matrix in matrices])
        sampling = sizes.num_rows * (1 + sizes.ratio)
    contrasts = []
    for part, other, mean, pull, matrix in zip(parts, others, means, sizes.pulls, matrices, strict=True):
        noise = [
            Noise(factor * deviations, release.plan.mechanism)
            for release, deviations, factor in zip(releases, part.noise, (1.0, sizes.ratio), strict=False)
        ]
        observed = part.sums[0] - sizes.ratio * other
        contrasts.append(Contrast(observed, noise, mean, pull, matrix, views_of(part, mean), part.is_count))
    null = draw_null(contrasts, sampling=sampling, num_draws=num_draws, rng=rng)
    numbers = counts[0].rows, counts[1].rows
    return weigh(shared, contrasts, null, question=question, level=level, size=sizes.num_rows, rows=numbers)


def check_same_columns(first: Schema, second: Schema) -> None:
    """Refuse tables whose columns are not coded alike."""
    names = [[column.name for column in schema.used] for schema in (first, second)]
    if names[0] != names[1]:
        stray = sorted(set(names[0]) ^ set(names[1]))
        what = f"only one of them has '{stray[0]}'" if stray else "they are in another order"
        raise InputError("the releases", f"have other columns: {what}", "Compare like with like")
    for one, other in zip(first.used, second.used, strict=True):
        for field in CODING:
            if getattr(one, field) != getattr(other, field):
                raise InputError(
                    f"column '{one.name}'",
                    f"has another {field.replace('_', ' ')} in the other release",
                    "Compare releases of one schema",
                )


def _check_level(level: float, num_draws: int) -> None:
    if not 0 < level < 1:
        raise UsageError("level", "must lie between 0 and 1", "Common choices: 0.05, 0.01")
    if num_draws < 100:
        raise UsageError("draws", "must be at least 100", "Leave it out for the default")


def _means(parts: Sequence[Part], rows: PublicRows) -> list[Floats]:
    """Mean over rows of every part's features."""
    step = max(256, MOST_FEATURES // 4 // max(part.copies * part.dim for part in parts))
    totals = [np.zeros(part.copies * part.dim) for part in parts]
    for start in range(0, len(rows), step):
        some = PublicRows(rows.layout, rows.codes[start : start + step])
        for total, part in zip(totals, parts, strict=True):
            total += np.asarray(part.matrix(some).sum(axis=0))
    return [total / len(rows) for total in totals]


def _matrices(parts: Sequence[Part], rows: PublicRows, rng: np.random.Generator) -> list[Any]:
    """Features of as many rows as show their covariance."""
    dense = sum(part.copies * part.dim for part in parts if not part.is_table)
    count = max(500, min(MOST_ROWS, MOST_FEATURES // max(1, dense)))
    if count < len(rows):
        rows = PublicRows(rows.layout, rows.codes[rng.choice(len(rows), count, replace=False)])
    return [part.matrix(rows) for part in parts]


def _variance(matrix: Any) -> Floats:
    """Variance of each feature over rows."""
    mean = np.asarray(matrix.sum(axis=0)) / matrix.shape[0]
    return np.asarray((matrix**2).sum(axis=0) / matrix.shape[0] - mean**2)


def _clear_means(part: Part, total: float) -> Floats:
    """The mean embedding as two releases show it, without what may be noise."""
    pooled, doubt = part.sums[0] + part.sums[1], np.hypot(part.noise[0], part.noise[1])
    return np.where(np.abs(pooled) > 3 * doubt, pooled, 0.0) / total


# How many rows stand behind a release, and how the comparison allows for not knowing it exactly.


@dataclass(frozen=True)
class Sizes:
    """Rows of the release (the first, if there are two), how many times those of the other side, and
    what each part says of it; nothing if counts are known.
    """

    num_rows: float
    ratio: float
    pulls: list[Pull]


def known_sizes(parts: Sequence[Part], num_rows: float, ratio: float) -> Sizes:
    """Sizes that no part is asked for."""
    return Sizes(num_rows, ratio, [Pull(np.zeros_like(part.noise[0]), 0.0) for part in parts])


def estimated_sizes(
    counts: Sequence[NoisyCount], parts: Sequence[Part], means: Sequence[Floats], variances: Sequence[Floats]
) -> Sizes:
    """Sizes from all numbers, unless the row counts of both sides are public.

    Means and variances are those of the features of public rows.
    """
    first, second = (count.rows for count in counts)
    if all(count.noise == 0 for count in counts):
        return known_sizes(parts, first, first / second)
    if len(parts[0].sums) == 1:
        return _against_means(first, second, parts, means, variances)
    return _of_releases(first, second, parts, variances)


def _against_means(
    guess: float, other: float, parts: Sequence[Part], means: Sequence[Floats], variances: Sequence[Floats]
) -> Sizes:
    """The row count that brings the release nearest to public means.

    All numbers tell of it, as each should be its mean times the row count: the noisy count alone would
    move all of them together, by more than their own noise.
    """
    chance, pulls, rows = guess + guess**2 / other, [], 0.0
    for part, mean, variance in zip(parts, means, variances, strict=True):
        gain = _signal(part, mean) / _doubt(part, part.noise[0] ** 2, chance * variance)
        pulls.append(Pull(gain, float(gain @ mean)))
        rows += float(gain @ part.sums[0])
    rows = max(1.0, rows / sum(pull.scale for pull in pulls))
    return Sizes(rows, rows / other, pulls)


def _of_releases(first: float, second: float, parts: Sequence[Part], variances: Sequence[Floats]) -> Sizes:
    """How many times the rows of the second the first release has, from numbers clear in both."""
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
    return Sizes(first, ratio, [Pull(gain, scale, own - ratio * others) for gain, scale, own, others in found])


def _signal(part: Part, values: Floats) -> Floats:
    """What numbers are held against; counts by label add up to the row count, whatever their shares."""
    return np.full_like(values, values.sum()) if part.is_count else values


def _doubt(part: Part, noise: Floats, chance: Floats) -> Floats:
    """Variance of each number, or of the total of counts."""
    return np.full_like(noise, noise.sum()) if part.is_count else noise + chance
