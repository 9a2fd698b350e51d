"""Exact integer aggregation: the sum of an embedding over rows, in partial sums that add up in any order.

Sums of Fourier features are compiled or by NumPy, to the same integers (proofs/lattice.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import ThreadpoolController

from understudy.arrays import Floats, Integers
from understudy.codec import decode, encode
from understudy.errors import InputError
from understudy.features import Block, Embedding, Fourier, Norm, Tables, Tensors
from understudy.features.combine import tensor
from understudy.features.embedding import kept_radius
from understudy.private.kernels import Positions, centred, fourier_sums
from understudy.private.lattice import inside, to_lattice
from understudy.schema import Layout, Schema
from understudy.schema.columns import UNLISTED, Column, to_position
from understudy.schema.encode import encode_batch
from understudy.schema.table import parse_schema


@dataclass(frozen=True)
class Rows:
    """Some rows as codes, and as cells for the maps that read those."""

    layout: Layout
    codes: Integers  # (num_rows, num_used)

    @cached_property
    def cells(self) -> Floats:
        """Positions and memberships.  # (num_rows, width)"""
        return self.layout.expand(self.codes)

    @cached_property
    def columns(self) -> dict[str, tuple[Column, Integers]]:
        """Every used column by its name, with the rows' codes of it."""
        used = self.layout.schema.used
        return {column.name: (column, codes) for column, codes in zip(used, self.codes.T, strict=True)}

    def positions(self, numbers: tuple[int, ...]) -> Positions:
        """Positions of some numbers, column by column.  # (numbers, num_rows)"""
        found = np.empty((len(numbers), len(self.codes)), dtype=np.int16)
        for place, number in enumerate(numbers):
            found[place] = centred(to_position(*self.columns[self.layout.numbers[number]]))
        return found

    def slots(self, span: tuple[int, int]) -> Integers:
        """Which value of a choice each row has; one past the last if it has none.  # (num_rows,)"""
        choice = next(c for c in self.layout.choices if (c.start, c.stop) == span)
        column, codes = self.columns[choice.column]
        if choice.flags_null:
            return np.asarray(codes < 0, dtype=np.int64)
        null_is_last = choice.width > len(column.categories)
        last = choice.width - 1 if null_is_last else choice.width
        return np.where(codes < 0, last, codes)


def copies_of(rows: Rows, block: Block, embedding: Embedding) -> tuple[Integers, int]:
    """Which copy of a block each row adds to (one past the last: none), and how many there are."""
    if not block.per_label or embedding.label is None:
        return np.zeros(len(rows.codes), dtype=np.int64), 1
    return rows.slots(embedding.label), embedding.copies(block)


def one_hot_copies(slots: Integers, copies: int) -> Floats:
    """One-hot indicators of the copy that each row adds to.  # (num_rows, copies)"""
    return np.asarray(slots[:, None] == np.arange(copies), dtype=np.float64)


CACHED_FEATURES = 2**16
"""Features at a time by NumPy: half a megabyte of float64, which stays in a core's cache."""


def is_fourier(block: Block) -> bool:
    """Whether a block has random Fourier features with an L2 sensitivity, which the compiled kernel can sum."""
    return isinstance(block.map, Fourier) and block.norm is Norm.L2


def compiled_sums(rows: Rows, block: Block, slots: Integers, copies: int, lattice: int) -> Integers | None:
    """Sums of random Fourier features by the compiled kernel, unless a row could leave its radius; a row per copy."""
    map_, (radius, unit) = cast(Fourier, block.map), block.rounding(lattice)
    amplitude = map_.amplitude(kept_radius(radius, map_.dim))
    positions = rows.positions(map_.numbers)
    found = fourier_sums(map_, positions, slots, copies, amplitude=amplitude, radius=radius)
    return None if found is None else found * unit


def numpy_sums(rows: Rows, block: Block, slots: Integers, copies: int, lattice: int) -> Floats:
    """The same by NumPy, where every row's norm is checked against its radius."""
    map_, (radius, unit) = cast(Fourier, block.map), block.rounding(lattice)
    target, members = kept_radius(radius, map_.dim), one_hot_copies(slots, copies)
    total, step = np.zeros((copies, map_.dim)), max(1, CACHED_FEATURES // map_.dim)
    for start in range(0, len(slots), step):  # few rows at a time stay in the cache: three times as fast
        some = slice(start, start + step)
        whole = inside(map_.whole(rows.cells[some], target), radius, Norm.L2)
        total += members[some].T @ whole
    return total * unit


LARGEST_SUM = 2**62
"""Bound on any coordinate of a sum (rows times the lattice's radius): half of int64's range is left for noise."""

TABLE_BLOCK_ROWS = 2**15
"""Rows at a time where contingency tables are counted and no features are held."""

COMPILED_BLOCK_ROWS = 2**12
"""Rows at a time for the compiled kernel, which makes smaller blocks of them itself."""

NARROW_BLOCK_ROWS = 512
WIDE_BLOCK_ROWS = 32
NARROW_FEATURES = 2**11
"""Rows at a time whose features fit a core's cache: the first up to so many features a row, the second above."""

MANY_COLUMNS = 256
"""Columns above which expanding few rows at a time costs more than the cache saves."""


@dataclass(frozen=True)
class Work:
    """What is to be summed: public, the same for every worker, and small enough to send to one."""

    layout: Layout
    embedding: Embedding
    lattice: int
    longest: int = 0
    """Numbers of the plan's longest stage: an engine that could not hold it refuses the first one, before a charge."""

    @property
    def columns(self) -> list[str]:
        """The columns that rows are read with: the used ones, and whose rows they are."""
        names = self.layout.schema.file_names
        unit = self.layout.schema.privacy
        return names if unit.is_row else [*names, unit.unit]

    def partial(self, batch: pa.RecordBatch) -> Integers:
        """The sum over a batch, and how many rows it has.  # (dim + 1,)

        Guarantee:
            The exact sum of one integer vector per row, each a function of that row alone and
            inside its blocks' radii; so partial sums of any split, in any order, add up to the same
            integers. It is private, and so is the count (proofs/lattice.md).
        """
        return self.partial_of_codes(encode_batch(self.layout.schema, batch, unlisted=UNLISTED))

    def partial_of_codes(self, codes: Integers) -> Integers:
        """The same for rows that are encoded already.  # (num_rows, num_used) -> (dim + 1,)"""
        total = self.zero_sum()
        total[-1] = len(codes)
        for rows in _row_blocks(codes, self.layout, self.embedding):
            total[:-1] += partial_sum(rows, embedding=self.embedding, lattice=self.lattice)
        return total

    def sum(self, batches: Iterable[pa.RecordBatch]) -> Integers:
        """The sum over all rows of all batches, in one thread, and how many there are.  # (dim + 1,)"""
        total = self.zero_sum()
        with one_blas_thread():
            for batch in batches:
                self.add(total, self.partial(batch))
        return total

    @property
    def most_bytes(self) -> int:
        """Of a sum of this stage or a later one."""
        return max(self.zero_sum().nbytes, 8 * (self.longest + 1))

    def zero_sum(self) -> Integers:
        """The sum over no rows, from which partial sums are accumulated.  # (dim + 1,)"""
        return np.zeros(self.embedding.dim + 1, dtype=np.int64)

    def add(self, total: Integers, partial: Integers) -> None:
        """Add a partial sum to a total, in place, unless the sum might wrap around."""
        if partial.shape != total.shape or partial[-1] < 0:
            raise ValueError("a partial sum of something else")
        if (int(total[-1]) + int(partial[-1])) * self.lattice > LARGEST_SUM:
            raise InputError("data", "has more rows than one release can hold", "Release parts of it")
        total += partial

    def to_json(self) -> str:
        """A public description, from which ``work_from_json`` makes the same work."""
        schema, embedding = self.layout.schema.to_dict(), encode(self.embedding)
        return json.dumps({"schema": schema, "embedding": embedding, "lattice": self.lattice})


def work_from_json(text: str) -> Work:
    """The work that a description asks for."""
    document = json.loads(text)
    layout = Layout(parse_schema(document["schema"], name="table"))
    return Work(layout, decode(Embedding, document["embedding"]), int(document["lattice"]))


def one_blas_thread() -> Any:
    """A context in which matrix products keep to the thread that asks for them.

    They are small: a second BLAS thread costs several times what it saves.
    """
    return _thread_pools().limit(limits=1, user_api="blas")


_thread_pools = cache(ThreadpoolController)
"""The BLAS libraries of this process. Finding them takes as long as a small sum."""


def partial_sum(rows: Rows, *, embedding: Embedding, lattice: int, by_numpy: bool = False) -> Integers:
    """The integer sum over one block of rows, by the compiled kernel where there is one.  # (dim,)"""
    parts: list[npt.NDArray[Any]] = []
    for block in embedding.blocks:
        slots, copies = copies_of(rows, block, embedding)
        if isinstance(block.map, Tables):
            counted = block.map.counts(rows.codes, slots, copies + 1)[:copies]
            parts.append((counted * block.rounding(lattice)[0]).ravel())
            continue
        if is_fourier(block):
            compiled = compiled_sums(rows, block, slots, copies, lattice) if has_kernel() and not by_numpy else None
            found = compiled if compiled is not None else numpy_sums(rows, block, slots, copies, lattice)
            parts.append(found.ravel())
            continue
        members = one_hot_copies(slots, copies)
        summed = _product_sums if isinstance(block.map, Tensors) else _plain_sums
        given: Any = rows.codes if block.map.reads_codes else rows.cells if block.map.row_width else members
        parts.append(summed(given, block, members, lattice).ravel())
    total = np.concatenate(parts).astype(np.int64)
    if total.shape != (embedding.dim,):
        raise ValueError("a sum of another length than the embedding's")
    return total


def _plain_sums(cells: Floats, block: Block, members: Floats, lattice: int) -> Floats:
    """Sums of a block's whole features, a row per copy.  # (copies, block dim)"""
    radius, unit = block.rounding(lattice)
    features = np.asarray(block.map(cells), dtype=np.float64)
    count = block.map.most_nonzeros
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
            tensor([single[j] for j in half]),
            radius,
            sign=map_.sign_of(half),
            norm=block.norm,
            nonzeros=map_.nonzeros_of(half),
        )
        for half, radius in block.half_radii(map_, lattice).items()
    }
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


def _row_blocks(codes: Integers, layout: Layout, embedding: Embedding) -> Iterator[Rows]:
    """Rows in blocks whose features fit a core's cache, which more than doubles the speed.

    Tables and compiled sums have no features to hold, and their blocks are long.
    """
    is_compiled = [has_kernel() and is_fourier(block) for block in embedding.blocks]
    widest = max(0 if done else b.map.row_width for done, b in zip(is_compiled, embedding.blocks, strict=True))
    if widest == 0:
        step = COMPILED_BLOCK_ROWS if any(is_compiled) else TABLE_BLOCK_ROWS
    else:
        # Expanding many columns, as images have, costs more for few rows than the cache saves.
        is_wide = len(layout.schema.used) > MANY_COLUMNS
        step = NARROW_BLOCK_ROWS if widest <= NARROW_FEATURES or is_wide else WIDE_BLOCK_ROWS
    for start in range(0, len(codes), step):
        yield Rows(layout, codes[start : start + step])


PROBE_ROWS = 24
"""Made-up rows on which row independence is checked."""


def check_row_independence(layout: Layout, embedding: Embedding, lattice: int) -> None:
    """Check row independence on made-up rows: this machine must compute a row's features the same way in any batch.

    Sensitivity rests on it: a row must not change what the rows beside it add.

    Raises:
        InputError: element-wise functions here depend on a row's place in memory.
    """
    codes = made_up_codes(layout.schema)

    def summed(rows: npt.NDArray[np.int64], *, by_numpy: bool = False) -> Integers:
        return partial_sum(Rows(layout, rows), embedding=embedding, lattice=lattice, by_numpy=by_numpy)

    whole, single = summed(codes), sum(summed(codes[i : i + 1]) for i in range(PROBE_ROWS))
    if not np.array_equal(whole, single):
        raise InputError(
            "this machine", "computes a row's features differently in different batches", "Use another build of NumPy"
        )
    if has_kernel() and not np.array_equal(whole, summed(codes, by_numpy=True)):
        raise InputError(
            "this machine",
            "compiles sums of features to others than NumPy's",
            "Remove numba, or use another build of it",
        )


def made_up_codes(schema: Schema, *, lowest: int = UNLISTED) -> Integers:
    """Rows to try a machine with, the same ones on every machine.  # (PROBE_ROWS, num_used)"""
    largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in schema.used]
    rng = np.random.default_rng(0)
    return rng.integers(lowest, np.asarray(largest) + 1, (PROBE_ROWS, len(largest)))


def has_kernel() -> bool:
    """Whether numba is installed, so that sums of random Fourier features are compiled."""
    return find_spec("numba") is not None
