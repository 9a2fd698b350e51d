"""Codes to cells and back: positions on a grid, memberships that are one-hot or zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.schema import NULL, Column, Layout, Schema
from understudy.schema.columns import POSITION_BITS, Choice, from_position, to_position
from understudy.schema.entries import parse_column
from understudy.schema.table import parse_schema

GRID = 2**POSITION_BITS


def layout(*entries: dict[str, Any]) -> Layout:
    columns = [{"name": f"c{i}", **entry} for i, entry in enumerate(entries)]
    return Layout(parse_schema({"columns": columns}, name="t"))


def column(kind: str, **entry: Any) -> Column:
    return parse_column({"name": "x", "kind": kind, **entry})


def largest(column: Column) -> int:
    return len(column.categories) - 1 if column.is_choice else column.num_steps


def some_codes(schema: Schema, data: st.DataObject) -> np.ndarray[Any, np.dtype[np.int64]]:
    num_rows = data.draw(st.integers(0, 4))
    rows = [[data.draw(st.integers(NULL, largest(column))) for column in schema.used] for _ in range(num_rows)]
    return np.array(rows, dtype=np.int64).reshape(num_rows, len(schema.used))


NUMBER = {"kind": "integer", "bounds": [0, 4]}
NULLABLE_NUMBER = NUMBER | {"nullable": True}
CHOICE = {"kind": "categorical", "categories": ["a", "b", "c"]}
NULLABLE_CHOICE = CHOICE | {"nullable": True}


def test_numbers_come_first_then_memberships_in_the_order_of_the_schema() -> None:
    made = layout(CHOICE, NUMBER, NULLABLE_CHOICE, NULLABLE_NUMBER)
    assert made.numbers == ("c1", "c3")
    assert made.choices == (Choice("c0", 2, 3), Choice("c2", 5, 4), Choice("c3", 9, 2, flags_null=True))
    assert made.width == 11


def test_a_schema_of_numbers_alone_has_no_memberships() -> None:
    assert (layout(NUMBER, NUMBER).width, layout(NUMBER).choices) == (2, ())


def test_a_choice_is_one_hot() -> None:
    cells = layout(CHOICE).expand(np.array([[0], [2]]))
    assert cells.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_the_null_of_a_nullable_choice_has_its_own_place() -> None:
    assert layout(NULLABLE_CHOICE).expand(np.array([[NULL]])).tolist() == [[0, 0, 0, 1]]


def test_an_unlisted_cell_of_a_choice_that_is_never_null_belongs_nowhere() -> None:
    assert layout(CHOICE).expand(np.array([[NULL]])).tolist() == [[0, 0, 0]]


def test_a_nullable_number_says_beside_its_position_whether_it_is_there() -> None:
    cells = layout(NULLABLE_NUMBER).expand(np.array([[4], [NULL]]))
    assert cells.tolist() == [[1.0, 1, 0], [0.5, 0, 1]]


def test_a_null_lies_in_the_middle_of_a_number_that_is_never_null() -> None:
    assert layout(NUMBER).expand(np.array([[NULL], [1]])).tolist() == [[0.5], [0.25]]


def test_a_number_of_one_value_lies_at_zero() -> None:
    for entry in ({}, {"scale_hint": "log1p"}):
        each = column("integer", bounds=[3, 3], **entry)
        assert to_position(each, np.array([0])).tolist() == [0.0]
        assert from_position(each, np.array([0.0, 0.7, 1.0])).tolist() == [0, 0, 0]


def test_a_skewed_column_is_spread_on_a_logarithmic_scale() -> None:
    each = column("continuous", bounds=[0, 10**6], scale_hint="log1p")
    codes = np.array([0, each.num_steps // 1000, each.num_steps, NULL])
    first, thousand, last, null = to_position(each, codes)
    assert (first, last, null) == (0.0, 1.0, 0.5)
    assert thousand == pytest.approx(0.5, abs=0.001)
    assert from_position(each, np.array([0.0, 1.0])).tolist() == [0, each.num_steps]


@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_positions_lie_on_the_grid_and_memberships_are_one_hot_or_zero(
    any_schema: st.SearchStrategy[Schema], data: st.DataObject
) -> None:
    schema = data.draw(any_schema)
    made, codes = Layout(schema), some_codes(schema, data)
    cells = made.expand(codes)
    assert cells.shape == (len(codes), made.width)
    positions = cells[:, : len(made.numbers)]
    assert np.all((positions >= 0) & (positions <= 1))
    assert np.array_equal(positions * GRID, np.rint(positions * GRID))
    for choice in made.choices:
        members = cells[:, choice.start : choice.stop]
        assert np.all((members == 0) | (members == 1))
        assert np.all(members.sum(axis=1) <= 1)


@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_rows_cells_depend_on_its_codes_alone(any_schema: st.SearchStrategy[Schema], data: st.DataObject) -> None:
    schema = data.draw(any_schema)
    made, codes = Layout(schema), some_codes(schema, data)
    whole = made.expand(codes)
    for i in range(len(codes)):
        assert np.array_equal(made.expand(codes[i : i + 1]), whole[i : i + 1])


@given(data=st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_choices_and_numbers_of_at_most_two_to_the_16_steps_come_back(
    any_schema: st.SearchStrategy[Schema], data: st.DataObject
) -> None:
    schema = data.draw(any_schema)
    made, codes = Layout(schema), some_codes(schema, data)
    again = made.collapse(made.expand(codes), np.random.default_rng(0))
    for i, each in enumerate(schema.used):
        exact = each.is_choice or (each.num_steps <= GRID and each.scale_hint is None)
        known = codes[:, i] != NULL
        if exact:
            assert np.array_equal(again[known, i], codes[known, i])
        if each.nullable:
            assert np.array_equal(again[~known, i], codes[~known, i])
        assert np.all((again[:, i] >= NULL) & (again[:, i] <= largest(each)))


@pytest.mark.parametrize("steps", [1, 2, 3, 1000, GRID - 1, GRID])
def test_every_code_of_a_small_number_comes_back(steps: int) -> None:
    each = column("integer", bounds=[-7, steps - 7])
    codes = np.unique(np.linspace(0, steps, 5000).astype(np.int64))
    assert np.array_equal(from_position(each, to_position(each, codes)), codes)


@pytest.mark.parametrize("scale_hint", [None, "log1p"])
def test_a_finer_number_comes_back_to_within_the_grid(scale_hint: str | None) -> None:
    each = column("continuous", bounds=[0, 1000], scale_hint=scale_hint)
    codes = np.linspace(0, each.num_steps, 999).astype(np.int64)
    again = to_position(each, from_position(each, to_position(each, codes)))
    assert np.array_equal(again, to_position(each, codes))


def test_positions_outside_the_unit_interval_are_clipped() -> None:
    each = column("integer", bounds=[0, 4])
    assert from_position(each, np.array([-0.1, 1.1])).tolist() == [0, 4]


def test_choices_are_drawn_with_the_probabilities_in_the_cells() -> None:
    made = layout(NULLABLE_CHOICE)
    cells = np.tile([0.5, 0.0, 0.2, 0.3], (40_000, 1))
    codes = made.collapse(cells, np.random.default_rng(0))[:, 0]
    shares = [float(np.mean(codes == code)) for code in (0, 1, 2, NULL)]
    # Five standard deviations of a share are 0.0125 at most.
    assert shares == pytest.approx([0.5, 0.0, 0.2, 0.3], abs=0.0125)


def test_probabilities_need_not_add_up_to_one() -> None:
    made = layout(CHOICE)
    cells = np.tile([0.0, 2.0, 0.0], (100, 1))
    assert set(made.collapse(cells, np.random.default_rng(0))[:, 0].tolist()) == {1}


def test_the_same_seed_draws_the_same_codes() -> None:
    made = layout(CHOICE, NULLABLE_NUMBER)
    cells = np.random.default_rng(1).random((50, made.width))
    first, second = (made.collapse(cells, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, second)
