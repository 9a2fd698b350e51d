"""Warnings that a release gives of itself: a schema that does not fit, at no cost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import norm

from understudy import Budget, Synthesizer, dp_merf, load_schema, release_table
from understudy.accounting.mechanisms import GAUSSIAN
from understudy.errors import SchemaWarning
from understudy.methods import make_plan
from understudy.private.noise import SeededNoise
from understudy.private.spending import Receipt
from understudy.queries import Asker
from understudy.released import Release, verify_release
from understudy.released.diagnostics import DOUBT, _doubt, release_warnings
from understudy.released.tables import ReleaseTables, tables_of


class Silence:
    """No noise at all, so that what is left is the arithmetic."""

    name = "silence, for tests only"
    is_private = False

    def add_noise(self, sums: npt.NDArray[np.int64], noise_std: float, receipt: Receipt) -> npt.NDArray[np.int64]:
        return sums


NUM_ROWS = 3000


def warnings_for(categories: list[str], labels: list[str], *, labelled: bool = True, delta: float = 1e-5) -> list[str]:
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
    return release_warnings(release_table(table, dp_merf(schema, Budget(1.0, delta), num_features=20)))


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_a_schema_that_fits_gives_no_warning(labelled: bool, delta: float):
    assert warnings_for(["F", "M"], ["no", "yes"], labelled=labelled, delta=delta) == []


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_categories_that_no_row_has_are_pointed_out(delta: float):
    (warning,) = warnings_for(["female", "male"], ["no", "yes"], delta=delta)
    assert "'sex'" in warning


def test_a_label_that_no_row_has_is_pointed_out_and_its_rows_are_counted():
    warnings = warnings_for(["F", "M"], ["0", "1"])
    assert any("'back' is none of its listed categories" in warning for warning in warnings)
    assert not any("row count" in warning for warning in warnings)


def test_a_few_unlisted_values_are_no_cause_for_alarm():
    assert warnings_for(["F", "M", "X"], ["no", "yes"]) == []


ROWS = 4000
COLUMNS = [
    {"name": "city", "kind": "categorical", "categories": ["Basel", "Chur"]},
    {"name": "sex", "kind": "binary", "categories": ["f", "m"]},
    {"name": "age", "kind": "integer", "bounds": [0, 60]},
    {"name": "cost", "kind": "continuous", "bounds": [10, 1000]},
    {"name": "ill", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
]
METHODS = ["dp-anova", "dp-merf", "dp-hp"]


def fitting_rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "city": rng.choice(["Basel", "Chur"], ROWS),
            "sex": np.repeat(["f", "m"], ROWS // 2),
            "age": rng.integers(3, 58, ROWS),
            "cost": rng.uniform(20, 900, ROWS),
            "ill": rng.choice(["no", "yes"], ROWS),
        }
    )


def released(
    rows: pd.DataFrame, method: str = "dp-anova", *, delta: float = 1e-5, noise: SeededNoise | None = None
) -> Release:
    schema = load_schema({"columns": COLUMNS, "rows": ROWS})
    return release_table(rows, make_plan(schema, Budget(1.0, delta), method=method), noise=noise)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_rows_that_fit_their_schema_give_no_warning(method: str, delta: float):
    release = released(fitting_rows(), method, delta=delta)
    assert release_warnings(release) == []
    assert Asker(release).ask("count by city").notes == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("column", ["city", "ill"])
def test_unlisted_values_are_counted_and_take_no_row_from_other_answers(method: str, column: str):
    """The finding: no cell of one column is listed, and the number of rows came out as a fifth of what it is."""
    rows = fitting_rows()
    rows[column] = "Zürich"
    # The same noise in every run: at random, one release in a hundred lies outside these bands.
    release = released(rows, method, noise=SeededNoise(0))
    assert [column in warning for warning in release_warnings(release)] == [True]
    asker = Asker(release)
    whole = asker.ask("count").only
    assert whole.low - 30 < ROWS < whole.high + 30
    assert whole.high - whole.low < 400
    for row in asker.ask("count by sex").rows:
        assert row.low - 30 < ROWS / 2 < row.high + 30
    (note,) = asker.ask(f"count by {column}").notes
    assert "none of its listed categories" in note


def test_a_file_in_another_encoding_is_noticed(tmp_path: Path):
    rows = fitting_rows().assign(city="Zürich")
    schema = load_schema({"columns": [COLUMNS[0] | {"categories": ["Zürich", "Chur"]}, *COLUMNS[1:]], "rows": ROWS})
    plan = make_plan(schema, Budget(1.0, 1e-5))
    for encoding, warned in (("utf-8", 0), ("latin-1", 1)):
        path = tmp_path / f"{encoding}.csv"
        rows.to_csv(path, index=False, encoding=encoding)
        found = release_warnings(release_table(path, plan))
        assert len(found) == warned
        assert all("'city'" in warning and "encoding" in warning for warning in found)


def test_blanks_in_a_column_that_is_never_null_are_counted():
    rows = fitting_rows()
    rows.loc[:199, "cost"] = np.nan
    (warning,) = release_warnings(released(rows))
    assert "'cost' cannot be read as a number, or is blank" in warning
    asker = Asker(released(rows))
    whole = asker.ask("count").only
    assert abs(whole.estimate - ROWS) < 8 * whole.std_error
    assert any("'cost' cannot be read" in note for note in asker.ask("mean(cost)").notes)


def test_values_clipped_to_a_bound_are_noticed():
    rows = fitting_rows()
    rows.loc[:599, "age"] = 75
    rows.loc[600:899, "cost"] = 1.0
    warnings = release_warnings(released(rows))
    assert any("upper bound of 'age' (60)" in warning for warning in warnings)
    assert any("lower bound of 'cost' (10)" in warning for warning in warnings)
    answer = Asker(released(rows)).ask("mean(age)")
    assert any("which stands for all values beyond it" in note for note in answer.notes)


def test_zeros_at_a_lower_bound_of_zero_are_ordinary():
    rows = fitting_rows()
    rows.loc[:1999, "age"] = 0
    assert release_warnings(released(rows)) == []


def test_all_tables_of_the_default_method_have_the_same_total():
    """Without noise, whatever the rows hold: in any column, label too, and in any pair."""
    rows = fitting_rows().astype(object)
    rng = np.random.default_rng(5)
    for name in rows.columns:
        rows.loc[rng.random(ROWS) < 0.2, name] = None
    schema = load_schema({"columns": COLUMNS, "rows": ROWS})
    release = release_table(rows, make_plan(schema, Budget(1.0)), noise=Silence())
    tables = tables_of(release).tables
    assert {len(table.columns) for table in tables} >= {1, 2}
    for table in tables:
        assert table.counts.sum() == pytest.approx(ROWS, abs=1e-2)


def test_unlisted_values_are_told_from_blanks_where_blanks_are_allowed():
    rows = fitting_rows().astype(object)
    rows.loc[:799, "city"], rows.loc[800:1199, "city"] = None, "Genf"
    rows.loc[:599, "cost"], rows.loc[600:899, "cost"] = "NA", "12,50"
    nullable = [column | {"nullable": column["name"] in ("city", "cost")} for column in COLUMNS]
    schema = load_schema({"columns": nullable, "rows": ROWS})
    release = release_table(rows, make_plan(schema, Budget(1.0, 1e-5)))
    city, cost = release_warnings(release)
    assert "'city' is none of its listed categories: check" in city
    assert "'cost' cannot be read as a number: check" in cost
    asker = Asker(release)
    for query, truth in (("count where city is null", 800), ("count where cost is null", 600), ("count", ROWS)):
        found = asker.ask(query).only
        assert abs(found.estimate - truth) < 8 * found.std_error


def test_a_synthesizer_warns_of_a_schema_that_does_not_fit():
    rows = fitting_rows()
    options = {"steps": 2}
    Synthesizer(load_schema({"columns": COLUMNS}), epsilon=1.0, options=options).fit(rows)  # no warning
    with pytest.warns(SchemaWarning, match="'city' is none of its listed categories"):
        Synthesizer(load_schema({"columns": COLUMNS}), epsilon=1.0, options=options).fit(rows.assign(city="x"))


@pytest.mark.parametrize("method", METHODS)
def test_counts_of_choices_hold_rows_whose_label_is_not_listed(method: str):
    """Too few to be noticed beside the noise, they were missing from every count by a column."""
    rows = fitting_rows()
    rows.loc[:99, "ill"] = "YES"
    schema = load_schema({"columns": COLUMNS, "rows": ROWS})
    asker = Asker(release_table(rows, make_plan(schema, Budget(1.0, 1e-5), method=method), noise=Silence()))
    for row in asker.ask("count by sex").rows:
        assert row.estimate == pytest.approx(ROWS / 2, abs=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_true_releases_of_every_method_pass_the_test_of_noise(method: str, tmp_path: Path):
    schema = load_schema({"columns": COLUMNS, "rows": ROWS})
    release_table(fitting_rows(), make_plan(schema, Budget(1.0, 1e-5), method=method), directory=tmp_path / "r")
    assert verify_release(tmp_path / "r").is_private


def test_a_condition_beyond_a_bound_says_that_values_were_clipped():
    rows = fitting_rows()
    rows.loc[:399, "age"] = 99
    answer = Asker(released(rows)).ask("count where age >= 60")
    assert any("upper bound of 'age'" in note for note in answer.notes)


@pytest.mark.parametrize("count", [1, 15, 600])
def test_warnings_about_many_columns_are_together_as_seldom_wrong_as_one(count: int) -> None:
    """Or a table of 600 columns without a fault would be warned about in one release of 25."""
    measured = cast(ReleaseTables, SimpleNamespace(mechanism=GAUSSIAN, columns=range(count)))
    assert count * norm.sf(_doubt(measured)) <= 1.0001 * norm.sf(DOUBT)
    assert _doubt(measured) < DOUBT + 2
