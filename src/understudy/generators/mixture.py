"""A mixture of products over column grids: the sampler, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.generators.base import GENERATOR_KINDS, Tensors
from understudy.generators.grids import Runs
from understudy.schema import Schema
from understudy.schema.decode import decode_table

CHUNK = 16_384


@dataclass(frozen=True)
class Mixture:
    """Components with independent columns; each belongs to one label value.

    A row's label is drawn with ``label_shares``, then one of that label's components, each as
    likely as the others, then every column's cell by the component's probabilities.
    ``sizes`` are the numbers of components of each label value, in order.
    """

    schema: Schema
    probabilities: npt.NDArray[np.float64]  # (components, cells of all columns)
    sizes: tuple[int, ...]
    default_num_rows: int
    label_shares: tuple[float, ...] = (1.0,)

    @cached_property
    def runs(self) -> Runs:
        """Where each column's cells lie."""
        return Runs(self.schema)

    def sample(self, num_rows: int, *, seed: int = 0) -> pa.Table:
        """Draw rows; the same seed gives the same rows."""
        rng = np.random.default_rng(seed)
        tables = [
            decode_table(self.schema, self.codes(min(CHUNK, num_rows - start), rng))
            for start in range(0, max(num_rows, 1), CHUNK)
        ]
        return pa.concat_tables(tables).combine_chunks()

    def codes(self, num_rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Codes of new rows.  # (num_rows, num_used)"""
        labels = rng.choice(len(self.sizes), size=num_rows, p=np.asarray(self.label_shares))
        sizes = np.asarray(self.sizes)
        starts = np.cumsum(sizes) - sizes
        chosen = starts[labels] + np.floor(rng.random(num_rows) * sizes[labels]).astype(np.int64)
        drawn = [
            grid.draw(self.probabilities[chosen, start:stop], rng)
            for grid, (start, stop) in zip(self.runs.grids, self.runs.spans, strict=True)
        ]
        return np.stack(drawn, axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the probabilities."""
        return {
            "kind": "mixture",
            "sizes": list(self.sizes),
            "default_num_rows": self.default_num_rows,
            "label_shares": list(self.label_shares),
        }

    def tensors(self) -> Tensors:
        """The probabilities in single precision."""
        return {"probabilities": np.ascontiguousarray(self.probabilities, dtype=np.float32)}


def _load_mixture(schema: Schema, document: dict[str, Any], tensors: Tensors) -> Mixture:
    return Mixture(
        schema=schema,
        probabilities=tensors["probabilities"].astype(np.float64),
        sizes=tuple(int(size) for size in document["sizes"]),
        default_num_rows=int(document["default_num_rows"]),
        label_shares=tuple(float(share) for share in document["label_shares"]),
    )


GENERATOR_KINDS["mixture"] = _load_mixture
