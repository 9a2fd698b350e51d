from __future__ import annotations

import pyarrow as pa
import pytest

from understudy.classifier.inputs import combined, powerset_column
from understudy.errors import InputError, UsageError

LABELS = ("hypertension", "diabetes", "fatty_liver")


def test_every_combination_is_a_class() -> None:
    column = powerset_column(LABELS)
    assert len(column.categories) == 8
    assert column.categories[0] == "none"
    assert "hypertension+fatty_liver" in column.categories


def test_kept_combinations_are_named_in_one_order() -> None:
    column = powerset_column(LABELS, kept=[[], ["diabetes", "hypertension"]])
    assert column.categories == ("none", "hypertension+diabetes")


def test_rows_get_the_class_of_their_labels() -> None:
    rows = pa.table(
        {
            "x": [1, 2, 3, 4],
            "hypertension": [0, 1, 1, None],
            "diabetes": [False, False, True, True],
            "fatty_liver": [0, 0, 1, 0],
        }
    )
    found = combined(rows, LABELS)
    assert found.column_names == ["x", "label"]
    assert found["label"].to_pylist() == ["none", "hypertension", "hypertension+diabetes+fatty_liver", "diabetes"]
    assert set(found["label"].to_pylist()) <= set(powerset_column(LABELS).categories)


@pytest.mark.parametrize("cell", ["SECRET4711", "", "2", None, "1e999", "\u0661"])
def test_a_cell_that_is_no_truth_sets_nothing_and_is_not_quoted(cell: str | None) -> None:
    """Arrow's cast would refuse all rows for one cell, and quote it."""
    rows = pa.table({"a": ["1", cell, "TRUE", " 1.0 "], "b+": [0, 0, 1, 0]})
    found = combined(rows, ["a", "b+"])["label"].to_pylist()
    assert found == ["a", "none", "a+b+", "a"]
    with pytest.raises(InputError) as caught:
        combined(pa.table({"a": [[cell]]}), ["a"])
    assert "SECRET" not in str(caught.value)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="one to 6"):
        powerset_column([f"l{i}" for i in range(7)])
    with pytest.raises(UsageError, match="'asthma'"):
        powerset_column(LABELS, kept=[["asthma"]])
