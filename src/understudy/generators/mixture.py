"""A mixture of products over column grids: the sampler, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.generators.base import GENERATOR_KINDS, Sampled, Tensors
from understudy.generators.conditioning import Components, Condition, Source, restrict
from understudy.generators.grids import ColumnGrid, Runs
from understudy.schema import Schema
from understudy.schema.rules import allowed_codes


@dataclass(frozen=True)
class Mixture(Sampled):
    """Components with independent columns; each belongs to one label value.

    A row has a label by ``label_shares``, then one of that label's components, each as likely as
    the others, then every column's cell by the component's probabilities, and a code in it.
    ``sizes`` are the numbers of components of each label value, in order.
    """

    schema: Schema
    probabilities: npt.NDArray[np.float64]  # (components, cells of all columns)
    sizes: tuple[int, ...]
    default_num_rows: int
    label_shares: tuple[float, ...] = (1.0,)
    grids: tuple[ColumnGrid, ...] | None = None  # by default those of the schema alone

    @cached_property
    def components(self) -> Components:
        """The components with their weights: a label's share, split equally."""
        weights = np.repeat(np.divide(self.label_shares, self.sizes), self.sizes)
        grids = Runs(self.schema).grids if self.grids is None else self.grids
        return Components(weights / weights.sum(), self.probabilities, grids)

    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition, exactly by the model's conditional law.

        Rules about single columns are made part of the condition, so that no row is drawn in
        vain for them, unless the model gives them no probability at all.
        """
        ruled = condition.and_also(allowed_codes(self.schema.used, self.schema.rules))
        for wish in (ruled, condition):
            if not wish.allowed:
                return Source(self.components.codes)
            restricted = restrict(self.components, wish)
            if restricted is not None:
                return Source(restricted.codes)
        raise UsageError("given", "no row that this generator draws is such", "Widen the condition")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the probabilities."""
        return {
            "kind": "mixture",
            "sizes": list(self.sizes),
            "default_num_rows": self.default_num_rows,
            "label_shares": list(self.label_shares),
        }

    def tensors(self) -> Tensors:
        """The probabilities in single precision, and the pieces of grids that are its own."""
        found: Tensors = {"probabilities": np.ascontiguousarray(self.probabilities, np.float32)}
        for place, grid in enumerate(self.grids or ()):
            found[f"pieces {place}"] = np.stack([grid.lows, grid.highs, grid.cell_of_piece])
            found[f"shares {place}"] = np.ascontiguousarray(grid.share_of_piece)
        return found


def _load_mixture(schema: Schema, document: dict[str, Any], tensors: Tensors) -> Mixture:
    return Mixture(
        schema=schema,
        probabilities=tensors["probabilities"].astype(np.float64),
        sizes=tuple(int(size) for size in document["sizes"]),
        default_num_rows=int(document["default_num_rows"]),
        label_shares=tuple(float(share) for share in document["label_shares"]),
        grids=_grids(schema, tensors),
    )


def _grids(schema: Schema, tensors: Tensors) -> tuple[ColumnGrid, ...] | None:
    if "pieces 0" not in tensors:
        return None
    return tuple(
        ColumnGrid(
            lows=(pieces := tensors[f"pieces {place}"].astype(np.int64))[0],
            highs=pieces[1],
            has_null=column.nullable,
            cells=pieces[2],
            shares=tensors[f"shares {place}"].astype(np.float64),
        )
        for place, column in enumerate(schema.used)
    )


GENERATOR_KINDS["mixture"] = _load_mixture
