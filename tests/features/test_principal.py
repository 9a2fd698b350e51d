"""Principal directions of public images."""

from __future__ import annotations

import json

import numpy as np
import pytest

from understudy.codec import decode, encode
from understudy.features.image_bases import Principal, principal_of
from understudy.features.spectrum import Weighted
from understudy.schema.images import ImageShape

SHAPE = ImageShape(4, 3)


def public_images(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    spread = np.linspace(40, 2, 12)
    turned = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    pixels = 128 + (rng.standard_normal((500, 12)) * spread) @ turned.T
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8).reshape(500, 4, 3)


BASIS = principal_of(public_images(), SHAPE, 5)


def test_directions_are_those_of_most_variance():
    pixels = public_images().reshape(500, 12) / 255
    values, vectors = np.linalg.eigh(np.cov(pixels.T))
    overlaps = np.abs(np.einsum("ij,ij->j", BASIS.matrix(5), vectors[:, ::-1][:, :5]))
    assert overlaps == pytest.approx(1.0, abs=1e-3)
    assert BASIS.frequencies[:5] == pytest.approx(np.sqrt(values[-1] / values[::-1][:5]), rel=1e-3)
    assert (np.diff(BASIS.frequencies) >= 0).all()


def test_the_whole_basis_is_orthonormal_and_begins_with_the_directions():
    assert BASIS.whole.T @ BASIS.whole == pytest.approx(np.eye(12), abs=1e-9)
    assert BASIS.whole[:, :5] == pytest.approx(BASIS.matrix(5), abs=1e-3)
    images = np.random.default_rng(1).random((7, 12))
    assert BASIS.images(BASIS.coefficients(images)) == pytest.approx(images)
    assert BASIS.images(np.eye(12)[:2, :5]) == pytest.approx(BASIS.matrix(2).T, abs=1e-3)


def test_no_image_is_longer():
    corners = np.random.default_rng(2).integers(0, 2, (500, 12)).astype(float)
    weights = BASIS.frequencies[:5] ** 1.5
    assert (
        np.linalg.norm(corners @ BASIS.matrix(5) * weights, axis=1).max()
        <= Weighted(BASIS.shape, 5, 1.5, BASIS).longest
    )


def test_it_comes_back_from_its_description():
    document = json.loads(json.dumps(encode(BASIS)))
    assert decode(Principal, document) == BASIS


@pytest.mark.parametrize(
    ("packed", "spread"),
    [
        (BASIS.packed[:-8], BASIS.spread),
        (BASIS.packed, (0.5, *BASIS.spread[1:])),
        (BASIS.packed, BASIS.spread[::-1]),
        ("", ()),
    ],
)
def test_damaged_bases_are_refused(packed, spread):
    with pytest.raises(ValueError, match=r"direction|frequencies"):
        Principal(SHAPE, packed, spread)
    with pytest.raises(ValueError, match="directions"):
        BASIS.matrix(6)
