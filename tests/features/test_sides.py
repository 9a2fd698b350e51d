"""Which part of its class an image is in."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.features import Sides, Weighted
from understudy.schema.images import ImageShape

SHAPE = ImageShape(3, 3)
WEIGHTED = Weighted(SHAPE, 5, 1.0)
PLANE = (1.0, 0.0, 0.0, 0.0, 0.0)


def cells(seed: int = 0, count: int = 200) -> np.ndarray:
    """Pixels on the grid of positions, and one of two classes."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 2**16 + 1, (count, 9)) / 2**16
    return np.concatenate([pixels, np.eye(2)[rng.integers(0, 2, count)]], axis=1)


def test_each_class_has_planes_of_its_own():
    rng = np.random.default_rng(1)
    normals, rows = rng.standard_normal((4, 5)), cells()
    heights = WEIGHTED(rows) @ normals.T
    offsets = np.median(heights, axis=0)
    sides = Sides(WEIGHTED, (9, 11), tuple(map(tuple, normals.tolist())), tuple(offsets.tolist()))
    above = (heights > offsets).reshape(-1, 2, 2)[np.arange(len(rows)), rows[:, 10].astype(int)]
    found = sides(rows)
    assert sides.dim == 4
    assert (found.sum(axis=1) == 1).all()
    clear = (np.abs(heights - offsets) > 1e-4).all(axis=1)
    assert clear.sum() > 150
    assert (found.argmax(axis=1) == above[:, 0] + 2 * above[:, 1])[clear].all()
    assert (found.sum(axis=0) > 20).all()


def test_an_image_on_a_plane_is_below_it():
    flat = Sides(WEIGHTED, None, ((0.0,) * 5,), (0.0,))
    assert (flat(cells())[:, 0] == 1).all()


@pytest.mark.parametrize(
    ("classes", "normals", "offsets"),
    [
        ((9, 11), (PLANE,), (0.0,)),
        (None, (PLANE,), (0.0, 1.0)),
        (None, (), ()),
        (None, (PLANE, PLANE[:4]), (0.0, 0.0)),
        (None, (PLANE,) * 5, (0.0,) * 5),
    ],
)
def test_impossible_planes_are_refused(classes, normals, offsets):
    with pytest.raises(ValueError, match="plane"):
        Sides(WEIGHTED, classes, normals, offsets)
