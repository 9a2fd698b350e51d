from __future__ import annotations

from itertools import islice

import numpy as np
import numpy.typing as npt
import pytest

from understudy.features.points import uniform_stream, uniforms

# In units of 2^-53; every release ever made relies on them.
GOLDEN = {
    0: [5737240835340369, 2430022687152955, 369056694262205, 148867706415199],
    1: [4610079356560477, 8561015897205333, 1298474356252035, 8544674593265037],
    7: [5630359420943529, 8081383479436493, 6986755571089759, 2028486033845573],
    2**63 - 1: [1580458344052303, 4232740998685113, 7431276652108935, 2746589013676999],
}


@pytest.mark.parametrize("seed", GOLDEN)
def test_draws_are_a_fixed_function_of_the_seed(seed: int) -> None:
    found = (uniforms(seed, 4) * 2**53).tolist()
    assert found == GOLDEN[seed]


@pytest.mark.parametrize("sizes", [(1, 30), (2, 15), (7, 5), (30, 1)])
def test_a_stream_goes_on_where_it_stopped(sizes: tuple[int, int]) -> None:
    count, runs = sizes
    whole = uniforms(11, count * runs)
    assert np.array_equal(np.concatenate(list(islice(uniform_stream(11, count), runs))), whole)


def test_two_streams_of_one_seed_do_not_disturb_each_other() -> None:
    one, other = uniform_stream(5, 3), uniform_stream(5, 3)
    first, second = next(one), next(one)
    assert np.array_equal(next(other), first)
    assert np.array_equal(next(other), second)
    assert not np.array_equal(first, second)


def test_draws_lie_strictly_inside_the_unit_interval_and_are_uniform() -> None:
    """The ends would be infinite as normal numbers."""
    found = uniforms(3, 100_000)
    assert found.min() > 0
    assert found.max() < 1
    counts = np.bincount((found * 20).astype(int), minlength=20)
    assert ((counts - 5000) ** 2 / 5000).sum() < 60  # chi-squared, 19 degrees: p = 4e-6


@pytest.mark.parametrize("bits", [0, 2**64 - 1])
def test_the_most_extreme_bits_give_numbers_inside_the_interval(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Extreme:
        def __init__(self, seed: int) -> None:
            self.seed = seed

        def random_raw(self, count: int) -> npt.NDArray[np.uint64]:
            return np.full(count, bits, dtype=np.uint64)

    monkeypatch.setattr(np.random, "PCG64", Extreme)
    assert ((uniforms(0, 3) > 0) & (uniforms(0, 3) < 1)).all()
