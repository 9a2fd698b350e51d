"""Made-up tables of every awkward shape, from rows to rows, by the default method."""

from __future__ import annotations

import datetime as dt
import resource
from typing import Any

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, Synthesizer, fit_release, load_schema, make_plan, release_table
from understudy.private.noise import SeededNoise
from understudy.schema import Schema

MANY = 20_000
SCHEMA = load_schema(
    {
        "rows": MANY,
        "columns": [
            {"name": "wealth", "kind": "continuous", "bounds": [0, 1e7]},
            {"name": "gain", "kind": "continuous", "bounds": [0, 1000]},
            {"name": "capital", "kind": "integer", "bounds": [0, 99_999]},
            {"name": "stars", "kind": "integer", "bounds": [0, 1000]},
            {"name": "always", "kind": "continuous", "bounds": [-5, 5]},
            {"name": "only", "kind": "integer", "bounds": [3, 3]},
            {"name": "gap", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "seen", "kind": "datetime", "bounds": ["2000-01-01", "2030-12-31"]},
            {"name": "town", "kind": "categorical", "categories": [f"t{i}" for i in range(3000)]},
            {"name": "hours", "kind": "integer", "bounds": [1, 99]},
            {"name": "rare", "kind": "categorical", "role": "label", "categories": ["no", "yes"]},
        ],
    }
)
STARS = np.array([10, 200, 300, 450, 999])


def made_up_table() -> pd.DataFrame:
    """Heavy tails, atoms, values that repeat, few values, constants, nulls, a rare class."""
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 3000, MANY), "D")
    town = np.minimum(rng.zipf(1.3, MANY) - 1, 2999)
    return pd.DataFrame(
        {
            "wealth": np.minimum(rng.lognormal(9, 1.5, MANY), 1e7),
            "gain": np.where(rng.random(MANY) < 0.92, 0.0, 1000 * rng.random(MANY)),
            "capital": np.select(
                [rng.random(MANY) < 0.03, rng.random(MANY) < 0.85], [7688, 0], rng.integers(0, 100_000, MANY)
            ),
            "stars": STARS[rng.integers(0, 5, MANY)],
            "always": 1.25,
            "only": 3,
            "gap": np.where(rng.random(MANY) < 0.3, np.nan, rng.beta(2, 5, MANY)),
            "seen": day.date,
            "town": [f"t{i}" for i in town],
            "hours": np.where(rng.random(MANY) < 0.5, 40, rng.integers(1, 100, MANY)),
            "rare": np.where(rng.random(MANY) < 0.002, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return made_up_table()


@pytest.fixture(scope="module", params=[1.0, 5.0], ids=["epsilon 1", "epsilon 5"])
def rows(request: pytest.FixtureRequest, table: pd.DataFrame) -> pd.DataFrame:
    plan = make_plan(SCHEMA, Budget(request.param), options={"steps": 40})
    generator = fit_release(release_table(table, plan, noise=SeededNoise(0)))
    return generator.sample(MANY, seed=0).to_pandas()


def test_a_heavy_tail_keeps_its_quantiles(rows: pd.DataFrame, table: pd.DataFrame):
    """In bounds a thousand times as wide as the median: a scale from equal bars alone is hopeless."""
    for level, factor in ((0.5, 1.5), (0.9, 1.3), (0.99, 1.5), (0.999, 5.0)):
        ratio = rows["wealth"].quantile(level) / table["wealth"].quantile(level)
        assert 1 / factor < ratio < factor, level
    assert rows["wealth"].between(0, 1e7).all()


def test_an_atom_of_zeros_comes_back(rows: pd.DataFrame):
    assert (rows["gain"] == 0).mean() == pytest.approx(0.92, abs=0.02)


def test_a_value_that_repeats_comes_back_as_that_value(rows: pd.DataFrame):
    assert (rows["capital"] == 7688).mean() == pytest.approx(0.03, abs=0.012)
    near = rows["capital"].between(7600, 7800) & (rows["capital"] != 7688)
    assert near.mean() < 0.01
    assert (rows["capital"] == 0).mean() == pytest.approx(0.97 * 0.85, abs=0.02)


def test_integers_with_few_values_stay_on_them(rows: pd.DataFrame):
    assert rows["stars"].isin(STARS).mean() > 0.95
    shares = rows["stars"].value_counts(normalize=True)
    assert all(shares.get(star, 0) == pytest.approx(0.2, abs=0.03) for star in STARS)
    assert (rows["hours"] == 40).mean() == pytest.approx(0.505, abs=0.03)


def test_a_constant_column_stays_constant(rows: pd.DataFrame):
    assert (rows["only"] == 3).all()
    assert rows["always"].between(1.2, 1.3).mean() > 0.95


def test_nulls_keep_their_share(rows: pd.DataFrame, table: pd.DataFrame):
    assert rows["gap"].isna().mean() == pytest.approx(0.3, abs=0.03)
    assert rows["gap"].mean() == pytest.approx(table["gap"].mean(), abs=0.02)


def test_continuous_values_are_spread_inside_cells(rows: pd.DataFrame):
    known = rows["gap"].dropna()
    assert known.nunique() > 0.99 * len(known)
    positive = rows["gain"][rows["gain"] > 0]
    assert positive.nunique() > 0.95 * len(positive)
    assert rows["wealth"].nunique() > 0.9 * len(rows)


def test_no_rows_pile_up_at_bounds_where_there_were_none(rows: pd.DataFrame):
    assert rows["gap"].isin([0, 1]).mean() < 0.001
    assert rows["wealth"].isin([0, 1e7]).mean() < 0.001
    assert rows["always"].isin([-5, 5]).mean() < 0.001


def test_the_common_ones_of_thousands_of_categories_keep_their_shares(rows: pd.DataFrame, table: pd.DataFrame):
    exact, found = (each["town"].value_counts(normalize=True) for each in (table, rows))
    for town in exact.index[:5]:
        assert found[town] == pytest.approx(exact[town], rel=0.15, abs=0.005)
    assert set(found.index) <= {f"t{i}" for i in range(3000)}


def test_dates_are_days_within_their_bounds_and_where_they_were(rows: pd.DataFrame):
    seen = rows["seen"]
    assert all(type(day) is dt.date for day in seen)
    assert seen.between(dt.date(2000, 1, 1), dt.date(2030, 12, 31)).all()
    inside = seen.between(dt.date(2009, 11, 1), dt.date(2018, 6, 1))
    assert inside.mean() > 0.95


def test_a_class_of_two_in_a_thousand_comes_back_about_as_rare(rows: pd.DataFrame):
    """Forty rows; the noise of their count is about as large at epsilon 1."""
    assert 0 < (rows["rare"] == "yes").mean() < 0.006


# Tables of odd sizes, with the real noise.


def synthesized(table: Any, schema: Schema, *, num_rows: int, **options: object) -> pd.DataFrame:
    synthesizer = Synthesizer(schema, epsilon=1.0, options={"steps": 2, **options})
    return synthesizer.fit(table).sample(num_rows, seed=0).to_pandas()


SMALL = load_schema(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [-1, 1], "nullable": True},
            {"name": "n", "kind": "integer", "bounds": [0, 5000]},
            {"name": "day", "kind": "datetime", "bounds": ["2020-01-01", "2020-12-31"]},
            {"name": "c", "kind": "categorical", "categories": ["a", "b"]},
            {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
        ]
    }
)


@pytest.mark.parametrize("pairs", [None, True], ids=["default", "pairs"])
@pytest.mark.parametrize("num_rows", [0, 1, 3])
def test_tables_without_rows_or_with_one_give_as_many_rows_as_asked_for(num_rows: int, pairs: bool | None):
    row = {"x": 0.5, "n": 7, "day": dt.date(2020, 5, 5), "c": "a", "ill": 1}
    table = pd.DataFrame([row] * num_rows, columns=list(row))
    rows = synthesized(table, SMALL, num_rows=50, pairs=pairs)
    assert len(rows) == 50
    assert rows["x"].dropna().between(-1, 1).all()
    assert rows["n"].between(0, 5000).all()
    assert rows["day"].between(dt.date(2020, 1, 1), dt.date(2020, 12, 31)).all()
    assert set(rows["c"]) <= {"a", "b"}
    assert set(rows["ill"]) <= {0, 1}


def test_a_single_column_comes_back():
    schema = load_schema({"columns": [{"name": "x", "kind": "integer", "bounds": [0, 9]}]})
    rows = synthesized(pd.DataFrame({"x": [2] * 5000 + [7] * 5000}), schema, num_rows=10_000)
    shares = rows["x"].value_counts(normalize=True)
    assert shares[2] == pytest.approx(0.5, abs=0.02)
    assert shares[7] == pytest.approx(0.5, abs=0.02)


def test_hundreds_of_columns_and_few_rows_finish_in_bounded_memory():
    rng = np.random.default_rng(1)
    wide, count = 600, 800
    columns: list[dict[str, object]] = [{"name": f"x{i}", "kind": "continuous", "bounds": [0, 1]} for i in range(wide)]
    label = {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]}
    schema = load_schema({"columns": [*columns, label], "rows": count})
    table = pd.DataFrame(rng.random((count, wide)), columns=[f"x{i}" for i in range(wide)])
    synthesizer = Synthesizer(schema, epsilon=1.0)
    words = " ".join(synthesizer.plan().setting("explanation"))
    assert "no pairs of columns: the budget does not carry them on so few rows" in words
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    synthesizer.fit(table.assign(ill=rng.integers(0, 2, count)))
    rows = synthesizer.sample(count).to_pandas()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert rows.shape == (count, wide + 1)
    assert rows.drop(columns="ill").to_numpy().min() >= 0
    assert rows.drop(columns="ill").to_numpy().max() <= 1
    assert grown < 1_000_000  # kilobytes
    values = rows.drop(columns="ill").to_numpy()
    assert np.isin(values, [0, 1]).mean() < 0.005  # noise is no reason for rows at bounds
    # A column in some hundreds piles up by chance; the sum over all of them hardly moves.
    assert sum(rows[f"x{i}"].nunique() for i in range(wide)) > 0.99 * count * wide


def test_many_columns_with_pairs_that_are_asked_for_finish_too():
    rng = np.random.default_rng(2)
    schema = load_schema({"columns": [{"name": f"x{i}", "kind": "integer", "bounds": [0, 50]} for i in range(60)]})
    table = pd.DataFrame({f"x{i}": rng.integers(0, 51, 300) for i in range(60)})
    rows = synthesized(table, schema, num_rows=100, pairs=True)
    assert rows.shape == (100, 60)
    assert rows.to_numpy().max() <= 50
