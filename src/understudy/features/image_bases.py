"""Orthonormal bases of images, ordered by frequency: the cosine transform (DCT), and PCA of public images."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.fft import dctn, idctn

from understudy.arrays import Floats, Integers
from understudy.features.base import PublicInput
from understudy.schema.images import LIGHTEST, ImageShape

COLOURS = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Brightness and two differences of colour, orthonormal."""

COLOUR_FREQUENCY = 2.0
"""Colours vary less and more slowly than brightness: they count as so many times the frequency."""


@dataclass(frozen=True)
class Cosines:
    """The two-dimensional discrete cosine transform (DCT-II, orthonormal) of each colour channel."""

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


UNIT = 2.0**14
"""Directions are kept as 16-bit whole numbers of this unit: entries lie between -1 and 1."""

STEEPEST = 1e3
"""Largest frequency of a direction: keeps weights finite along directions in which public images hardly vary."""


@dataclass(frozen=True)
class Principal(PublicInput):
    """Principal components (PCA) of public images, the largest variance first, with frequencies to weigh them by.

    A frequency is the root of the first variance over a direction's own: as with waves, variance falls as
    one over its square. What public images do not span is filled up with cosines, for detail alone.
    ``packed`` are the directions, so that a plan is whole without the images that they came from.
    """

    shape: ImageShape
    packed: str
    spread: tuple[float, ...]

    def __post_init__(self) -> None:
        wanted = self.shape.num_pixels * len(self.spread) * 2
        if not self.spread or len(base64.b64decode(self.packed, validate=True)) != wanted:
            raise ValueError("every direction has as many numbers as an image, and a frequency")
        if min(self.spread) < 1 or list(self.spread) != sorted(self.spread):
            raise ValueError("frequencies are at least 1, and ascend")

    @cached_property
    def directions(self) -> Floats:
        """One column per direction.  # (num_pixels, count)"""
        whole = np.frombuffer(base64.b64decode(self.packed), dtype="<i2")
        return np.asarray(whole.reshape(len(self.spread), -1).T / UNIT)

    def matrix(self, count: int) -> Floats:
        """The first directions.  # (num_pixels, count)"""
        if count > len(self.spread):
            raise ValueError("there are not so many directions")
        return np.ascontiguousarray(self.directions[:, :count])

    @cached_property
    def frequencies(self) -> Floats:
        """Of every direction and of the cosines that fill them up.  # (num_pixels,)"""
        known = np.asarray(self.spread)
        beyond = np.arange(len(known), self.shape.num_pixels) + 1
        return np.concatenate([known, known[-1] * np.sqrt(beyond / len(known))])

    @cached_property
    def whole(self) -> Floats:
        """An orthonormal basis of all images that begins with the directions.  # (num_pixels, num_pixels)"""
        cosines = Cosines(self.shape).matrix(self.shape.num_pixels)
        found, signs = np.linalg.qr(np.concatenate([self.directions, cosines], axis=1))
        return np.asarray(found * np.sign(np.diag(signs)[: found.shape[1]]))

    def coefficients(self, images: Floats) -> Floats:
        """Images in this basis.  # (num_images, num_pixels) -> (num_images, num_pixels)"""
        return np.asarray(images @ self.whole)

    def images(self, coefficients: Floats) -> Floats:
        """The inverse of ``coefficients``; the last ones may be left out."""
        return np.asarray(coefficients @ self.whole[:, : coefficients.shape[1]].T)


def principal_of(images: npt.NDArray[np.uint8], shape: ImageShape, count: int) -> Principal:
    """PCA of public images, by the eigenvectors of their covariance.  # images: (num_images, ...)"""
    pixels = images.reshape(len(images), shape.num_pixels) / float(LIGHTEST)
    centred = pixels - pixels.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(pixels))
    variances, directions = values[::-1][:count], vectors[:, ::-1][:, :count]
    ratios = variances[0] / np.maximum(variances, variances[0] / STEEPEST**2)
    packed = base64.b64encode(np.rint(directions.T * UNIT).astype("<i2").tobytes()).decode()
    spread = np.maximum.accumulate(np.sqrt(np.maximum(ratios, 1.0)))
    return Principal(shape, packed, tuple(float(np.float32(each)) for each in spread))
