"""Images from Gaussian spectra: a sampler of coefficients in a cosine or principal-component basis, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats
from understudy.codec import decode, encode
from understudy.features.image_bases import Cosines, Principal
from understudy.features.spectrum import Basis
from understudy.generators.base import GENERATOR_KINDS, LabelFirst, Tensors, image_shape
from understudy.schema import NULL, Schema
from understudy.schema.images import LIGHTEST

IMAGES_AT_A_TIME = 2**12
"""Of a thousand pixels each they take 32 MiB."""


@dataclass(frozen=True)
class Spectra:
    """Gaussian spectra of every part of every class: a mean, dependent low frequencies, independent detail.

    An image's coefficients are ``means`` + ``factors`` z + ``detail`` e with standard normal z and
    e; higher frequencies than those that were measured have detail only.
    """

    means: Floats  # (parts, measured coefficients)
    factors: Floats  # (parts, measured coefficients, dimensions)
    detail: Floats  # (parts, num_pixels): deviations

    def images(self, basis: Basis, place: int, normals: Floats) -> Floats:
        """Images of one part, in [0, 1].  # (num_images, dimensions + num_pixels) -> (…, num_pixels)"""
        dependent, own = np.split(normals, [self.factors.shape[2]], axis=1)
        coefficients = own * self.detail[place]
        coefficients[:, : self.means.shape[1]] += self.means[place] + dependent @ self.factors[place].T
        return np.clip(basis.images(coefficients), 0.0, 1.0)

    def draw(self, basis: Basis, place: int, count: int, rng: np.random.Generator) -> Floats:
        """New images of one part.  # (count, num_pixels)"""
        size = self.factors.shape[2] + self.detail.shape[1]
        return self.images(basis, place, rng.standard_normal((count, size)))


@dataclass(frozen=True)
class SpectralImages(LabelFirst):
    """Draws a class, then a part of it, then an image."""

    schema: Schema
    spectra: Spectra
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

    def codes(self, num_rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Codes of new images.  # (num_rows, num_used)"""
        pixels, label = image_shape(self.schema).num_pixels, self.schema.label
        found = np.empty((num_rows, len(self.schema.used)), dtype=np.int64)
        drawn = rng.choice(len(self.label_shares), size=num_rows, p=np.asarray(self.label_shares))
        parts = self._parts(drawn, rng)
        for place in range(len(self.spectra.means)):
            (mine,) = np.nonzero(parts == place)
            for some in np.split(mine, np.arange(IMAGES_AT_A_TIME, len(mine), IMAGES_AT_A_TIME)):
                images = self.spectra.draw(self.basis, place, len(some), rng)
                found[some, :pixels] = np.rint(images * LIGHTEST)
        if label is not None:
            found[:, pixels] = np.where(drawn < len(label.categories), drawn, NULL)
        return found

    def _parts(self, classes: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """A part of each of these classes, by its place among all parts."""
        count = len(self.part_shares[0])
        if count == 1:
            return classes
        ends = np.cumsum(self.part_shares, axis=1)[classes, :-1]
        drawn = rng.random(len(classes))[:, None]
        return np.asarray(classes * count + (drawn >= ends).sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the spectra."""
        return {
            "kind": "spectral",
            "default_num_rows": self.default_num_rows,
            "label_shares": list(self.label_shares),
            "part_shares": [list(shares) for shares in self.part_shares],
            "principal": encode(self.principal) if self.principal else None,
        }

    def tensors(self) -> Tensors:
        """The spectra in single precision."""
        named = {name: getattr(self.spectra, name) for name in ("means", "factors", "detail")}
        return {name: np.ascontiguousarray(each, np.float32) for name, each in named.items()}


def _load(schema: Schema, document: dict[str, Any], tensors: Tensors) -> SpectralImages:
    return SpectralImages(
        schema=schema,
        spectra=Spectra(*(tensors[name].astype(np.float64) for name in ("means", "factors", "detail"))),
        default_num_rows=int(document["default_num_rows"]),
        label_shares=tuple(float(share) for share in document["label_shares"]),
        part_shares=tuple(tuple(map(float, shares)) for shares in document.get("part_shares", [[1.0]])),
        principal=decode(Principal, document["principal"]) if document.get("principal") else None,
    )


GENERATOR_KINDS["spectral"] = _load
