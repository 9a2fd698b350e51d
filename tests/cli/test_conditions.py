"""Conditions on the command line: words become what was meant, also where names hold signs."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import load_schema
from understudy.cli.generator import read_balance, read_given

SCHEMA = load_schema(
    {
        "columns": [
            {"name": "age", "kind": "integer", "bounds": [0, 120], "nullable": True},
            {"name": "a=b", "kind": "continuous", "bounds": [0, 1]},
            {"name": "ward", "kind": "categorical", "categories": ["n|s", "x..y", "null", "n"]},
            {"name": "ill", "kind": "binary", "role": "label", "categories": ["=1", "2"]},
        ]
    }
)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("age=3", "age", ["3"]),
        ("age=3|5", "age", ["3", "5"]),
        ("age=30..40", "age", [("30", "40")]),
        ("age=30..", "age", [("30", None)]),
        ("age=..40|null", "age", [(None, "40"), None]),
        ("a=b=0.1..0.2", "a=b", [("0.1", "0.2")]),
        ("ward=n|s", "ward", ["n|s"]),
        ("ward=n|null", "ward", ["n", "null"]),
        ("ward=x..y", "ward", ["x..y"]),
        ("ill==1", "ill", ["=1"]),
        ("other=1", "other", "1"),
    ],
)
def test_a_condition_is_read_as_it_is_meant(words: str, name: str, value: Any) -> None:
    assert read_given(SCHEMA, [words]) == {name: value}


def test_several_conditions_are_one_mapping() -> None:
    assert read_given(SCHEMA, ["age=3", "ward=n"]) == {"age": ["3"], "ward": ["n"]}
    assert read_given(SCHEMA, []) == {}


def test_a_balance_is_a_word_or_shares() -> None:
    assert read_balance(SCHEMA, None) is None
    assert read_balance(SCHEMA, "equal") == "equal"
    assert read_balance(SCHEMA, "=1=3|2=1") == {"=1": 3.0, "2": 1.0}
    assert read_balance(SCHEMA, "2=1|null=1") == {"2": 1.0, None: 1.0}
