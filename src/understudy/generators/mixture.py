"""A mixture of products over column grids: the sampler, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.errors import UsageError
from understudy.generators.base import GENERATOR_KINDS, Tensors
from understudy.generators.condition import Components, Condition, restrict
from understudy.generators.grids import Runs
from understudy.generators.obey import Source
from understudy.generators.sampling import sample_table
from understudy.generators.wishes import Balance, Given
from understudy.schema import Schema
from understudy.schema.rules import allowed_codes


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

    @cached_property
    def components(self) -> Components:
        """The components with their weights: a label's share, split equally."""
        weights = np.repeat(np.divide(self.label_shares, self.sizes), self.sizes)
        return Components(weights / weights.sum(), self.probabilities, self.runs.grids)

    def sample(
        self,
        num_rows: int,
        *,
        seed: int = 0,
        given: Given | None = None,
        balance: Balance | None = None,
    ) -> pa.Table:
        """Draw rows; the same seed gives the same rows."""
        return sample_table(
            self.schema, self.source, num_rows, seed=seed, given=given, balance=balance
        )

    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition, exactly by the model's conditional law.

        Rules about single columns are made part of the condition, so that no row is drawn in
        vain for them, unless the model gives them no probability at all.
        """
        ruled = condition.and_also(allowed_codes(self.schema.used, self.schema.rules))
        for wish in (ruled, condition):
            if not wish.allowed:
                return Source(self.codes)
            restricted = restrict(self.components, wish)
            if restricted is not None:
                return Source(restricted.codes)
        raise UsageError("given", "no row that this generator draws is such", "Widen the condition")

    def codes(self, num_rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Codes of new rows.  # (num_rows, num_used)"""
        labels = rng.choice(len(self.sizes), size=num_rows, p=np.asarray(self.label_shares))
        sizes = np.asarray(self.sizes)
        starts = np.cumsum(sizes) - sizes
        chosen = starts[labels] + np.floor(rng.random(num_rows) * sizes[labels]).astype(np.int64)
        return self.components.rows(chosen, rng)

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
