"""Weighted spectra: what is kept, what is cut, and which bin a length is in."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.features import Lengths, Spectrum, Weighted
from understudy.features.image_bases import Cosines
from understudy.features.spectrum import NUM_BINS, ROOM
from understudy.schema.images import ImageShape

SHAPE = ImageShape(4, 4)
WEIGHTED = Weighted(SHAPE, 9, 1.25)


def images(count: int, seed: int = 0) -> np.ndarray:
    """On the grid that positions have."""
    return np.random.default_rng(seed).integers(0, 2**16 + 1, (count, 16)) / 2**16


def test_coefficients_are_weighted_by_their_frequency():
    cosines = Cosines(SHAPE)
    wanted = cosines.coefficients(images(5))[:, :9] * cosines.frequencies[:9] ** 1.25
    assert WEIGHTED(images(5)) == pytest.approx(wanted, abs=1e-5)


def test_short_spectra_are_kept_and_long_ones_cut_to_length_one():
    values = WEIGHTED(images(50))
    lengths = np.linalg.norm(values, axis=1)
    reach = float(np.median(lengths))
    found = Spectrum(WEIGHTED, reach)(images(50))
    kept, long = lengths <= reach, lengths > reach
    assert found[kept] * ROOM == pytest.approx(values[kept] / reach, abs=1e-9)
    assert found[long] == pytest.approx(values[long] / lengths[long][:, None], rel=1e-3)
    assert np.linalg.norm(found, axis=1).max() <= 1.0


def test_a_length_is_in_the_bin_whose_edges_hold_it():
    lengths = Lengths(WEIGHTED)
    scales = np.exp2(-np.linspace(0, 10, 40))[:, None]
    cells = np.rint(images(40) * scales * 2**16) / 2**16
    members = lengths(cells)
    assert (members.sum(axis=1) == 1).all()
    places, long = members.argmax(axis=1), np.linalg.norm(WEIGHTED(cells), axis=1)
    assert (long <= lengths.edges[places] * (1 + 1e-5)).all()
    inner = places > 0
    assert (long[inner] >= lengths.edges[places[inner] - 1] * (1 - 1e-5)).all()
    assert len(set(places.tolist())) > 10
    assert lengths.edges[-1] == WEIGHTED.longest
    assert len(lengths.edges) == NUM_BINS


@pytest.mark.parametrize(("count", "reach"), [(0, 1.0), (17, 1.0), (3, 0.0)])
def test_impossible_spectra_are_refused(count: int, reach: float):
    with pytest.raises(ValueError, match=r"coefficients|reach"):
        Spectrum(Weighted(SHAPE, count, 1.0), reach)
