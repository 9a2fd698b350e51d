"""The compiled kernel against NumPy: the same integers. Needs numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.features import Block, Embedding, Fourier, Scales
from understudy.private import sums
from understudy.private.sums import Rows, partial_sum
from understudy.schema import Layout, load_schema

LATTICE = 2**32


def rows_of(num_numbers: int, num_rows: int, seed: int) -> Rows:
    columns: list[dict[str, Any]] = [
        {"name": f"x{n}", "kind": "continuous", "bounds": [0, 1], "nullable": n == 0}
        for n in range(num_numbers)
    ]
    columns += [{"name": "ill", "kind": "binary", "categories": [0, 1], "role": "label"}]
    layout = Layout(load_schema({"columns": columns}))
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2**32 + 1, (num_rows, num_numbers + 1))
    codes[:, -1] = rng.integers(-1, 2, num_rows)
    codes[rng.random(num_rows) < 0.2, 0] = -1
    codes[: num_rows // 4, :-1] = rng.choice([0, 2**31, 2**32], (num_rows // 4, num_numbers))
    return Rows(layout, codes)


def both(rows: Rows, embedding: Embedding, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(sums, "has_kernel", lambda compiled=compiled: compiled)
        found.append(partial_sum(rows, embedding=embedding, lattice=LATTICE))
    return found


@settings(max_examples=25, deadline=None)
@given(
    num_numbers=st.integers(1, 13),
    num_features=st.integers(1, 200).map(lambda n: 2 * n),
    scale=st.sampled_from([1e-4, 0.02, 0.5, 100.0]),
    per_label=st.booleans(),
    seed=st.integers(0, 99),
)
def test_compiled_sums_are_the_integers_that_numpy_gives(
    num_numbers: int, num_features: int, scale: float, per_label: bool, seed: int
) -> None:
    rows = rows_of(num_numbers, 90, seed)
    parts = (Scales(num_numbers, scale, 2 * scale),)
    map_ = Fourier(tuple(range(num_numbers)), (1.0,) * num_numbers, parts, num_features, seed)
    label = rows.layout.choices[-1]
    embedding = Embedding(
        (Block("numbers", map_, 0.9, per_label=per_label),), label=(label.start, label.stop)
    )
    with pytest.MonkeyPatch.context() as patch:
        plain, compiled = both(rows, embedding, patch)
    assert np.array_equal(plain, compiled)


def test_rows_that_leave_their_radius_are_left_to_the_careful_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = rows_of(3, 40, 1)
    map_ = Fourier((0, 1, 2), (1.0,) * 3, (Scales(3, 0.1, 0.2),), 10, 0)
    monkeypatch.setattr(Fourier, "whole_scale", lambda *_: np.float32(2**24))
    plain, compiled = both(rows, Embedding((Block("numbers", map_, 0.5),)), monkeypatch)
    assert np.array_equal(plain, compiled)
    assert (np.abs(plain) < 40 * LATTICE).all()
