"""Least squares over all tables: unbiased, of least variance, with the covariance it states."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.accounting.mechanisms import GAUSSIAN, LAPLACE
from understudy.queries import least_squares
from understudy.queries.atoms import Sources, single_axis
from understudy.queries.least_squares import Evidence, LeastSquares, gather
from understudy.released.tables import tables_of


def parts(rng: np.random.Generator, size: int) -> list[Evidence]:
    """Every atom by itself, atoms in pairs, and the total."""
    truth = rng.integers(0, 100, size).astype(float)
    found = []
    for index in (np.arange(size), np.arange(size) // 2, np.zeros(size, dtype=np.int64)):
        sums = np.bincount(index, weights=truth)
        variances = rng.uniform(1, 9, len(sums))
        found.append(Evidence(index, sums + rng.normal(0, np.sqrt(variances)), variances))
    return found


def by_hand(evidence: list[Evidence], weights: np.ndarray, num_rows: int | None):
    """Estimates and covariance by the textbook formulas."""
    size = len(evidence[0].index)
    rows, sums, precisions = [], [], []
    for each in evidence:
        for i, value in enumerate(each.sums):
            rows.append((each.index == i) * 1.0)
            sums.append(value)
            precisions.append(1 / each.variances[i])
    design, weight = np.array(rows), np.diag(precisions)
    matrix, told = design.T @ weight @ design, design.T @ weight @ np.array(sums)
    if num_rows is not None:  # with a multiplier for the condition
        edge = np.ones((size, 1))
        matrix, told = np.block([[matrix, edge], [edge.T, 0]]), np.append(told, num_rows)
    inverse = np.linalg.inv(matrix)
    return weights @ (inverse @ told)[:size], weights @ inverse[:size, :size] @ weights.T


@pytest.mark.parametrize("num_rows", [None, 500])
@pytest.mark.parametrize("dense", [True, False])
def test_estimates_are_those_of_weighted_least_squares(num_rows, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(least_squares, "DENSE", 1)
    rng = np.random.default_rng(1)
    evidence, weights = parts(rng, 9), rng.normal(size=(3, 9))
    fit = LeastSquares(evidence, num_rows=num_rows)
    middle, spread = by_hand(evidence, weights, num_rows)
    assert np.allclose(fit.estimates(weights), middle, rtol=1e-6)
    assert np.allclose(fit.covariance(weights), spread, rtol=1e-4, atol=1e-6)
    assert np.allclose(fit.deviations(weights), np.sqrt(np.diag(spread)), rtol=1e-4)


def test_a_public_row_count_is_met_exactly_and_has_no_error():
    fit = LeastSquares(parts(np.random.default_rng(2), 6), num_rows=123)
    assert fit.atoms.sum() == pytest.approx(123)
    assert fit.deviations(np.ones((1, 6)))[0] == 0


def test_more_evidence_never_makes_an_estimate_worse():
    evidence = parts(np.random.default_rng(3), 8)
    weights = np.eye(8)
    errors = [LeastSquares(evidence[:count], num_rows=None).deviations(weights) for count in (1, 2, 3)]
    assert (errors[1] < errors[0]).all()
    assert (errors[2] < errors[1]).all()


def test_tables_of_other_rows_are_noticed():
    evidence = parts(np.random.default_rng(4), 8)
    weights, before = np.ones((1, 8)), LeastSquares(evidence, num_rows=None)
    assert not before.disagrees
    evidence[1] = Evidence(evidence[1].index, evidence[1].sums + 50, evidence[1].variances)
    for mechanism in (GAUSSIAN, LAPLACE):
        after = LeastSquares(evidence, num_rows=None, mechanism=mechanism)
        assert after.disagrees
        # The interval now reaches from what some tables say to what others say.
        assert after.deviations(weights)[0] > 10 * before.deviations(weights)[0]
        assert after.covariance(weights)[0, 0] == pytest.approx(after.deviations(weights)[0] ** 2)


def test_without_noise_every_table_of_a_release_tells_the_same_rows(world, silent):
    """Sums of cells, of labels and of pairs must add up to the very counts of the rows."""
    measured = tables_of(silent)
    for place in range(len(world.schema.used)):
        axis = single_axis(measured, place, [], every_value=False)
        evidence = gather(measured, [axis])
        assert len(evidence) > 1
        fit = LeastSquares(evidence, num_rows=None)
        for each in evidence:
            told = np.bincount(each.index[each.index >= 0], weights=fit.atoms[each.index >= 0])
            assert np.allclose(told, each.sums, atol=1e-5)
        assert fit.atoms.sum() == pytest.approx(2000, abs=1e-5)


def test_rows_in_pieces_add_up_to_the_known_rows(silent):
    sources = Sources(tables_of(silent))
    axis = single_axis(sources.measured, 4, [], every_value=False)
    assert sources.masses(axis).sum() == pytest.approx(2000, abs=1e-5)
