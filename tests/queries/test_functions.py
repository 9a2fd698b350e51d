"""Ranges of functions over cells hold for every code of the cell."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.features import Cells
from understudy.queries.atoms import Ranged, membership, values
from understudy.schema import Column
from understudy.schema.columns import Kind
from understudy.schema.values import code_set

AGE = Column(name="age", kind=Kind.INTEGER, bounds=(-4, 7), nullable=True)
CODES = np.arange(-1, 12)
ranges = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=3)


@given(st.sets(st.integers(1, 11)), ranges, st.booleans(), st.floats(-5, 8))
def test_no_code_lies_outside_the_range_of_its_cell(lows, kept, has_null, centre):
    cells = Cells(0, 12, True, True, tuple(sorted({0, *lows})))
    inside = code_set(kept, has_null=has_null)
    members = membership(cells, inside)
    value = values(AGE, cells, centre=centre)
    is_in = inside.contains(CODES)
    exact = np.where(CODES >= 0, CODES - 4 - centre, 0.0)
    for ranged, truth in (
        (members, is_in * 1.0),
        (value, exact),
        (value.squared(), exact**2),
        (value.within(members), exact * is_in),
        (value.squared().within(members), exact**2 * is_in),
    ):
        place = cells(CODES)
        assert (ranged.low[place] <= truth + 1e-9).all()
        assert (truth <= ranged.high[place] + 1e-9).all()
        assert (ranged.low - 1e-9 <= ranged.middle).all()
        assert (ranged.middle <= ranged.high + 1e-9).all()


def test_cells_of_one_code_are_exact_and_cut_ones_are_not():
    single, double = Cells(0, 12, True, True), Cells(0, 12, True, True, (0, 6))
    inside = code_set([(3, 7)])
    assert membership(single, inside).is_exact
    cut = membership(double, inside)
    assert not cut.is_exact
    assert cut.middle.tolist() == [0.5, 2 / 6, 0.0]
    assert membership(double, code_set([(0, 5)])).is_exact


def test_the_middle_of_a_cut_cell_follows_the_rows_that_are_known_to_lie_there():
    cells = Cells(0, 4, False, True, (0, 1, 2, 3), (0, 0, 1, 1))
    rows = np.array([30.0, 10.0, 5.0, 5.0])
    assert membership(cells, code_set([(1, 1)]), rows).middle.tolist() == [0.25, 0.0]


def test_products_of_ranges_hold_for_products_of_signs():
    left = Ranged(np.array([-2.0]), np.array([0.0]), np.array([3.0]))
    right = Ranged(np.array([-1.0]), np.array([1.0]), np.array([5.0]))
    found = left.outer(right)
    assert (found.low[0], found.high[0]) == (-10.0, 15.0)
