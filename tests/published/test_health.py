"""Warnings that a release gives of itself: a schema that does not fit, at no cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, dp_merf, load_schema, release_table
from understudy.published import release_warnings

NUM_ROWS = 3000


def warnings_for(
    categories: list[str], labels: list[str], *, labelled: bool = True, delta: float = 1e-5
) -> list[str]:
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], NUM_ROWS)
    table = pd.DataFrame({"sex": sex, "back": rng.choice(["no", "yes"], NUM_ROWS), "age": 5})
    role = "label" if labelled else "feature"
    schema = load_schema(
        {
            "columns": [
                {"name": "sex", "kind": "categorical", "categories": categories},
                {"name": "back", "kind": "binary", "role": role, "categories": labels},
                {"name": "age", "kind": "integer", "bounds": [0, 9], "nullable": True},
            ],
            "rows": NUM_ROWS,
        }
    )
    return release_warnings(
        release_table(table, dp_merf(schema, Budget(1.0, delta), num_features=20))
    )


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_a_schema_that_fits_gives_no_warning(labelled: bool, delta: float):
    assert warnings_for(["F", "M"], ["no", "yes"], labelled=labelled, delta=delta) == []


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_categories_that_no_row_has_are_pointed_out(delta: float):
    (warning,) = warnings_for(["female", "male"], ["no", "yes"], delta=delta)
    assert "'sex'" in warning


def test_a_label_that_no_row_has_shows_in_the_row_count():
    warnings = warnings_for(["F", "M"], ["0", "1"])
    assert any("row count" in warning for warning in warnings)


def test_a_few_unlisted_values_are_no_cause_for_alarm():
    assert warnings_for(["F", "M", "X"], ["no", "yes"]) == []
