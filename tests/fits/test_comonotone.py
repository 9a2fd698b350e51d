"""Step functions of a number are kept in rows although their steps lie inside cells."""

from __future__ import annotations

from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Budget, dp_anova, fit_release, load_schema, release_table
from understudy.arrays import Floats, Integers
from understudy.features import Cells
from understudy.fits.anova import AnovaTraining
from understudy.fits.comonotone import Inside, Side, _round_codes, at_steps
from understudy.fits.staircases import Staircase
from understudy.private.noise import SeededNoise
from understudy.rules.marginals import Marginals
from understudy.schema import Schema

ROWS, NOISE = 20_000, 60.0
WIDE = Cells(0, 1200, is_ordered=True, lows=tuple(range(0, 1200, 100)))
CHOICE = Cells(1, 4)


def group_of(codes: Integers, borders: tuple[int, ...]) -> Integers:
    return np.searchsorted(np.asarray(borders), codes, side="right")


def codes_drawn(seed: int = 0) -> Integers:
    return np.random.default_rng(seed).integers(0, 1200, ROWS)


class Even:
    """Of rows inside cells nothing is known; hundreds, tens and ones are round."""

    def side(self, marginals: Marginals, pair: Cells) -> Side:
        cells = marginals.cells[marginals.place(pair)]
        pieces = np.bincount(cells.cell_of_piece)[cells.cell_of_piece]
        return Side(cells, marginals.of_all(marginals.place(pair)), 1 / pieces, pair, (100.0, 10.0, 1.0), 0.0)


def at(borders: tuple[int, ...], cells: Cells, *, labels: int = 1) -> tuple[Marginals, Floats, Integers, Integers]:
    left = codes_drawn()
    right = group_of(left, borders)
    label = np.random.default_rng(1).integers(0, labels, ROWS)
    counts = np.zeros((cells.dim, CHOICE.dim))
    np.add.at(counts, (cells(left.copy()), right), 1.0)
    noisy = np.maximum(counts + np.random.default_rng(0).normal(0, NOISE, counts.shape), 1.0)
    staircase = Staircase(np.where(counts > 0, noisy, 0.0) / ROWS, np.arange(4), is_turned=False)
    shares = []
    for own, codes in ((cells, left), (CHOICE, right)):
        counts = np.zeros((labels, own.dim))
        np.add.at(counts, (label, own(codes.copy())), 1.0)
        shares.append(counts / counts.sum(axis=1, keepdims=True))
    marginals = Marginals(float(ROWS), np.full(labels, 1 / labels), tuple(shares), (cells, CHOICE))
    inside = cast(Inside, Even())
    found = at_steps(marginals, cells, CHOICE, staircase, inside, noise=NOISE / ROWS)
    assert found is not None
    marginals, joint = found
    return marginals, joint, left, right


@pytest.mark.parametrize("borders", [(300, 700, 900), (100, 600, 1100), (200, 300, 1000)])
def test_cells_are_split_at_steps_so_that_no_row_contradicts_them(borders: tuple[int, ...]) -> None:
    coarse = Cells(0, 1200, is_ordered=True, lows=tuple(range(0, 1200, 80)))
    marginals, joint, left, right = at(borders, coarse, labels=2)
    cells = marginals.cells[0]
    assert set(borders) <= set(cells.first_codes[np.flatnonzero(np.diff(cells.cell_of_piece, prepend=-1))].tolist())
    assert (joint[cells(left.copy()), right] > 0).all()
    assert ((joint > 0).sum(axis=1) == 1).all(), "a cell goes with one value alone"
    assert joint.sum() == pytest.approx(1)
    for own in marginals.by_label:
        np.testing.assert_allclose(own.sum(axis=1), 1.0)


def test_values_that_no_step_can_part_are_not_parted() -> None:
    """Half of the rows of every value have one group and half the next one: alike, but no function."""
    cells, rng = Cells(0, 6, is_ordered=True), np.random.default_rng(0)
    left = rng.integers(0, 6, ROWS)
    right = np.minimum((left + rng.integers(0, 2, ROWS)) // 2, 3)
    masses = np.zeros((6, 4))
    np.add.at(masses, (left, right), 1 / ROWS)
    marginals = Marginals(
        float(ROWS), np.ones(1), (masses.sum(axis=1)[None], masses.sum(axis=0)[None]), (cells, CHOICE)
    )
    staircase = Staircase(masses, np.arange(4), is_turned=False)
    assert at_steps(marginals, cells, CHOICE, staircase, cast(Inside, Even()), noise=NOISE / ROWS) is None


def test_steps_are_where_most_of_them_are_round() -> None:
    """Each alone may be anywhere within its doubt; that three of four are at hundreds tells of the fourth."""
    codes, below = np.arange(0, 1201, 10), np.arange(0, 1201, 10) / 1200
    side = Side(WIDE, np.full(12, 1 / 12), np.ones(12), WIDE, (100.0, 10.0, 1.0), 0.0)
    borders = np.array([203, 398, 612, 941]) / 1200
    found = _round_codes(side, borders, (codes, below), doubt=np.full(4, 0.02), weights=np.full(5, 20.0))
    assert found.tolist() == [200, 400, 600, 900]
    exact = _round_codes(side, borders, (codes, below), doubt=np.full(4, 1e-4), weights=np.full(5, 20.0))
    assert exact.tolist() == [203, 398, 612, 941]


def test_no_value_that_rows_have_is_left_without_a_code() -> None:
    """Two steps near one another are not both at the same hundred."""
    codes, below = np.arange(0, 1201, 10), np.arange(0, 1201, 10) / 1200
    side = Side(WIDE, np.full(12, 1 / 12), np.ones(12), WIDE, (100.0, 10.0, 1.0), 0.0)
    borders = np.array([370, 430, 800]) / 1200
    found = _round_codes(side, borders, (codes, below), doubt=np.full(3, 0.05), weights=np.full(4, 20.0))
    assert len(set(found.tolist())) == 3


@given(seed=st.integers(0, 400), count=st.integers(1, 12))
def test_codes_of_steps_never_fall_and_leave_every_value_a_code_that_rows_have(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    borders = np.sort(rng.random(count))
    side = Side(WIDE, np.full(12, 1 / 12), np.ones(12), WIDE, (1000.0, 100.0, 10.0, 1.0), 0.0)
    weights = np.diff(borders, prepend=0.0, append=1.0) / 1e-4
    codes, below = np.arange(0, 1201), np.arange(0, 1201) / 1200
    found = _round_codes(side, borders, (codes, below), doubt=np.full(count, 0.02), weights=weights)
    steps = np.diff(found, prepend=0, append=1200)
    assert (steps >= 0).all()
    assert (steps[weights > 60] > 0).all()


CLOCK = load_schema(
    {
        "columns": [
            {"name": "time", "kind": "integer", "bounds": [0, 2400]},
            {"name": "hour", "kind": "integer", "bounds": [0, 24]},
            {"name": "part", "kind": "categorical", "categories": ["day", "evening", "morning"], "nullable": True},
            {"name": "score", "kind": "integer", "bounds": [0, 1000], "nullable": True},
            {"name": "late", "kind": "binary", "categories": [0, 1], "role": "label"},
        ]
    }
)


def clock(seed: int) -> pd.DataFrame:
    """Times as 1,345 for a quarter to two, their hour, and a part of a score that is null where it is."""
    rng = np.random.default_rng(seed)
    minutes = np.clip(rng.normal(800, 250, ROWS), 300, 1380).astype(int)
    time = minutes // 60 * 100 + minutes % 60
    score = pd.Series(rng.integers(0, 1001, ROWS), dtype="Int64").mask(rng.random(ROWS) < 0.2)
    part = pd.cut(score.astype(float), [-1, 333, 777, 1000], labels=["morning", "day", "evening"]).astype(object)
    late = (rng.random(ROWS) < 0.1 + 0.3 * (time > 1500)).astype(int)
    return pd.DataFrame({"time": time, "hour": time // 100, "part": part, "score": score, "late": late})


def drawn(schema: Schema, epsilon: float, seed: int) -> pd.DataFrame:
    plan = dp_anova(schema, Budget(epsilon), training=AnovaTraining(steps=60, num_components=60))
    release = release_table(clock(seed), plan, noise=SeededNoise(seed))
    return fit_release(release).sample(ROWS, seed=0).to_pandas()


@pytest.mark.parametrize(("epsilon", "most"), [(2.0, 0.005), (0.5, 0.03)])
def test_rows_do_not_contradict_a_step_function_of_a_number(epsilon: float, most: float) -> None:
    """Cells of times and scores straddle hours and limits: drawn apart inside them, a third of rows would be wrong."""
    rows = drawn(CLOCK, epsilon, seed=1)
    assert (rows.time // 100 != rows.hour).mean() < most
    assert rows.hour.nunique() > 15
    assert (rows.score.isna() != rows.part.isna()).mean() < 5 * most
    known = rows[rows.score.notna() & rows.part.notna()]
    right = pd.cut(known.score.astype(float), [-1, 333, 777, 1000], labels=["morning", "day", "evening"])
    assert (right.astype(object) != known.part).mean() < 5 * most


def test_times_keep_their_hours_shares() -> None:
    rows, real = drawn(CLOCK, 2.0, seed=1), clock(1)
    shares = [frame.hour.value_counts(normalize=True).reindex(range(25), fill_value=0) for frame in (real, rows)]
    assert 0.5 * np.abs(shares[0] - shares[1]).sum() < 0.02
