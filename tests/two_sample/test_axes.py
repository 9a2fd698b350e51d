"""Cells that two releases can both express."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.features import Cells
from understudy.released.tables import sum_cells
from understudy.two_sample.parts import MOST_CELLS, common_axis


def cut(*lows: int, groups: tuple[int, ...] = (), has_null: bool = False) -> Cells:
    return Cells(0, 12, has_null, is_ordered=True, lows=lows, groups=groups)


CUTS = [
    (cut(0, 3, 6, 9), cut(0, 4, 6, 8)),
    (cut(0, 3, 6, 9, has_null=True), cut(0, 3, 9, has_null=True)),
    (cut(0, 3, 6, 9, groups=(0, 1, 0, 1)), cut(0, 3, 6, 9)),
    (Cells(0, 12, groups=(0, 1, 2) * 4), Cells(0, 12, groups=(0, 1, 2, 3, 4, 5) * 2)),
    (cut(0, 5), cut(0, 7)),
]


@pytest.mark.parametrize("cells", CUTS)
def test_every_code_is_in_the_same_union_for_both(cells: tuple[Cells, Cells]) -> None:
    axis = common_axis(cells)
    codes = np.arange(12)
    unions = [union[own(codes)] for union, own in zip(axis.unions, cells, strict=True)]
    assert np.array_equal(unions[0], unions[1])
    assert set(unions[0]) == set(range(axis.dim - cells[0].has_null))


@pytest.mark.parametrize("cells", CUTS)
def test_counts_are_merged_alike(cells: tuple[Cells, Cells]) -> None:
    axis = common_axis(cells)
    codes = np.random.default_rng(0).integers(-1, 12, (500, 1))
    wanted = np.bincount(axis(codes) + 1, minlength=axis.dim + 1)[1:]
    for i, own in enumerate(cells):
        counts = np.bincount(own(codes[:, 0]), minlength=own.dim + 1)[None, : own.dim]
        assert np.array_equal(sum_cells(counts.astype(float), axis.unions[i], axis.dim, axis=1)[0], wanted)


def test_no_finer_cells_are_common() -> None:
    assert common_axis(CUTS[0]).dim == 2  # the only bound that both have is 6
    assert common_axis(CUTS[3]).dim == 3
    assert common_axis(CUTS[4]).dim == 1


def test_nulls_are_apart_only_if_both_releases_have_them_so() -> None:
    both, one = cut(0, 6, has_null=True), cut(0, 6)
    assert common_axis([both, both]).dim == 3
    axis = common_axis([both, one])
    assert axis.dim == 2
    assert axis(np.array([[-1]])) == [-1]
    assert sum_cells(np.array([[5.0, 6.0, 7.0]]), axis.unions[0], axis.dim, axis=1).tolist() == [[5.0, 6.0]]


def test_a_very_long_column_is_compared_in_runs() -> None:
    long = Cells(0, 10_000, is_ordered=True)
    axis = common_axis([long])
    assert axis.dim == MOST_CELLS
    assert axis.sizes[0].sum() == 10_000
    assert np.all(np.diff(axis.unions[0]) >= 0)
