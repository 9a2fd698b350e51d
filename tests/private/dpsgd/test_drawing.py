from __future__ import annotations

import numpy as np
import pytest

from understudy.accounting.dpsgd import exact_rate
from understudy.private.dpsgd.steps import drawn_rows

ROWS, DRAWS, SIGMAS = 5000, 60, 6.5


@pytest.mark.parametrize("rate", [0.01, 0.25, 0.9])
def test_every_row_is_drawn_with_the_same_chance_and_by_itself(rate: float) -> None:
    rate = exact_rate(rate)
    hits = np.zeros((DRAWS, ROWS))
    for hit in hits:
        hit[drawn_rows(ROWS, rate)] = 1
    share, spread = hits.mean(), np.sqrt(rate * (1 - rate))
    assert abs(share - rate) < SIGMAS * spread / np.sqrt(ROWS * DRAWS)
    # Batch sizes vary as sums of independent choices do: fixed sizes would not vary at all.
    sizes = hits.sum(axis=1)
    variance = sizes.var(ddof=1) / (ROWS * spread**2)
    assert 0.2 < variance < 2.8  # chi-square of 59 degrees: less than 1e-7 on either side
    # Neighbours, and one step and the next, have nothing to do with each other.
    apart = (hits - rate) / spread
    for product in (apart[:, 1:] * apart[:, :-1], apart[1:] * apart[:-1]):
        assert abs(product.mean()) < SIGMAS / np.sqrt(product.size)


def test_all_rows_are_drawn_at_a_rate_of_one_and_none_of_none() -> None:
    assert np.array_equal(drawn_rows(1000, 1.0), np.arange(1000))
    assert len(drawn_rows(0, 0.5)) == 0


def test_two_draws_differ() -> None:
    assert not np.array_equal(drawn_rows(1000, 0.5), drawn_rows(1000, 0.5))
