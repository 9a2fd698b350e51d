"""Whether numbers without the stated noise are found out, and numbers with it never are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from receipts import unrecorded

from understudy.accounting.mechanisms import Budget, Neighbours
from understudy.errors import InputError
from understudy.methods import balog_features, dp_anova, dp_hp, dp_merf, dp_spectrum
from understudy.plan.plan import Plan
from understudy.private.noise import OpenDPNoise
from understudy.private.release import append_rows, noisy, release_table
from understudy.private.spending import Receipt
from understudy.released import Release, save_release, verify_release
from understudy.released.noise_tests import REFUSED_BELOW, chance_of_less, noise_tests, residues
from understudy.schema import load_schema

Integers = npt.NDArray[np.int64]
SCHEMA = load_schema(
    {
        "name": "tiny",
        "columns": [
            {"name": "x", "kind": "continuous", "bounds": [0, 1], "nullable": True},
            {"name": "n", "kind": "integer", "bounds": [0, 9]},
            {"name": "c", "kind": "categorical", "categories": ["a", "b", "c"]},
            {"name": "y", "kind": "binary", "categories": ["no", "yes"], "role": "label"},
        ],
    }
)
IMAGES = load_schema({"name": "dots", "image": {"height": 3, "width": 4}, "columns": []})


class Weaker:
    """Noise of a fraction of the stated deviation, passed off as private."""

    name = "made up"
    is_private = True

    def __init__(self, fraction: float) -> None:
        self._fraction = fraction
        self._rng = np.random.default_rng(5)

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        return sums + self._whole(self._rng.normal(0.0, self._fraction * noise_std, len(sums)))

    def add_laplace_noise(self, sums: Integers, scale: int, receipt: Receipt) -> Integers:
        return sums + self._whole(self._rng.laplace(0.0, self._fraction * scale, len(sums)))

    @staticmethod
    def _whole(noise: npt.NDArray[np.float64]) -> Integers:
        return np.asarray(np.rint(noise), dtype=np.int64)


def table(num_rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "x": [None if i % 9 == 0 else v for i, v in enumerate(rng.random(num_rows).tolist())],
            "n": rng.integers(0, 10, num_rows),
            "c": rng.choice(["a", "b", "c"], num_rows).tolist(),
            "y": rng.choice(["no", "yes"], num_rows).tolist(),
        }
    )


def pictures() -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table({name: rng.integers(0, 256, 80) for name in IMAGES.image.names})


PLANS: dict[str, Callable[[Budget], Plan]] = {
    "dp-anova": lambda budget: dp_anova(SCHEMA, budget, pairs=True, num_rows=1000),
    "dp-anova without pairs": lambda budget: dp_anova(SCHEMA, budget, pairs=False),
    "dp-merf": lambda budget: dp_merf(SCHEMA, budget, num_features=20),
    "dp-merf, two stages": lambda budget: dp_merf(SCHEMA, budget, num_features=20, length_scale="private"),
    "dp-hp": lambda budget: dp_hp(SCHEMA, budget, num_products=4),
    "dp-spectrum": lambda budget: dp_spectrum(IMAGES, budget, components=2),
}
each_plan = pytest.mark.parametrize("method", PLANS)
each_delta = pytest.mark.parametrize("delta", [1e-5, 0.0], ids=["gaussian", "laplace"])


def forged(plan: Plan, fraction: float) -> Release:
    """What somebody publishes who adds less noise than the plan states and writes all files anew."""
    rows = pictures() if plan.schema.image is not None else table()
    return release_table(rows, plan, noise=Weaker(fraction))


@each_plan
@each_delta
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_a_release_without_noise_is_refused_though_all_its_files_agree(
    method: str, delta: float, epsilon: float, tmp_path: Path
) -> None:
    release = forged(PLANS[method](Budget(epsilon, delta)), 0.0)
    folder = save_release(release, tmp_path / "out")
    with pytest.raises(InputError, match="do not have the noise") as refused:
        verify_release(folder)
    assert "out" in refused.value.where


@each_plan
@each_delta
def test_whatever_is_called_able_finds_that_there_is_no_noise(method: str, delta: float) -> None:
    """Every stage by itself: none hides behind another."""
    tests = noise_tests(forged(PLANS[method](Budget(1.0, delta)), 0.0))
    by_residues = [test for test in tests if test.test == "residues"]
    assert any(test.is_able for test in by_residues)
    if method.startswith("dp-anova"):
        assert all(test.is_able and test.looked_at == test.of for test in by_residues)
    for test in by_residues:
        assert (test.chance < REFUSED_BELOW) == test.is_able


@pytest.mark.parametrize(("delta", "fraction"), [(1e-5, 0.1), (0.0, 0.03)])
def test_tables_that_agree_too_well_have_less_noise_than_stated(delta: float, fraction: float) -> None:
    plan = PLANS["dp-anova"](Budget(1.0, delta))
    name, found = plan.stages[-2].name, noise_tests(forged(plan, fraction))
    tests = {test.test: test for test in found if test.stage == name}
    assert tests["agreement"].chance < REFUSED_BELOW < tests["residues"].chance


def test_half_the_stated_noise_is_found_where_tables_repeat_one_another() -> None:
    answers = [{"name": f"q{i}", "kind": "categorical", "categories": list("abcde")} for i in range(8)]
    schema = load_schema({"name": "survey", "columns": answers})
    plan = dp_anova(schema, Budget(1.0), pairs=True, num_rows=5000)
    rng = np.random.default_rng(4)
    rows = pa.table({each["name"]: rng.choice(list("abcde"), 500).tolist() for each in answers})
    half, whole = (release_table(rows, plan, noise=Weaker(fraction)) for fraction in (0.5, 1.0))
    assert min(test.chance for test in noise_tests(half)) < REFUSED_BELOW
    assert min(test.chance for test in noise_tests(whole)) > 1e-4


def test_two_hundred_true_releases_pass() -> None:
    budgets = [Budget(epsilon, delta) for epsilon in (0.2, 20.0) for delta in (1e-5, 0.0)]
    plans = [make(budget) for make in PLANS.values() for budget in budgets]
    chances = []
    for trial in range(200):
        plan = plans[trial % len(plans)]
        vectors: tuple[Integers, ...] = ()
        for stage in range(len(plan.stages)):
            dim = plan.embeddings(vectors)[stage].dim
            vectors = (
                *vectors,
                noisy(np.zeros(dim, np.int64), plan, stage, OpenDPNoise(), unrecorded(plan_id=plan.fingerprint)),
            )
        chances += [test.chance for test in noise_tests(Release(plan, vectors, ()))]
    seen = np.sort([chance for chance in chances if chance < 1])
    assert len(seen) > 300
    assert seen[0] > REFUSED_BELOW
    # Chances are bounds: a share of p of them, or fewer, is below p.
    for p in (0.01, 0.05, 0.2):
        spread = 5 * math.sqrt(p * (1 - p) / len(seen))
        assert (seen < p).mean() < p + spread


def test_noise_that_is_right_is_not_blamed_for_rows_that_tables_miss() -> None:
    """Nulls where none are declared are in no cell, so totals differ by far more than noise."""
    schema = load_schema(SCHEMA.to_dict() | {"columns": [c.to_dict() | {"nullable": False} for c in SCHEMA.columns]})
    release = release_table(table(), dp_anova(schema, Budget(1.0), pairs=False), noise=Weaker(1.0))
    assert min(test.chance for test in noise_tests(release)) > 1e-4


def test_rows_added_without_noise_and_vectors_that_settled_maps_are_tested_too() -> None:
    plan = PLANS["dp-anova"](Budget(1.0))
    true = release_table(table(), plan, noise=Weaker(1.0))
    grown = append_rows(table(50), true, noise=Weaker(1.0))
    assert min(test.chance for test in noise_tests(grown)) > 1e-4
    bare = replace(grown, settled=replace(grown.settled, vectors=forged(plan, 0.0).vectors))
    bare = replace(bare, vectors=bare.settled.vectors)
    tests = [test for test in noise_tests(bare) if "before rows were added" in test.stage]
    assert min(test.chance for test in tests) < REFUSED_BELOW


def test_a_stage_that_tells_nothing_is_named(tmp_path: Path) -> None:
    """With Laplace noise features are rounded at the lattice itself, and one count is too few."""
    plan = balog_features(SCHEMA, Budget(1.0, 0), num_features=20, num_points=5, num_candidates=5)
    release = release_table(table(), plan, noise=Weaker(1.0))
    found = verify_release(save_release(release, tmp_path / "out"))
    assert found.untested == tuple(stage.name for stage in plan.stages)
    assert "noise" not in found.checks
    plan = dp_hp(SCHEMA, Budget(1.0), num_products=2, fresh_products=True)
    release = release_table(table(), plan, noise=Weaker(1.0))
    found = verify_release(save_release(release, tmp_path / "other"))
    assert found.untested == (plan.stages[1].name,), "the other product is of two choices: a table"
    assert "noise" in found.checks


def test_a_release_with_noise_for_tests_says_so_and_is_not_judged(tmp_path: Path) -> None:
    release = forged(PLANS["dp-merf"](Budget(1.0)), 0.0)
    marked = replace(release, facts=tuple((dict(release.facts) | {"is_private": False}).items()))
    found = verify_release(save_release(marked, tmp_path / "out"))
    assert not found.is_private
    assert found.noise_tests == ()


def test_the_row_count_of_replace_one_is_no_evidence() -> None:
    plan = dp_anova(SCHEMA, Budget(1.0), neighbours=Neighbours.REPLACE_ONE, num_rows=200)
    assert min(test.chance for test in noise_tests(forged(plan, 1.0))) > 1e-4
    assert min(test.chance for test in noise_tests(forged(plan, 0.0))) < REFUSED_BELOW


@pytest.mark.parametrize("deviation", [3.0, 100.0, 10_000.0])
def test_the_chance_of_residues_is_never_below_the_truth(deviation: float) -> None:
    """One number, all residues tried: those as small have no more mass than the chance says."""
    unit = 64
    values = np.arange(-60_000, 60_001)
    mass = np.exp(-((values / deviation) ** 2) / 2)
    mass /= mass.sum()
    rest = values % unit
    distance = np.minimum(rest, unit - rest)
    for size in range(unit // 2):
        _, chance, least = residues(np.asarray([size]), np.asarray([unit]), deviation)
        assert mass[distance <= size].sum() <= chance + 1e-12
        assert least <= chance


@pytest.mark.parametrize("freedom", [1, 4, 30])
def test_the_chance_of_agreement_is_never_below_the_truth(freedom: int) -> None:
    rng = np.random.default_rng(freedom)
    for is_gaussian in (True, False):
        draw = rng.normal if is_gaussian else rng.laplace
        noise = draw(size=(20_000, freedom)) * (1 if is_gaussian else 1 / math.sqrt(2))
        squares = np.sort((noise**2).sum(axis=1))
        for share in (0.01, 0.1):
            at = float(squares[int(share * len(squares))])
            assert chance_of_less(at, freedom, is_gaussian=is_gaussian) > 0.7 * share
    assert chance_of_less(0.0, freedom, is_gaussian=False) == 0.0
    assert chance_of_less(0.0, freedom, is_gaussian=True) == 0.0
