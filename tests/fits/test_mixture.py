"""How a mixture is fitted: expected features, what is learnt, and where training ends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from receipts import unrecorded

from understudy import Budget, dp_hp, fit_release, load_schema, release_table
from understudy.arrays import Integers
from understudy.features import Constant, FeatureMap, Fourier, Hermite, OneHot, Scales, Sign, Tensors
from understudy.features.hermite import best_half_range
from understudy.fits.mixture import MixtureTraining, _ComponentCells, cell_means
from understudy.fits.mmd_loss import Term, loss_terms
from understudy.generators.mixture import Mixture, column_grid
from understudy.private.noise import SeededNoise
from understudy.private.spending import Receipt
from understudy.released import Release
from understudy.schema import Column, Layout

Floats = npt.NDArray[np.float64]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small sums take far longer on several threads of a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Expected features of components.

SMALL = load_schema(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "age", "kind": "integer", "bounds": [0, 9]},
            {"name": "ward", "kind": "categorical", "categories": ["a", "b", "c"]},
            {"name": "cost", "kind": "integer", "bounds": [0, 9000], "scale_hint": "log1p"},
            {"name": "sex", "kind": "binary", "categories": ["f", "m"], "nullable": True},
            {"name": "u", "kind": "continuous", "bounds": [0, 1]},
            {"name": "v", "kind": "continuous", "bounds": [-1, 1]},
            {"name": "paid", "kind": "binary", "categories": ["no", "yes"]},
            {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
        ]
    }
)
LAYOUT = Layout(SMALL)
SPANS = {choice.column: (choice.start, choice.stop) for choice in LAYOUT.choices}
FINE = [Hermite((j,), (0.05,), 30, best_half_range(0.05)) for j in range(3)]
COARSE = [Hermite((j,), (0.2,), 8, best_half_range(0.2)) for j in range(3)]
FACTORS = (*COARSE, *(OneHot((SPANS[name],)) for name in ("x", "ward", "sex", "ill")))
MAPS: dict[str, FeatureMap] = {
    "one number": FINE[0],
    "several numbers": Hermite((2, 0, 1), (0.1, 0.03, 0.3), 25, best_half_range(0.03)),
    "numbers alike": Hermite((3, 4), (0.1, 0.1), 20, best_half_range(0.1)),
    "numbers alike, turned round": Hermite((4, 3), (0.1, 0.1), 20, best_half_range(0.1)),
    "numbers alike, scales not": Hermite((3, 4), (0.1, 0.4), 20, best_half_range(0.1)),
    "all numbers": Hermite((0, 1, 2, 3, 4), (0.1,) * 5, 20, best_half_range(0.1)),
    "choices alike": OneHot((SPANS["paid"], SPANS["ill"])),
    "one choice": OneHot((SPANS["ward"],)),
    "null flag": OneHot((SPANS["x"],)),
    "several choices": OneHot((SPANS["sex"], SPANS["x"], SPANS["ill"], SPANS["ward"])),
    "pairs": Tensors(FACTORS, ((0, 1), (0, 4), (1, 3), (1, 2), (2, 5), (3, 4), (5, 6))),
    "triple": Tensors(FACTORS, ((0, 2, 4),)),
}
NUM_COMPONENTS = 5


def component_cells() -> tuple[_ComponentCells, Any]:
    """Components with random scores; the first two have label 0, the others 1."""
    cells = _ComponentCells(torch, LAYOUT, SPANS["ill"], np.array([2, 3]))
    scores = 1.5 * np.random.default_rng(0).standard_normal((NUM_COMPONENTS, cells.width))
    return cells, torch.from_numpy(scores.astype(np.float32))


@pytest.fixture(scope="module")
def rows_of_components() -> list[Floats]:
    """Many sampled rows of each component, as cells."""
    cells, scores = component_cells()
    shares = cells.probabilities(scores).double().numpy()
    rng = np.random.default_rng(1)
    alone = [Mixture(SMALL, shares[i : i + 1], (1,), 1) for i in range(NUM_COMPONENTS)]
    return [LAYOUT.expand(mixture.components.codes(30_000, rng)) for mixture in alone]


@pytest.mark.parametrize("name", MAPS)
def test_expected_features_are_the_average_over_many_rows(name: str, rows_of_components: list[Floats]):
    cells, scores = component_cells()
    expected = cells.expected(MAPS[name])(cells(scores)).double().numpy()
    assert expected.shape == (NUM_COMPONENTS, MAPS[name].dim)
    for component, rows in zip(expected, rows_of_components, strict=True):
        features = MAPS[name](rows)
        errors = np.abs(features.mean(0) - component)
        assert (errors <= 5 * features.std(0) / math.sqrt(len(rows)) + 1e-4).all()


def test_every_component_has_the_label_of_its_place():
    cells, scores = component_cells()
    labels = cells.expected(OneHot((SPANS["ill"],)))(cells(scores)).numpy()
    np.testing.assert_array_equal(labels, [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])


def test_features_of_several_columns_at_once_have_no_expectation_here():
    cells, _ = component_cells()
    with pytest.raises(TypeError, match="single columns"):
        cells.expected(Fourier((0, 1), (1.0, 1.0), (Scales(2, 0.1, 1.0),), 10, 0))


class Position:
    """A number's own position, as a feature."""

    sign, dim = Sign.NONNEGATIVE, 1

    def __call__(self, cells: Any) -> Any:
        return cells[:, :1]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "position"}


def number(**entry: object) -> Column:
    return load_schema({"columns": [{"name": "x", **entry}]}).used[0]


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("bounds", [[0, 5], [0, 1000], [7, 7]])
def test_the_mean_of_a_constant_is_that_constant(bounds: list[int], nullable: bool):
    column = number(kind="integer", bounds=bounds, nullable=nullable)
    grid = column_grid(column, 16)
    np.testing.assert_array_equal(cell_means(Constant(), column, grid), np.ones((grid.width, 1)))


def test_the_mean_position_of_a_cell_is_its_middle_and_a_null_lies_in_the_middle_of_all():
    column = number(kind="continuous", bounds=[-4, 4], nullable=True)
    means = cell_means(Position(), column, column_grid(column, 8))[:, 0]
    middles = (np.arange(8) + 0.5) / 8
    np.testing.assert_allclose(means, [0.0, *middles, 1.0, 0.5], atol=1e-4)


def test_the_mean_of_a_cell_with_one_value_is_exact():
    column = number(kind="integer", bounds=[0, 10])
    map_ = Hermite((0,), (0.1,), 15, best_half_range(0.1))
    positions = np.rint(np.arange(11) / 10 * 2**16) / 2**16
    means = cell_means(map_, column, column_grid(column, 32))
    np.testing.assert_allclose(means, map_(positions[:, None]), atol=1e-12)


# What is learnt.

MANY = 20_000
SCHEMA = load_schema(
    {
        "rows": MANY,
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "y", "kind": "continuous", "bounds": [0, 1]},
            {"name": "spike", "kind": "continuous", "bounds": [0, 1]},
            {"name": "gap", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "age", "kind": "integer", "bounds": [0, 100]},
            {"name": "colour", "kind": "categorical", "categories": ["red", "blue"]},
            {"name": "shape", "kind": "categorical", "categories": ["round", "flat", "long"]},
            {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
        ],
    }
)
TRAINING = MixtureTraining(steps=300, num_components=100)


def made_up_table() -> pd.DataFrame:
    """Numbers that fall with each other, choices that follow numbers and choices, atoms, nulls."""
    rng = np.random.default_rng(0)
    ill = (rng.random(MANY) < 0.3).astype(int)
    x = np.clip(np.where(ill == 1, 0.7, 0.35) + 0.12 * rng.standard_normal(MANY), 0, 1)
    y = np.clip(1 - x + 0.08 * rng.standard_normal(MANY), 0, 1)
    is_red = x + 0.05 * rng.standard_normal(MANY) > 0.5
    other = np.where(rng.random(MANY) < 0.5, "flat", "long")
    is_null = rng.random(MANY) < np.where(is_red, 0.5, 0.1)
    return pd.DataFrame(
        {
            "x": x,
            "y": y,
            "spike": np.where(rng.random(MANY) < 0.6, 0.0, rng.random(MANY)),
            "gap": np.where(is_null, np.nan, 0.9 + 0.02 * rng.standard_normal(MANY)),
            "age": np.where(is_red, rng.integers(10, 20, MANY), rng.integers(40, 90, MANY)),
            "colour": np.where(is_red, "red", "blue"),
            "shape": np.where(is_red ^ (rng.random(MANY) < 0.1), "round", other),
            "ill": ill,
        }
    )


def learnt(**options: object) -> pd.DataFrame:
    """Rows of a mixture fitted to a release of the table at a generous epsilon."""
    plan = dp_hp(SCHEMA, Budget(50.0), training=TRAINING, **options)
    release = release_table(made_up_table(), plan, noise=SeededNoise(0))
    return fit_release(release).sample(MANY, seed=0).to_pandas()


def binned(rows: pd.DataFrame) -> dict[str, Integers]:
    """Every column in a few bins; an atom at 0 and nulls have bins of their own."""
    edges = np.linspace(0, 1, 11)[1:-1]
    found = {name: np.digitize(rows[name], edges) for name in ("x", "y")}
    found["spike"] = np.where(rows["spike"] == 0, 0, 1 + np.digitize(rows["spike"], edges))
    gap = 1 + np.digitize(rows["gap"].fillna(0), edges)
    found["gap"] = np.where(rows["gap"].isna(), 0, gap)
    found["age"] = rows["age"].to_numpy() // 10
    for column in SCHEMA.used[5:]:
        found[column.name] = pd.Categorical(rows[column.name], column.categories).codes
    return found


def frequencies(bins: dict[str, Integers], *names: str) -> Floats:
    cells = np.stack([bins[name] for name in names], axis=1)
    return np.histogramdd(cells, bins=[np.arange(13)] * len(names))[0] / len(cells)


def distance(left: Floats, right: Floats) -> float:
    """Total variation: the largest difference of any event's probability."""
    return float(np.abs(left - right).sum() / 2)


PAIRS = [*combinations([column.name for column in SCHEMA.used], 2)]


@pytest.fixture(scope="module")
def truth() -> dict[str, Integers]:
    return binned(made_up_table())


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return learnt()


def test_every_column_comes_out_as_it_was(rows: pd.DataFrame, truth: dict[str, Integers]):
    found = binned(rows)
    far = {name: distance(frequencies(found, name), frequencies(truth, name)) for name in truth}
    assert max(far.values()) < 0.06, far


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_of_columns_comes_out_as_it_was(
    pair: tuple[str, str], rows: pd.DataFrame, truth: dict[str, Integers]
):
    exact = frequencies(truth, *pair)
    far = distance(frequencies(binned(rows), *pair), exact)
    assert far < 0.12
    dependence = distance(exact, np.outer(exact.sum(1), exact.sum(0)))
    if dependence > 0.1:
        assert far < 0.3 * dependence


def test_an_atom_at_a_bound_comes_out_as_that_value(rows: pd.DataFrame):
    assert (rows["spike"] == 0).mean() == pytest.approx(0.6, abs=0.06)


def test_nulls_come_out_in_their_shares(rows: pd.DataFrame):
    shares = rows["gap"].isna().groupby(rows["colour"]).mean()
    assert shares["red"] == pytest.approx(0.5, abs=0.04)
    assert shares["blue"] == pytest.approx(0.1, abs=0.04)
    assert rows["gap"].dropna().mean() == pytest.approx(0.9, abs=0.02)


def test_without_products_pairs_are_lost_and_single_columns_are_not(truth: dict[str, Integers]):
    found = binned(learnt(num_products=0))
    exact = frequencies(truth, "x", "y")
    assert distance(frequencies(found, "x", "y"), exact) > 0.25
    assert distance(frequencies(found, "x"), frequencies(truth, "x")) < 0.06


# Where training ends.

FEW = 2000
TRIO = load_schema(
    {
        "rows": FEW,
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1]},
            {"name": "c", "kind": "categorical", "categories": ["a", "b", "c"]},
            {"name": "d", "kind": "binary", "categories": [0, 1]},
            {"name": "ill", "kind": "binary", "role": "label", "categories": [0, 1]},
        ],
    }
)


def trio_table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    ill = np.sort((rng.random(FEW) < 0.25).astype(int))
    d = rng.integers(0, 2, FEW)
    return pd.DataFrame(
        {
            "x": np.clip(0.3 + 0.4 * d + 0.1 * rng.standard_normal(FEW), 0, 1),
            "c": np.array(["a", "b", "c"])[rng.integers(0, 3, FEW)],
            "d": d,
            "ill": ill,
        }
    )


def steps_told(epsilon: float, steps: int = 200) -> list[int]:
    training = MixtureTraining(steps=steps, num_components=40)
    plan = dp_hp(TRIO, Budget(epsilon), training=training, num_products=3)
    release = release_table(trio_table(), plan, noise=SeededNoise(0))
    seen: list[int] = []
    fit_release(release, progress=lambda done, *_: seen.append(done))
    return seen


def test_training_ends_early_where_the_noise_is_large():
    told = steps_told(0.2)
    assert len(told) <= 3  # not sixty steps, and the end
    assert told[-1] == 200


def test_training_goes_on_where_there_is_no_noise_to_speak_of():
    assert steps_told(100.0) == [*range(20, 201, 20)]


class NoNoise(SeededNoise):
    """Exact sums, which only a test may see."""

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        return sums


def noise_but_for_counts(release: Release, seed: int) -> Release:
    """An exact release with noise on all but the counts of two labels, its first numbers."""
    (exact,) = release.vectors
    noisy = SeededNoise(seed).add_noise(exact, release.plan.noise_stds[0], unrecorded())
    noisy[:2] = exact[:2]
    return replace(release, vectors=(noisy,))


def terms_of(release: Release, sizes: Integers) -> list[Term]:
    rng = np.random.default_rng(0)
    return loss_terms(release, sizes, rng, expected=lambda map_: map_)


@pytest.mark.parametrize("gamma", [None, 0.2])
def test_the_floor_is_the_loss_that_noise_alone_gives(gamma: float | None):
    plan = dp_hp(TRIO, Budget(1.0), order=20, product_order=8, num_products=3, gamma=gamma)
    table = trio_table()[::10]
    counts = table["ill"].value_counts().sort_index().to_numpy()
    exact = release_table(table, plan, noise=NoNoise(0))
    by_hand = {}
    for block in plan.stages[0].embedding.blocks[1:]:
        noise = plan.noise_stds[0] / plan.lattice / block.weight
        variances = block.map.dim * (noise / counts) ** 2
        weight = dict(plan.setting("loss_weights"))[block.name]
        by_hand[block.name] = weight * (counts / len(table) * variances).sum()
    floors = [term.noise_floor for term in terms_of(exact, counts)]
    np.testing.assert_allclose(floors, list(by_hand.values()), rtol=0.01)

    codes = pd.Categorical(table["c"], ["a", "b", "c"]).codes
    numbers = np.rint(table["x"] * 2**32).astype(np.int64)
    cells = plan.layout.expand(np.stack([numbers, codes, table["d"], table["ill"]], axis=1))
    private = torch.from_numpy(cells.astype(np.float32))
    losses = [
        [float(term.loss(private)) for term in terms_of(noise_but_for_counts(exact, i), counts)] for i in range(100)
    ]
    np.testing.assert_allclose(np.mean(losses, axis=0), floors, rtol=0.1)
    np.testing.assert_allclose([float(term.loss(private)) for term in terms_of(exact, counts)], 0, atol=1e-6)


def test_every_fresh_product_gets_its_turn_before_training_ends():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, (2, FEW))
    table = pd.DataFrame({"a": a, "b": b, "c": np.where(rng.random(FEW) < 0.95, b, 1 - b)})
    columns = [{"name": name, "kind": "binary", "categories": [0, 1]} for name in "abc"]
    plan = dp_hp(
        load_schema({"columns": columns, "rows": FEW}),
        Budget(50.0),
        fresh_products=True,
        num_products=3,
        training=MixtureTraining(steps=200, num_components=40),
    )
    last = plan.stages[-1].embedding.blocks[0].map
    assert last.subsets == ((1, 2),)
    drawn = fit_release(release_table(table, plan, noise=SeededNoise(0))).sample(MANY).to_pandas()
    assert (drawn["b"] == drawn["c"]).mean() > 0.75  # 0.95 in the table, 0.5 without it


def test_the_same_release_and_settings_give_the_same_mixture_and_another_seed_another():
    training = MixtureTraining(steps=10, num_components=20)
    plan = dp_hp(TRIO, Budget(50.0), training=training)
    release = release_table(trio_table(), plan, noise=SeededNoise(0))
    first, second = fit_release(release), fit_release(release)
    assert isinstance(first, Mixture)
    assert isinstance(second, Mixture)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    other = replace(release, plan=dp_hp(TRIO, Budget(50.0), training=replace(training, seed=1)))
    third = fit_release(other)
    assert isinstance(third, Mixture)
    assert np.abs(third.probabilities - first.probabilities).max() > 1e-3
