"""The language: what is written is read as meant, and refusals point at the word."""

from __future__ import annotations

import pytest

from understudy.queries import QueryError
from understudy.queries.question import Question, understand
from understudy.schema import load_schema
from understudy.schema.values import CodeSet

NUMBERS = [{"name": name, "kind": "integer", "bounds": [0, 100]} for name in ("age", "a", "b", "c")]
WORDS = [
    {"name": "sex", "kind": "categorical", "categories": ["Fe'male", "Male"]},
    {"name": "work.class", "kind": "categorical", "categories": ["Private", "Self-emp-inc"]},
    {"name": "group", "kind": "categorical", "categories": ["old", "young"]},
    {"name": 'my "col"', "kind": "binary", "categories": ["no", "yes"]},
]
OTHERS = [
    {"name": "hours", "kind": "integer", "bounds": [-9, 9]},
    {"name": "seen", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"], "resolution": "day"},
    {"name": "region", "kind": "binary", "categories": ["n", "s"]},
]
SCHEMA = load_schema({"name": "words", "columns": [*NUMBERS, *WORDS, *OTHERS]})
PLACES = {column.name: place for place, column in enumerate(SCHEMA.used)}


def parse(text: str) -> Question:
    return understand(text, SCHEMA)


def codes(question: Question, name: str) -> CodeSet:
    """What a condition lets through of a column."""
    return question.where[PLACES[name]]


def test_a_query_has_an_aggregate_a_condition_and_groups():
    found = parse('MEAN(age) WHERE sex = \'Fe\'\'male\' AND hours >= -1.5 GROUP BY region, "my ""col"""')
    assert (found.aggregate, found.column) == ("mean", PLACES["age"])
    assert set(found.where) == {PLACES["sex"], PLACES["hours"]}
    assert codes(found, "sex").ranges == ((0, 0),)
    assert codes(found, "hours").ranges == ((8, 18),)
    assert found.by == (PLACES["region"], PLACES['my "col"'])


def test_words_may_hold_points_and_hyphens_and_need_no_quotes():
    found = parse("count where work.class = Self-emp-inc")
    assert codes(found, "work.class").ranges == ((1, 1),)


def test_a_date_is_one_value_and_a_whole_number_has_no_point():
    assert codes(parse("count where seen < 2020-01-31"), "seen").ranges == ((0, 29),)
    assert codes(parse("count where age = 30.0"), "age").ranges == ((30, 30),)


def test_a_column_may_be_called_group():
    assert parse("count where group = 'old' by group").by == (PLACES["group"],)
    assert parse("count where a = 1 group by group").by == (PLACES["group"],)


def test_or_binds_less_than_and_and_brackets_more():
    without = parse("count where a = 1 or a > 2 and a < 5")
    assert codes(without, "a").ranges == ((1, 1), (3, 4))
    within = parse("count where (a = 1 or a > 2) and a < 5 and c = 3")
    assert codes(within, "a").ranges == ((1, 1), (3, 4))
    assert codes(parse("count where (a = 7 or a > 2) and a < 5"), "a").ranges == ((3, 4),)
    assert codes(parse("count where a = 7 or a > 2 and a < 5"), "a").ranges == ((3, 4), (7, 7))
    with pytest.raises(QueryError, match="'or' may join conditions on one column only"):
        parse("count where a = 1 or b = 2 and c = 3")


def test_other_names_of_aggregates_mean_the_same():
    assert parse("avg(age)").aggregate == "mean"
    assert parse("stddev(age)").aggregate == "std"
    assert parse("count(*)").aggregate == "count"


@pytest.mark.parametrize(
    ("text", "marked", "words"),
    [
        ("", " ", "is empty"),
        ("total(age)", "total", "nothing that can be asked for"),
        ("mean age", "age", "expected '('"),
        ("mean(age", " ", "expected ')'"),
        ("mean(age) were sex = 1", "were", "Did you mean 'where'"),
        ("count by", " ", "expected a column after 'by'"),
        ("count where sex", " ", "expected a comparison"),
        ("count where sex = null", "null", "nothing equals null"),
        ("count where sex = 'Fe", "'", "not closed"),
        ("count where sex ! 3", "!", "means nothing"),
        ("count where a in (1, 2", " ", "end of the list"),
        ("mean(age, 3)", "3", "nothing else"),
        ("count by sex region", "region", "cannot read on"),
        ("count by sex where age > 3", "where", "where ..., then by ..., each once"),
        ("count where a between 1 or 2", "or", "between the two ends"),
    ],
)
def test_a_refusal_points_at_the_word_that_does_not_fit(text: str, marked: str, words: str):
    with pytest.raises(QueryError) as refused:
        parse(text)
    place = refused.value.place
    assert text[place.start : place.stop].ljust(1) == marked
    assert words in str(refused.value)
    assert str(refused.value).splitlines()[-1].strip() == "^" * max(1, len(marked))
