"""A small network that turns noise and a label into cells: the sampler, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import expit

from understudy.generators.base import GENERATOR_KINDS, Tensors
from understudy.schema import Layout, Schema
from understudy.schema.decode import decode_table

Floats = npt.NDArray[np.float64]
CHUNK = 16_384


@dataclass(frozen=True)
class Network:
    """Layers of weights, applied with ReLU between them; sigmoid and softmax heads at the end.

    ``label`` is the span of cells that the network is conditioned on, with the probabilities
    ``label_shares``; those cells are drawn, not computed.
    """

    schema: Schema
    weights: tuple[Floats, ...]  # (inputs, outputs) of each layer
    biases: tuple[Floats, ...]
    noise_dim: int
    default_num_rows: int
    label: tuple[int, int] | None = None
    label_shares: tuple[float, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        """Where the columns lie among the cells."""
        return Layout(self.schema)

    def sample(self, num_rows: int, *, seed: int = 0) -> pa.Table:
        """Draw rows; the same seed gives the same rows."""
        rng = np.random.default_rng(seed)
        tables = []
        for start in range(0, max(num_rows, 1), CHUNK):
            cells = self.cells(min(CHUNK, num_rows - start), rng)
            tables.append(decode_table(self.schema, self.layout.collapse(cells, rng)))
        return pa.concat_tables(tables).combine_chunks()

    def cells(self, num_rows: int, rng: np.random.Generator) -> Floats:
        """Positions and probabilities.  # (num_rows, width)"""
        inputs = rng.standard_normal((num_rows, self.noise_dim))
        labels = self._labels(num_rows, rng)
        hidden = inputs if labels is None else np.concatenate([inputs, labels], axis=1)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.maximum(hidden @ weight + bias, 0.0)
        return self._heads(hidden @ self.weights[-1] + self.biases[-1], labels)

    def _labels(self, num_rows: int, rng: np.random.Generator) -> Floats | None:
        if self.label is None:
            return None
        drawn = rng.choice(len(self.label_shares), size=num_rows, p=np.asarray(self.label_shares))
        return np.eye(len(self.label_shares))[drawn]

    def _heads(self, scores: Floats, labels: Floats | None) -> Floats:
        cells = np.empty_like(scores)
        count = len(self.layout.numbers)
        cells[:, :count] = expit(scores[:, :count])
        for choice in self.layout.choices:
            run = scores[:, choice.start : choice.stop]
            shares = np.exp(run - run.max(axis=1, keepdims=True))
            cells[:, choice.start : choice.stop] = shares / shares.sum(axis=1, keepdims=True)
        if self.label is not None and labels is not None:
            cells[:, self.label[0] : self.label[1]] = labels
        return cells

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights."""
        return {
            "kind": "network", "num_layers": len(self.weights), "noise_dim": self.noise_dim,
            "default_num_rows": self.default_num_rows,
            "label": list(self.label) if self.label else None, "label_shares": list(self.label_shares),
        }  # fmt: skip

    def tensors(self) -> Tensors:
        """The weights in single precision."""
        named = {f"weight.{i}": weight for i, weight in enumerate(self.weights)}
        named |= {f"bias.{i}": bias for i, bias in enumerate(self.biases)}
        return {
            name: np.ascontiguousarray(value, dtype=np.float32) for name, value in named.items()
        }


def _load_network(schema: Schema, document: dict[str, Any], tensors: Tensors) -> Network:
    layers = range(int(document["num_layers"]))
    return Network(
        schema=schema,
        weights=tuple(tensors[f"weight.{i}"].astype(np.float64) for i in layers),
        biases=tuple(tensors[f"bias.{i}"].astype(np.float64) for i in layers),
        noise_dim=int(document["noise_dim"]),
        default_num_rows=int(document["default_num_rows"]),
        label=(document["label"][0], document["label"][1]) if document["label"] else None,
        label_shares=tuple(float(share) for share in document["label_shares"]),
    )


GENERATOR_KINDS["network"] = _load_network
