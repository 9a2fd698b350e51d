"""What is compared of a release is the same features of public rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from two_sample_level import SCHEMA, SMALL, draw_rows

from understudy import Budget, make_plan, release_table
from understudy.methods import IMAGE_METHODS, METHODS
from understudy.private.spending import Receipt
from understudy.released import Release
from understudy.two_sample.parts import Part, PublicRows, code_rows, find_parts

NUM_ROWS = 800
ROWS = draw_rows(NUM_ROWS, np.random.default_rng(5))


class NoNoise:
    """Sums as they are, so that they can be held against features of the same rows."""

    name = "none, for a test"
    is_private = False

    def add_noise(self, sums: npt.NDArray[np.int64], noise_std: int, receipt: Receipt) -> npt.NDArray[np.int64]:
        return sums


def release_of(method: str, *, epsilon: float = 20.0, rows: Any = ROWS, **options: Any) -> Release:
    options = {"num_rows": NUM_ROWS} | SMALL.get(method, {}) | options
    plan = make_plan(SCHEMA, Budget(epsilon), method=method, options=options)
    return release_table(rows, plan, noise=NoNoise())


def public_rows(release: Release, rows: Any = ROWS) -> PublicRows:
    return PublicRows(release.plan.layout, code_rows(SCHEMA, rows))


def check_sums(parts: list[Part], rows: PublicRows, *, release: int = 0) -> None:
    assert parts
    for part in parts:
        wanted = np.asarray(part.matrix(rows).sum(axis=0))
        assert part.sums[release] == pytest.approx(wanted, abs=1e-3 * len(rows)), part.columns
        assert part.noise[release].min() > 0


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(IMAGE_METHODS)))
def test_sums_without_noise_are_the_features_of_the_rows(method: str) -> None:
    release = release_of(method)
    found = find_parts([release])
    check_sums(found.found, public_rows(release))
    assert found.left_out == []


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("dp-merf", {"length_scale": "private"}),
        ("dp-merf", {"labels": "none"}),
        ("dp-merf", {"labels": "balanced"}),
        ("dp-hp", {"labels": "none"}),
        ("dp-hp", {"fresh_products": True}),
        ("dp-anova", {"labels": "none"}),
    ],
)
def test_so_they_are_with_other_settings(method: str, options: dict[str, Any]) -> None:
    release = release_of(method, **options)
    check_sums(find_parts([release]).found, public_rows(release))


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(IMAGE_METHODS)))
def test_no_row_has_features_longer_than_one(method: str) -> None:
    release = release_of(method)
    rows = public_rows(release)
    for part in find_parts([release]).found:
        squares = np.asarray((part.matrix(rows) ** 2).sum(axis=1))
        assert squares.max() <= 1 + 1e-6


@pytest.mark.parametrize("method", ["dp-anova", "dp-merf", "dp-hp"])
def test_every_column_has_a_part_of_its_own(method: str) -> None:
    parts = find_parts([release_of(method)]).found
    assert {part.columns[0] for part in parts if len(part.columns) == 1} == {column.name for column in SCHEMA.used}


def test_two_releases_are_compared_in_cells_that_both_have() -> None:
    other = draw_rows(NUM_ROWS, np.random.default_rng(6), shift=0.5)
    first, second = release_of("dp-anova"), release_of("dp-anova", rows=other, epsilon=3.0)
    found = find_parts([first, second])
    check_sums(found.found, public_rows(first))
    check_sums(found.found, public_rows(second, other), release=1)
    assert {"columns", "cells"} <= {part.block for part in found.found}
    assert any("that both have" in words for words in found.compared)


def test_merged_cells_carry_the_noise_of_all_that_they_hold() -> None:
    first, second = release_of("dp-anova"), release_of("dp-anova", epsilon=3.0)
    whole = first.measurement_of("cells")
    part = next(p for p in find_parts([first, second]).found if p.block == "cells")
    alone = next(p for p in find_parts([first]).found if (p.block, p.columns) == ("cells", part.columns))
    assert np.sum(part.noise[0] ** 2) == pytest.approx(np.sum(alone.noise[0] ** 2))
    assert alone.noise[0] == pytest.approx(whole.noise_of_count("cells"))


def test_features_with_other_seeds_are_left_out() -> None:
    found = find_parts([release_of("dp-merf", seed=0), release_of("dp-merf", seed=1)])
    assert found.left_out == ["numbers"]
    assert {part.block for part in found.found} == {"count", "choices"}
