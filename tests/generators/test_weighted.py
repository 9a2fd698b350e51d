"""A weighted database: weights are kept to the last bit, rows are drawn by the positive ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from understudy import load_generator, load_schema, save_generator
from understudy.errors import InputError, UsageError
from understudy.generators import WeightedDatabase
from understudy.generators.weighted import weighted_database
from understudy.schema import NULL

COLUMNS = [
    {"name": "age", "kind": "integer", "bounds": [0, 100], "nullable": True},
    {"name": "city", "kind": "categorical", "categories": ["a", "b", "c"], "role": "label"},
]
CODES = np.array([[10, 0], [20, 1], [NULL, 2], [40, 0], [50, 1]])
WEIGHTS = np.array([0.1, -0.3, 0.7, 1 / 3, 1 / 6])


def database(rules: list[str] | None = None) -> WeightedDatabase:
    schema = load_schema({"columns": COLUMNS, "rules": rules or []})
    return WeightedDatabase(schema, CODES, WEIGHTS, 1000)


def test_weighted_rows_are_all_rows_with_their_weights_as_they_are() -> None:
    rows = database().weighted_rows()
    assert rows.column_names == ["age", "city", "weight"]
    assert rows["age"].to_pylist() == [10, 20, None, 40, 50]
    assert rows["city"].to_pylist() == ["a", "b", "c", "a", "b"]
    assert rows["weight"].to_pylist() == WEIGHTS.tolist()
    assert rows["weight"].type == pa.float64()


def test_a_column_called_weight_keeps_its_name() -> None:
    schema = load_schema({"columns": [{"name": "weight", "kind": "integer", "bounds": [0, 9]}]})
    found = WeightedDatabase(schema, np.array([[3]]), np.ones(1), 5)
    assert found.weighted_rows().column_names == ["weight", "weight_"]


def test_rows_are_drawn_in_proportion_to_positive_weights_and_others_never() -> None:
    count = 40_000
    drawn = database().sample(count, seed=1)["age"].to_pylist()
    positive = np.maximum(WEIGHTS, 0)
    shares = positive / positive.sum()
    for age, share in zip([10, 20, None, 40, 50], shares, strict=True):
        spread = 6 * np.sqrt(count * share * (1 - share))
        assert abs(drawn.count(age) - count * share) <= spread


def test_rows_meet_conditions_and_rules() -> None:
    assert set(database().sample(200, given={"city": "b"})["age"].to_pylist()) == {50}
    found = set(database(["age <= 30"]).sample(200)["age"].to_pylist())
    assert found <= {10, None}
    balanced = database().sample(300, balance="equal")["city"].to_pylist()
    assert {name: balanced.count(name) for name in "abc"} == {"a": 100, "b": 100, "c": 100}


def test_a_condition_that_no_positive_row_meets_is_refused() -> None:
    with pytest.raises(UsageError, match="no row of positive weight"):
        database().sample(10, given={"age": 20})


def test_rows_that_break_every_rule_are_mended() -> None:
    ages = database(["age >= 60"]).sample(50)["age"].to_pylist()
    assert all(age is None or age >= 60 for age in ages)


def test_a_saved_database_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    save_generator(database(), tmp_path / "model", release="x")
    loaded = load_generator(tmp_path / "model")
    assert isinstance(loaded, WeightedDatabase)
    assert loaded.weighted_rows().equals(database().weighted_rows())
    assert loaded.default_num_rows == 1000


def test_rows_of_no_weight_are_left_out_unless_all_are() -> None:
    schema = database().schema
    some = weighted_database(schema, CODES, np.array([0.0, 0.5, 0.0, -0.1, 0.6]), 9)
    assert some.row_codes.tolist() == CODES[[1, 3, 4]].tolist()
    none = weighted_database(schema, CODES, np.zeros(5), 9)
    assert none.weights.tolist() == [0.2] * 5


def test_weights_that_do_not_fit_the_rows_are_refused(tmp_path: Path) -> None:
    wrong = WeightedDatabase(database().schema, CODES, WEIGHTS[:3], 10)
    save_generator(wrong, tmp_path / "model", release="x")
    with pytest.raises(InputError, match="damaged"):
        load_generator(tmp_path / "model")
