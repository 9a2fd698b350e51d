"""The cosine basis of images: public, orthonormal, and ordered by frequency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import dctn, idctn

from understudy.arrays import Floats, Integers
from understudy.schema.images import ImageShape

COLOURS = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Brightness and two differences of colour, orthonormal."""

COLOUR_FREQUENCY = 2.0
"""Colours vary less and more slowly than brightness: they count as so many times the frequency."""


@dataclass(frozen=True)
class Cosines:
    """Products of cosines down and across (a discrete cosine transform), for each colour channel."""

    shape: ImageShape

    @cached_property
    def frequencies(self) -> Floats:
        """Of every coefficient, the lowest first; at least 1.  # (num_pixels,)"""
        return self._unordered[self.order]

    @cached_property
    def order(self) -> Integers:
        """Where coefficients lie in an unordered spectrum, by frequency."""
        return np.argsort(self._unordered, kind="stable")

    @cached_property
    def _unordered(self) -> Floats:
        shape = self.shape
        down, across = np.arange(shape.height)[:, None], np.arange(shape.width)[None, :]
        plain = np.sqrt(1.0 + down**2 + across**2)
        weights = [1.0] + [COLOUR_FREQUENCY] * (shape.channels - 1)
        return np.stack([plain * weight for weight in weights], axis=2).ravel()

    def matrix(self, count: int) -> Floats:
        """The lowest basis images.  # (num_pixels, count)"""
        return np.ascontiguousarray(self.images(np.eye(count)).T)

    def coefficients(self, images: Floats) -> Floats:
        """Spectra of images.  # (num_images, num_pixels) -> (num_images, num_pixels)"""
        found = dctn(self._shaped(images), axes=(1, 2), norm="ortho")
        if self.shape.channels == 3:
            found = found @ COLOURS.T
        return np.asarray(found.reshape(images.shape)[:, self.order])

    def images(self, coefficients: Floats) -> Floats:
        """Images of spectra, of which the highest coefficients may be left out.

        # (num_images, at most num_pixels) -> (num_images, num_pixels)
        """
        spread = np.zeros((len(coefficients), self.shape.num_pixels))
        spread[:, self.order[: coefficients.shape[1]]] = coefficients
        shaped = self._shaped(spread)
        if self.shape.channels == 3:
            shaped = shaped @ COLOURS
        return np.asarray(idctn(shaped, axes=(1, 2), norm="ortho")).reshape(spread.shape)

    def _shaped(self, rows: Floats) -> Floats:
        return rows.reshape(-1, self.shape.height, self.shape.width, self.shape.channels)

    def longest(self, count: int, tilt: float) -> float:
        """A bound on the weighted length of any image's lowest coefficients."""
        return math.sqrt(self.shape.num_pixels) * float(self.frequencies[count - 1] ** tilt)
