from __future__ import annotations

import numpy as np
import pytest

from understudy.classifier.inputs import DIRECTIONS, StrokeInputs
from understudy.schema.images import ImageShape

SHAPE = ImageShape(16, 20)


def grating(angle: float) -> np.ndarray:
    """Waves whose brightness changes along a direction."""
    down, across = np.meshgrid(np.arange(16), np.arange(20), indexing="ij")
    phase = 2.36 * (across * np.cos(angle) + down * np.sin(angle))
    return np.asarray(128 + 100 * np.cos(phase)).reshape(1, -1)


@pytest.mark.parametrize("direction", range(DIRECTIONS))
def test_a_wave_is_seen_by_the_filter_of_its_direction(direction: int) -> None:
    strokes = StrokeInputs(SHAPE)
    images = (grating(np.pi * direction / DIRECTIONS) / 255).reshape(1, 1, 16, 20)
    channels = strokes._channels(images.astype(np.float32))[0, 1 : 1 + DIRECTIONS]
    middle = channels[:, 1:-1, 1:-1].mean(axis=(1, 2))
    assert middle.argmax() == direction
    assert middle[direction] > 3 * middle[(direction + DIRECTIONS // 2) % DIRECTIONS]


def test_an_even_image_has_no_strokes_inside() -> None:
    channels = StrokeInputs(SHAPE)._channels(np.full((1, 1, 16, 20), 0.5, np.float32))[0, 1:]
    assert np.abs(channels[:DIRECTIONS, 2:3, 2:4]).max() < 0.02


def test_what_an_image_becomes_does_not_depend_on_the_others() -> None:
    strokes = StrokeInputs(ImageShape(12, 12, 3))
    pixels = np.random.default_rng(0).integers(0, 256, (9, 432)).astype(np.float64)
    whole = strokes.raw(pixels)
    assert whole.shape == (9, strokes.dim - 1)
    assert np.array_equal(whole[4:5], strokes.raw(pixels[4:5]))


def test_brightness_and_contrast_of_a_whole_image_matter_little() -> None:
    strokes = StrokeInputs(SHAPE)
    pixels = np.random.default_rng(0).integers(60, 200, (1, 320)).astype(np.float64)
    dimmer = strokes.raw(pixels * 0.6)
    assert strokes.raw(pixels)[0] @ dimmer[0] > 0.98 * np.linalg.norm(strokes.raw(pixels)) * np.linalg.norm(dimmer)


def test_weights_by_place_have_the_scores_of_weights_by_cosine() -> None:
    strokes = StrokeInputs(SHAPE)
    rng = np.random.default_rng(1)
    weights, found = rng.normal(size=(2, strokes.dim - 1))
    by_place = strokes.by_place(weights) * strokes.by_place(found)
    assert by_place.sum() == pytest.approx(weights @ found)
