"""Views: by label or together, from fine to coarse, slow features and fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.two_sample.null_distribution import views_of
from understudy.two_sample.parts import Part


def part_of(copies: int, dim: int, **options: Any) -> Part:
    zeros = np.zeros(copies * dim)
    return Part("block", ("x",), copies, (zeros,), (zeros + 1,), len, **options)


def test_an_unordered_part_is_seen_by_label_and_together() -> None:
    apart, together = views_of(part_of(2, 3, label_column="ill"), np.ones(6))
    assert (apart.columns, together.columns) == (("x", "ill"), ("x",))
    assert np.array_equal(apart.sums.toarray(), np.eye(6))
    assert np.array_equal(together.sums.toarray(), np.vstack([np.eye(3), np.eye(3)]))


def test_an_ordered_part_is_seen_in_runs_of_equal_mass_and_nulls_stay_apart() -> None:
    mass = np.array([0.0, 0.5, 0.0, 0.25, 0.25, 0.3])
    views = [view.sums.toarray() for view in views_of(part_of(1, 6, num_ordered=5), mass)]
    assert [view.shape[1] for view in views] == [6, 3, 5]
    assert views[1].argmax(axis=1).tolist() == [0, 0, 1, 1, 1, 2]
    for view in views:
        assert (view.sum(axis=1) == 1).all()


def test_bands_are_seen_one_by_one() -> None:
    views = views_of(part_of(1, 4, bands=np.array([0, 2, 0, 2])), np.ones(4))
    assert [view.sums.toarray().sum(axis=1).tolist() for view in views] == [[1, 0, 1, 0], [0, 1, 0, 1]]
    by_label = views_of(part_of(2, 4, bands=np.array([0, 2, 0, 2])), np.ones(8))
    assert [view.sums.shape for view in by_label] == [(8, 4), (8, 2)] * 2


def test_the_row_count_is_no_view() -> None:
    count = Part("count", (), 1, (np.ones(1),), (np.ones(1),), len, is_count=True)
    assert views_of(count, np.ones(1)) == []
