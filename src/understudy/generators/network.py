"""A small network that turns noise and a label into cells: the sampler, in NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import expit

from understudy.arrays import Codes, Floats, Integers
from understudy.codec import decode, encode
from understudy.generators.base import GENERATOR_KINDS, LabelFirst, Tensors
from understudy.schema import Layout, Schema

COMPONENT_SCALE = 4.0
LABEL_SCALE = 3.0
"""Size of one-hot inputs beside standard normal noise: large enough that modes and labels lie apart from the start."""

STRETCH = 0.05
"""Positions reach 5 % past both ends and are clipped, so that values at a bound are learnable."""


@GENERATOR_KINDS.register("network")
@dataclass(frozen=True, eq=False)
class Network(LabelFirst):
    """Layers of weights with ReLU between them; positions and probabilities at the end.

    Inputs are Gaussian noise, a one-hot component drawn uniformly (which lets a smooth network
    reach separate modes), and the one-hot label, which also reaches the outputs directly
    through ``skip``. ``label`` is the span of cells that hold the label; they are drawn with
    the probabilities ``label_shares``, not computed.
    """

    schema: Schema = field(compare=False)
    weights: tuple[Floats, ...] = field(compare=False)  # (inputs, outputs) of each layer
    biases: tuple[Floats, ...] = field(compare=False)
    skip: Floats = field(compare=False)  # (num_labels, width)
    noise_dim: int
    num_components: int
    default_num_rows: int
    label: tuple[int, int] | None = None
    label_shares: tuple[float, ...] = (1.0,)

    @cached_property
    def layout(self) -> Layout:
        """Where the columns lie among the cells."""
        return Layout(self.schema)

    def codes_of(self, classes: Integers, rng: np.random.Generator) -> Codes:
        """Codes of new rows of these classes.  # (num_rows,) -> (num_rows, num_used)"""
        labels = np.eye(len(self.label_shares))[classes]
        inputs = draw_inputs(labels, self.noise_dim, self.num_components, rng)
        layers = (self.weights, self.biases, self.skip)
        scores = scores_of(inputs, labels, layers, relu=lambda values: np.maximum(values, 0.0))
        return self.layout.collapse(self._cells(scores, labels), rng)

    def _cells(self, scores: Floats, labels: Floats) -> Floats:
        """Positions and probabilities.  # (num_rows, width)"""
        cells = np.empty_like(scores)
        count = len(self.layout.numbers)
        stretched = (1 + 2 * STRETCH) * expit(scores[:, :count]) - STRETCH
        cells[:, :count] = np.clip(stretched, 0.0, 1.0)
        for choice in self.layout.choices:
            run = scores[:, choice.start : choice.stop]
            shares = np.exp(run - run.max(axis=1, keepdims=True))
            cells[:, choice.start : choice.stop] = shares / shares.sum(axis=1, keepdims=True)
        if self.label is not None:
            cells[:, self.label[0] : self.label[1]] = labels
        return cells

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights."""
        return encode(self) | {"num_layers": len(self.weights)}

    def tensors(self) -> Tensors:
        """The weights in single precision."""
        named = {f"weight.{i}": weight for i, weight in enumerate(self.weights)}
        named |= {f"bias.{i}": bias for i, bias in enumerate(self.biases)}
        named["skip"] = self.skip
        return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in named.items()}

    @classmethod
    def load(cls, schema: Schema, document: dict[str, Any], tensors: Tensors) -> Self:
        """From a document and weights."""
        held = {name: value.astype(np.float64) for name, value in tensors.items()}
        layers = range(document.pop("num_layers"))
        weights, biases = (tuple(held[f"{kind}.{i}"] for i in layers) for kind in ("weight", "bias"))
        return decode(cls, document, schema=schema, weights=weights, biases=biases, skip=held["skip"])


Layers = tuple[Sequence[Any], Sequence[Any], Any]
"""Weights and biases of every layer, and the weights by which labels skip them all; of NumPy or of torch."""


def scores_of(inputs: Any, labels: Any, layers: Layers, *, relu: Callable[[Any], Any]) -> Any:
    """What the layers make of inputs, before the heads.  # (num_rows, inputs) -> (num_rows, width)"""
    weights, biases, skip = layers
    hidden = inputs
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        hidden = relu(hidden @ weight + bias)
    return hidden @ weights[-1] + biases[-1] + labels @ skip


def draw_inputs(labels: Floats, noise_dim: int, num_components: int, rng: np.random.Generator) -> Floats:
    """Inputs of the network for rows of these one-hot labels.  # (num_rows, inputs)"""
    num_rows = len(labels)
    noise = rng.standard_normal((num_rows, noise_dim))
    components = np.eye(num_components)[rng.integers(num_components, size=num_rows)]
    return np.concatenate([noise, COMPONENT_SCALE * components, LABEL_SCALE * labels], axis=1)
