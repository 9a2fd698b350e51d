"""Sums of products of 16-bit integers, two columns at a time.

x86 processors with AVX2 multiply sixteen pairs of 16-bit integers and add neighbours in one instruction, twice as many
as they multiply floats; compilers do not find it in a loop over rows, so it is asked for by name. On other
processors the loop is left to the compiler. Sums wrap around at 32 bits, in any order the same.

To be imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from understudy.private.kernels import TILE_FREQUENCIES, TILE_ROWS

LANES = 8
VECTORS = TILE_ROWS // LANES


def has_pair_instruction() -> bool:
    """Whether numba compiles for a processor that has the instruction."""
    if config.CPU_NAME or config.CPU_FEATURES:  # for another processor than this one
        return False
    features = binding.get_host_cpu_features()
    return "x86_64" in binding.get_process_triple() and bool(features.get("avx2", False))


def pair_products() -> Any:
    """A compiled function that sets phases[i, row + j] for a tile of frequencies i and rows j.

    Its arguments: tile (pairs, rows, 2) of int16, steps (listed, TILE_FREQUENCIES, 2) of int16, the pair of columns
    that each of the listed steps is for, the first and last of them for this tile, row, and phases of int32.
    """
    return by_instruction() if has_pair_instruction() else by_loop()


def by_loop() -> Any:
    """For any processor."""
    return njit(_add_pairs)


def _add_pairs(tile: Any, steps: Any, pairs: Any, first: Any, last: Any, row: Any, phases: Any) -> None:
    int32 = np.int32
    for i in range(TILE_FREQUENCIES):
        own = phases[i, row : row + TILE_ROWS]
        own[:] = 0
        for listed in range(first, last):
            cells = tile[pairs[listed], row : row + TILE_ROWS]
            left, right = int32(steps[listed, i, 0]), int32(steps[listed, i, 1])
            for j in range(TILE_ROWS):
                both = int32(int32(cells[j, 0]) * left) + int32(int32(cells[j, 1]) * right)
                own[j] = int32(own[j] + both)


def by_instruction() -> Any:
    """For processors that have it."""

    def add_pairs(typing: Any, tile: Any, steps: Any, pairs: Any, first: Any, last: Any, row: Any, phases: Any) -> Any:
        return types.void(tile, steps, pairs, first, last, row, phases), _build

    return intrinsic(add_pairs)


def _build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the loop over pairs: sums stay in registers, and every load serves several products."""
    word, index = ir.IntType(32), ir.IntType(64)
    words, halves = ir.VectorType(word, LANES), ir.VectorType(ir.IntType(16), 2 * LANES)
    unset, zeros = ir.Constant(words, ir.Undefined), ir.Constant(words, [0] * LANES)
    arrays = {
        place: context.make_array(signature.args[place])(context, builder, arguments[place]) for place in (0, 1, 2, 6)
    }
    tile, steps = (builder.bitcast(arrays[i].data, word.as_pointer()) for i in (0, 1))
    pairs, phases = arrays[2].data, arrays[6].data
    first, last, row = arguments[3:6]
    stride = builder.extract_value(arrays[0].shape, 1)
    instruction = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(words, [halves, halves]), "llvm.x86.avx2.pmadd.wd"
    )

    def number(value: int) -> Any:
        return ir.Constant(index, value)

    sums = [cgutils.alloca_once(builder, words) for _ in range(TILE_FREQUENCIES * VECTORS)]
    for each in sums:
        builder.store(zeros, each)
    with cgutils.for_range(builder, builder.sub(last, first)) as loop:
        listed = builder.add(first, loop.index)
        pair = builder.load(builder.gep(pairs, [listed]))
        start = builder.add(builder.mul(pair, stride), row)
        cells = []
        for vector in range(VECTORS):
            place = builder.gep(tile, [builder.add(start, number(LANES * vector))])
            cells.append(builder.load(builder.bitcast(place, halves.as_pointer()), align=4))
        for i in range(TILE_FREQUENCIES):
            step = builder.add(builder.mul(listed, number(TILE_FREQUENCIES)), number(i))
            both = builder.load(builder.gep(steps, [step]), align=4)
            one = builder.insert_element(unset, both, ir.Constant(word, 0))
            spread = builder.bitcast(builder.shuffle_vector(one, unset, zeros), halves)
            for vector in range(VECTORS):
                own = sums[i * VECTORS + vector]
                products = builder.call(instruction, [cells[vector], spread])
                builder.store(builder.add(builder.load(own), products), own)
    for i in range(TILE_FREQUENCIES):
        start = builder.add(builder.mul(number(i), stride), row)
        for vector in range(VECTORS):
            place = builder.gep(phases, [builder.add(start, number(LANES * vector))])
            place = builder.bitcast(place, words.as_pointer())
            builder.store(builder.load(sums[i * VECTORS + vector]), place, align=4)
    return context.get_dummy_value()
