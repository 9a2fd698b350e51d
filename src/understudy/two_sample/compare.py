"""Whether two tables come from one population, one of them known only by its noisy release.

The distance is a maximum mean discrepancy: a weighted sum of squared differences of the released
features (docs/compare.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.arrays import Floats
from understudy.errors import InputError, UsageError
from understudy.files import refusing_damage
from understudy.released import Release
from understudy.schema import Schema
from understudy.two_sample.null_distribution import Contrast, Noise, draw_null, views_of
from understudy.two_sample.parts import Part, Parts, PublicRows, code_rows, find_parts
from understudy.two_sample.results import Comparison, Question
from understudy.two_sample.sizes import Pull, no_pull, row_count, sizes_against_means, sizes_of_releases
from understudy.two_sample.statistic import Setting, weigh

NUM_DRAWS = 2000
MOST_ROWS = 4000
MOST_FEATURES = 40_000_000
"""Draws of the null distribution; public rows whose covariance is used, at most, and by their features."""

FEWEST_ROWS = 30
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
    _check_level(level, num_draws)
    layout, rng = release.plan.layout, np.random.default_rng(seed)
    rows = PublicRows(layout, code_rows(release.plan.schema, data))
    if len(rows) < FEWEST_ROWS:
        raise InputError("the other rows", f"are fewer than {FEWEST_ROWS}", "Compare with more rows")
    shared = _parts_of([release])
    parts = shared.found
    means = _means(parts, rows)
    matrices = _matrices(parts, rows, rng)
    if question is Question.SAME_ROWS:
        size, sampling = float(len(rows)), 0.0
        pulls = [no_pull(part) for part in parts]
    else:
        variances = [_variance(matrix) for matrix in matrices]
        sizes = sizes_against_means(release, parts, means, variances, len(rows))
        size, pulls = sizes.num_rows, sizes.pulls
        sampling = size + size**2 / len(rows)
    observed = [part.sums[0] - size * mean for part, mean in zip(parts, means, strict=True)]
    noise = [[Noise(part.noise[0], release.plan.mechanism)] for part in parts]
    contrasts = _contrasts(parts, observed, noise, means, pulls, matrices)
    null = draw_null(contrasts, sampling=sampling, num_draws=num_draws, rng=rng)
    setting = Setting(question, level, size, (row_count(release), float(len(rows))))
    return weigh(shared, contrasts, null, setting)


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
    _check_level(level, num_draws)
    check_same_columns(first.plan.schema, second.plan.schema)
    rng, same_rows = np.random.default_rng(seed), question is Question.SAME_ROWS
    shared = _parts_of([first, second])
    parts = shared.found
    if same_rows:
        means = [_clear_means(part, row_count(first) + row_count(second)) for part in parts]
        matrices: list[Any] = [None] * len(parts)
        size, ratio, sampling = row_count(first), 1.0, 0.0
        pulls = [no_pull(part) for part in parts]
    else:
        if rows is None:
            raise UsageError("rows", "are needed to know what chance does", "Sample a generator")
        known = PublicRows(first.plan.layout, code_rows(first.plan.schema, rows))
        means, matrices = _means(parts, known), _matrices(parts, known, rng)
        sizes = sizes_of_releases([first, second], parts, [_variance(each) for each in matrices])
        size, ratio, pulls = sizes.num_rows, sizes.ratio, sizes.pulls
        sampling = size + ratio**2 * (size / ratio)
    observed = [part.sums[0] - ratio * part.sums[1] for part in parts]
    noise = [
        [Noise(part.noise[0], first.plan.mechanism), Noise(ratio * part.noise[1], second.plan.mechanism)]
        for part in parts
    ]
    contrasts = _contrasts(parts, observed, noise, means, pulls, matrices)
    null = draw_null(contrasts, sampling=sampling, num_draws=num_draws, rng=rng)
    setting = Setting(question, level, size, (row_count(first), row_count(second)))
    return weigh(shared, contrasts, null, setting)


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


def _parts_of(releases: Sequence[Release]) -> Parts:
    parts = find_parts(releases)
    if not any(part.columns or not part.is_count for part in parts.found):
        raise InputError(
            "the releases",
            "hold no numbers that can be compared",
            "Release both with the same method, settings and public seed",
        )
    return parts


def _contrasts(
    parts: Sequence[Part],
    observed: Sequence[Floats],
    noise: Sequence[Sequence[Noise]],
    means: Sequence[Floats],
    pulls: Sequence[Pull],
    matrices: Sequence[Any],
) -> list[Contrast]:
    values = zip(parts, observed, noise, means, pulls, matrices, strict=True)
    return [
        Contrast(apart, noises, mean, pull, matrix, views_of(part, mean), part.is_count)
        for part, apart, noises, mean, pull, matrix in values
    ]


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
    dense = sum(part.copies * part.dim for part in parts if part.place is None)
    some = rows.some(max(500, min(MOST_ROWS, MOST_FEATURES // max(1, dense))), rng)
    return [part.matrix(some) for part in parts]


def _variance(matrix: Any) -> Floats:
    """Variance of each feature over rows."""
    mean = np.asarray(matrix.sum(axis=0)) / matrix.shape[0]
    return np.asarray((matrix**2).sum(axis=0) / matrix.shape[0] - mean**2)


def _clear_means(part: Part, total: float) -> Floats:
    """The mean embedding as two releases show it, without what may be noise."""
    pooled, doubt = part.sums[0] + part.sums[1], np.hypot(part.noise[0], part.noise[1])
    return np.where(np.abs(pooled) > 3 * doubt, pooled, 0.0) / total
