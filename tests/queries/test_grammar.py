"""The language: what is written is read as meant, and refusals point at the word."""

from __future__ import annotations

import pytest

from understudy.queries import QueryError
from understudy.queries.grammar import Comparison, Junction, parse


def test_a_query_has_an_aggregate_a_condition_and_groups():
    found = parse("MEAN(age) WHERE sex = 'Fe''male' AND hours >= -1.5 GROUP BY region, \"my col\"")
    assert (found.aggregate, found.column.text) == ("mean", "age")
    assert isinstance(found.where, Junction)
    assert [(part.column.text, part.op, part.values[0].value) for part in found.where.parts] == [
        ("sex", "=", "Fe'male"),
        ("hours", ">=", -1.5),
    ]
    assert [name.text for name in found.by] == ["region", "my col"]


def test_words_may_hold_points_and_hyphens_and_need_no_quotes():
    found = parse("count where work.class = Self-emp-inc")
    assert isinstance(found.where, Comparison)
    assert (found.where.column.text, found.where.values[0].value) == ("work.class", "Self-emp-inc")


def test_a_date_is_one_value_and_a_whole_number_has_no_point():
    assert parse("count where seen < 2020-01-31").where.values[0].value == "2020-01-31"
    assert parse("count where age = 30.0").where.values[0].value == 30


def test_a_column_may_be_called_group():
    assert parse("count where group = 'old' by group").by[0].text == "group"
    assert parse("count where a = 1 group by group").by[0].text == "group"


def test_or_binds_less_than_and_and_brackets_more():
    found = parse("count where a = 1 or b = 2 and c = 3").where
    assert found.op == "or"
    assert found.parts[1].op == "and"
    assert parse("count where (a = 1 or b = 2) and c = 3").where.op == "and"


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
