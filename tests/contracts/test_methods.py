"""Every method, in every variant: plan, release, verify, fit, save, load and sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from understudy import (
    Budget,
    Neighbours,
    Synthesizer,
    fit_release,
    load_generator,
    load_schema,
    make_plan,
    release_table,
    save_generator,
    verify_release,
)
from understudy.fits.anova import AnovaTraining
from understudy.fits.mixture import MixtureTraining
from understudy.fits.network import Training
from understudy.methods import IMAGE_METHODS, METHODS
from understudy.plan.plan import Plan
from understudy.schema import Schema
from understudy.schema.encode import encode_batch

NETWORK = Training(steps=8, batch=60, hidden=(16,), num_components=4)
QUICK: dict[str, dict[str, object]] = {
    "dp-anova": {"training": AnovaTraining(steps=8, num_components=20), "pairs": True},
    "dp-merf": {"num_features": 40, "training": NETWORK},
    "dp-hp": {"training": MixtureTraining(steps=8, num_components=20)},
    "balog-subspace": {"num_candidates": 120, "weights": "bounded", "steps": 8},
    "balog-features": {"num_features": 60, "num_points": 60, "num_candidates": 60, "steps": 8},
}
STEPS = 8
each_method = pytest.mark.parametrize("method", sorted(QUICK))
PUBLIC = pd.DataFrame(
    {
        "age": [10, 40, 80, 61, 33],
        "dose": [0.5, None, 1.5, 0.1, 2.0],
        "visit": pd.to_datetime(["2020-02-01", "2021-05-05", "2022-01-01", "2024-11-30", "2023-03-03"]),
        "ward": ["north", "south", None, "west", "south"],
        "grade": [1, 2, 3, 4, 5],
        "ill": [0, 1, 1, 0, 1],
    }
)
VARIANTS: dict[str, dict[str, dict[str, object]]] = {
    "dp-anova": {
        "imbalanced": {},
        "balanced": {"labels": "balanced"},
        "unlabelled": {"labels": "none"},
        "pairs-by-noise": {"pairs": None},
        "no-pairs": {"pairs": False},
        "no-values": {"values": False},
        "neither": {"pairs": False, "values": False},
        "steps": {"training": None, "steps": 2},
        "another-seed": {"seed": 7},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE},
        "replace-one-unlabelled": {"neighbours": Neighbours.REPLACE_ONE, "labels": "none"},
    },
    "dp-merf": {
        "imbalanced": {},
        "balanced": {"labels": "balanced"},
        "unlabelled": {"labels": "none"},
        "separate": {"separate_releases": True},
        "private-scale": {"length_scale": "private"},
        "one-scale": {"length_scale": 0.3},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE},
    },
    "dp-hp": {
        "imbalanced": {},
        "balanced": {"labels": "balanced", "num_products": 4},
        "unlabelled": {"labels": "none", "num_products": 4},
        "all-pairs": {"num_products": 100},
        "network": {"generator": "network", "training": NETWORK, "num_products": 4},
        "fresh": {"fresh_products": True, "num_products": 3},
        "fresh-network": {"fresh_products": True, "num_products": 2, "generator": "network", "training": NETWORK},
        "preset-pairs": {"preset": "covtype"},
        "preset-fives": {"preset": "adult", "product_order": 2, "num_products": 2},
        "triples": {"product_dim": 3, "product_order": 2, "num_products": 5},
        "gamma": {"gamma": 0.1, "num_products": 4},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE, "num_products": 4},
        "no-products": {"num_products": 0},
        "named-scales": {"length_scale": {"age": 0.05, "dose": 0.3, "visit": 0.1, "grade": 0.5}},
    },
    "balog-subspace": {
        "bounded": {},
        "a-wider-bound": {"bound": 3.0},
        "shrunk": {"weights": "shrunk"},
        "plain": {"weights": "plain"},
        "look": {"weights": "shrunk", "look": True},
        "look-and-bound": {"look": True},
        "no-look": {"weights": "shrunk", "look": False},
        "few-points": {"num_points": 3},
        "given": {"public_points": PUBLIC, "weights": "shrunk"},
        "given-arrow": {"public_points": pa.Table.from_pandas(PUBLIC), "look": True},
        "sum": {"join": "sum", "mismatch": 0.2},
        "laplace": {"kernel": "laplace", "length_scale": 0.5},
        "matern": {"kernel": "matern52"},
        "named-scales": {"length_scale": {"age": 0.05, "dose": 0.3, "visit": 0.1, "grade": 0.5}},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE, "look": True},
        "replace-one-no-look": {"neighbours": Neighbours.REPLACE_ONE, "look": False},
    },
    "balog-features": {
        "free": {},
        "uniform": {"weights": "uniform"},
        "one-row": {"num_points": 1, "steps": 1},
        "no-mismatch": {"mismatch": 0.0, "length_scale": 0.3},
        "named-scales": {"length_scale": {"age": 0.05, "dose": 0.3, "visit": 0.1, "grade": 0.5}},
        "another-seed": {"seed": 7},
        "replace-one": {"neighbours": Neighbours.REPLACE_ONE},
    },
}
COLUMNS = [
    {"name": "age", "kind": "integer", "bounds": [0, 100]},
    {"name": "dose", "kind": "continuous", "bounds": [0, 2], "nullable": True},
    {"name": "visit", "kind": "datetime", "bounds": ["2020-01-01", "2024-12-31"]},
    {"name": "ward", "kind": "categorical", "categories": ["north", "south", "west"], "nullable": True},
    {"name": "grade", "kind": "ordinal", "bounds": [1, 5]},
    {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
]
NUM_ROWS = 300


def the_schema(label_kind: str = "class") -> Schema:
    columns = [dict(column) for column in COLUMNS]
    if label_kind == "number":
        columns[-1] = {"name": "ill", "kind": "continuous", "role": "label", "bounds": [0, 1]}
    return load_schema({"columns": columns, "rows": NUM_ROWS})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    dose = rng.random(NUM_ROWS) * 2
    return pd.DataFrame(
        {
            "age": rng.integers(0, 101, NUM_ROWS),
            "dose": np.where(rng.random(NUM_ROWS) < 0.2, np.nan, dose),
            "visit": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1800, NUM_ROWS), "D"),
            "ward": rng.choice(["north", "south", None], NUM_ROWS),
            "grade": rng.integers(1, 6, NUM_ROWS),
            "ill": rng.integers(0, 2, NUM_ROWS),
        }
    )


def test_every_method_has_variants_here():
    assert set(VARIANTS) == set(QUICK) == set(METHODS) - set(IMAGE_METHODS)


def test_auto_is_the_method_for_tables():
    assert make_plan(the_schema(), Budget(1.0)) == make_plan(the_schema(), Budget(1.0), method="dp-anova")


each_variant = pytest.mark.parametrize(
    ("method", "variant"), [(m, v) for m, variants in VARIANTS.items() for v in variants]
)


@each_variant
@pytest.mark.parametrize("delta", [1e-5, 0.0], ids=["gaussian", "laplace"])
def test_a_method_runs_from_rows_to_valid_rows(
    method: str, variant: str, delta: float, table: pd.DataFrame, tmp_path: Path
):
    schema = the_schema()
    options = QUICK[method] | VARIANTS[method][variant]
    plan = make_plan(schema, Budget(1.0, delta), method=method, options=options)
    release = release_table(table, plan, directory=tmp_path / "release")
    found = verify_release(tmp_path / "release")
    assert found.epsilon <= 1.0
    assert (found.delta, found.mechanism) == (delta, "gaussian" if delta else "laplace")
    generator = fit_release(release)
    rows = generator.sample(500, seed=1)
    assert_valid(schema, rows)
    save_generator(generator, tmp_path / "generator", release=release.fingerprint)
    assert load_generator(tmp_path / "generator").sample(50, seed=1).schema == rows.schema


@each_variant
def test_at_delta_zero_the_epsilons_of_all_stages_add_up_to_the_budget_exactly(method: str, variant: str):
    options = QUICK[method] | VARIANTS[method][variant]
    plan = make_plan(the_schema(), Budget(1.0, 0), method=method, options=options)
    costs = plan.cost()
    assert 1 - 1e-6 < sum(costs) <= 1
    for stage, parts, scale in zip(plan.stages, plan.mechanism_sensitivities, plan.noise_scales, strict=True):
        radii = [block.radius(plan.lattice) for block in stage.embedding.blocks]
        assert sum(parts) >= sum(radii), "no block is left out"
        assert float(scale) == scale
    assert all(part > 0 for stage in plan.stages for part in stage.parts.values())


def quick_plan(method: str) -> Plan:
    return make_plan(the_schema(), Budget(1.0), method=method, options=QUICK[method])


@each_method
def test_a_numeric_label_runs_from_rows_to_valid_rows(method: str, table: pd.DataFrame):
    schema = the_schema("number")
    plan = make_plan(schema, Budget(1.0), method=method, options=QUICK[method])
    assert_valid(schema, fit_release(release_table(table, plan)).sample(200))


def assert_valid(schema: Schema, rows: pa.Table) -> None:
    """Every cell is in its column's domain, of its column's type, null only where allowed."""
    assert rows.column_names == [column.name for column in schema.used]
    codes = encode_batch(schema, rows.combine_chunks().to_batches()[0])
    for i, column in enumerate(schema.used):
        assert (codes[:, i] >= (-1 if column.nullable else 0)).all(), column.name
        assert rows[column.name].null_count == (codes[:, i] == -1).sum()
    frame = rows.to_pandas()
    assert frame["age"].between(0, 100).all()
    assert pa.types.is_int64(rows["age"].type)
    assert pa.types.is_date32(rows["visit"].type)
    assert set(frame["ward"].dropna()) <= {"north", "south", "west"}


@each_method
def test_the_same_release_and_seed_give_the_same_rows(method: str, table: pd.DataFrame):
    release = release_table(table, quick_plan(method))
    first, second = fit_release(release), fit_release(release)
    assert first.sample(100, seed=5).equals(second.sample(100, seed=5))
    assert not first.sample(100, seed=5).equals(first.sample(100, seed=6))


@each_method
def test_rows_obey_rules_conditions_and_balance(method: str, table: pd.DataFrame):
    rules = ["age >= 10", "grade <= age", {"forbid": {"ward": ["north", None], "grade": 1}}]
    schema = load_schema(the_schema().to_dict() | {"rules": rules})
    plan = make_plan(schema, Budget(1.0), method=method, options=QUICK[method])
    generator = fit_release(release_table(table, plan))
    rows = generator.sample(300, seed=1, given={"age": (5, 95)}, balance="equal")
    assert_valid(schema, rows)
    frame = rows.to_pandas()
    assert frame["age"].between(10, 95).all()
    assert not ((frame["grade"] == 1) & (frame["ward"].isna() | (frame["ward"] == "north"))).any()
    assert frame["ill"].value_counts().to_dict() == {0: 150, 1: 150}


@each_method
def test_a_saved_generator_draws_the_same_rows(method: str, table: pd.DataFrame, tmp_path: Path):
    generator = fit_release(release_table(table, quick_plan(method)))
    save_generator(generator, tmp_path / "generator", release="x")
    assert load_generator(tmp_path / "generator").sample(64, seed=2).equals(generator.sample(64, seed=2))


@each_method
def test_training_tells_its_progress_and_ends_at_the_last_step(method: str, table: pd.DataFrame):
    release = release_table(table, quick_plan(method))
    seen: list[tuple[int, int, float]] = []
    fit_release(release, progress=lambda *state: seen.append(state))
    assert seen[-1][:2] == (STEPS, STEPS)
    assert np.isfinite(seen[-1][2])


@each_method
def test_the_synthesizer_is_the_same_pipeline(method: str, table: pd.DataFrame):
    synthesizer = Synthesizer(the_schema(), epsilon=1.0, method=method, options=QUICK[method])
    rows = synthesizer.fit(table).sample(10, seed=0)
    assert rows.num_rows == 10
    assert synthesizer.release_.plan == synthesizer.plan()
    assert (synthesizer.sample(9, given={"ill": 1}, balance="kept")["ill"].to_numpy() == 1).all()
    assert synthesizer.sample().num_rows == synthesizer.generator_.default_num_rows
