"""Strokes of an image: how strongly edges of each direction show, coarsely by place.

Oriented band-pass filters at two scales, the modulus of what they find, averaged over places and
taken apart by a cosine transform: the first layer of a scattering network (Mallat 2012). Nothing is
learnt, and a row's numbers depend on that row alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, fft2, ifft2

from understudy.arrays import Floats
from understudy.schema.images import LIGHTEST, ImageShape

DIRECTIONS = 8
SCALES = 2
POOL = 4
"""Side of the squares of pixels that make one place."""

CENTRE = 3 * math.pi / 4
WIDTH = 0.8
SLENDER = 0.5
"""Frequency, width and shape of the finest filters."""

LOWEST = 7
"""Cosines of places are kept up to this total frequency, which is where private noise takes over."""

FLOOR = 1e-2


@dataclass(frozen=True)
class Strokes:
    """Brightness and strokes of images of one shape."""

    shape: ImageShape

    @property
    def channels(self) -> int:
        """Brightness, then each scale's directions, for every colour."""
        return (1 + SCALES * DIRECTIONS) * self.shape.channels

    @cached_property
    def places(self) -> tuple[int, int]:
        """Rows and columns of places."""
        high, wide = self._padded
        return high // POOL, wide // POOL

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Which cosines of places are kept.  # (place rows, place columns)"""
        down, across = self.places
        return np.arange(down)[:, None] + np.arange(across)[None, :] < LOWEST

    @property
    def dim(self) -> int:
        """Numbers of an image."""
        return self.channels * int(self.kept.sum())

    def __call__(self, pixels: Floats) -> Floats:
        """Numbers of images; each channel has mean 0 and size 1 before its cosines.

        # (num_images, num_pixels) -> (num_images, dim)
        """
        shape = self.shape
        images = pixels.reshape(-1, shape.height, shape.width, shape.channels) / LIGHTEST
        found = self._channels(np.moveaxis(images, 3, 1).astype(np.float32)).astype(np.float64)
        found -= found.mean(axis=(2, 3), keepdims=True)
        found /= np.sqrt((found**2).mean(axis=(2, 3), keepdims=True)) + FLOOR
        down, across = (_cosines(count) for count in self.places)
        return np.asarray((down @ found @ across.T)[:, :, self.kept].reshape(len(pixels), -1))

    def place_weights(self, weights: Floats) -> Floats:
        """Weights of numbers as weights of channels by place.  # (..., dim) -> (..., channels, rows, columns)"""
        spread = np.zeros((*weights.shape[:-1], self.channels, *self.places))
        spread[..., self.kept] = weights.reshape(*weights.shape[:-1], self.channels, -1)
        down, across = (_cosines(count) for count in self.places)
        return np.asarray(down.T @ spread @ across)

    def _channels(self, images: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Brightness and strokes by place.  # (images, colours, height, width) -> (images, channels, rows, columns)"""
        high, wide = self._padded
        top, left = (high - self.shape.height) // 2, (wide - self.shape.width) // 2
        framed = np.zeros((*images.shape[:2], high, wide), np.float32)
        framed[:, :, top : top + self.shape.height, left : left + self.shape.width] = images
        spectrum = fft2(framed)
        found = [_pooled(framed, POOL)[:, :, None]]
        for scale in range(SCALES):
            part = _lower(spectrum, 2**scale)
            filters = _filters(part.shape[2], part.shape[3])
            strokes = np.abs(ifft2(part[:, :, None] * filters))
            found.append(_pooled(strokes, POOL // 2**scale))
        stacked = np.concatenate(found, axis=2)
        return stacked.reshape(len(images), -1, *self.places)

    @cached_property
    def _padded(self) -> tuple[int, int]:
        sides = (self.shape.height, self.shape.width)
        high, wide = (POOL * math.ceil((side + POOL) / POOL) for side in sides)
        return high, wide


def _filters(high: int, wide: int) -> npt.NDArray[np.float32]:
    """Oriented band-pass filters with mean zero, as spectra.  # (directions, high, wide)"""
    down, across = np.meshgrid(*(2 * np.pi * np.fft.fftfreq(n) for n in (high, wide)), indexing="ij")
    found = []
    for direction in np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
        wave = _bump(down, across, direction, CENTRE)
        still = _bump(down, across, direction, 0.0)
        found.append(wave - still * (wave[0, 0] / still[0, 0]))
    return np.stack(found).astype(np.float32)


def _bump(down: Floats, across: Floats, direction: float, centre: float) -> Floats:
    """A long Gaussian bump around a frequency, wrapped around the ends of the spectrum."""
    total = np.zeros_like(down)
    for turn_down in (-1, 0, 1):
        for turn_across in (-1, 0, 1):
            y = down + 2 * np.pi * turn_down - centre * math.sin(direction)
            x = across + 2 * np.pi * turn_across - centre * math.cos(direction)
            along = x * math.cos(direction) + y * math.sin(direction)
            beside = y * math.cos(direction) - x * math.sin(direction)
            total += np.exp(-0.5 * WIDTH**2 * (along**2 + (beside / SLENDER) ** 2))
    return total


def _lower(spectrum: npt.NDArray[np.complex64], factor: int) -> npt.NDArray[np.complex64]:
    """The spectrum of the same images at a fraction of the size."""
    if factor == 1:
        return spectrum
    rows, columns = (np.r_[0 : math.ceil(n / factor / 2), n - n // factor // 2 : n] for n in spectrum.shape[2:])
    return np.asarray(spectrum[:, :, rows][:, :, :, columns] / factor**2)


def _pooled(maps: npt.NDArray[np.float32], step: int) -> npt.NDArray[np.float32]:
    """Averages around places, by a Gaussian half a place wide."""
    down, across = (_averages(n, step) for n in maps.shape[-2:])
    return np.asarray(down @ maps @ across.T)


def _averages(pixels: int, step: int) -> npt.NDArray[np.float32]:
    centres = (np.arange(pixels // step) + 0.5) * step - 0.5
    weights = np.exp(-0.5 * ((np.arange(pixels) - centres[:, None]) / (step / 2)) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)


def _cosines(count: int) -> Floats:
    """The orthonormal cosine transform of so many numbers."""
    return np.asarray(dct(np.eye(count), norm="ortho", axis=0))
