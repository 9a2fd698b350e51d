"""Which points are kept: what a factorisation leaves out, and where a noisy look has seen rows."""

from __future__ import annotations

import numpy as np
import pytest

from understudy import load_schema
from understudy.features import Block, Constant, Embedding, Kernel, Term
from understudy.features.landmarks import kernel_sums
from understudy.features.points import Points, points_of_codes
from understudy.plan.plan import LATTICE
from understudy.rules.measurement import Measurement
from understudy.rules.pivots import (
    COORDINATES,
    LOOK,
    choose_landmarks,
    enough_points,
    pivot_points,
    public_density,
    seen_density,
    spanned_by,
)
from understudy.schema import Layout

LAYOUT = Layout(load_schema({"columns": [{"name": n, "kind": "continuous", "bounds": [0, 1]} for n in "xy"]}))
KERNEL = Kernel("gaussian", (Term((0, 1), (0.1, 0.1)),))
ROWS = 10_000


def points(count: int, seed: int = 0, low: float = 0.0, high: float = 1.0) -> Points:
    rng = np.random.default_rng(seed)
    codes = (rng.uniform(low, high, (count, 2)) * 2**32).astype(np.int64)
    return points_of_codes(LAYOUT, codes)


def test_what_is_left_is_the_mean_squared_distance_to_the_span() -> None:
    candidates, density = points(60), np.random.default_rng(1).uniform(0.5, 2, 60)
    places, left = pivot_points(KERNEL, candidates, density, most=20)
    gram = KERNEL(candidates.cells, candidates.cells)
    for count in (1, 5, 20):
        kept = places[:count]
        inside = gram[:, kept] @ np.linalg.inv(gram[np.ix_(kept, kept)])
        outside = 1 - np.einsum("ij,ij->i", inside, gram[:, kept])
        assert left[count - 1] == pytest.approx(density @ outside / density.sum(), abs=1e-9)
    assert (np.diff(left) < 0).all()


def test_points_that_come_twice_and_points_without_density_are_never_kept() -> None:
    once = points(12)
    twice = Points(once.rows + once.rows, once.spans)
    density = np.ones(24)
    density[[3, 15]] = 0.0
    places, left = pivot_points(KERNEL, twice, density, most=24)
    assert len(places) == 11
    assert len({twice.rows[place] for place in places}) == 11
    assert once.rows[3] not in {twice.rows[place] for place in places}
    assert left[-1] < 1e-9


def test_less_noise_deserves_more_points_and_no_more_than_there_are() -> None:
    left = 2.0 ** -np.arange(40)
    counts = [enough_points(left, noise, seen=True) for noise in (1.0, 0.1, 1e-3, 1e-9)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 40
    assert enough_points(left, 0.1, seen=False) > enough_points(left, 0.1, seen=True)


def test_density_is_high_where_points_crowd() -> None:
    crowd, few = points(40, low=0.4, high=0.5), points(4, seed=1, low=0.8, high=1.0)
    density = public_density(KERNEL, Points(crowd.rows + few.rows, crowd.spans))
    assert density[:40].min() > density[40:].max()


def looked(candidates: Points, rows: Points, noise: float) -> Measurement:
    """A look at rows that count for 10,000, with noise of so many rows on every sum."""
    map_ = kernel_sums(KERNEL, candidates)
    embedding = Embedding((Block("count", Constant(), 0.1), Block(LOOK, map_, 0.9)))
    sums = map_(rows.cells).mean(axis=0) * ROWS
    scales = [embedding.block(name).scales(LATTICE) for name in ("count", LOOK)]
    exact = np.concatenate([[ROWS] * scales[0], sums * scales[1]])
    noise_std = max(1, int(noise * scales[1][0]))
    drawn = np.random.default_rng(2).normal(0, noise_std, len(exact))
    return Measurement(embedding, np.rint(exact + drawn).astype(np.int64), noise_std, LATTICE)


def planned(candidates: Points, most: int, noise: float) -> Measurement:
    block = Block(COORDINATES, spanned_by(KERNEL, candidates.take(range(most))), 1.0)
    noise_std = max(1, int(noise * block.scales(LATTICE)[0]))
    return Measurement(Embedding((block,)), np.empty(0, dtype=np.int64), noise_std, LATTICE)


def test_points_are_kept_where_rows_were_seen() -> None:
    candidates, rows = points(400), points(500, seed=3, low=0.1, high=0.3)
    look = looked(candidates, rows, noise=20.0)
    settled = choose_landmarks(planned(candidates, 60, noise=5.0), [look])
    kept = settled.block(COORDINATES).map.spanning.cells
    assert 5 <= len(kept) <= 60
    near = (kept < 0.5).all(axis=1)  # two length scales from the last row
    assert near.mean() > 0.5  # of all candidates, a quarter is
    assert settled.block(COORDINATES).weight == 1.0


def test_without_anything_but_noise_points_are_kept_by_their_own_density() -> None:
    candidates, rows = points(60), points(50, seed=3)
    look = looked(candidates, rows, noise=1e5)
    crowd = public_density(KERNEL, candidates)
    drowned = Measurement(look.embedding, -np.abs(look.vector), look.noise_std, LATTICE)
    assert np.allclose(seen_density(drowned), crowd)


def test_the_chosen_map_is_the_same_every_time() -> None:
    candidates, rows = points(200), points(300, seed=3, low=0.5, high=0.9)
    look, plan = looked(candidates, rows, noise=20.0), planned(candidates, 40, noise=5.0)
    assert choose_landmarks(plan, [look]) == choose_landmarks(plan, [look])
