"""Ties: which pairs of columns a mixture draws given one another, and by which ratios."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.arrays import Floats
from understudy.features import Cells
from understudy.fits.shrinkage import Target
from understudy.fits.ties import IMPOSSIBLE, MOST_MOVED, association, balanced, choose_ties, joint_margins
from understudy.generators.mixture import Tie
from understudy.rules.marginals import Marginals

WIDTH, NOISE = 5, 10.0
EYE = np.eye(WIDTH)


def even_marginals(num_columns: int, labels: int = 1) -> Marginals:
    cells = tuple(Cells(j, WIDTH) for j in range(num_columns))
    even = np.full((labels, WIDTH), 1 / WIDTH)
    return Marginals(1000.0, np.full(labels, 1 / labels), (even,) * num_columns, cells)


def agreeing(share: float, zeros: bool = False) -> Target:
    """A table in which two columns agree in this share of the rows, and else by chance."""
    table = share * EYE / WIDTH + (1 - share) / WIDTH**2
    return Target(table[None], zeros=EYE == 0 if zeros else None)


def ties_of(targets: dict[tuple[int, ...], Target], marginals: Marginals) -> list[Tie]:
    return choose_ties(marginals, targets, marginals.cells, noise=NOISE)


def test_the_most_dependent_pairs_are_tied_and_no_column_twice() -> None:
    targets = {(0, 1): agreeing(0.5), (1, 2): agreeing(0.9), (2, 3): agreeing(0.8), (0, 3): agreeing(0.3)}
    found = ties_of(targets, even_marginals(4))
    assert [(tie.parent, tie.child) for tie in found] == [(1, 2), (0, 3)]


def test_pairs_that_hardly_depend_on_one_another_are_not_tied() -> None:
    assert not ties_of({(0, 1): agreeing(0.01)}, even_marginals(2))


@given(seed=st.integers(0, 500), labels=st.integers(1, 4))
def test_components_are_balanced_so_that_tied_columns_have_their_marginals(seed: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.dirichlet(np.ones(4), labels), rng.dirichlet(np.ones(6), labels)
    ratios = rng.uniform(0.2, 3.0, (4, 6))
    one, other, whole = joint_margins(*balanced(ratios, left, right), ratios)
    np.testing.assert_allclose(one, left, atol=1e-3)
    np.testing.assert_allclose(other, right, atol=1e-3)
    assert (whole > 0).all()


def test_joint_margins_are_those_of_the_joint_law() -> None:
    rng = np.random.default_rng(0)
    left, right, ratios = rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(4), 2), rng.random((3, 4))
    joint = left[:, :, None] * ratios * right[:, None, :]
    joint /= joint.sum(axis=(1, 2), keepdims=True)
    one, other, _ = joint_margins(left, right, ratios)
    np.testing.assert_allclose(one, joint.sum(axis=2))
    np.testing.assert_allclose(other, joint.sum(axis=1))


def test_ratios_are_those_of_the_table_and_next_to_nothing_at_structural_zeros() -> None:
    expected = np.full((WIDTH, WIDTH), WIDTH**-2)
    np.testing.assert_allclose(association(agreeing(0.5), expected), agreeing(0.5).table[0] / expected)
    certain = association(agreeing(0.9, zeros=True), expected)
    np.testing.assert_allclose(np.diag(certain), WIDTH)
    assert (certain[EYE == 0] == IMPOSSIBLE).all()


def test_cells_that_shrinkage_has_emptied_are_as_independence_would_have_them() -> None:
    """A far tail that its pair's table lost: its rows stay where they are, and go to no component by accident."""
    table = agreeing(0.5).table.copy()
    table[0, 0] = 0.0
    found = association(Target(table / table.sum()), np.full((WIDTH, WIDTH), WIDTH**-2))
    np.testing.assert_allclose(found[0].mean(), 1.0, atol=0.02)
    np.testing.assert_allclose(found[:, 0].mean(), 1.0, atol=0.02)


@pytest.mark.parametrize("zeros", [np.ones((WIDTH, WIDTH), dtype=bool), np.arange(WIDTH)[:, None] == np.arange(WIDTH)])
def test_ratios_are_finite_whatever_is_said_to_be_empty(zeros: np.ndarray) -> None:
    found = association(Target(np.zeros((1, WIDTH, WIDTH)), zeros=zeros), np.full((WIDTH, WIDTH), WIDTH**-2))
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_zeros_that_leave_a_cell_nowhere_are_not_believed() -> None:
    zeros = EYE == 0
    zeros[0] = True
    found = association(Target(EYE[None] / WIDTH, zeros=zeros), np.full((WIDTH, WIDTH), WIDTH**-2))
    assert (found[0] > 100 * IMPOSSIBLE).any()


def test_a_tie_that_would_move_the_rows_of_a_rare_label_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row in a thousand has a label whose columns differ: zeros told from all rows know nothing of it."""
    marginals = replace(even_marginals(2, labels=2), total=1e6)
    rare = [np.stack([own[0], EYE[place] * 0.96 + 0.008]) for place, own in enumerate(marginals.by_label)]
    marginals = replace(marginals, by_label=tuple(rare), label_shares=np.array([0.999, 0.001]))
    targets = {(0, 1): agreeing(1.0, zeros=True)}
    assert not ties_of(targets, marginals)
    monkeypatch.setattr("understudy.fits.ties.MOST_MOVED", 1.0)
    assert ties_of(targets, marginals), "nothing else keeps it out"


def test_a_label_without_rows_keeps_no_tie_out() -> None:
    """What is known of its columns is noise."""
    marginals = replace(even_marginals(2, labels=2), label_shares=np.array([0.99, 0.01]))
    noise = [np.stack([own[0], EYE[place] * 0.96 + 0.008]) for place, own in enumerate(marginals.by_label)]
    assert ties_of({(0, 1): agreeing(1.0, zeros=True)}, replace(marginals, by_label=tuple(noise)))


def test_a_function_is_tied_though_a_label_has_no_rows_of_some_value() -> None:
    """Noise leaves one column a few rows there and the other none: no factor could make up for that."""
    marginals = replace(even_marginals(2, labels=2), total=1e6)
    left, right = np.array([0.02, 0.23, 0.25, 0.25, 0.25]), np.array([0.0, 0.25, 0.25, 0.25, 0.25])
    own = tuple(np.stack([each[0], side]) for each, side in zip(marginals.by_label, (left, right), strict=True))
    (tie,) = ties_of({(0, 1): agreeing(1.0, zeros=True)}, replace(marginals, by_label=own))
    one, other, _ = joint_margins(*balanced(tie.ratios, *own), tie.ratios)
    assert 0.5 * np.abs(one - own[0]).sum(axis=1).max() < 0.03
    assert 0.5 * np.abs(other - own[1]).sum(axis=1).max() < 0.03


def test_cells_in_which_nobody_is_expected_say_nothing() -> None:
    expected = np.zeros((WIDTH, WIDTH))
    expected[1:, 1:] = (WIDTH - 1) ** -2
    found = association(Target(expected[None]), expected)
    np.testing.assert_allclose(found, 1.0)


def test_a_tie_whose_labels_can_have_their_margins_stays() -> None:
    marginals = even_marginals(2, labels=2)
    own = np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0.3, 0.2, 0.0, 0.2, 0.3]])
    marginals = replace(marginals, by_label=(own, own))
    found = ties_of({(0, 1): agreeing(0.9)}, marginals)
    assert len(found) == 1
    kept: Floats = joint_margins(*balanced(found[0].ratios, own, own), found[0].ratios)[0]
    assert np.abs(kept - own).sum(axis=1).max() / 2 < MOST_MOVED


def test_the_column_of_more_cells_is_drawn_first_and_followers_are_left_out() -> None:
    """Given another column, cells are drawn less evenly; a column that another determines has no say."""
    even = even_marginals(3)
    wide = Cells(1, 2 * WIDTH)
    by_label = (even.by_label[0], np.full((1, 2 * WIDTH), 0.5 / WIDTH), even.by_label[2])
    marginals = replace(even, cells=(even.cells[0], wide, even.cells[2]), by_label=by_label)
    table = np.repeat(agreeing(0.9).table, 2, axis=2) / 2
    targets = {(0, 1): Target(table), (0, 2): agreeing(0.5)}
    (tie,) = choose_ties(marginals, targets, marginals.cells, noise=NOISE)
    assert (tie.parent, tie.child, tie.ratios.shape) == (1, 0, (2 * WIDTH, WIDTH))
    (left,) = choose_ties(marginals, targets, marginals.cells, noise=NOISE, followers=[1])
    assert {left.parent, left.child} == {0, 2}
