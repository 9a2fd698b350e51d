"""How a mixture is fitted to tables of counts: what comes back of columns, pairs and labels."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

from understudy import Budget, dp_anova, fit_release, load_schema, release_table
from understudy.arrays import Integers
from understudy.fits.anova import AnovaTraining, Known, raked
from understudy.generators.mixture import Mixture, spans_of
from understudy.methods.anova import train_anova
from understudy.private.noise import SeededNoise
from understudy.private.spending import Receipt
from understudy.released import Release, save_release
from understudy.schema import NULL, Schema
from understudy.schema.encode import encode_batch

Floats = npt.NDArray[np.float64]
MANY = 8000
SCHEMA = load_schema(
    {
        "rows": MANY,
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "continuous", "bounds": [0, 1]},
            {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
            {"name": "gap", "kind": "integer", "bounds": [0, 20], "nullable": True},
            {"name": "colour", "kind": "categorical", "categories": ["red", "blue", "grey"]},
            {"name": "shape", "kind": "categorical", "categories": ["round", "flat", "long"]},
        ],
    }
)
LABEL = 2
TRAINING = AnovaTraining(steps=250, num_components=150, caution=0.0)


class NoNoise(SeededNoise):
    """Exact sums, which only a test may see."""

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        return sums


def made_up_table() -> pd.DataFrame:
    """Numbers that fall with each other, choices that follow numbers, nulls that follow choices."""
    rng = np.random.default_rng(0)
    ill = (rng.random(MANY) < 0.3).astype(int)
    x = np.clip(np.where(ill == 1, 0.7, 0.35) + 0.12 * rng.standard_normal(MANY), 0, 1)
    is_red = x + 0.05 * rng.standard_normal(MANY) > 0.5
    is_null = rng.random(MANY) < np.where(is_red, 0.5, 0.1)
    other = np.where(rng.random(MANY) < 0.5, "flat", "long")
    return pd.DataFrame(
        {
            "x": x,
            "y": np.clip(1 - x + 0.08 * rng.standard_normal(MANY), 0, 1),
            "ill": ill,
            "gap": pd.Series(rng.integers(0, 21, MANY), dtype="Int64").mask(is_null),
            "colour": np.where(is_red, "red", "blue"),  # never grey
            "shape": np.where(is_red ^ (rng.random(MANY) < 0.1), "round", other),
        }
    )


def released(schema: Schema = SCHEMA, **options: Any) -> Release:
    plan = dp_anova(schema, Budget(100.0), **({"training": TRAINING} | options))
    return release_table(made_up_table(), plan, noise=NoNoise(0))


@pytest.fixture(scope="module")
def release() -> Release:
    return released()


@pytest.fixture(scope="module")
def mixture(release: Release) -> Mixture:
    return train_anova(release, TRAINING)


@pytest.fixture(scope="module")
def cells() -> Integers:
    """The table's codes."""
    return encode_batch(SCHEMA, pa.RecordBatch.from_pandas(made_up_table()))


def model_table(mixture: Mixture, *columns: int) -> Floats:
    """The model's exact law of one or two columns, cell by cell."""
    parts = mixture.components
    chances = [parts.marginals[i] for i in columns]
    if len(chances) == 1:
        return np.asarray(parts.weights @ chances[0])
    tie = next((tie for tie in parts.ties if {tie.parent, tie.child} == set(columns)), None)
    if tie is None:
        return np.asarray((chances[0] * parts.weights[:, None]).T @ chances[1])
    child = parts.probabilities[:, slice(*spans_of(parts.grids)[tie.child])]
    parent = parts.weights[:, None] * parts.marginals[tie.parent] / (child @ tie.ratios.T)
    joint = (parent.T @ child) * tie.ratios
    return np.asarray(joint if tie.parent == columns[0] else joint.T)


def seen_table(mixture: Mixture, codes: Integers, *columns: int) -> Floats:
    """The same of rows."""
    grids = [mixture.components.grids[i] for i in columns]
    found = np.zeros([grid.width for grid in grids])
    places = []
    for grid, i in zip(grids, columns, strict=True):
        pieces = np.searchsorted(grid.lows, codes[:, i], side="right") - 1
        cell = grid.cell_of_piece[np.maximum(pieces, 0)]
        places.append(np.where(codes[:, i] == NULL, grid.num_known, cell))
    np.add.at(found, tuple(places), 1 / len(codes))
    return found


def coarse(tables: Floats) -> Floats:
    """Neighbouring cells together, about eight along each column.  # (rows, columns, tables)"""
    for axis in (0, 1):
        below = np.cumsum(tables[:, :, 0].sum(axis=1 - axis))
        starts = np.unique([0, *np.searchsorted(below, np.arange(1, 8) / 8)])
        tables = np.add.reduceat(tables, starts, axis=axis)
    return tables


def distance(left: Floats, right: Floats) -> float:
    return float(np.abs(left - right).sum() / 2)


@pytest.mark.parametrize("column", range(6))
def test_columns_of_the_model_are_those_of_the_table(column: int, mixture: Mixture, cells: Integers):
    assert distance(model_table(mixture, column), seen_table(mixture, cells, column)) < 0.015


@pytest.mark.parametrize("pair", [*combinations(range(6), 2)])
def test_pairs_of_the_model_are_those_of_the_table(pair: tuple[int, int], mixture: Mixture, cells: Integers):
    exact, model = seen_table(mixture, cells, *pair), model_table(mixture, *pair)
    both = coarse(np.stack([exact, model], axis=2))
    exact, model = both[:, :, 0], both[:, :, 1]
    dependence = distance(exact, np.outer(exact.sum(1), exact.sum(0)))
    assert distance(model, exact) < 0.03 + 0.1 * dependence


@pytest.mark.parametrize("pair", [(0, 1), (0, 4), (4, 5), (3, 4), (0, 3)])
def test_sampled_rows_follow_the_model_also_where_pairs_were_not_measured(pair: tuple[int, int], mixture: Mixture):
    count = 60_000
    codes = mixture.components.codes(count, np.random.default_rng(0))
    exact = model_table(mixture, *pair)
    seen = seen_table(mixture, codes, *pair)
    assert (np.abs(seen - exact) <= 6 * np.sqrt(exact * (1 - exact) / count) + 1e-4).all()


def test_nulls_follow_what_they_depend_on(mixture: Mixture):
    rows = mixture.sample(20_000).to_pandas()
    shares = rows["gap"].isna().groupby(rows["colour"]).mean()
    assert shares["red"] == pytest.approx(0.5, abs=0.04)
    assert shares["blue"] == pytest.approx(0.1, abs=0.04)
    assert (rows["colour"] == "grey").mean() < 0.002


def test_the_label_keeps_its_place_and_every_component_has_one(mixture: Mixture):
    start, stop = spans_of(mixture.components.grids)[LABEL]
    labels = mixture.probabilities[:, start:stop]
    np.testing.assert_array_equal(labels, np.repeat(np.eye(2), mixture.sizes, axis=0))
    np.testing.assert_allclose(mixture.label_shares, [0.7, 0.3], atol=0.02)
    assert sum(mixture.sizes) == len(mixture.probabilities)


def test_every_column_of_every_component_adds_up_to_one(mixture: Mixture):
    for start, stop in spans_of(mixture.components.grids):
        np.testing.assert_allclose(mixture.probabilities[:, start:stop].sum(axis=1), 1, atol=1e-5)
    assert (mixture.probabilities >= 0).all()


def test_grids_hold_every_code_once_and_shares_of_a_cell_add_up_to_one(mixture: Mixture):
    for column, grid in zip(SCHEMA.used, mixture.components.grids, strict=True):
        last = len(column.categories) - 1 if column.is_choice else column.num_steps
        assert (grid.lows[0], grid.highs[-1]) == (0, last)
        np.testing.assert_array_equal(grid.lows[1:], grid.highs[:-1] + 1)
        assert grid.has_null == column.nullable
        assert (grid.share_of_piece >= 0).all()
        np.testing.assert_allclose(np.bincount(grid.cell_of_piece, weights=grid.share_of_piece), 1, atol=1e-9)


def test_the_same_release_and_settings_give_the_same_mixture_and_another_seed_another(release: Release):
    quick = replace(TRAINING, steps=10, num_components=30)
    first, second = train_anova(release, quick), train_anova(release, quick)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    assert first.to_dict() == second.to_dict()
    other = train_anova(release, replace(quick, seed=1))
    assert np.abs(other.probabilities - first.probabilities).max() > 1e-3


def test_caution_takes_the_plainer_mixture(release: Release):
    """Under caution components lie nearer to their label's margins."""

    def unrest(caution: float) -> float:
        quick = replace(TRAINING, steps=80, num_components=40, caution=caution)
        mixture = train_anova(release, quick)
        edges = np.cumsum([0, *mixture.sizes])
        return sum(float(mixture.probabilities[a:b].var(axis=0).sum()) for a, b in pairwise(edges))

    assert unrest(1000.0) < 0.5 * unrest(0.0)


def test_wide_tables_get_fewer_components_but_never_fewer_than_labels_need(
    release: Release, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("understudy.fits.anova.MOST_WORK", 1.0)
    monkeypatch.setattr("understudy.fits.anova.FEWEST_COMPONENTS", 20)
    assert sum(train_anova(release, replace(TRAINING, steps=1)).sizes) == 20
    few = replace(TRAINING, steps=1, num_components=1)
    assert sum(train_anova(release, few).sizes) >= 16


def test_progress_ends_at_the_last_step_whatever_their_number(release: Release):
    for steps in (1, 19, 20, 21):
        told: list[int] = []
        quick = replace(TRAINING, steps=steps, num_components=20)
        train_anova(release, quick, progress=lambda done, *_, told=told: told.append(done))
        assert told[-1] == steps
        assert told == sorted(set(told))


# Without pairs.

WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch())
from understudy import fit_release, load_release

print(fit_release(load_release(sys.argv[1])).sample(4000, seed=1)["ill"].to_pylist().count(1))
"""


def test_without_pairs_there_is_a_component_for_each_label_and_no_torch(tmp_path: Path):
    release = released(pairs=False)
    mixture = fit_release(release)
    assert isinstance(mixture, Mixture)
    assert mixture.sizes == (1, 1)
    save_release(release, tmp_path / "release")
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "release")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == pytest.approx(0.3 * 4000, abs=60)


def test_without_pairs_columns_are_right_by_label_and_independent_within(cells: Integers):
    mixture = fit_release(released(pairs=False))
    assert isinstance(mixture, Mixture)
    for column in (0, 1, 3, 4, 5):
        exact = seen_table(mixture, cells, LABEL, column)
        assert distance(model_table(mixture, LABEL, column), exact) < 0.02
    rows = mixture.sample(40_000).to_pandas()
    for _, label in rows.groupby("ill"):
        assert abs(label["x"].corr(label["y"])) < 0.03


@pytest.mark.parametrize("labels", ["none", "balanced"])
def test_labels_can_be_columns_like_others_or_of_equal_shares(labels: str, cells: Integers):
    training = replace(TRAINING, steps=60)
    mixture = fit_release(released(labels=labels, training=training))
    assert isinstance(mixture, Mixture)
    share = model_table(mixture, LABEL)[1]
    if labels == "none":
        assert len(mixture.sizes) == 1
        assert share == pytest.approx(cells[:, LABEL].mean(), abs=0.02)
    else:
        assert share == pytest.approx(0.5)


def test_the_noisy_row_count_is_what_a_mixture_draws_by_default_unless_it_is_public(release: Release):
    quick = replace(TRAINING, steps=1, num_components=20)
    assert train_anova(release, quick).default_num_rows == MANY
    unsaid = load_schema({"columns": SCHEMA.to_dict()["columns"]})
    assert train_anova(released(unsaid), quick).default_num_rows == len(made_up_table())


def test_means_that_noise_explains_stay_and_others_come_to_its_edge() -> None:
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.ones(4), size=30)
    edges, slack = [0, 20, 30], np.array([0.01, 0.05])
    near = components[:20].mean(axis=0) + np.array([0.009, -0.009, 0.0, 0.0])
    far = components[20:].mean(axis=0) + np.array([0.15, -0.05, -0.05, -0.05])

    def rounds(union: Integers, factors: Floats | None = None) -> Floats:
        found, known = components, Known(np.stack([near, far]), slack, edges, union)
        for _ in range(10):
            found = raked(found, known, factors)
        return found

    found = rounds(np.arange(4))
    np.testing.assert_allclose(found[:20], components[:20])
    off = np.abs(found[20:].mean(axis=0) - far)
    assert 0.04 < off.max() < 0.06, "to the edge, and no further"
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found >= 0).all()
    joined = rounds(np.array([0, 1, 1, 1]))
    sums = joined[20:].mean(axis=0)
    assert abs(sums[0] - far[0]) < 0.06, "cells of a union are raked together"
    np.testing.assert_allclose(joined[20:, 2] / joined[20:, 3], components[20:, 2] / components[20:, 3])
    factors = rng.uniform(0.5, 2.0, size=(30, 4))
    tied = rounds(np.arange(4), factors) * factors
    tied /= tied.sum(axis=1, keepdims=True)
    assert np.abs(tied[20:].mean(axis=0) - far).max() < 0.06, "marginals of a tied column are raked, not its factors"


def test_a_cell_of_few_rows_is_not_given_the_noise_of_one() -> None:
    """A far tail of one row in ten thousand, counted with a noise of fifty: means of its column would run away."""
    components = np.tile([0.97, 0.03], (20, 1))
    known = Known(np.array([[0.9999, 0.0001]]), np.array([0.05]), [0, 20], np.arange(2))
    for _ in range(10):
        components = raked(components, known)
    assert components.mean(axis=0)[1] == pytest.approx(0.00015, rel=0.01)
