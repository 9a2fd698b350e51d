from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from understudy.arrays import Floats
from understudy.features import Cells
from understudy.fits.shrinkage import Target
from understudy.fits.ties import find_ties
from understudy.generators.mixture import ColumnGrid, Components, Tie
from understudy.rules.marginals import Marginals

COUNT, WIDTH = 60, 5


def components(num_columns: int, seed: int = 0) -> tuple[Marginals, list[Floats]]:
    """A mixture in which neighbouring columns agree in most rows, and all columns have even margins."""
    rng = np.random.default_rng(seed)
    kind = np.arange(COUNT) % WIDTH
    by_column = [0.8 * np.eye(WIDTH)[kind] + 0.2 * rng.dirichlet(np.ones(WIDTH), COUNT) for _ in range(num_columns)]
    cells = tuple(Cells(j, WIDTH) for j in range(num_columns))
    means = tuple(each.mean(axis=0)[None] for each in by_column)
    return Marginals(1000.0, np.ones(1), means, cells), by_column


def equal_values(pairs: list[tuple[int, int]]) -> dict[tuple[int, ...], Target]:
    return {pair: Target(np.eye(WIDTH)[None] / WIDTH, zeros=~np.eye(WIDTH, dtype=bool)) for pair in pairs}


def drawn(marginals: Marginals, targets: dict[tuple[int, ...], Target], by_column: list[Floats]) -> Floats:
    ties, found = find_ties(marginals, targets, marginals.cells, by_column, np.array([COUNT]))
    values = np.arange(WIDTH)
    grids = (ColumnGrid(values, values, has_null=False),) * len(by_column)
    mixture = Components(np.full(COUNT, 1 / COUNT), np.concatenate(found, axis=1), grids, tuple(ties))
    return np.asarray(mixture.codes(20_000, np.random.default_rng(1)))


def test_columns_that_determine_one_another_never_contradict_one_another() -> None:
    marginals, by_column = components(4)
    before = drawn(marginals, {}, by_column)
    assert (before[:, 0] != before[:, 1]).mean() > 0.2
    codes = drawn(marginals, equal_values([(0, 1), (2, 3)]), by_column)
    assert (codes[:, 0] == codes[:, 1]).all()
    assert (codes[:, 2] == codes[:, 3]).all()
    assert (codes[:, 0] != codes[:, 3]).any()


def test_margins_stay_as_they_were() -> None:
    marginals, by_column = components(4)
    codes = drawn(marginals, equal_values([(0, 1), (2, 3)]), by_column)
    for place, own in enumerate(marginals.by_label):
        shares = np.bincount(codes[:, place], minlength=WIDTH) / len(codes)
        assert np.abs(shares - own[0]).sum() / 2 < 0.02


def test_no_column_is_tied_twice() -> None:
    marginals, by_column = components(3)
    targets = equal_values([(0, 1), (1, 2), (0, 2)])
    ties, _ = find_ties(marginals, targets, marginals.cells, by_column, np.array([COUNT]))
    assert len(ties) == 1


def test_zeros_that_margins_contradict_are_not_believed() -> None:
    marginals, by_column = components(2)
    others = by_column[0][:, ::-1] ** 4  # the other column has far fewer rows of some values
    by_column[1] = others / others.sum(axis=1, keepdims=True) * 0.2 + 0.8 * np.eye(WIDTH)[0]
    ties, found = find_ties(marginals, equal_values([(0, 1)]), marginals.cells, by_column, np.array([COUNT]))
    assert not ties
    np.testing.assert_array_equal(found[0], by_column[0])


def test_without_structural_zeros_nothing_changes() -> None:
    marginals, by_column = components(3)
    targets = {(0, 1): Target(np.full((1, WIDTH, WIDTH), WIDTH**-2), zeros=np.zeros((WIDTH, WIDTH), dtype=bool))}
    ties, found = find_ties(marginals, targets, marginals.cells, by_column, np.array([COUNT]))
    assert not ties
    for own, same in zip(by_column, found, strict=True):
        np.testing.assert_array_equal(own, same)


def test_tables_that_no_row_could_be_in_do_not_break_a_mixture() -> None:
    marginals, by_column = components(2)
    targets = {(0, 1): Target(np.zeros((1, WIDTH, WIDTH)), zeros=np.ones((WIDTH, WIDTH), dtype=bool))}
    ties, found = find_ties(marginals, targets, marginals.cells, by_column, np.array([COUNT]))
    assert all(np.isfinite(tie.ratios).all() for tie in ties)
    assert all(np.isfinite(own).all() for own in found)


def test_a_tie_that_would_move_the_rows_of_a_rare_label_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row in a thousand has a label whose columns differ: zeros told from all rows know nothing of it."""
    marginals, by_column = components(2)
    sizes, rare = np.array([COUNT - 4, 4]), slice(COUNT - 4, None)
    by_column[0][rare], by_column[1][rare] = np.eye(WIDTH)[[0]] * 0.9 + 0.02, np.eye(WIDTH)[[1]] * 0.9 + 0.02
    marginals = replace(marginals, label_shares=np.array([0.999, 0.001]))

    def ties() -> list[Tie]:
        return find_ties(marginals, equal_values([(0, 1)]), marginals.cells, by_column, sizes)[0]

    assert not ties()
    monkeypatch.setattr("understudy.fits.ties.MOST_MOVED_OF_LABEL", 1.0)
    assert ties(), "nothing else keeps it out"
