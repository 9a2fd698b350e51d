"""One column: what it may declare, what it is told when it may not, and how many codes it has."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.errors import InputError
from understudy.schema import Column, Kind, Role
from understudy.schema.columns import CONTINUOUS_STEPS, Resolution
from understudy.schema.entries import parse_column, undecided_keys


def column(**entry: Any) -> Column:
    return parse_column({"name": "x", **entry})


def refusal(**entry: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        column(**entry)
    assert caught.value.where == "column 'x'"
    assert caught.value.exit_code == 1
    return caught.value


# What each kind holds.


def test_a_continuous_column_has_bounds_and_two_to_the_32_steps() -> None:
    found = column(kind="continuous", bounds=[0, 2.5])
    assert (found.kind, found.role, found.bounds) == (Kind.CONTINUOUS, Role.FEATURE, (0.0, 2.5))
    assert found.num_steps == CONTINUOUS_STEPS
    assert not found.is_choice
    assert not found.is_whole


@pytest.mark.parametrize("kind", ["integer", "ordinal"])
def test_a_whole_number_column_has_one_step_per_number(kind: str) -> None:
    found = column(kind=kind, bounds=[-3, 7])
    assert found.num_steps == 10
    assert found.is_whole


def test_an_ordinal_column_may_have_names() -> None:
    found = column(kind="ordinal", categories=["low", "middle", "high"])
    assert found.is_choice
    assert found.num_choices == 3


def test_a_choice_that_may_be_null_has_one_more_code() -> None:
    assert column(kind="categorical", categories=["a", "b"], nullable=True).num_choices == 3


def test_a_binary_column_may_hold_words_numbers_or_truth() -> None:
    for pair in (["no", "yes"], [0, 1], [False, True]):
        assert column(kind="binary", categories=pair).categories == tuple(pair)


def test_a_datetime_column_counts_days_if_its_bounds_are_days() -> None:
    found = column(kind="datetime", bounds=["2000-01-01", "2000-01-31"])
    assert (found.resolution, found.num_steps) == (Resolution.DAY, 30)


def test_a_datetime_column_counts_seconds_if_its_bounds_have_a_time() -> None:
    found = column(kind="datetime", bounds=["2000-01-01T00:00:00", "2000-01-01T01:00:00"])
    assert (found.resolution, found.num_steps) == (Resolution.SECOND, 3600)


def test_a_stated_resolution_wins_and_bounds_fall_back_to_whole_days() -> None:
    found = column(kind="datetime", bounds=["2000-01-01T12:30:00", "2000-01-03T23:59:59"], resolution="day")
    assert found.num_steps == 2
    assert found.to_dict()["bounds"] == ["2000-01-01", "2000-01-03"]


def test_a_datetime_bound_with_a_zone_is_taken_as_utc() -> None:
    found = column(kind="datetime", bounds=["2000-01-01T02:00:00+02:00", "2000-01-01T00:00:10+00:00"])
    assert found.num_steps == 10


def test_equal_bounds_leave_one_code() -> None:
    for kind in ("continuous", "integer"):
        assert column(kind=kind, bounds=[5, 5]).num_steps == 0
    assert column(kind="datetime", bounds=["2000-01-01", "2000-01-01"]).num_steps == 0


def test_an_id_column_needs_nothing_and_is_never_used() -> None:
    found = column(kind="id", role="feature", nullable=True)
    assert found.role is Role.ID
    assert not found.is_used


@pytest.mark.parametrize(
    ("role", "used"), [("feature", True), ("label", True), ("split", False), ("aux", False), ("id", False)]
)
def test_only_features_and_labels_are_used(role: str, used: bool) -> None:
    assert column(kind="integer", bounds=[0, 1], role=role).is_used is used


def test_an_unlisted_category_has_the_null_code_unless_the_schema_names_another() -> None:
    assert column(kind="categorical", categories=["a", "b"]).unlisted_code == -1
    assert column(kind="categorical", categories=["a", "b"], unknown="b").unlisted_code == 1


def test_where_bounds_come_from_is_kept_in_the_persons_own_words() -> None:
    assert column(kind="integer", bounds=[0, 1], bounds_from="codebook").bounds_from == "codebook"
    assert column(kind="integer", bounds=[0, 1]).bounds_from == "not stated"


# What it refuses.


def test_an_entry_without_a_name_is_refused() -> None:
    for entry in ({"kind": "id"}, {"name": ""}, {"name": 3}, {"name": True}, "x", None, ["x"]):
        with pytest.raises(InputError, match="every entry of 'columns' needs a name"):
            parse_column(entry)


def test_an_unknown_key_is_refused_with_the_keys_there_are() -> None:
    error = refusal(kind="integer", bounds=[0, 1], bound_from="codebook")
    assert error.rule == "unknown key 'bound_from'"
    assert "bounds_from" in error.remedy


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "???"},
        {"kind": "integer", "bounds": "???"},
        {"kind": "integer", "bounds": [0, "???"]},
        {"kind": "categorical", "categories": "???"},
        {"kind": "categorical", "categories": ["a", "???"]},
        {"kind": "integer", "bounds": [0, 1], "nullable": "???"},
        {"kind": "integer", "bounds": [0, 1], "bounds_from": "???"},
    ],
)
def test_what_a_person_has_not_decided_is_refused_by_key(entry: dict[str, Any]) -> None:
    undecided = next(key for key, value in entry.items() if "???" in str(value))
    assert undecided_keys({"name": "x", **entry}) == [f"{undecided} of 'x'"]


@pytest.mark.parametrize("kind", [None, "number", 3, ["integer"], {"a": 1}])
def test_an_unknown_kind_is_refused_with_the_kinds_there_are(kind: Any) -> None:
    assert "continuous, integer, ordinal, categorical, binary, datetime, id" in refusal(kind=kind).rule


def test_an_unknown_role_is_refused_with_the_roles_there_are() -> None:
    error = refusal(kind="integer", bounds=[0, 1], role="target")
    assert error.rule == "role must be one of feature, label, split, aux, id"


@pytest.mark.parametrize("nullable", ["yes", 1, None, "maybe"])
def test_nullable_must_be_true_or_false(nullable: Any) -> None:
    error = refusal(kind="integer", bounds=[0, 1], nullable=nullable)
    assert error.rule == "nullable must be true or false"
    assert "nullable: true" in error.remedy


@pytest.mark.parametrize("kind", ["continuous", "integer", "ordinal", "datetime"])
@pytest.mark.parametrize("bounds", [None, "0 to 1", 5])
def test_a_number_without_bounds_is_refused_and_told_where_bounds_come_from(kind: str, bounds: Any) -> None:
    error = refusal(kind=kind, bounds=bounds)
    assert error.rule == "bounds must be public, got none"
    assert "not from the data" in error.remedy


@pytest.mark.parametrize("bounds", [[], [1], [1, 2, 3]])
def test_bounds_are_two(bounds: Any) -> None:
    assert refusal(kind="integer", bounds=bounds).rule == "bounds are two numbers"


@pytest.mark.parametrize("bounds", [["a", "b"], [True, False], [None, 1], [[0], [1]]])
def test_bounds_must_be_numbers(bounds: list[Any]) -> None:
    assert refusal(kind="continuous", bounds=bounds).rule == "bounds must be numbers"


@pytest.mark.parametrize("bounds", [[2, 1], [0, float("inf")], [float("nan"), 1], [-1e308, 1e308], [0, 10**400]])
def test_bounds_must_be_finite_and_in_order(bounds: list[Any]) -> None:
    error = refusal(kind="continuous", bounds=bounds)
    assert error.rule == "bounds must be finite and in order"
    assert error.remedy == "Set bounds: [low, high]"


def test_bounds_of_whole_numbers_must_be_whole() -> None:
    assert "must be whole numbers" in refusal(kind="integer", bounds=[0, 1.5]).rule


@pytest.mark.parametrize("bounds", [[0, 2**53], [-(2**53), 0], [-(2**52) - 1, 2**52]])
def test_bounds_that_floats_cannot_count_through_are_refused(bounds: list[int]) -> None:
    error = refusal(kind="integer", bounds=bounds)
    assert error.rule == "bounds must lie within 2^53"
    assert "kind: continuous" in error.remedy


@pytest.mark.parametrize(
    "bounds", [["yesterday", "today"], ["2000-02-30", "2000-03-01"], ["0001-01-01T00:00+14:00", "2000-01-01"]]
)
def test_bounds_of_dates_must_be_iso_dates(bounds: list[str]) -> None:
    error = refusal(kind="datetime", bounds=bounds)
    assert error.rule == "bounds of a datetime column must be ISO dates"
    assert error.remedy == "Write 2000-01-31"


def test_dates_out_of_the_exact_range_are_refused() -> None:
    error = refusal(kind="datetime", bounds=["2000-01-01", "9999-12-31"])
    assert error.rule == "bounds must lie between 1685 and 2255"


def test_an_unknown_resolution_is_refused() -> None:
    error = refusal(kind="datetime", bounds=["2000-01-01", "2001-01-01"], resolution="month")
    assert error.rule == "resolution must be one of day, second"


@pytest.mark.parametrize("categories", [None, [], "a, b", {"a": 1}])
def test_a_choice_without_categories_is_refused_and_told_where_they_come_from(categories: Any) -> None:
    for kind in ("categorical", "binary"):
        error = refusal(kind=kind, categories=categories)
        assert error.rule == "categories must be public, got none"
        assert "not from the data" in error.remedy


@pytest.mark.parametrize("kind", ["continuous", "integer", "datetime"])
def test_a_number_with_categories_is_refused(kind: str) -> None:
    error = refusal(kind=kind, categories=["a"])
    assert error.rule == f"a {kind} column has bounds, not categories"


@pytest.mark.parametrize("stray", [None, ["a"], {"a": 1}])
def test_a_category_that_is_no_scalar_is_refused(stray: Any) -> None:
    error = refusal(kind="categorical", categories=["a", stray])
    assert error.rule == "categories must be text or numbers"
    assert error.remedy == "Quote them in the schema"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2**53, -1e300, 10**400])
def test_a_number_that_floats_cannot_hold_is_no_category(number: float) -> None:
    error = refusal(kind="categorical", categories=[0, number])
    assert error.rule == "categories that are numbers must lie within 2^53"
    assert error.remedy == "Quote them"


@pytest.mark.parametrize("mixed", [["a", 1], [1, True], ["true", False]])
def test_categories_of_mixed_types_are_refused(mixed: list[Any]) -> None:
    error = refusal(kind="categorical", categories=mixed)
    assert error.rule == "categories mix text and numbers"
    assert error.remedy == "Quote all of them"


@pytest.mark.parametrize("repeated", [["a", "a"], ["a", " a "], [1, 1.0], [True, True]])
def test_categories_that_a_file_cannot_tell_apart_are_refused(repeated: list[Any]) -> None:
    error = refusal(kind="categorical", categories=repeated)
    assert error.rule == "categories must differ from one another"


@pytest.mark.parametrize("blank", ["", "  ", "\t\n"])
def test_a_blank_category_is_refused_because_a_blank_cell_is_null(blank: str) -> None:
    error = refusal(kind="categorical", categories=["a", blank])
    assert error.rule == "a category must not be blank: a blank cell is null"
    assert error.remedy == "Set nullable: true"


def test_a_binary_column_with_three_categories_is_refused() -> None:
    error = refusal(kind="binary", categories=["a", "b", "c"])
    assert error.rule == "a binary column has exactly two categories"
    assert error.remedy == "Use kind: categorical"


def test_unknown_must_name_one_of_the_categories() -> None:
    error = refusal(kind="categorical", categories=["a", "b"], unknown="other")
    assert error.rule == "unknown must name one of its categories"


def test_an_unknown_scale_hint_is_refused() -> None:
    error = refusal(kind="continuous", bounds=[0, 1], scale_hint="sqrt")
    assert error.rule == "scale_hint must be log1p or absent"
