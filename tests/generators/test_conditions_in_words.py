"""What is asked of a sample: read as meant, refused where it cannot be."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest
from hypothesis import given as given_examples
from hypothesis import settings
from hypothesis import strategies as st

from understudy import load_schema
from understudy.errors import UsageError
from understudy.generators.conditioning import Condition, class_shares, condition_of, rows_per_class
from understudy.schema import NULL, Schema
from understudy.schema.values import CodeSet

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "bounds": [10, 20]},
    {"name": "dose", "kind": "continuous", "bounds": [0, 4], "nullable": True},
    {"name": "seen", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"]},
    {"name": "ill", "kind": "categorical", "role": "label", "categories": [0, 1, 2], "nullable": True},
]
SCHEMA = load_schema({"columns": COLUMNS})
QUARTER = 2**30


@pytest.mark.parametrize(
    ("name", "value", "ranges", "has_null"),
    [
        ("age", 12, [(2, 2)], False),
        ("age", "12", [(2, 2)], False),
        ("age", np.int64(12), [(2, 2)], False),
        ("age", (12, 15), [(2, 5)], False),
        ("age", (11.5, 15.5), [(2, 5)], False),
        ("age", (None, 15), [(0, 5)], False),
        ("age", (15, 99), [(5, 10)], False),
        ("age", [11, 13, (15, 16)], [(1, 1), (3, 3), (5, 6)], False),
        ("dose", (1, 2), [(QUARTER, 2 * QUARTER)], False),
        ("dose", None, [], True),
        ("dose", [None, 4], [(4 * QUARTER, 4 * QUARTER)], True),
        ("dose", 3, [(3 * QUARTER, 3 * QUARTER)], False),
        ("seen", "2020-01-03", [(2, 2)], False),
        ("seen", (dt.date(2020, 1, 2), dt.datetime(2020, 1, 4, 5)), [(1, 3)], False),
        ("ill", 1, [(1, 1)], False),
        ("ill", "1", [(1, 1)], False),
        ("ill", [0, 2], [(0, 0), (2, 2)], False),
        ("ill", (0, 2), [(0, 0), (2, 2)], False),
        ("ill", {2, None}, [(2, 2)], True),
    ],
)
def test_a_condition_is_the_codes_that_are_meant(name: str, value: Any, ranges: list[tuple[int, int]], has_null: bool):
    place = [column.name for column in SCHEMA.used].index(name)
    found = condition_of(SCHEMA, {name: value})
    assert found == Condition({place: CodeSet(tuple(ranges), has_null)})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"years": 3}, "is not a column"),
        ({"age": 21}, "the column has no such value"),
        ({"age": []}, "the column has no such value"),
        ({"age": 12.5}, "the column has no such value"),
        ({"age": (30, 40)}, "the column has no such value"),
        ({"age": (15, 12)}, "runs backwards"),
        ({"age": (1, 2, 3)}, r"needs \(low, high\)"),
        ({"age": "old"}, "holds numbers, and 'old' is none"),
        ({"age": True}, "holds numbers"),
        ({"age": None}, "is never null"),
        ({"seen": "soon"}, "holds dates"),
        ({"ill": 3}, "has no category '3'"),
    ],
)
def test_a_condition_that_nothing_can_meet_is_refused(given: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words) as caught:
        condition_of(SCHEMA, given)
    assert caught.value.where == f"given '{next(iter(given))}'"


def test_a_condition_against_the_rules_is_refused():
    ruled = load_schema({"columns": COLUMNS, "rules": ["age >= 15"]})
    assert condition_of(ruled, {"age": (12, 16)}).allowed[0].ranges == ((2, 6),)
    with pytest.raises(UsageError, match="the schema's rules allow no such value"):
        condition_of(ruled, {"age": (12, 14)})


def shares(balance: Any, given: dict[str, Any] | None = None, schema: Schema = SCHEMA) -> Any:
    return class_shares(schema, condition_of(schema, given), balance)


def test_balance_gives_shares_of_the_classes():
    third = pytest.approx(1 / 3)
    assert shares(None) is None
    assert shares("kept") is None
    assert shares("equal") == {0: third, 1: third, 2: third}
    assert shares({0: 1, "1": 3}) == {0: 0.25, 1: 0.75}
    assert shares({2: 1, None: 1, 1: 0}) == {2: 0.5, NULL: 0.5}


def test_a_condition_on_the_label_wins_over_the_balance():
    assert shares("equal", {"ill": [0, 2]}) == {0: 0.5, 2: 0.5}
    assert shares({0: 3, 1: 5, 2: 1}, {"ill": [0, 2]}) == {0: 0.75, 2: 0.25}
    ruled = load_schema({"columns": COLUMNS, "rules": ["ill != 1"]})
    assert shares("equal", schema=ruled) == {0: 0.5, 2: 0.5}
    with pytest.raises(UsageError, match="no class with a share is left"):
        shares({1: 1}, {"ill": 0})


@pytest.mark.parametrize(
    ("balance", "words"),
    [
        ("even", "must be kept, equal, or a share"),
        ({7: 1}, "has no category '7'"),
        ({0: -1}, "at least 0"),
        ({0: float("nan")}, "at least 0"),
        ({0: True}, "at least 0"),
        ({0: "half"}, "at least 0"),
        ({}, "no class with a share is left"),
        ({0: 0}, "no class with a share is left"),
    ],
)
def test_a_balance_that_is_none_is_refused(balance: Any, words: str):
    with pytest.raises(UsageError, match=words):
        shares(balance)


@pytest.mark.parametrize("columns", [COLUMNS[:3], [*COLUMNS[1:3], COLUMNS[0] | {"role": "label"}]])
def test_a_table_without_classes_has_no_balance(columns: list[dict[str, Any]]):
    with pytest.raises(UsageError, match="no label with classes"):
        shares("equal", schema=load_schema({"columns": columns}))


@settings(deadline=None)
@given_examples(weights=st.lists(st.floats(0.01, 1), min_size=1, max_size=6), num_rows=st.integers(0, 10_000))
def test_rows_per_class_are_the_shares_to_the_nearest_row(weights: list[float], num_rows: int):
    wanted = {i: weight / sum(weights) for i, weight in enumerate(weights)}
    counts = rows_per_class(wanted, num_rows)
    assert counts.sum() == num_rows
    assert (np.abs(counts - num_rows * np.asarray([*wanted.values()])) < 1 + 1e-6).all()
