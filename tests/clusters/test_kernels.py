"""The compiled kernel against NumPy: the same integers. Needs numba."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.features import Block, Embedding, Fourier, Scales, exact
from understudy.features.exact import cosines_and_sines
from understudy.features.fourier import SLACK
from understudy.private import compiled, kernels, sums
from understudy.private.kernels import TILE_FREQUENCIES, TILE_ROWS
from understudy.private.sums import Rows, check_row_independence, partial_sum
from understudy.schema import Layout, load_schema

LATTICE = 2**32


def rows_of(num_numbers: int, num_rows: int, seed: int) -> Rows:
    columns: list[dict[str, Any]] = [
        {"name": f"x{n}", "kind": "continuous", "bounds": [0, 1], "nullable": n == 0} for n in range(num_numbers)
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
    for is_there in (False, True):
        monkeypatch.setattr(sums, "has_kernel", lambda is_there=is_there: is_there)
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
    embedding = Embedding((Block("numbers", map_, 0.9, per_label=per_label),), label=(label.start, label.stop))
    with pytest.MonkeyPatch.context() as patch:
        plain, compiled = both(rows, embedding, patch)
    assert np.array_equal(plain, compiled)


def test_a_map_whose_rows_could_leave_their_radius_is_left_to_the_careful_way(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(3, 40, 1)
    map_ = Fourier((0, 1, 2), (1.0,) * 3, (Scales(3, 0.1, 0.2),), 10, 0)
    monkeypatch.setattr(Fourier, "amplitude", lambda *_: np.float32(2**24))
    plain, compiled = both(rows, Embedding((Block("numbers", map_, 0.5),)), monkeypatch)
    assert np.array_equal(plain, compiled)
    assert (np.abs(plain) < 40 * LATTICE).all()


@pytest.mark.parametrize("amplitude", [3.7, 530_000.0, 2.0**24 - 100])
def test_of_all_phases_the_longest_pair_is_the_one_that_numpy_finds(amplitude: float) -> None:
    """2^24 phases are all there are, so this is a bound for every row."""
    longest, single = 0, np.float32(amplitude)
    for start in range(-(2**31), 2**31, 2**28):
        waves = cosines_and_sines(np.arange(start, start + 2**28, 2**8, dtype=np.int32))
        whole = [np.trunc(wave * single).astype(np.int64) for wave in waves]
        longest = max(longest, int((whole[0] ** 2 + whole[1] ** 2).max()))
    assert kernels.longest_pair(single) == longest
    assert longest <= amplitude**2 * (1 + SLACK) ** 2


def called_by_numba(function: Any) -> Any:
    return numba.njit(lambda *given: function(*given))


@pytest.mark.parametrize("num_numbers", [1, 2, 5, 40])
def test_products_of_pairs_wrap_around_alike_in_both_ways(num_numbers: int) -> None:
    """By the processor's instruction, and in a loop for processors without it."""
    rng = np.random.default_rng(num_numbers)
    pairs = (num_numbers + 1) // 2
    tile = rng.integers(-(2**15), 2**15, (pairs, 3 * TILE_ROWS, 2)).astype(np.int16)
    steps = rng.integers(-(2**15), 2**15, (pairs, TILE_FREQUENCIES, 2)).astype(np.int16)
    tile[:, :3], steps[0] = -(2**15), -(2**15)
    which = rng.permutation(pairs)
    first, last, row = pairs // 3, pairs, TILE_ROWS
    wanted = np.einsum("qrc,qfc->fr", tile[which[first:]].astype(int), steps[first:].astype(int))
    ways = [compiled.by_loop]
    if compiled.has_pair_instruction():
        ways.append(compiled.by_instruction)
    for way in ways:
        phases = np.zeros((TILE_FREQUENCIES, 3 * TILE_ROWS), dtype=np.int32)
        called_by_numba(way)(tile, steps, which, first, last, row, phases)
        rows = slice(row, row + TILE_ROWS)
        assert np.array_equal(phases[:, rows], wanted.astype(np.int32)[:, rows])
        assert not phases[:, :row].any()
        assert not phases[:, row + TILE_ROWS :].any()


FOR_ANY_PROCESSOR = """
import sys
from test_kernels import embedding_of_labels, rows_of
from understudy.private import compiled
from understudy.private.sums import partial_sum
assert not compiled.has_pair_instruction()
rows = rows_of(7, 1100, 5)
sums = partial_sum(rows, embedding=embedding_of_labels(rows), lattice=2**32)
sys.stdout.buffer.write(sums.tobytes())
"""


def embedding_of_labels(rows: Rows) -> Embedding:
    parts = (Scales(1, 0.004, 0.5), Scales(2, 0.02, 0.7), Scales(7, 0.08, 2.7))
    map_ = Fourier(tuple(range(7)), (1.0,) * 7, parts, 302, 0)
    label = rows.layout.choices[-1]
    block = Block("numbers", map_, 0.9, per_label=True)
    return Embedding((block,), label=(label.start, label.stop))


def test_other_processors_find_the_same_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(7, 1100, 5)
    plain, compiled = both(rows, embedding_of_labels(rows), monkeypatch)
    assert np.array_equal(plain, compiled)
    other = os.environ | {"NUMBA_CPU_NAME": "generic", "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", FOR_ANY_PROCESSOR]
    found = subprocess.run(command, env=other, stdout=subprocess.PIPE, check=True).stdout
    assert np.array_equal(np.frombuffer(found, np.int64), plain)


def test_images_with_hundreds_of_columns_take_fewer_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(401, 70, 2)
    map_ = Fourier(tuple(range(401)), (1.0,) * 401, (Scales(401, 5.0, 9.0),), 6, 0)
    plain, compiled = both(rows, Embedding((Block("numbers", map_, 1.0),)), monkeypatch)
    assert np.array_equal(plain, compiled)


def test_a_machine_whose_compiled_sums_differ_from_numpys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(7, 4, 5)
    embedding, found = embedding_of_labels(rows), sums.fourier_sums
    check_row_independence(rows.layout, embedding, LATTICE)

    def off_by_one(*given: Any, **named: Any) -> Any:
        total = found(*given, **named)
        total[0, 0] += len(given[2])  # as much for every row, so that rows add up
        return total

    monkeypatch.setattr(sums, "fourier_sums", off_by_one)
    with pytest.raises(InputError, match="than NumPy's"):
        check_row_independence(rows.layout, embedding, LATTICE)


def test_what_was_kept_on_disk_is_known_by_all_that_it_was_made_from() -> None:
    names = {compiled.add_rows.py_func.__qualname__, compiled.longest.py_func.__qualname__}
    (digest,) = {name.rpartition("_")[2] for name in names}
    modules = (compiled, exact, kernels)
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in modules)
    assert hashlib.sha256(sources).hexdigest().startswith(digest)
    assert len(digest) == 16
