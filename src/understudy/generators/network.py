"""A small network that turns noise and a label into cells: the sampler, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from understudy.arrays import Floats
from understudy.generators.base import GENERATOR_KINDS, LabelFirst, Tensors
from understudy.schema import Layout, Schema

COMPONENT_SCALE = 4.0
LABEL_SCALE = 3.0
STRETCH = 0.05
"""Positions reach 5 % past both ends and are clipped, so that values at a bound are learnable."""


@dataclass(frozen=True)
class Network(LabelFirst):
    """Layers of weights with ReLU between them; positions and probabilities at the end.

    Inputs are Gaussian noise, a one-hot component drawn uniformly (which lets a smooth network
    reach separate modes), and the one-hot label, which also reaches the outputs directly
    through ``skip``. ``label`` is the span of cells that hold the label; they are drawn with
    the probabilities ``label_shares``, not computed.
    """

    schema: Schema
    weights: tuple[Floats, ...]  # (inputs, outputs) of each layer
    biases: tuple[Floats, ...]
    skip: Floats  # (num_labels, width)
    noise_dim: int
    num_components: int
    default_num_rows: int
    label: tuple[int, int] | None = None
    label_shares: tuple[float, ...] = (1.0,)

    @cached_property
    def layout(self) -> Layout:
        """Where the columns lie among the cells."""
        return Layout(self.schema)

    def codes(self, num_rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Codes of new rows.  # (num_rows, num_used)"""
        return self.layout.collapse(self.cells(num_rows, rng), rng)

    def cells(self, num_rows: int, rng: np.random.Generator) -> Floats:
        """Positions and probabilities.  # (num_rows, width)"""
        drawn = rng.choice(len(self.label_shares), size=num_rows, p=np.asarray(self.label_shares))
        labels = np.eye(len(self.label_shares))[drawn]
        hidden = draw_inputs(labels, self.noise_dim, self.num_components, rng)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weight + bias, 0.0)
        scores = hidden @ self.weights[-1] + self.biases[-1] + labels @ self.skip
        return self._heads(scores, labels)

    def _heads(self, scores: Floats, labels: Floats) -> Floats:
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
        return {
            "kind": "network",
            "num_layers": len(self.weights),
            "noise_dim": self.noise_dim,
            "num_components": self.num_components,
            "default_num_rows": self.default_num_rows,
            "label": list(self.label) if self.label else None,
            "label_shares": list(self.label_shares),
        }

    def tensors(self) -> Tensors:
        """The weights in single precision."""
        named = {f"weight.{i}": weight for i, weight in enumerate(self.weights)}
        named |= {f"bias.{i}": bias for i, bias in enumerate(self.biases)}
        named["skip"] = self.skip
        return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in named.items()}


def draw_inputs(labels: Floats, noise_dim: int, num_components: int, rng: np.random.Generator) -> Floats:
    """Inputs of the network for rows of these one-hot labels.  # (num_rows, inputs)"""
    num_rows = len(labels)
    noise = rng.standard_normal((num_rows, noise_dim))
    components = np.eye(num_components)[rng.integers(num_components, size=num_rows)]
    return np.concatenate([noise, COMPONENT_SCALE * components, LABEL_SCALE * labels], axis=1)


def _load_network(schema: Schema, document: dict[str, Any], tensors: Tensors) -> Network:
    layers = range(int(document["num_layers"]))
    return Network(
        schema=schema,
        weights=tuple(tensors[f"weight.{i}"].astype(np.float64) for i in layers),
        biases=tuple(tensors[f"bias.{i}"].astype(np.float64) for i in layers),
        skip=tensors["skip"].astype(np.float64),
        noise_dim=int(document["noise_dim"]),
        num_components=int(document["num_components"]),
        default_num_rows=int(document["default_num_rows"]),
        label=(document["label"][0], document["label"][1]) if document["label"] else None,
        label_shares=tuple(float(share) for share in document["label_shares"]),
    )


GENERATOR_KINDS["network"] = _load_network
