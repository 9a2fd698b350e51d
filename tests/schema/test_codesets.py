"""Sets of codes: they do what sets of integers do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy import load_schema
from understudy.schema import NULL
from understudy.schema.values import CodeSet, code_set, every_code

CODES = np.arange(NULL, 21)
ranges = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=5)
sets = st.builds(lambda pairs, null: code_set(pairs, has_null=null), ranges, st.booleans())


def members(codes: CodeSet) -> set[int]:
    return {int(code) for code in CODES[codes.contains(CODES)]}


@settings(deadline=None)
@given(pairs=ranges, null=st.booleans())
def test_a_set_has_the_codes_of_its_ranges(pairs: list[tuple[int, int]], null: bool):
    wanted = {code for low, high in pairs for code in range(low, high + 1)}
    assert members(code_set(pairs, has_null=null)) == wanted | ({NULL} if null else set())


@settings(deadline=None)
@given(pairs=ranges)
def test_ranges_are_in_order_and_apart(pairs: list[tuple[int, int]]):
    found = code_set(pairs).ranges
    assert all(low <= high for low, high in found)
    assert all(left[1] + 1 < right[0] for left, right in pairwise(found))


@settings(deadline=None)
@given(left=sets, right=sets)
def test_intersection_and_difference_are_those_of_sets(left: CodeSet, right: CodeSet):
    assert members(left & right) == members(left) & members(right)
    assert members(left - right) == members(left) - members(right)
    assert left.is_empty == (not members(left))


@settings(deadline=None)
@given(codes=sets)
def test_the_nearest_code_is_the_nearest(codes: CodeSet):
    known = sorted(members(codes) - {NULL})
    for code in range(21):
        found = int(codes.nearest(np.asarray([code]))[0])
        if not known:
            assert found == NULL
        else:
            assert found in known
            assert abs(found - code) == min(abs(each - code) for each in known)


def test_every_code_of_a_column_is_all_that_it_can_hold():
    schema = load_schema(
        {
            "columns": [
                {"name": "n", "kind": "integer", "bounds": [5, 9], "nullable": True},
                {"name": "c", "kind": "categorical", "categories": ["a", "b", "c"]},
            ]
        }
    )
    assert [every_code(column) for column in schema.used] == [CodeSet(((0, 4),), True), CodeSet(((0, 2),), False)]
