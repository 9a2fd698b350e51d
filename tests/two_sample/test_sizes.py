"""Row counts that are not known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from two_sample_level import SCHEMA, SMALL, draw_rows

from understudy import Budget, Neighbours, make_plan, release_table
from understudy.private.noise import SeededNoise
from understudy.released import Release
from understudy.released.tables import NoisyCount, total_rows
from understudy.two_sample.compare import Sizes, estimated_sizes
from understudy.two_sample.parts import Part, PublicRows, code_rows, find_parts

RNG = np.random.default_rng(8)
ROWS, OTHERS = draw_rows(2000, RNG), draw_rows(1000, RNG)


def release_of(rows: Any, *, method: str = "dp-hp", seed: int = 0, **options: Any) -> Release:
    settings = SMALL[method] | {"num_rows": rows.num_rows} | options
    plan = make_plan(SCHEMA, Budget(1.0), method=method, options=settings)
    return release_table(rows, plan, noise=SeededNoise(seed))


def described(parts: list[Part]) -> tuple[list[Any], list[Any]]:
    rows = PublicRows(release_of(ROWS).plan.layout, code_rows(SCHEMA, OTHERS))
    matrices = [part.matrix(rows) for part in parts]
    means = [np.asarray(each.sum(axis=0)) / len(rows) for each in matrices]
    squares = [np.asarray((each**2).sum(axis=0)) / len(rows) for each in matrices]
    return means, [square - mean**2 for square, mean in zip(squares, means, strict=True)]


def sizes_of(parts: list[Part], *releases: Release) -> Sizes:
    """Sizes of a release and 1,000 public rows, or of two releases."""
    public = [NoisyCount(1000.0, 0.0)] if len(releases) == 1 else []
    return estimated_sizes([*map(total_rows, releases), *public], parts, *described(parts))


def test_a_public_count_is_taken_as_it_is() -> None:
    release = release_of(ROWS, neighbours=Neighbours.REPLACE_ONE)
    parts = find_parts([release]).found
    sizes = sizes_of(parts, release)
    assert (sizes.num_rows, sizes.ratio) == (2000, 2.0)
    assert not any(pull.scale or pull.gain.any() for pull in sizes.pulls)


@pytest.mark.parametrize("method", SMALL)
def test_all_numbers_together_know_the_count_better_than_the_noisy_count(method: str) -> None:
    errors = []
    for seed in range(12):
        release = release_of(ROWS, method=method, seed=seed)
        parts = find_parts([release]).found
        sizes = sizes_of(parts, release)
        errors.append((sizes.num_rows - 2000, total_rows(release).rows - 2000))
        asked = sum(float(p.gain @ q.sums[0]) for p, q in zip(sizes.pulls, parts, strict=True))
        assert asked / sum(p.scale for p in sizes.pulls) == pytest.approx(sizes.num_rows)
    ours, counts = np.sqrt(np.mean(np.square(errors), axis=0))
    assert ours < counts


@pytest.mark.parametrize("method", SMALL)
def test_how_two_releases_compare_in_size(method: str) -> None:
    first, second = release_of(ROWS, method=method), release_of(OTHERS, method=method, seed=1)
    parts = find_parts([first, second]).found
    sizes = sizes_of(parts, first, second)
    assert sizes.ratio == pytest.approx(2.0, rel=0.15)
    assert sizes.num_rows == total_rows(first).rows


def test_two_public_counts_need_no_estimate() -> None:
    replace = {"neighbours": Neighbours.REPLACE_ONE}
    first, second = release_of(ROWS, **replace), release_of(OTHERS, seed=1, **replace)
    parts = find_parts([first, second]).found
    sizes = sizes_of(parts, first, second)
    assert (sizes.num_rows, sizes.ratio) == (2000, 2.0)
    assert not any(pull.scale or pull.gain.any() for pull in sizes.pulls)
