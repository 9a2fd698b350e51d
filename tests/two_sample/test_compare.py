"""The test keeps its level, finds what differs and names it, and refuses what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from two_sample_level import SCHEMA, SMALL, draw_rows

from understudy import (
    Budget,
    Neighbours,
    compare_releases,
    compare_with_rows,
    fit_release,
    load_schema,
    make_plan,
    release_table,
)
from understudy.errors import InputError, UsageError
from understudy.private.noise import SeededNoise
from understudy.released import Release
from understudy.two_sample.results import Comparison, Question

NUM_ROWS = 1000
METHODS = tuple(SMALL)
each_method = pytest.mark.parametrize("method", METHODS)


@cache
def plan_of(method: str, epsilon: float, neighbours: Neighbours) -> Any:
    options = SMALL[method] | {"num_rows": NUM_ROWS, "neighbours": neighbours}
    return make_plan(SCHEMA, Budget(epsilon), method=method, options=options)


def release_of(
    method: str, seed: int, *, epsilon: float = 1.0, shift: float = 0.0, neighbours: Neighbours = Neighbours.ADD_REMOVE
) -> Release:
    """A release of fresh rows; what is tested is not the noise, so it may have a seed."""
    rows = rows_of(seed, shift=shift)
    return release_table(rows, plan_of(method, epsilon, neighbours), noise=SeededNoise(seed))


def rows_of(seed: int, *, shift: float = 0.0, count: int = NUM_ROWS) -> pa.Table:
    return draw_rows(count, np.random.default_rng([17, seed]), shift=shift)


def quick(release: Release, rows: Any, **options: Any) -> Comparison:
    return compare_with_rows(release, rows, **({"num_draws": 200} | options))


@each_method
def test_the_level_is_kept_where_nothing_differs(method: str) -> None:
    """Sixty fresh pairs. Rejections are Bin(60, 0.05): more than 14 have a chance below 1e-6."""
    found = [quick(release_of(method, i), rows_of(1000 + i), seed=i) for i in range(60)]
    assert sum(each.differs for each in found) <= 14
    values = np.array([each.p_value for each in found])
    assert 8 <= (values <= 0.5).sum() <= 52  # six deviations of Bin(60, 1/2) on either side
    assert all(0 < p <= 1 for p in values)


@each_method
def test_a_shifted_column_is_found_and_named(method: str) -> None:
    found = quick(release_of(method, 1, epsilon=3.0), rows_of(2, shift=0.8))
    assert found.differs
    assert found.p_value < 1e-4
    assert found.columns[0].columns == ("age",)
    assert found.columns[0].adjusted < 1e-3
    assert next(d for d in found.columns if d.columns == ("ward",)).adjusted > 0.01
    assert found.effect > found.detectable


@each_method
def test_less_noise_finds_smaller_differences(method: str) -> None:
    found = [quick(release_of(method, 3, epsilon=e), rows_of(4)) for e in (0.3, 3.0)]
    assert found[0].detectable > found[1].detectable
    shares = [each.detectable_share for each in found]
    assert 1 >= shares[0] > shares[1] > 0


@each_method
def test_the_very_rows_are_told_from_others_of_the_same_population(method: str) -> None:
    release = release_of(method, 5, epsilon=20.0)
    same = quick(release, rows_of(5), question=Question.SAME_ROWS)
    assert not replace(same, level=1e-6).differs
    others = quick(release, rows_of(6), question=Question.SAME_ROWS)
    assert others.p_value < 1e-6
    assert not replace(quick(release, rows_of(6)), level=1e-6).differs


@each_method
def test_a_public_row_count_is_used(method: str) -> None:
    release = release_of(method, 7, neighbours=Neighbours.REPLACE_ONE)
    found = quick(release, rows_of(8, count=3000))
    assert found.rows == (NUM_ROWS, 3000)
    assert not replace(found, level=1e-6).differs


@each_method
def test_two_releases_of_one_population_and_of_two(method: str) -> None:
    first, second = release_of(method, 9, epsilon=3.0), release_of(method, 10, epsilon=3.0)
    other = release_of(method, 11, epsilon=3.0, shift=1.0)
    rows = fit_release(first).sample(1000, seed=0)
    alike = compare_releases(first, second, rows=rows, num_draws=200)
    assert not replace(alike, level=1e-6).differs
    apart = compare_releases(first, other, rows=rows, num_draws=200)
    assert apart.p_value < 1e-4
    assert "age" in apart.columns[0].columns


def test_two_releases_of_the_very_same_rows_need_no_generator() -> None:
    plan = plan_of("dp-anova", 20.0, Neighbours.ADD_REMOVE)
    first, second = (release_table(rows_of(12), plan, noise=SeededNoise(i)) for i in (1, 2))
    asked = {"question": Question.SAME_ROWS, "num_draws": 200}
    assert not replace(compare_releases(first, second, **asked), level=1e-6).differs
    other = release_table(rows_of(13), plan, noise=SeededNoise(3))
    assert compare_releases(first, other, **asked).p_value < 1e-6


def test_releases_of_different_size_and_budget_can_be_compared() -> None:
    plan = plan_of("dp-anova", 1.0, Neighbours.ADD_REMOVE)
    first = release_table(rows_of(14, count=3000), plan, noise=SeededNoise(14))
    second = release_of("dp-anova", 15, epsilon=4.0)
    found = compare_releases(first, second, rows=rows_of(16), num_draws=200)
    assert not replace(found, level=1e-6).differs
    assert found.rows[0] == pytest.approx(3000, rel=0.1)


def test_the_same_seed_gives_the_same_answer() -> None:
    release = release_of("dp-merf", 17)
    first, second = (quick(release, rows_of(18), seed=3) for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_frames_and_tables_are_the_same() -> None:
    release, rows = release_of("dp-merf", 19), rows_of(20)
    assert quick(release, rows).p_value == quick(release, rows.to_pandas()).p_value


def test_more_rows_than_are_needed_for_the_covariance_all_count() -> None:
    found = quick(release_of("dp-merf", 21), rows_of(22, count=9000))
    assert found.rows[1] == 9000
    assert not replace(found, level=1e-6).differs


# Refusals


def test_rows_without_a_column_are_refused_by_its_name() -> None:
    with pytest.raises(InputError, match="column 'dose'"):
        quick(release_of("dp-merf", 0), rows_of(1).drop_columns("dose"))


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match="fewer than 30"):
        quick(release_of("dp-merf", 0), rows_of(1).slice(0, 5))
    with pytest.raises(InputError, match="there are none"):
        quick(release_of("dp-merf", 0), rows_of(1).slice(0, 0))


@pytest.mark.parametrize(("options", "words"), [({"level": 0.0}, "level"), ({"num_draws": 3}, "draws")])
def test_levels_and_draws_have_limits(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        quick(release_of("dp-merf", 0), rows_of(1), **options)


def test_releases_of_other_columns_are_refused_by_name() -> None:
    first = release_of("dp-merf", 0)
    document = SCHEMA.to_dict()
    document["columns"][2]["categories"] = ["north", "south", "east"]
    changed = replace(first, plan=replace(first.plan, schema=load_schema(document)))
    with pytest.raises(InputError, match="column 'ward': has another categories"):
        compare_releases(first, changed, rows=rows_of(1))
    fewer = load_schema(SCHEMA.to_dict() | {"columns": SCHEMA.to_dict()["columns"][1:]})
    plan = make_plan(fewer, Budget(1.0), method="dp-merf", options={"num_features": 4})
    other = release_table(rows_of(1), plan, noise=SeededNoise(0))
    with pytest.raises(InputError, match="only one of them has 'age'"):
        compare_releases(first, other, rows=rows_of(1))


def test_releases_of_methods_without_common_numbers_are_refused() -> None:
    options = {"labels": "none", "num_features": 4, "seed": 1}
    plan = make_plan(SCHEMA, Budget(1.0), method="dp-merf", options=options)
    third = release_table(rows_of(1), plan, noise=SeededNoise(0))
    with pytest.raises(InputError, match="same method"):
        compare_releases(release_of("dp-anova", 0), third, rows=rows_of(1))


def test_the_population_question_needs_rows_of_a_generator() -> None:
    first, second = (release_of("dp-merf", i) for i in range(2))
    with pytest.raises(UsageError, match="what chance does"):
        compare_releases(first, second)
