"""What the network learns: modes, atoms at bounds, class shares, nulls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from understudy import Budget, fit_release, load_schema, make_plan, release_table
from understudy.fits.network import Training

TRAINING = Training(steps=400, batch=300, hidden=(64, 64), num_components=16, features_per_step=400)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """A table with known shape, released at a generous epsilon, and what was learnt from it."""
    rng = np.random.default_rng(0)
    count = 20_000
    label = (rng.random(count) < 0.25).astype(int)
    value = np.where(label == 1, 0.8, 0.3) + 0.05 * rng.standard_normal(count)
    spike = np.where(rng.random(count) < 0.7, 0.0, rng.random(count))
    gap = np.where(rng.random(count) < 0.4, np.nan, 0.9)
    colour = np.where(rng.random(count) < np.where(label == 1, 0.9, 0.1), "red", "blue")
    table = pd.DataFrame({"value": value, "spike": spike, "gap": gap, "colour": colour, "label": label})
    schema = load_schema(
        {
            "columns": [
                {"name": "value", "kind": "continuous", "bounds": [0, 1]},
                {"name": "spike", "kind": "continuous", "bounds": [0, 1]},
                {"name": "gap", "kind": "continuous", "bounds": [0, 1], "nullable": True},
                {"name": "colour", "kind": "categorical", "categories": ["red", "blue"]},
                {"name": "label", "kind": "binary", "role": "label", "categories": [0, 1]},
            ]
        }
    )
    options = {"num_features": 2000, "training": TRAINING}
    plan = make_plan(schema, Budget(5.0), method="dp-merf", options=options)
    return fit_release(release_table(table, plan)).sample(20_000, seed=0).to_pandas()


def test_class_shares_follow_the_noisy_counts(rows: pd.DataFrame):
    assert rows["label"].mean() == pytest.approx(0.25, abs=0.02)


def test_numbers_follow_their_class(rows: pd.DataFrame):
    means = rows.groupby("label")["value"].mean()
    assert means[0] == pytest.approx(0.3, abs=0.05)
    assert means[1] == pytest.approx(0.8, abs=0.05)


def test_choices_follow_their_class(rows: pd.DataFrame):
    shares = rows.groupby("label")["colour"].apply(lambda colours: (colours == "red").mean())
    assert shares[0] == pytest.approx(0.1, abs=0.04)
    assert shares[1] == pytest.approx(0.9, abs=0.04)


def test_an_atom_at_a_bound_comes_out_as_that_value(rows: pd.DataFrame):
    assert (rows["spike"] == 0).mean() == pytest.approx(0.7, abs=0.12)


def test_nulls_come_out_in_their_share_and_the_rest_in_their_place(rows: pd.DataFrame):
    assert rows["gap"].isna().mean() == pytest.approx(0.4, abs=0.04)
    assert rows["gap"].dropna().median() == pytest.approx(0.9, abs=0.1)
