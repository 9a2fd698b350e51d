"""One pass over the rows: the exact integer sum of an embedding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from understudy.errors import InputError
from understudy.features import Block, Embedding
from understudy.private.lattice import Floats, to_lattice
from understudy.schema import NULL, Layout
from understudy.schema.encode import encode_batch

Integers = npt.NDArray[np.int64]
BLOCK_VALUES, FEWEST_ROWS, CELL_ROWS = 2**16, 32, 2**13
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
        for cells in _cell_blocks(batches, layout, embedding):
            total += partial_sum(cells, embedding=embedding, lattice=lattice)
            num_rows += len(cells)
    return total, num_rows


def partial_sum(cells: Floats, *, embedding: Embedding, lattice: int) -> Integers:
    """The integer sum over one block of rows.  # (num_rows, width) -> (dim,)"""
    parts = []
    for block in embedding.blocks:
        features = np.asarray(block.map(cells), dtype=np.float64)
        whole = to_lattice(features, block.radius(lattice), sign=block.map.sign)
        # Matrix products of whole numbers below 2^53 are exact in any order.
        sums = _memberships(cells, block, embedding).T @ whole  # (copies, block dim)
        parts.append(sums.ravel())
    return np.concatenate(parts).astype(np.int64)


def check_purity(layout: Layout, embedding: Embedding, lattice: int) -> None:
    """Prove on made-up rows that this machine computes a row the same way wherever it stands.

    Raises:
        InputError: element-wise functions here depend on a row's place in memory.
    """
    rng = np.random.default_rng(0)
    largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in layout.schema.used]
    codes = rng.integers(NULL, np.asarray(largest) + 1, (PROBE_ROWS, len(largest)))

    def summed(rows: npt.NDArray[np.int64]) -> Integers:
        return partial_sum(layout.expand(rows), embedding=embedding, lattice=lattice)

    whole, single = summed(codes), sum(summed(codes[i : i + 1]) for i in range(PROBE_ROWS))
    if not np.array_equal(whole, single):
        raise InputError(
            "this machine", "computes a row's features differently in different batches",
            "Use another build of NumPy; nothing was read or spent",
        )  # fmt: skip


def _memberships(cells: Floats, block: Block, embedding: Embedding) -> Floats:
    """Which copy of a block each row adds to.  # (num_rows, copies)"""
    if not block.per_label or embedding.label is None:
        return np.ones((len(cells), 1))
    return np.ascontiguousarray(cells[:, embedding.label[0] : embedding.label[1]])


def _cell_blocks(
    batches: Iterable[pa.RecordBatch], layout: Layout, embedding: Embedding
) -> Iterator[Floats]:
    """Cells in blocks whose features fit a core's cache, which more than doubles the speed."""
    widest = max(block.map.dim for block in embedding.blocks)
    step = max(FEWEST_ROWS, BLOCK_VALUES // widest)
    for batch in batches:
        codes = encode_batch(layout.schema, batch)
        for start in range(0, len(codes), CELL_ROWS):
            cells = layout.expand(codes[start : start + CELL_ROWS])
            for first in range(0, len(cells), step):
                yield cells[first : first + step]
