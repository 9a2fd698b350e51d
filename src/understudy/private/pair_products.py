"""Sums of products of 16-bit integers, two columns at a time.

x86 processors with AVX2 multiply sixteen pairs of 16-bit integers and add neighbours in one instruction, twice as many
as they multiply floats; compilers do not find it in a loop over rows, so it is asked for by name. On other
processors the loop is left to the compiler. Sums wrap around at 32 bits, in any order the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TILE_ROWS, TILE_FREQUENCIES = 32, 2
LANES = 8
VECTORS = TILE_ROWS // LANES


def has_pair_instruction() -> bool:
    """Whether numba compiles for a processor that has the instruction."""
    from llvmlite import binding
    from numba.core import config

    if config.CPU_NAME or config.CPU_FEATURES:  # for another processor than this one
        return False
    features = binding.get_host_cpu_features()
    return "x86_64" in binding.get_process_triple() and bool(features.get("avx2", False))


def pair_products() -> Any:
    """A compiled function that sets phases[i, row + j] for a tile of frequencies i and rows j.

    Its arguments: tile (pairs, rows, 2) of int16, steps (listed, TILE_FREQUENCIES, 2) of int16, the pair of columns
    that each of the listed steps is for, the first and last of them for this tile, row, and phases of int32.
    """
    return _by_instruction() if has_pair_instruction() else _by_loop()


def _by_loop() -> Any:
    from numba import njit

    int32 = np.int32

    @njit
    def add_pairs(tile, steps, pairs, first, last, row, phases):  # type: ignore[no-untyped-def]
        for i in range(TILE_FREQUENCIES):
            own = phases[i, row : row + TILE_ROWS]
            own[:] = 0
            for listed in range(first, last):
                cells = tile[pairs[listed], row : row + TILE_ROWS]
                left, right = int32(steps[listed, i, 0]), int32(steps[listed, i, 1])
                for j in range(TILE_ROWS):
                    both = int32(int32(cells[j, 0]) * left) + int32(int32(cells[j, 1]) * right)
                    own[j] = int32(own[j] + both)

    return add_pairs


def _by_instruction() -> Any:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    word, index = ir.IntType(32), ir.IntType(64)
    words, halves = ir.VectorType(word, LANES), ir.VectorType(ir.IntType(16), 2 * LANES)
    unset, zeros = ir.Constant(words, ir.Undefined), ir.Constant(words, [0] * LANES)

    def number(value: int) -> Any:
        return ir.Constant(index, value)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        arrays = {
            place: context.make_array(signature.args[place])(context, builder, arguments[place])
            for place in (0, 1, 2, 6)
        }
        tile, steps = (builder.bitcast(arrays[i].data, word.as_pointer()) for i in (0, 1))
        pairs, phases = arrays[2].data, arrays[6].data
        first, last, row = arguments[3:6]
        stride = builder.extract_value(arrays[0].shape, 1)
        name = "llvm.x86.avx2.pmadd.wd"
        instruction = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(words, [halves, halves]), name
        )
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

    @intrinsic
    def add_pairs(typing, tile, steps, pairs, first, last, row, phases):  # type: ignore[no-untyped-def]
        return types.void(tile, steps, pairs, first, last, row, phases), build

    return add_pairs
