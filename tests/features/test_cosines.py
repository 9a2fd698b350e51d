"""The cosine basis is orthonormal, ordered, and goes both ways."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.features.image_bases import Cosines
from understudy.features.spectrum import Weighted
from understudy.schema.images import ImageShape

SHAPES = [ImageShape(4, 6), ImageShape(5, 1), ImageShape(3, 2, 3)]
each_shape = pytest.mark.parametrize("shape", SHAPES)


@each_shape
def test_the_basis_is_orthonormal(shape: ImageShape):
    basis = Cosines(shape).matrix(shape.num_pixels)
    assert basis.T @ basis == pytest.approx(np.eye(shape.num_pixels), abs=1e-12)


@each_shape
def test_coefficients_are_products_with_the_basis_and_give_the_image_back(shape: ImageShape):
    cosines = Cosines(shape)
    images = np.random.default_rng(0).random((7, shape.num_pixels))
    spectra = cosines.coefficients(images)
    assert spectra == pytest.approx(images @ cosines.matrix(shape.num_pixels), abs=1e-12)
    assert cosines.images(spectra) == pytest.approx(images, abs=1e-12)


def test_the_lowest_frequency_is_the_mean_brightness():
    shape = ImageShape(4, 4)
    flat = np.full((1, 16), 0.5)
    assert Cosines(shape).coefficients(flat)[0] == pytest.approx([2.0, *[0.0] * 15])
    assert (np.diff(Cosines(shape).frequencies) >= 0).all()


def test_the_lowest_wave_across_falls_from_left_to_right():
    cosines = Cosines(ImageShape(1, 8))
    wave = cosines.images(np.array([[0.0, 1.0]]))[0]
    assert (np.diff(wave) < 0).all()


def test_grey_images_in_colour_have_no_colour():
    shape = ImageShape(2, 2, 3)
    grey = np.repeat(np.array([0.1, 0.9, 0.4, 0.3])[:, None], 3, axis=1).reshape(1, 12)
    cosines = Cosines(shape)
    spectrum = cosines.coefficients(grey)[0]
    plain = Cosines(ImageShape(2, 2)).coefficients(np.array([[0.1, 0.9, 0.4, 0.3]]))[0]
    assert np.sort(np.abs(spectrum))[-4:] == pytest.approx(np.sort(np.abs(plain)) * np.sqrt(3))
    assert np.sort(np.abs(spectrum))[:8] == pytest.approx(0.0, abs=1e-12)


def test_no_image_is_longer_than_is_said():
    shape = ImageShape(6, 5)
    images = (np.random.default_rng(1).random((200, 30)) < 0.5).astype(float)
    cosines = Cosines(shape)
    weighted = cosines.coefficients(images)[:, :12] * cosines.frequencies[:12] ** 1.5
    assert np.linalg.norm(weighted, axis=1).max() <= Weighted(shape, 12, 1.5).longest
