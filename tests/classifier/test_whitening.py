from __future__ import annotations

import numpy as np
import pytest

from understudy.classifier.inputs import CONSTANT, UNIT, whitening_from


def unit_rows(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(count, 5)) * [4.0, 1.0, 1.0, 0.3, 0.3] + [1.0, 0, 0, 0, 0]
    rows *= np.sqrt(1 - CONSTANT**2) / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.concatenate([rows, np.full((count, 1), CONSTANT)], axis=1)


def test_whitened_rows_vary_alike_in_all_directions() -> None:
    rows = unit_rows(4000)
    whitening = whitening_from(rows.T @ rows, 0.0)
    seen = whitening(rows)
    assert np.linalg.norm(seen, axis=1) == pytest.approx(np.ones(4000))
    before, after = (np.linalg.eigvalsh(each.T @ each / 4000) for each in (rows, seen))
    assert before[-1] / before[0] > 50
    assert after[-1] / after[0] < 3


def test_moments_also_tell_count_mean_and_spread() -> None:
    rows = unit_rows(4000)
    whitening = whitening_from(rows.T @ rows, 0.0)
    assert whitening.num_rows == pytest.approx(4000)
    assert whitening.mean == pytest.approx(rows.mean(axis=0), abs=1e-9)
    assert whitening.spread == pytest.approx(rows.std(axis=0), abs=1e-6)


def test_entries_are_such_that_products_with_integers_are_exact() -> None:
    rows = unit_rows(100)
    matrix = whitening_from(rows.T @ rows, 2.0).matrix
    assert np.array_equal(matrix * UNIT, np.rint(matrix * UNIT))
    assert np.abs(matrix).max() <= 1


def test_noise_alone_is_whitened_to_something_finite() -> None:
    noise = np.random.default_rng(0).normal(size=(6, 6))
    whitening = whitening_from(-np.eye(6) + noise + noise.T, 1.0)
    assert np.isfinite(whitening.matrix).all()
    assert whitening.num_rows >= 1
