"""One pass over the rows: the exact integer sum of an embedding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from understudy.errors import InputError
from understudy.features import Block, Constant, Embedding, FeatureMap, Tables, Tensors
from understudy.features.combine import tensor
from understudy.features.nonzeros import most_nonzeros, nonzeros_of
from understudy.private.lattice import Floats, to_lattice
from understudy.schema import NULL, Layout
from understudy.schema.encode import encode_batch
from understudy.schema.layout import Choice

Integers = npt.NDArray[np.int64]
LARGEST_SUM = 2**62
TABLE_ROWS, MANY_ROWS, FEW_ROWS, NARROW = 2**15, 512, 32, 2**11
MANY_COLUMNS = 256
PROBE_ROWS = 24


def sum_rows(
    batches: Iterable[pa.RecordBatch], *, layout: Layout, embedding: Embedding, lattice: int
) -> tuple[Integers, int]:
    """The integer sum over all rows, and how many rows there were.

    Guarantee:
        The sum is the exact sum of one integer vector per row, each a function of that row
        alone and inside its blocks' radii. It is private, and so is the count.
    """
    total = np.zeros(embedding.dim, dtype=np.int64)
    num_rows = 0
    # The products are small: a second BLAS thread costs several times what it saves.
    with threadpool_limits(limits=1, user_api="blas"):
        for rows in _row_blocks(batches, layout, embedding):
            num_rows += len(rows.codes)
            if num_rows * lattice > LARGEST_SUM:  # sums might wrap around
                raise InputError(
                    "data", "has more rows than one release can hold", "Release parts of it"
                )
            total += partial_sum(rows, embedding=embedding, lattice=lattice)
    return total, num_rows


@dataclass(frozen=True)
class Rows:
    """Some rows as codes, and as cells for the maps that read those."""

    layout: Layout
    codes: Integers  # (num_rows, num_used)

    @cached_property
    def cells(self) -> Floats:
        """Positions and memberships.  # (num_rows, width)"""
        return self.layout.expand(self.codes)

    def slots(self, span: tuple[int, int]) -> Integers:
        """Which value of a choice each row has; one past the last if it has none.  # (num_rows,)"""
        choice = next(c for c in self.layout.choices if (c.start, c.stop) == span)
        names = [column.name for column in self.layout.schema.used]
        codes = self.codes[:, names.index(choice.column)]
        if choice.flags_null:
            return np.asarray(codes == NULL, dtype=np.int64)
        last = choice.width - 1 if self._null_is_last(choice) else choice.width
        return np.where(codes == NULL, last, codes)

    def _null_is_last(self, choice: Choice) -> bool:
        column = next(c for c in self.layout.schema.used if c.name == choice.column)
        return choice.width > len(column.categories)


def partial_sum(rows: Rows, *, embedding: Embedding, lattice: int) -> Integers:
    """The integer sum over one block of rows.  # (dim,)"""
    parts: list[npt.NDArray[Any]] = []
    for block in embedding.blocks:
        slots, copies = _copies(rows, block, embedding)
        if isinstance(block.map, Tables):
            counted = block.map.counts(rows.codes, slots, copies + 1)[:copies]
            parts.append((counted * block.rounding(lattice)[0]).ravel())
            continue
        members = (slots[:, None] == np.arange(copies)).astype(np.float64)
        summed = _product_sums if isinstance(block.map, Tensors) else _plain_sums
        cells: Floats = rows.cells if not isinstance(block.map, Constant) else members
        parts.append(summed(cells, block, members, lattice).ravel())
    return np.concatenate(parts).astype(np.int64)


def _plain_sums(cells: Floats, block: Block, members: Floats, lattice: int) -> Floats:
    """Sums of a block's whole features, a row per copy.  # (copies, block dim)"""
    radius, unit = block.rounding(lattice)
    features = np.asarray(block.map(cells), dtype=np.float64)
    count = most_nonzeros(block.map)
    whole = to_lattice(features, radius, sign=block.map.sign, norm=block.norm, nonzeros=count)
    # Matrix products of whole numbers below 2^53 are exact in any order.
    return (members.T @ whole) * unit


def _product_sums(cells: Floats, block: Block, members: Floats, lattice: int) -> Floats:
    """The same for products: the halves of each are rounded, and their products summed."""
    map_ = cast(Tensors, block.map)
    # In single precision neither the norm check nor the sums would be exact.
    single = {j: np.asarray(f, dtype=np.float64) for j, f in map_.single(cells).items()}
    whole = {
        half: to_lattice(
            tensor([single[j] for j in half]), radius,
            sign=map_.sign_of(half), norm=block.norm, nonzeros=nonzeros_of(map_, half),
        )
        for half, radius in block.half_radii(map_, lattice).items()
    }  # fmt: skip
    if map_.is_dense:
        whole = {(): np.concatenate(list(whole.values()), axis=1)}
    found = []
    for copy in members.T:
        rows = {half: features[copy > 0] for half, features in whole.items()}
        if map_.is_dense:
            found.append((rows[()].T @ rows[()]).ravel()[map_.places])
        else:
            found.append(np.concatenate([(rows[a].T @ rows[b]).ravel() for a, b in map_.halves]))
    return np.stack(found)


def check_purity(layout: Layout, embedding: Embedding, lattice: int) -> None:
    """Prove on made-up rows that this machine computes a row the same way wherever it stands.

    Raises:
        InputError: element-wise functions here depend on a row's place in memory.
    """
    rng = np.random.default_rng(0)
    largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in layout.schema.used]
    codes = rng.integers(NULL, np.asarray(largest) + 1, (PROBE_ROWS, len(largest)))

    def summed(rows: npt.NDArray[np.int64]) -> Integers:
        return partial_sum(Rows(layout, rows), embedding=embedding, lattice=lattice)

    whole, single = summed(codes), sum(summed(codes[i : i + 1]) for i in range(PROBE_ROWS))
    if not np.array_equal(whole, single):
        raise InputError(
            "this machine", "computes a row's features differently in different batches",
            "Use another build of NumPy",
        )  # fmt: skip


def _copies(rows: Rows, block: Block, embedding: Embedding) -> tuple[Integers, int]:
    """Which copy of a block each row adds to (one past the last: none), and how many there are."""
    if not block.per_label or embedding.label is None:
        return np.zeros(len(rows.codes), dtype=np.int64), 1
    return rows.slots(embedding.label), embedding.num_labels


def _row_blocks(
    batches: Iterable[pa.RecordBatch], layout: Layout, embedding: Embedding
) -> Iterator[Rows]:
    """Rows in blocks whose features fit a core's cache, which more than doubles the speed.

    Tables have no features to hold, and their blocks are long.
    """
    widest = max(_width(block.map) for block in embedding.blocks)
    # Expanding many columns, as images have, costs more for few rows than the cache saves.
    is_wide = len(layout.schema.used) > MANY_COLUMNS
    step = MANY_ROWS if widest <= NARROW or is_wide else FEW_ROWS
    if all(isinstance(block.map, Tables | Constant) for block in embedding.blocks):
        step = TABLE_ROWS
    for batch in batches:
        codes = encode_batch(layout.schema, batch)
        for start in range(0, len(codes), step):
            yield Rows(layout, codes[start : start + step])


def _width(map_: FeatureMap) -> int:
    """How many values a row takes while it is summed."""
    if not isinstance(map_, Tensors):
        return map_.dim
    halves = {half for halves in map_.halves for half in halves}
    return sum(map_.size_of(half) for half in halves)
