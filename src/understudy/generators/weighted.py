"""A weighted database: rows with weights, which may be negative, in NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Integers
from understudy.codec import decode
from understudy.errors import UsageError
from understudy.generators.base import GENERATOR_KINDS, Generator, Tensors
from understudy.generators.conditioning import Condition
from understudy.generators.rejection import Source
from understudy.schema import Schema
from understudy.schema.encode import decode_table
from understudy.schema.rules import obeys


@GENERATOR_KINDS.register("weighted")
@dataclass(frozen=True, eq=False)
class WeightedDatabase(Generator):
    """Rows z_m with weights w_m: the mean of h(x) over the private rows is about sum_m w_m h(z_m).

    Weights sum to about one and some may be negative, which no table of plain rows can say: ``sample``
    draws rows in proportion to the positive part, and ``weighted_rows`` gives rows and weights as
    they are.
    """

    schema: Schema = field(compare=False)
    row_codes: Integers = field(compare=False)  # (rows, num_used)
    weights: Floats = field(compare=False)  # (rows,)
    default_num_rows: int

    def source(self, condition: Condition) -> Source:
        """What draws rows under a condition: those of the rows that meet it, and the rules too if
        some of them do.
        """
        meeting = condition.holds(self.row_codes) & (self.weights > 0)
        if not meeting.any():
            raise UsageError("given", "no row of positive weight is such", "Widen the condition")
        obeying = meeting & obeys(self.schema, self.row_codes)
        chosen = obeying if obeying.any() else meeting
        codes, weights = self.row_codes[chosen], self.weights[chosen]
        shares = weights / weights.sum()

        def draw(count: int, rng: np.random.Generator) -> Integers:
            found: Integers = codes[rng.choice(len(codes), size=count, p=shares)]
            return found

        return Source(draw)

    @property
    def weight_column(self) -> str:
        """The name of the column of weights: one that no column of the table has."""
        name, taken = "weight", {column.name for column in self.schema.columns}
        while name in taken:
            name += "_"
        return name

    @property
    def num_breaking_rules(self) -> int:
        """How many of the points break one of the schema's rules; samples never hold those."""
        return int((~obeys(self.schema, self.row_codes)).sum())

    def weighted_rows(self) -> pa.Table:
        """Every row, with its weight as it is in the last column."""
        rows = decode_table(self.schema, self.row_codes)
        return rows.append_column(self.weight_column, pa.array(self.weights))

    def tensors(self) -> Tensors:
        """Codes and weights, exactly."""
        return {"codes": np.ascontiguousarray(self.row_codes), "weights": np.ascontiguousarray(self.weights)}

    @classmethod
    def load(cls, schema: Schema, document: dict[str, Any], tensors: Tensors) -> Self:
        """From a document, codes and weights."""
        codes, weights = tensors["codes"], tensors["weights"]
        if codes.shape != (len(weights), len(schema.used)) or weights.dtype != np.float64:
            raise ValueError("rows and weights do not fit the schema")
        return decode(cls, document, schema=schema, row_codes=codes.astype(np.int64), weights=weights)


def weighted_database(schema: Schema, codes: Integers, weights: Floats, num_rows: int) -> WeightedDatabase:
    """Rows of any weight but zero; if noise has left none, all rows with the same."""
    if not weights.any():
        weights = np.full(len(codes), 1 / len(codes))
    kept = weights != 0
    return WeightedDatabase(schema, codes[kept], weights[kept], num_rows)
