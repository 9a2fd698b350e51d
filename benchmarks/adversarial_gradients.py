"""How long the gradient of one row can be, looked for by an adversary, against the norm that noise is paid for.

Inputs are ordinary, tiny, huge, not finite, or not there; parameters as they start, large, and so large that nothing
finite comes out. Norms are those of whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from adversarial_rows import distance
from audited import BUDGET, IMAGES

from understudy.classifier.maps import MapShape
from understudy.classifier.plan import RADIUS as INPUT_RADIUS
from understudy.features import Norm
from understudy.networks import EncoderTraining
from understudy.networks.autoencoder import AutoEncoder
from understudy.plan.encoder import ExtractorPlan
from understudy.private.dpsgd import networks
from understudy.private.dpsgd.classifier import IntegerRows, gradient_sum, integer_inputs, second_moments

Floats = npt.NDArray[np.float64]
SCALES = (0.0, 1e-300, 1e-8, 1.0, 1e8, 1e300)
CLIPS = (1e-12, 0.1, 1.0, 1e12)
SHAPES = {
    "linear maps": MapShape(num_features=5, num_classes=3),
    "several maps": MapShape(num_features=6, num_classes=3, num_maps=4, inverse_temperature=2.0),
    "projected maps": MapShape(num_features=9, num_classes=2, num_maps=3, projected=4),
}


def gradient_ratios() -> dict[str, Fraction]:
    """The worst squared norm of one row's integer gradient, over the square that noise is paid for."""
    found = {name: max(_of_maps(shape)) for name, shape in SHAPES.items()}
    found["second moments"] = max(_of_moments())
    return found | {name: max(_of_network(*parts)) for name, parts in _losses().items()}


def hostile_inputs(dim: int, *, seed: int = 0) -> Floats:
    """Rows that a descent might meet, and some that it should never meet."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(4, dim)) * scale for scale in SCALES]
    rows += [np.eye(dim), -np.eye(dim) * 1e300, np.full((1, dim), np.inf), np.full((1, dim), np.nan)]
    mixed = rng.normal(size=(2, dim))
    mixed[0, 0], mixed[1, -1] = np.nan, -np.inf
    return np.concatenate([*rows, mixed])


def _of_maps(shape: MapShape) -> Iterator[Fraction]:
    whole = integer_inputs(hostile_inputs(shape.num_features))
    rng = np.random.default_rng(1)
    for scale, clip in product((0.0, 1.0, 1e6, 1e30), CLIPS):
        weights = scale * rng.normal(size=(shape.num_maps, shape.num_classes, shape.map_dim))
        for label in range(shape.num_classes):
            rows = IntegerRows(whole, np.full(len(whole), label)).unpacked()
            for place in range(len(whole)):
                moved = gradient_sum(rows, shape, weights, np.asarray([place]), clip=clip)
                yield Fraction(distance(moved.ravel(), Norm.L2), INPUT_RADIUS**4)


def _of_moments() -> Iterator[Fraction]:
    upper = np.triu_indices(7)
    for row in integer_inputs(hostile_inputs(7)):
        yield Fraction(distance(second_moments(row[None])[upper], Norm.L2), INPUT_RADIUS**4)


def _losses() -> dict[str, tuple[Any, Any, Any]]:
    """First parameters, the loss of a row, and rows, of every network that is trained on private rows."""
    import torch

    wish = EncoderTraining(depths=(2,), strides=(1,), kernels=(3,), components=2, steps=1, batch=6)
    plan = ExtractorPlan(IMAGES, BUDGET, wish)
    pixels = np.stack([np.full((1, 2, 2), value, np.uint8) for value in (0, 1, 255)])
    chess = np.asarray([[[255, 0], [0, 255]]], np.uint8)
    pictures = np.concatenate([pixels, chess[None]])
    images = pictures, np.asarray([0, 1, 1, 0]), np.asarray([1, 1, 0, 1], np.float32)
    coder = AutoEncoder(4, 2, 3, (4, 2), 4)
    first = {n: torch.from_numpy(v.copy()) for n, v in coder.first_parameters(0).items()}
    cells = hostile_inputs(4).astype(np.float64).clip(-3e38, 3e38).astype(np.float32)
    labels = np.eye(2, dtype=np.float32)[np.arange(len(cells)) % 2]
    labels[::5] = 0
    return {
        "private encoder": (plan.start(torch), plan.row_loss(torch), images),
        "dp-merf-ae": (first, coder.loss, (cells, labels)),
    }


def _of_network(parameters: Any, loss: Any, rows: Any) -> Iterator[Fraction]:
    import torch

    gradients = networks._gradients(torch, parameters, loss)
    first = networks._flat(parameters)
    for scale, clip in product((1.0, 1e3, 1e30), CLIPS):
        for place in range(len(rows[0])):
            with np.errstate(all="ignore"):
                moved = networks._clipped_sum(gradients, scale * first, rows, np.asarray([place]), clip=clip, block=1)
            yield Fraction(distance(moved, Norm.L2), networks.RADIUS**2)
