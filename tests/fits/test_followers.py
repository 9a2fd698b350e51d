"""Columns that another one determines: found, brought together with it by label, and drawn by their law alone."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from understudy import Budget, dp_anova, fit_release, load_schema, release_table
from understudy.arrays import Floats
from understudy.features import Cells
from understudy.fits.anova import AnovaTraining
from understudy.fits.comonotone import Inside
from understudy.fits.followers import find_followers
from understudy.fits.shrinkage import Target, Targets
from understudy.fits.structural_zeros import follower_of
from understudy.generators.mixture import Mixture, Tie
from understudy.private.noise import SeededNoise
from understudy.rules.marginals import Marginals
from understudy.rules.pair_selection import SelectedPairs

ROWS = 10_000.0
GROUPS = np.array([0, 0, 1, 1, 1, 2])  # of six grades


def marginals_of(*columns: npt.ArrayLike, shares: npt.ArrayLike = (1.0,)) -> Marginals:
    tables = [np.atleast_2d(np.asarray(column, dtype=np.float64)) for column in columns]
    cells = tuple(Cells(j, table.shape[1]) for j, table in enumerate(tables))
    return Marginals(ROWS, np.asarray(shares, dtype=np.float64), tuple(tables), cells)


def following(grades: npt.ArrayLike, *, first: bool = True) -> Target:
    table = np.asarray(grades, dtype=np.float64)[:, None] * np.eye(3)[GROUPS]
    return Target((table if first else table.T)[None], follower=1 if first else 0)


def found_in(targets: Targets, marginals: Marginals, *, noise: float = 10.0) -> tuple[list[Tie], Marginals]:
    pairs = SelectedPairs(marginals.cells, {}, noise)
    unused = cast(Inside, None)  # there are no step functions
    return find_followers(marginals, targets, pairs, noise=noise, inside=unused)


EVEN = np.full(6, 1 / 6)
SUMS = np.array([2, 3, 1]) / 6


@pytest.mark.parametrize("first", [True, False])
def test_a_follower_goes_with_each_cell_of_the_other_column(first: bool) -> None:
    columns = (EVEN, SUMS) if first else (SUMS, EVEN)
    (tie,), _ = found_in({(0, 1): following(EVEN, first=first)}, marginals_of(*columns))
    assert (tie.parent, tie.child) == ((0, 1) if first else (1, 0))
    np.testing.assert_allclose(tie.ratios, np.eye(3)[GROUPS])


def test_any_number_of_columns_follow_one_and_none_a_follower() -> None:
    marginals = marginals_of(EVEN, SUMS, SUMS, SUMS)
    targets = {(0, 1): following(EVEN), (0, 2): following(EVEN), (1, 3): Target(np.diag(SUMS)[None], follower=1)}
    ties, _ = found_in(targets, marginals)
    assert [(tie.parent, tie.child) for tie in ties] == [(0, 1), (0, 2)]


def test_what_is_known_of_both_columns_is_brought_together_by_label() -> None:
    """Six cells have six times the noise of one, so that the group's own count weighs more."""
    left = np.array([[0.2, 0.2, 0.2, 0.2, 0.1, 0.1], [0.1, 0.1, 0.2, 0.2, 0.2, 0.2]])
    right = np.array([[0.43, 0.47, 0.1], [0.2, 0.58, 0.22]])
    (tie,), marginals = found_in({(0, 1): following(EVEN)}, marginals_of(left, right, shares=[0.5, 0.5]))
    np.testing.assert_allclose(marginals.by_label[0] @ tie.ratios, marginals.by_label[1])
    np.testing.assert_allclose(marginals.by_label[0].sum(axis=1), 1.0)
    assert 0.4 < marginals.by_label[1][0, 0] < 0.43
    assert abs(marginals.by_label[1][0, 0] - 0.43) < abs(marginals.by_label[1][0, 0] - 0.4)


@pytest.mark.parametrize(("noise", "is_found"), [(1.0, False), (1000.0, True)])
def test_what_is_no_function_of_some_label_is_none_unless_noise_explains_it(noise: float, is_found: bool) -> None:
    left, right = np.stack([EVEN, EVEN]), np.stack([SUMS, SUMS[::-1]])
    ties, _ = found_in({(0, 1): following(EVEN)}, marginals_of(left, right, shares=[0.99, 0.01]), noise=noise)
    assert bool(ties) == is_found


def test_a_label_of_nulls_alone_keeps_no_follower_out() -> None:
    """Of its rows none is known: what noise leaves there says nothing."""
    known = np.array([[2, 2, 2, 2, 1, 1], [0, 0, 0, 0, 0, 0]]) / 10
    nulls = np.array([[0.0], [1.0]])
    left = np.hstack([known, nulls])
    right = np.hstack([np.array([[0.4, 0.5, 0.1], [1e-9, 0, 0]]), nulls - [[0], [1e-9]]])
    cells = Cells(0, 6, has_null=True), Cells(1, 3, has_null=True)
    marginals = Marginals(ROWS, np.array([0.8, 0.2]), (left, right), cells)
    table = np.zeros((7, 4))
    table[:6, :3], table[6, 3] = (0.8 * known[0])[:, None] * np.eye(3)[GROUPS], 0.2
    (tie,), found = found_in({(0, 1): Target(table[None], follower=1, zeros=table == 0)}, marginals)
    np.testing.assert_allclose(tie.ratios[:6, :3], np.eye(3)[GROUPS])
    assert all(np.isfinite(each).all() for each in found.by_label)


def test_cells_without_rows_have_the_followers_usual_law() -> None:
    grades = np.array([0.5, 0.0, 0.3, 0.0, 0.0, 0.2])
    (tie,), _ = found_in({(0, 1): following(grades)}, marginals_of(grades, grades @ np.eye(3)[GROUPS]))
    np.testing.assert_allclose(tie.ratios[1], [0.5, 0.3, 0.2])
    np.testing.assert_allclose(tie.ratios.sum(axis=1), 1.0)


def test_cells_whose_rows_noise_has_drowned_go_with_the_functions_value() -> None:
    grades = np.array([0.0, 0.5, 0.3, 0.0, 0.0, 0.2])
    target = replace(following(grades), zeros=np.eye(3)[GROUPS] == 0)
    (tie,), _ = found_in({(0, 1): target}, marginals_of(grades, grades @ np.eye(3)[GROUPS]))
    np.testing.assert_allclose(tie.ratios, np.eye(3)[GROUPS])


def test_of_two_columns_that_determine_each_other_the_coarser_one_follows() -> None:
    assert follower_of(np.eye(3, dtype=bool)[GROUPS]) == 1
    assert follower_of(np.eye(3, dtype=bool)[GROUPS].T) == 0
    assert follower_of(np.eye(3, dtype=bool)) == 1


SCHEMA = load_schema(
    {
        "columns": [
            {"name": "grade", "kind": "integer", "bounds": [0, 11]},
            {"name": "level", "kind": "categorical", "categories": ["low", "middle", "high"]},
            {"name": "passed", "kind": "binary", "categories": [0, 1]},
            {"name": "hours", "kind": "integer", "bounds": [0, 40]},
            {"name": "left", "kind": "binary", "categories": [0, 1], "role": "label"},
        ]
    }
)


def school(count: int = 12_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    grade = rng.binomial(11, 0.5, count)
    return pd.DataFrame(
        {
            "grade": grade,
            "level": np.array(["low", "middle", "high"])[np.searchsorted([4, 8], grade, side="right")],
            "passed": (grade >= 5).astype(int),
            "hours": np.clip(rng.normal(8 + 2 * grade, 3), 0, 40).astype(int),
            "left": (rng.random(count) < 0.05 + 0.04 * (11 - grade)).astype(int),
        }
    )


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    plan = dp_anova(SCHEMA, Budget(1.0), training=AnovaTraining(steps=80, num_components=60))
    return cast(Mixture, fit_release(release_table(school(), plan, noise=SeededNoise(2))))


def test_two_followers_of_a_column_never_contradict_it_and_it_is_tied_to_another_too(mixture: Mixture) -> None:
    names = [column.name for column in SCHEMA.used]
    drawn = {(names[tie.parent], names[tie.child]) for tie in mixture.ties}
    assert {("grade", "level"), ("grade", "passed")} < drawn
    assert {frozenset(each) for each in drawn} > {frozenset(("grade", "hours"))}
    rows = mixture.sample(20_000, seed=0).to_pandas()
    assert (rows.passed.astype(int) == (rows.grade >= 5)).all()
    assert (rows.level == np.array(["low", "middle", "high"])[np.searchsorted([4, 8], rows.grade, side="right")]).all()


@pytest.mark.parametrize("pair", [("level", "hours"), ("passed", "left"), ("grade", "left"), ("level", "passed")])
def test_tables_with_followers_are_those_of_the_rows(mixture: Mixture, pair: tuple[str, str]) -> None:
    def table(frame: pd.DataFrame) -> Floats:
        coarse = frame.assign(hours=frame.hours // 8)
        found = pd.crosstab(coarse[pair[0]].astype(str), coarse[pair[1]].astype(str), normalize=True)
        return cast(Floats, found.stack())

    real, made = table(school()), table(mixture.sample(20_000, seed=0).to_pandas())
    assert 0.5 * np.abs(pd.concat([real, made], axis=1).fillna(0).diff(axis=1).iloc[:, -1]).sum() < 0.03


def test_a_condition_on_a_follower_is_one_on_the_column_that_determines_it(mixture: Mixture) -> None:
    rows = mixture.sample(500, seed=0, given={"level": "high"}).to_pandas()
    assert (rows.grade >= 8).all()
