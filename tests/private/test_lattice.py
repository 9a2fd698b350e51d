from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from understudy.features import Norm, Sign
from understudy.features.embedding import kept_radius
from understudy.private.lattice import to_lattice

Floats = npt.NDArray[np.float64]
wild = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True),
    st.floats(-1, 1),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 1.0, -1.0, 1.0 + 2**-52, 0.0, -0.0]),
)
tables = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=wild)
radii = st.one_of(st.integers(0, 40), st.integers(1, 2**24), st.just(2**24))
signs = st.sampled_from(list(Sign))


def squared_norm(row: Floats) -> int:
    """In Python integers: exact whatever the size."""
    assert all(value == int(value) for value in row.tolist())
    return sum(int(value) ** 2 for value in row.tolist())


@settings(max_examples=400, deadline=None)
@given(features=tables, radius=radii, sign=signs)
def test_a_map_that_breaks_its_promise_is_clipped_to_it(features: Floats, radius: int, sign: Sign) -> None:
    for row in to_lattice(features, radius, sign=sign):
        assert squared_norm(row) <= radius**2
        assert sign is Sign.SIGNED or (row >= 0).all()


def length(row: Floats) -> int:
    """The L1 norm in Python integers."""
    assert all(value == int(value) for value in row.tolist())
    return sum(abs(int(value)) for value in row.tolist())


@settings(max_examples=400, deadline=None)
@given(
    features=tables,
    radius=st.one_of(radii, st.integers(1, 2**32)),
    sign=signs,
    nonzeros=st.one_of(st.none(), st.integers(1, 12)),
)
def test_a_map_that_breaks_its_promise_is_cut_to_its_l1_radius(
    features: Floats, radius: int, sign: Sign, nonzeros: int | None
) -> None:
    """Also if it has more features other than zero than it said."""
    if sign is Sign.CONSTANT:
        nonzeros = None  # such a map is a single number, or all of its features are alike
    for row in to_lattice(features, radius, sign=sign, norm=Norm.L1, nonzeros=nonzeros):
        assert length(row) <= radius
        assert sign is Sign.SIGNED or (row >= 0).all()


@pytest.mark.parametrize("dim", [3, 100, 60_000])
@pytest.mark.parametrize("radius", [1, 100, 2**24, 2**32])
@pytest.mark.parametrize("value", [1.0, -1.0, math.inf, 0.5])
def test_rows_far_outside_the_l1_ball_end_inside_it_at_any_size(dim: int, radius: int, value: float) -> None:
    features = np.full((1, dim), value)
    found = length(to_lattice(features, radius, norm=Norm.L1, nonzeros=1)[0])
    assert found <= radius
    assert found > 0.99 * radius - 2 * dim, "they keep most of their length"


@settings(max_examples=150, deadline=None)
@given(features=tables, radius=radii, sign=signs, norm=st.sampled_from(list(Norm)))
def test_a_row_depends_on_itself_alone(features: Floats, radius: int, sign: Sign, norm: Norm) -> None:
    together = to_lattice(features, radius, sign=sign, norm=norm)
    for position in range(len(features)):
        alone = to_lattice(features[position : position + 1], radius, sign=sign, norm=norm)
        assert np.array_equal(alone[0], together[position])


@pytest.mark.parametrize("dim", [1, 2, 3, 100, 5000, 60_000])
@pytest.mark.parametrize("radius", [1, 100, 2**20, 2**24])
@pytest.mark.parametrize("value", [1.0, -1.0, 1e308, math.inf, 0.5])
def test_rows_far_outside_the_ball_end_inside_it_at_any_size(dim: int, radius: int, value: float) -> None:
    assert squared_norm(to_lattice(np.full((1, dim), value), radius)[0]) <= radius**2


@settings(max_examples=100, deadline=None)
@given(direction=arrays(np.float64, st.integers(1, 40), elements=st.floats(-1, 1)), radius=st.integers(2**12, 2**24))
def test_an_honest_row_is_only_rounded(direction: Floats, radius: int) -> None:
    norm = np.linalg.norm(direction)
    if not norm > 1e-3:
        return
    honest = direction / norm * (1 - 1e-12)
    target = math.floor(radius - (math.sqrt(len(honest)) / 2 + 1))
    found = to_lattice(honest[None, :], radius)[0]
    assert np.abs(found - target * honest).max() <= 0.5 + 1e-6


def test_a_row_that_holds_one_nan_becomes_zero_and_its_neighbours_stay() -> None:
    features = np.array([[0.5, math.nan], [0.5, 0.5], [math.nan, math.nan]])
    found = to_lattice(features, 2**20)
    assert not found[0].any()
    assert not found[2].any()
    assert np.array_equal(found[1], to_lattice(features[1:2], 2**20)[0])


def test_a_dishonest_row_keeps_its_direction_and_most_of_its_length() -> None:
    found = to_lattice(np.array([[1.0, 1.0, -1.0]]), 2**24)[0]
    assert found[0] == found[1] == -found[2]
    assert math.sqrt(squared_norm(found)) > 0.999 * 2**24


def test_a_radius_too_small_for_its_features_gives_zeros_rather_than_a_breach() -> None:
    assert not to_lattice(np.full((3, 10_000), 0.01), 40).any()


def test_the_caller_s_features_are_left_as_they_were() -> None:
    features = np.array([[3.0, math.nan]])
    to_lattice(features, 100)
    assert features[0, 0] == 3.0


@pytest.mark.parametrize("radius", [17, 1000, 20_002, 2**24])
def test_a_feature_of_size_one_is_not_rounded_at_all(radius: int) -> None:
    found = to_lattice(np.eye(3), radius)
    assert (found == np.eye(3) * kept_radius(radius, 3)).all()


@pytest.mark.parametrize("norm", list(Norm))
def test_a_constant_of_many_features_that_claims_few_stays_inside(norm: Norm) -> None:
    (row,) = to_lattice(np.ones((1, 5)), 1000, sign=Sign.CONSTANT, norm=norm, nonzeros=1)
    length = np.abs(row).sum() if norm is Norm.L1 else math.sqrt(squared_norm(row))
    assert 0 < length <= 1000
