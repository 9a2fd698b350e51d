"""Names and values of a query, looked up in the schema."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.queries import QueryError
from understudy.queries.question import Question, understand
from understudy.schema import NULL


def held(world, text: str) -> np.ndarray:
    """Which rows meet the condition of a query."""
    from understudy.schema.encode import encode_batch

    question = understand(f"count where {text}", world.schema)
    codes = encode_batch(world.schema, world.table.combine_chunks().to_batches()[0])
    found = np.ones(len(codes), dtype=bool)
    for place, kept in question.where.items():
        found &= kept.contains(codes[:, place])
    return found


def test_conditions_hold_for_the_rows_that_they_describe(world):
    rows = world.rows
    visits = np.array([-1 if v is None else v for v in rows["visits"]])
    stage = rows["stage"]
    for text, wanted in (
        ("sex = Female", rows["sex"] == "Female"),
        ("age >= 30 and age < 40", (rows["age"] >= 30) & (rows["age"] < 40)),
        ("age between 30 and 40", (rows["age"] >= 30) & (rows["age"] <= 40)),
        ("age not between 30 and 40", (rows["age"] < 30) | (rows["age"] > 40)),
        ("age = 30 or age > 80", (rows["age"] == 30) | (rows["age"] > 80)),
        ("not age > 30", rows["age"] <= 30),
        ("region in (n, 's')", np.isin(rows["region"].astype(str), ["n", "s"])),
        ("stage >= mid", (stage == "mid") | (stage == "high")),
        ("visits is null", visits < 0),
        ("visits is not null", visits >= 0),
        ("visits != 0", visits > 0),  # as in SQL a comparison never holds for a null
        ("visits < 2 or visits is null", visits < 2),
        ("not visits = 0", visits > 0),
        ("weight > 70", rows["weight"] > 70),
        ("seen < 2020-02-01", np.array([d.month == 1 for d in rows["seen"]])),
    ):
        assert np.array_equal(held(world, text), wanted), text


def test_columns_are_known_by_their_place_and_whatever_their_case(world):
    found = understand("mean(AGE) where Sex = 'Male' by region", world.schema)
    assert isinstance(found, Question)
    assert found.columns == (0, 1, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mean(aeg)", "Did you mean 'age'?"),
        ("mean(sex)", "has names, of which there is no mean"),
        ("sum(seen)", "has dates"),
        ("max(age)", "a single row"),
        ("count where sex = Femal", "Did you mean 'Female'?"),
        ("count where sex > Female", "no order"),
        ("count where age = old", "holds numbers"),
        ("count where seen < tomorrow", "holds dates"),
        ("count where age is null", "never null"),
        ("count where sex = Male or age > 3", "one column only"),
        ("quantile(age)", "needs a level"),
        ("quantile(age, 1.5)", "between 0 and 1"),
        ("histogram(age, 2.5)", "whole number of bars"),
        ("histogram(age) by sex", "of one column"),
        ("share", "needs a condition"),
        ("count by sex, sex", "twice"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_way_out(world, text: str, words: str):
    with pytest.raises(QueryError) as refused:
        understand(text, world.schema)
    assert words in str(refused.value)


def test_no_condition_lets_null_in_unless_it_says_so(world):
    found = understand("count where visits >= 0", world.schema)
    assert not found.where[3].contains(np.array([NULL])).any()
