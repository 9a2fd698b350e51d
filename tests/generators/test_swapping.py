"""Exchanges within components: pairs come nearer to what the mixture expects, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.arrays import Floats, Integers
from understudy.generators import swapping
from understudy.generators.swapping import _gain, _move, exchange

NUM_COMPONENTS, WIDTH, NUM_COLUMNS = 6, 5, 4


def drawn(num_rows: int, seed: int = 0) -> tuple[Integers, Integers, list[Floats]]:
    """Rows of a mixture of products, drawn independently."""
    rng = np.random.default_rng(seed)
    marginals = [rng.dirichlet(np.ones(WIDTH), NUM_COMPONENTS) for _ in range(NUM_COLUMNS)]
    chosen = np.sort(rng.integers(NUM_COMPONENTS, size=num_rows))
    uniform = rng.random((num_rows, NUM_COLUMNS))
    cells = [
        (own[chosen].cumsum(axis=1) < mark[:, None]).sum(axis=1) for own, mark in zip(marginals, uniform.T, strict=True)
    ]
    return np.minimum(np.stack(cells, axis=1), WIDTH - 1), chosen, marginals


def errors(cells: Integers, chosen: Integers, marginals: list[Floats]) -> Floats:
    """Distance of every pair's table from what the components expect, in rows."""
    sizes, found = np.bincount(chosen, minlength=NUM_COMPONENTS), []
    for i in range(NUM_COLUMNS):
        for j in range(i):
            seen = np.zeros((WIDTH, WIDTH))
            np.add.at(seen, (cells[:, i], cells[:, j]), 1)
            found.append(np.abs(seen - (marginals[i] * sizes[:, None]).T @ marginals[j]).sum())
    return np.array(found)


ALONE = [[j] for j in range(NUM_COLUMNS)]


@pytest.mark.parametrize("seed", range(5))
def test_tables_of_pairs_come_nearer_to_the_mixture(seed: int) -> None:
    cells, chosen, marginals = drawn(3000, seed)
    found = exchange(cells, chosen, marginals, ALONE, np.random.default_rng(1))
    # What single columns are off by, exchanges cannot mend.
    assert errors(found, chosen, marginals).sum() < 0.8 * errors(cells, chosen, marginals).sum()


def test_every_component_keeps_its_cells_of_every_column() -> None:
    cells, chosen, marginals = drawn(800)
    found = exchange(cells, chosen, marginals, ALONE, np.random.default_rng(1))
    assert (found != cells).any()
    for component in range(NUM_COMPONENTS):
        np.testing.assert_array_equal(
            np.sort(found[chosen == component], axis=0), np.sort(cells[chosen == component], axis=0)
        )


def test_tied_columns_stay_together() -> None:
    cells, chosen, marginals = drawn(2000)
    cells[:, 1] = (cells[:, 0] + 1) % WIDTH
    found = exchange(cells, chosen, marginals, [[0, 1], [2], [3]], np.random.default_rng(1))
    assert (found[:, 0] != cells[:, 0]).any()
    np.testing.assert_array_equal(found[:, 1], (found[:, 0] + 1) % WIDTH)


def test_a_judged_exchange_changes_the_sum_of_squares_by_what_was_said() -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(WIDTH, size=(40, NUM_COLUMNS)) + WIDTH * np.arange(NUM_COLUMNS)
    excess = rng.normal(size=(WIDTH * NUM_COLUMNS,) * 2)
    excess += excess.T
    own, others = np.array([2]), np.array([0, 1, 3])
    for a, b in ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9)):
        gain = _gain(excess, places, np.array([a]), np.array([b]), own, others)
        before = (excess**2).sum()
        _move(excess, places, np.array([a]), np.array([b]), own, others)
        places[[a, b], 2] = places[[b, a], 2]
        assert before - (excess**2).sum() == pytest.approx(4 * gain[0], abs=1e-9)  # both halves of the table, 2 g each


@pytest.mark.parametrize("num_rows", [30, 100, 500, 1000])
def test_few_rows_of_few_cells_come_nearer_too(num_rows: int) -> None:
    """Exchanges that are judged together mend the same cells: too many at once would overshoot."""
    before, after = 0.0, 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        cells, chosen = rng.integers(2, size=(num_rows, 3)), np.zeros(num_rows, dtype=np.int64)
        found = exchange(cells, chosen, [np.full((1, 2), 0.5)] * 3, [[0], [1], [2]], rng)
        before, after = before + unevenness(cells), after + unevenness(found)
    assert after < 0.95 * before


def unevenness(cells: Integers) -> float:
    """Squared distance of tables of pairs from those of independent columns with these margins."""
    return float((np.cov(cells.T)[np.triu_indices(3, 1)] ** 2).sum())


@pytest.mark.parametrize("num_rows", [0, 1, 2, 7])
def test_few_rows_are_no_trouble(num_rows: int) -> None:
    cells, chosen, marginals = drawn(num_rows)
    assert exchange(cells, chosen, marginals, ALONE, np.random.default_rng(1)).shape == (num_rows, NUM_COLUMNS)


def test_wide_tables_are_left_as_they_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, chosen, marginals = drawn(500)
    monkeypatch.setattr(swapping, "MOST_LOOKUPS", 1000)
    np.testing.assert_array_equal(exchange(cells, chosen, marginals, ALONE, np.random.default_rng(1)), cells)
