"""Batches of rows that each row finds by itself."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.features import Buckets


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 6)) * 257 / 2**16


def test_every_row_is_in_one_batch_and_batches_are_alike():
    members = Buckets(tuple(range(6)), 5, 1)(rows(20_000))
    assert (members.sum(axis=1) == 1).all()
    assert np.abs(members.sum(axis=0) - 4000).max() < 6 * np.sqrt(20_000 * 0.2 * 0.8)


def test_a_rows_batch_does_not_hang_on_other_rows():
    cells, map_ = rows(50), Buckets((0, 3, 5), 4, 2)
    whole = map_(cells)
    for kept in (slice(7, 8), slice(1, None), slice(None, None, -1)):
        assert np.array_equal(map_(cells[kept]), whole[kept])


def test_another_seed_deals_rows_anew():
    cells = rows(200)
    first, second = (Buckets(tuple(range(6)), 8, seed)(cells) for seed in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("count", [0, 2**16 + 1])
def test_a_count_of_batches_that_makes_no_sense_is_refused(count: int):
    with pytest.raises(ValueError, match="batches"):
        Buckets((0,), count, 0)
