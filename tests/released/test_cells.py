"""Ways to cut a column: what two of them have in common."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.features import Cells
from understudy.released.tables import cell_edges, common_coarsening, cut_at, merged_cells, nearest_edges

NUM_CODES = 12


@st.composite
def cuts(draw) -> Cells:
    lows = sorted({0, *draw(st.lists(st.integers(1, NUM_CODES - 1), max_size=6))})
    groups = draw(st.lists(st.integers(0, 2), min_size=len(lows), max_size=len(lows)))
    known = sorted(set(groups))
    groups = tuple(known.index(group) for group in groups) if draw(st.booleans()) else ()
    return Cells(0, NUM_CODES, draw(st.booleans()), True, tuple(lows), groups)


@given(cuts(), cuts())
def test_codes_are_in_one_union_if_a_chain_of_cells_ties_them(one: Cells, other: Cells):
    mine, theirs, count = common_coarsening(one, other)
    codes = np.arange(-1 if one.has_null and other.has_null else 0, NUM_CODES)
    together = np.equal.outer(one(codes), one(codes)) | np.equal.outer(other(codes), other(codes))
    for _ in codes:
        together = together @ together
    assert np.array_equal(mine[one(codes)], theirs[other(codes)])
    assert np.array_equal(np.equal.outer(mine[one(codes)], mine[one(codes)]), together)
    assert len(np.unique(mine[one(codes)])) == count


def test_nulls_that_the_other_way_does_not_count_are_in_no_union():
    with_null, without = Cells(0, 3, True), Cells(0, 3)
    mine, _, count = common_coarsening(with_null, without)
    assert (mine.tolist(), count) == ([0, 1, 2, -1], 3)


def test_edges_are_where_cells_begin_not_where_pieces_do():
    cells = Cells(0, 10, False, True, (0, 2, 5, 7), (0, 0, 1, 1))
    assert cell_edges(cells).tolist() == [0, 5]


def test_an_edge_that_is_not_there_gives_way_to_its_neighbours():
    available = np.array([0, 4, 8])
    assert nearest_edges(np.array([4]), available).tolist() == [4]
    assert nearest_edges(np.array([5]), available).tolist() == [4, 8]
    assert nearest_edges(np.array([9]), available).tolist() == [8]


def test_cells_of_equal_signature_become_one_and_nulls_stay_apart():
    cells = cut_at(Cells(0, 6, True, True), np.array([2, 4]))
    merged = merged_cells(cells, np.array([[1.0], [0.0], [1.0]]))
    codes = np.arange(-1, 6)
    assert merged.dim == 3
    assert len({int(merged(codes)[i]) for i in (1, 2, 5, 6)}) == 1
    assert int(merged(codes)[0]) == 2
