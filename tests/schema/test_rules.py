"""Rules: what they say is what decoded rows show, and what makes no sense is refused by name."""

from __future__ import annotations

import json
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.schema import NULL, Schema, load_schema
from understudy.schema.encode import decode_table
from understudy.schema.rules import Comparison, Forbidden, Limit, allowed_codes, obeys
from understudy.schema.scales import Operator
from understudy.schema.table import parse_schema, parse_yaml
from understudy.schema.values import Range, every_code

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "bounds": [0, 120]},
    {"name": "low", "kind": "continuous", "bounds": [0, 10], "nullable": True},
    {"name": "high value", "kind": "continuous", "bounds": [-5, 20]},
    {"name": "admitted", "kind": "datetime", "bounds": ["2015-01-01", "2025-12-31"]},
    {
        "name": "discharged",
        "kind": "datetime",
        "bounds": ["2015-01-01T06:00:00", "2026-12-31T00:00:00"],
        "nullable": True,
    },
    {"name": "sex", "kind": "categorical", "categories": ["male", "female"], "nullable": True},
    {"name": "pregnant", "kind": "binary", "categories": ["no", "yes"]},
    {"name": "birth sex", "kind": "categorical", "categories": ["female", "other", "male"]},
    {"name": "grade", "kind": "ordinal", "categories": ["mild", "bad", "worst"]},
    {"name": "worst grade", "kind": "ordinal", "categories": ["mild", "bad", "worst"]},
    {"name": "steps", "kind": "ordinal", "categories": [5, 1, 2.5]},
    {"name": "is_new", "kind": "binary", "categories": [True, False]},
    {"name": "nr", "kind": "id"},
]
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def with_rules(*rules: Any) -> Schema:
    return load_schema({"columns": COLUMNS, "rules": list(rules)})


def refusal(*rules: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        with_rules(*rules)
    return caught.value


def random_codes(schema: Schema, num_rows: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Codes all over each column, with many at the ends and many nulls."""
    rng = np.random.default_rng(seed)
    drawn = []
    for column in schema.used:
        top = every_code(column).ranges[0][1]
        codes = rng.integers(0, top + 1, num_rows)
        codes = np.where(rng.random(num_rows) < 0.2, rng.integers(0, 3, num_rows) % (top + 1), codes)
        if column.nullable:
            codes = np.where(rng.random(num_rows) < 0.2, NULL, codes)
        drawn.append(codes)
    return np.stack(drawn, axis=1)


# What rules mean.


@pytest.mark.parametrize("op", COMPARE)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("age", "low"),
        ("low", "high value"),
        ("admitted", "discharged"),
        ("grade", "worst grade"),
        ("steps", "age"),
        ("steps", "low"),
    ],
)
def test_a_comparison_holds_exactly_where_decoded_cells_compare_so(left: str, right: str, op: str):
    schema = with_rules(f"`{left}` {op} `{right}`")
    codes = random_codes(schema, 3000)
    codes[:200, 2] = codes[:200, 1] * 0 + 858_993_459  # 0.0 of -5..20, near the low end of 0..10
    rows = decode_table(schema, codes).to_pandas()
    rank = {"mild": 0, "bad": 1, "worst": 2}
    sides = []
    for name in (left, right):
        cells = rows[name].map(rank) if "grade" in name else rows[name]
        sides.append(cells.astype("datetime64[us]") if name in ("admitted", "discharged") else cells)
    wanted = COMPARE[op](*sides) | sides[0].isna() | sides[1].isna()
    np.testing.assert_array_equal(obeys(schema, codes), wanted.to_numpy(dtype=bool))


@pytest.mark.parametrize("op", ["==", "!="])
def test_names_are_compared_by_what_they_say_and_not_by_their_place(op: str):
    schema = with_rules(f"sex {op} `birth sex`")
    codes = random_codes(schema, 500)
    rows = decode_table(schema, codes).to_pandas()
    wanted = COMPARE[op](rows["sex"], rows["birth sex"]) | rows["sex"].isna()
    np.testing.assert_array_equal(obeys(schema, codes), wanted.to_numpy(dtype=bool))


@pytest.mark.parametrize("op", COMPARE)
@pytest.mark.parametrize(
    ("column", "words", "value"),
    [
        ("age", "18", 18),
        ("age", "17.5", 17.5),
        ("low", "0.1", 0.1),
        ("steps", "2.5", 2.5),
        ("admitted", "2020-02-29", np.datetime64("2020-02-29")),
        ("discharged", "'2020-02-29 12:00'", np.datetime64("2020-02-29T12:00")),
    ],
)
def test_a_limit_holds_exactly_where_decoded_cells_do(column: str, words: str, value: Any, op: str):
    if (words, op) in (("17.5", "=="), ("0.1", "==")):
        return  # no code stands for it: refused, below
    schema = with_rules(f"{column} {op} {words}")
    codes = random_codes(schema, 3000)
    place = [each.name for each in schema.used].index(column)
    if column == "age":
        codes[:100, place] = 18
    rows = decode_table(schema, codes).to_pandas()
    cells = rows[column].astype("datetime64[us]") if place in (3, 4) else rows[column]
    wanted = COMPARE[op](cells, value) | cells.isna()
    np.testing.assert_array_equal(obeys(schema, codes), wanted.to_numpy(dtype=bool))
    kept = allowed_codes(schema.used, schema.rules)[place]
    np.testing.assert_array_equal(kept.contains(codes[:, place]), wanted.to_numpy(dtype=bool))


def test_categories_are_limited_by_name_and_ranks_by_order():
    schema = with_rules("sex != male", "grade >= bad", "is_new == true", "pregnant == 'no'")
    codes = random_codes(schema, 500)
    rows = decode_table(schema, codes).to_pandas()
    wanted = (rows["sex"] != "male") & (rows["grade"] != "mild") & rows["is_new"] & (rows["pregnant"] == "no")
    np.testing.assert_array_equal(obeys(schema, codes), wanted.to_numpy(dtype=bool))


def test_a_forbidden_combination_is_one_of_all_its_cells_together():
    schema = with_rules(
        {"forbid": {"sex": ["male", None], "pregnant": "yes"}},
        {"forbid": {"age": {"from": 60}, "pregnant": "yes"}},
        {"forbid": {"low": {"from": 2, "to": 4}, "age": [1, 2, {"from": 30, "to": 35}]}},
    )
    codes = random_codes(schema, 4000)
    rows = decode_table(schema, codes).to_pandas()
    yes, age = rows["pregnant"] == "yes", rows["age"]
    first = yes & (rows["sex"].isna() | (rows["sex"] == "male"))
    second = yes & (age >= 60)
    third = rows["low"].between(2, 4) & (age.isin([1, 2]) | age.between(30, 35))
    assert first.any()
    assert second.any()
    assert third.any()
    np.testing.assert_array_equal(obeys(schema, codes), ~(first | second | third).to_numpy())


def test_without_rules_every_row_obeys():
    schema = load_schema({"columns": COLUMNS})
    assert obeys(schema, random_codes(schema, 10)).all()


# Reading and writing.


def test_rules_have_their_types():
    found = with_rules(
        "age>=18",
        " low <`high value` ",
        "sex == 'male'",
        "admitted > 2016-01-01",
        {"forbid": {"age": {"to": 3}, "sex": None}},
    )
    assert found.rules == (
        Limit("age", Operator.AT_LEAST, 18),
        Comparison("low", Operator.LESS, "high value"),
        Limit("sex", Operator.EQUAL, "male"),
        Limit("admitted", Operator.MORE, "2016-01-01"),
        Forbidden((("age", (Range(None, 3),)), ("sex", (None,)))),
    )


def test_a_column_is_meant_before_a_category_of_the_same_name_unless_it_is_quoted():
    columns = [
        {"name": "a", "kind": "categorical", "categories": ["b", "c"]},
        {"name": "b", "kind": "categorical", "categories": ["b", "c"]},
    ]
    found = load_schema({"columns": columns, "rules": ["a == b", "a != 'b'"]}).rules
    assert found == (Comparison("a", Operator.EQUAL, "b"), Limit("a", Operator.UNEQUAL, "b"))


@given(data=st.data())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_rules_come_back_from_yaml_and_json_whatever_they_hold(
    any_schema: st.SearchStrategy[Schema], data: st.DataObject
):
    document = data.draw(any_schema).to_dict()
    rules: list[Any] = []
    for column in parse_schema(document, name="t").used:
        quoted = "`" + column.name.replace("`", "``") + "`"
        if not column.is_choice:
            low, high = column.to_dict()["bounds"]
            rules += [f"{quoted} >= {low}", f"{quoted} <= '{high}'"]
        elif len(column.categories) > 1:
            category = data.draw(st.sampled_from(column.categories))
            rules.append({"forbid": {column.name: [category]}})
            words = str(category).replace("'", "''")
            rules.append(f"{quoted} != '{words}'")
    schema = parse_schema(document | {"rules": rules}, name="t")
    assert len(schema.rules) == len(rules)
    again = parse_yaml(schema.to_yaml(), name="other")
    assert again == schema
    assert again.to_yaml() == schema.to_yaml()
    assert parse_schema(json.loads(json.dumps(schema.to_dict())), name="other") == schema


def test_a_schema_without_rules_keeps_its_fingerprint():
    plain = load_schema({"columns": COLUMNS})
    assert "rules" not in plain.to_dict()
    assert with_rules().fingerprint == plain.fingerprint
    assert with_rules("age >= 18").fingerprint != plain.fingerprint


# Refusing.


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("age = 18", "is no comparison of two things"),
        ("0 < age < 18", "is no comparison of two things"),
        ("age", "is no comparison of two things"),
        ("years > 3", "years is not a column"),
        ("18 <= age", "18 is not a column"),
        ("age > years", "column 'age' holds numbers, and 'years' is none"),
        ("age > `years`", "years is not a column"),
        ("age < nan", "holds numbers, and 'nan' is none"),
        ("nr == 3", "column 'nr' is not synthesised"),
        ("age == age", "compares a column with itself"),
        ("admitted < 3", "holds dates, and '3' is none"),
        ("sex < male", "the categories of 'sex' have no order"),
        ("sex == mail", "has no category 'mail'"),
        ("sex < `birth sex`", "which cannot be compared so"),
        ("sex == age", "which cannot be compared so"),
        ("admitted < age", "which cannot be compared so"),
        ("grade < sex", "which cannot be compared so"),
        ("is_new == sex", "which cannot be compared so"),
        (3, "is neither a comparison nor forbid"),
        ({"forbid": "age"}, "is neither a comparison nor forbid"),
        ({"forbid": {}}, "names no column"),
        ({"forbid": {"years": 3}}, "years is not a column"),
        ({"forbid": {"age": []}}, "names nothing that 'age' can hold"),
        ({"forbid": {"age": 130}}, "names nothing that 'age' can hold"),
        ({"forbid": {"age": None}}, "is never null"),
        ({"forbid": {"age": [[1]]}}, "holds a list in a list"),
        ({"forbid": {"age": {"low": 1}}}, "a range has from and to"),
        ({"forbid": {"age": {"from": 3, "to": 2}}}, "runs backwards"),
        ({"forbid": {"sex": {"from": "a", "to": "b"}}}, "categories, which have no ranges"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_name(rule: Any, words: str):
    error = refusal(rule)
    assert words in error.rule
    assert error.where.startswith("rule '")
    assert error.remedy


def test_rules_must_be_a_list():
    with pytest.raises(InputError, match="rules: must be a list"):
        load_schema({"columns": COLUMNS, "rules": "age > 3"})


@pytest.mark.parametrize(
    "rules",
    [
        ["age > 120"],
        ["age >= 18", "age < 18"],
        ["low < 0"],
        ["age == 17.5"],
        [{"forbid": {"sex": ["male", "female"]}}],
        ["sex != male", "sex != female"],
        ["age <= 17", {"forbid": {"age": {"to": 20}}}],
    ],
)
def test_rules_that_leave_a_column_no_value_are_refused(rules: list[Any]):
    error = refusal(*rules)
    assert error.rule.startswith("no value of column")
    assert error.where.count("rule '") == len(rules)


@pytest.mark.parametrize(
    "rules",
    [
        ["age < low", "age > 10"],
        ["admitted >= discharged", "admitted == 2015-01-01"],
        ["age == steps", "age > 5"],
        ["sex == `birth sex`", "sex == male", "`birth sex` == other"],
        ["grade < `worst grade`", "grade == worst"],
    ],
)
def test_a_comparison_that_no_two_values_obey_is_refused(rules: list[str]):
    assert refusal(*rules).rule == "no two values of its columns obey it"
