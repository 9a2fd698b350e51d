"""Samplers of images: a network (torch, loaded when images are drawn), and Gaussian spectra, in NumPy alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from understudy.arrays import Codes, Floats, Integers, one_thread
from understudy.codec import decode
from understudy.features.image_bases import Cosines, Principal
from understudy.features.spectrum import Basis
from understudy.generators.base import GENERATOR_KINDS, LabelFirst, Tensors
from understudy.generators.image_architectures import Architecture
from understudy.schema import NULL, Schema
from understudy.schema.images import LIGHTEST, ImageShape

ACTIVATIONS_AT_A_TIME = 2**10
"""Images whose activations are held in memory together."""

SPECTRA_AT_A_TIME = 2**12
"""Images of a thousand pixels each take 32 MiB."""


def image_shape(schema: Schema) -> ImageShape:
    """The shape of a schema's images."""
    if schema.image is None:
        raise ValueError("the schema has no images")
    return schema.image


class DrawsImages(LabelFirst):
    """A generator of images and perhaps their classes."""

    @abstractmethod
    def batches(self, classes: Integers, rng: np.random.Generator) -> Iterator[tuple[Any, Floats]]:
        """Some of the rows and an image of each, in [0, 1], until all rows have one.  # (…, num_pixels)"""

    def codes_of(self, classes: Integers, rng: np.random.Generator) -> Codes:
        """Codes of new images of these classes.  # (num_rows,) -> (num_rows, num_used)"""
        pixels, label = image_shape(self.schema).num_pixels, self.schema.label
        found = np.empty((len(classes), len(self.schema.used)), dtype=np.int64)
        for some, images in self.batches(classes, rng):
            found[some, :pixels] = np.rint(images * LIGHTEST)
        if label is not None:
            found[:, pixels] = np.where(classes < len(label.categories), classes, NULL)
        return found


@GENERATOR_KINDS.register("image-network")
@dataclass(frozen=True, eq=False)
class ImageNetwork(DrawsImages):
    """Draws a class, then noise, and makes an image of both.

    ``weights`` are the module's state by name: what was learnt, and what batch normalisation has seen.
    """

    schema: Schema = field(compare=False)
    architecture: Architecture
    weights: Tensors = field(compare=False)
    default_num_rows: int
    label_shares: tuple[float, ...] = (1.0,)

    @cached_property
    def module(self) -> Any:
        """The network, ready to draw.

        Raises:
            ValueError: the weights are those of another network.
        """
        with one_thread() as torch:
            module = self.architecture.build(torch, image_shape(self.schema), len(self.label_shares))
            state = {name: torch.from_numpy(value.copy()) for name, value in self.weights.items()}
            try:
                module.load_state_dict(state)
            except RuntimeError:
                raise ValueError("the weights do not fit the network") from None
            return module.train(False)

    def batches(self, classes: Integers, rng: np.random.Generator) -> Iterator[tuple[Any, Floats]]:
        """Images of all classes together."""
        for start in range(0, len(classes), ACTIVATIONS_AT_A_TIME):
            some = slice(start, start + ACTIVATIONS_AT_A_TIME)
            yield some, self.images(classes[some], rng)

    def images(self, classes: Integers, rng: np.random.Generator) -> Floats:
        """An image of each of these classes, in [0, 1].  # (num_images, num_pixels)"""
        one_hot = np.eye(len(self.label_shares))[classes]
        with one_thread() as torch, torch.no_grad():
            inputs = draw_inputs(torch, one_hot, self.architecture.noise_dim, rng)
            pixels: Floats = by_pixel(self.module(inputs)).double().numpy()
        return pixels

    def tensors(self) -> Tensors:
        """The weights."""
        return dict(self.weights)

    @classmethod
    def load(cls, schema: Schema, document: dict[str, Any], tensors: Tensors) -> Self:
        """From a document and weights; those of another network are refused here, not when images are drawn."""
        found = decode(cls, document, schema=schema, weights=tensors)
        _ = found.module
        return found


def draw_inputs(torch: Any, one_hot: Floats, noise_dim: int, rng: np.random.Generator) -> Any:
    """Inputs of a network for images of these one-hot labels.  # (num_images, inputs)"""
    noise = rng.standard_normal((len(one_hot), noise_dim))
    return torch.from_numpy(np.concatenate([noise, one_hot], axis=1).astype(np.float32))


def by_pixel(images: Any) -> Any:
    """A module's images with pixels in the schema's order, (…, channels, height, width) to (…, num_pixels)."""
    return images.movedim(1, 3).reshape(len(images), -1)


def state_of(module: Any) -> Tensors:
    """What a trained module has learnt, as arrays."""
    return {name: value.detach().numpy().copy() for name, value in module.state_dict().items()}


@dataclass(frozen=True)
class Spectra:
    """Gaussian spectra of every part of every class: a mean, dependent low frequencies, independent detail.

    An image's coefficients are ``means`` + ``factors`` z + ``detail`` e with standard normal z and
    e; higher frequencies than those that were measured have detail only.
    """

    means: Floats  # (parts, measured coefficients)
    factors: Floats  # (parts, measured coefficients, dimensions)
    detail: Floats  # (parts, num_pixels): deviations

    @property
    def num_normals(self) -> int:
        """Standard normal numbers that an image is made of."""
        return int(self.factors.shape[2] + self.detail.shape[1])

    def images(self, basis: Basis, place: int, normals: Floats) -> Floats:
        """Images of one part, in [0, 1].  # (num_images, num_normals) -> (…, num_pixels)"""
        dependent, own = np.split(normals, [self.factors.shape[2]], axis=1)
        coefficients = own * self.detail[place]
        coefficients[:, : self.means.shape[1]] += self.means[place] + dependent @ self.factors[place].T
        return np.clip(basis.images(coefficients), 0.0, 1.0)


@GENERATOR_KINDS.register("spectral")
@dataclass(frozen=True, eq=False)
class SpectralImages(DrawsImages):
    """Draws a class, then a part of it, then an image."""

    schema: Schema = field(compare=False)
    spectra: Spectra = field(compare=False)
    default_num_rows: int
    label_shares: tuple[float, ...] = (1.0,)
    part_shares: tuple[tuple[float, ...], ...] = ((1.0,),)
    """Of the parts that each class is made of, as many for all classes."""

    principal: Principal | None = None
    """The basis that spectra are in, if it is not that of cosines."""

    @cached_property
    def basis(self) -> Basis:
        """The basis that spectra are in."""
        return self.principal or Cosines(image_shape(self.schema))

    def batches(self, classes: Integers, rng: np.random.Generator) -> Iterator[tuple[Any, Floats]]:
        """Images of one part after another."""
        parts = self._parts(classes, rng)
        for place in range(len(self.spectra.means)):
            (mine,) = np.nonzero(parts == place)
            for some in np.split(mine, np.arange(SPECTRA_AT_A_TIME, len(mine), SPECTRA_AT_A_TIME)):
                normals = rng.standard_normal((len(some), self.spectra.num_normals))
                yield some, self.spectra.images(self.basis, place, normals)

    def _parts(self, classes: Integers, rng: np.random.Generator) -> Integers:
        """A part of each of these classes, by its place among all parts."""
        count = len(self.part_shares[0])
        if count == 1:
            return classes
        ends = np.cumsum(self.part_shares, axis=1)[classes, :-1]
        drawn = rng.random(len(classes))[:, None]
        return np.asarray(classes * count + (drawn >= ends).sum(axis=1))

    def tensors(self) -> Tensors:
        """The spectra in single precision."""
        return {name: np.ascontiguousarray(each, np.float32) for name, each in vars(self.spectra).items()}

    @classmethod
    def load(cls, schema: Schema, document: dict[str, Any], tensors: Tensors) -> Self:
        """From a document, which may be from before classes had parts, and spectra."""
        spectra = Spectra(**{name: each.astype(np.float64) for name, each in tensors.items()})
        whole = {"part_shares": [[1.0]], "principal": None} | document
        return decode(cls, whole, schema=schema, spectra=spectra)
