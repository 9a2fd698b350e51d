"""Proofs on made-up rows that a machine computes a row the same way wherever it stands, and as others do."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from understudy.arrays import Integers
from understudy.errors import InputError
from understudy.features import Embedding
from understudy.private.kernels import has_kernel
from understudy.private.sums import Rows, careful_sums, compiled_sums, copies_of, is_fourier, partial_sum
from understudy.schema import Layout
from understudy.schema.columns import UNLISTED

PROBE_ROWS = 24


def check_purity(layout: Layout, embedding: Embedding, lattice: int) -> None:
    """Prove on made-up rows that this machine computes a row the same way wherever it stands.

    Raises:
        InputError: element-wise functions here depend on a row's place in memory.
    """
    codes = _made_up_codes(layout)

    def summed(rows: npt.NDArray[np.int64]) -> Integers:
        return partial_sum(Rows(layout, rows), embedding=embedding, lattice=lattice)

    whole, single = summed(codes), sum(summed(codes[i : i + 1]) for i in range(PROBE_ROWS))
    if not np.array_equal(whole, single):
        raise InputError(
            "this machine", "computes a row's features differently in different batches", "Use another build of NumPy"
        )
    if has_kernel() and not _kernel_agrees(Rows(layout, codes), embedding, lattice):
        raise InputError(
            "this machine",
            "compiles sums of features to others than NumPy's",
            "Remove numba, or use another build of it",
        )


def _kernel_agrees(rows: Rows, embedding: Embedding, lattice: int) -> bool:
    for block in embedding.blocks:
        if is_fourier(block):
            slots, copies = copies_of(rows, block, embedding)
            compiled = compiled_sums(rows, block, slots, copies, lattice)
            careful = careful_sums(rows, block, slots, copies, lattice)
            if compiled is not None and not np.array_equal(compiled, careful):
                return False
    return True


def probe(layout: Layout, embedding: Embedding, lattice: int) -> Integers:
    """The sum over made-up rows, the same ones on every machine.  # (dim,)"""
    rows = Rows(layout, _made_up_codes(layout))
    return partial_sum(rows, embedding=embedding, lattice=lattice)


def _made_up_codes(layout: Layout) -> Integers:
    largest = [len(c.categories) - 1 if c.is_choice else c.num_steps for c in layout.schema.used]
    rng = np.random.default_rng(0)
    return rng.integers(UNLISTED, np.asarray(largest) + 1, (PROBE_ROWS, len(largest)))
