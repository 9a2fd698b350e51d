from __future__ import annotations

import math

import numpy as np

from understudy.features import Constant, Grid, OneHot


def test_the_sum_of_constants_is_the_row_count() -> None:
    assert Constant()(np.zeros((7, 3))).sum() == 7


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    positions = np.array([[0.0], [0.25 - 2.0**-16], [0.25], [0.75], [1.0]])
    assert Grid((0,), 4)(positions).argmax(axis=1).tolist() == [0, 0, 1, 3, 3]


def test_each_number_falls_into_one_bin() -> None:
    positions = np.random.default_rng(0).random((50, 3))
    members = Grid((0, 2), 5)(positions).reshape(50, 2, 5)
    assert np.allclose(members.sum(axis=2), 1 / math.sqrt(2))


def test_a_choice_without_a_listed_value_adds_nothing() -> None:
    cells = np.array([[0, 0, 0, 1, 0], [0, 1, 0, 0, 0]], dtype=float)
    found = OneHot(((0, 3), (3, 5)))(cells) * math.sqrt(2)
    assert np.allclose(found, cells)


def test_probabilities_give_expected_features() -> None:
    shares = np.array([[0.2, 0.3, 0.5]])
    assert np.allclose(OneHot(((0, 3),))(shares), shares)
