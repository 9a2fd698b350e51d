from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from understudy.evaluation.prediction import design, examples, standardise, task_of
from understudy.evaluation.tables import code_table
from understudy.schema import Column, Kind, Role


def test_choices_are_one_hot_with_a_place_for_null_and_numbers_are_themselves(schema, clinic):
    found = design(code_table(schema, clinic), label=schema.label)
    cities = OneHotEncoder(categories=[["", "a", "b", "c"]], sparse_output=False).fit_transform(
        clinic[["city"]].fillna("")
    )
    numbers = clinic[["age", "weight", "stage"]].fillna({"weight": 100.0})
    np.testing.assert_array_equal(found, np.concatenate([numbers, cities], axis=1))


def test_an_unlisted_category_shares_the_place_of_null(schema, clinic):
    strange, null = (
        design(code_table(schema, clinic.assign(city=cell)), label=schema.label) for cell in ("elsewhere", None)
    )
    np.testing.assert_array_equal(strange, null)


def test_rows_without_a_label_are_left_out_and_the_last_category_is_positive(schema, clinic):
    marked = clinic.copy()
    marked.loc[:9, "sick"] = [None, "maybe"] * 5
    found = examples(code_table(schema, marked), label=schema.label)
    assert len(found) == len(clinic) - 10
    np.testing.assert_array_equal(found.target, (clinic["sick"] == "yes")[10:])


@pytest.mark.parametrize(
    ("categories", "bounds", "task"),
    [(("a", "b"), None, "binary"), (("a", "b", "c"), None, "multiclass"), ((), (0.0, 9.0), "regression")],
)
def test_the_label_decides_the_task(categories, bounds, task):
    kind = Kind.CATEGORICAL if categories else Kind.CONTINUOUS
    label = Column(name="y", kind=kind, categories=categories, bounds=bounds, role=Role.LABEL)
    assert task_of(label) == task


def test_both_sides_are_scaled_by_the_rows_to_learn_from(schema, clinic):
    train, test = (
        examples(code_table(schema, rows), label=schema.label) for rows in (clinic[:400], pd.concat([clinic[400:]] * 2))
    )
    scaled, other = standardise(train, test)
    np.testing.assert_allclose(scaled.inputs.mean(axis=0), 0, atol=1e-9)
    deviation = train.inputs.std(axis=0)
    np.testing.assert_allclose(other.inputs * deviation + train.inputs.mean(axis=0), test.inputs, atol=1e-9)
