"""Loops that numba compiles. To be imported only where it is installed.

Phases, cosines, cuts and sums are those of ``features/exact.py`` and ``features/fourier.py``, step by step, so that
both ways give the same integers (proofs/lattice.md). Nothing is contracted; int32 sums wrap around, modulo one turn.

x86 processors with AVX2 multiply sixteen pairs of 16-bit integers and add neighbours in one instruction (vpmaddwd),
twice as many as they multiply floats; LLVM does not find it in a loop over rows, so it is asked for by name. The best
plain loop that we found gives the same integers in 1.6 times the time (30 columns, DP-MERF's default kernel) to 2.2
times (frequencies of all columns). On other processors the loop is left to the compiler.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import njit
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from understudy.features import exact
from understudy.features.exact import DROPPED_BITS, KEPT_MASK, ONE, PHASE_BITS, QUARTER, SIGN_SHIFT
from understudy.private import kernels
from understudy.private.kernels import TILE_FREQUENCIES, TILE_ROWS

LANES = 8  # 32-bit numbers in a vector of AVX2
VECTORS = TILE_ROWS // LANES


def has_pair_instruction() -> bool:
    """Whether numba compiles for a processor that has the instruction."""
    if config.CPU_NAME or config.CPU_FEATURES:  # for another processor than this one
        return False
    features = binding.get_host_cpu_features()
    return "x86_64" in binding.get_process_triple() and bool(features.get("avx2", False))


def _add_pairs(tile: Any, steps: Any, pairs: Any, first: Any, last: Any, row: Any, phases: Any) -> None:
    """Set phases[i, row + j] for a tile of frequencies i and rows j, on any processor.

    Args:
        tile: (pairs, rows, 2) of int16.
        steps: (listed, TILE_FREQUENCIES, 2) of int16.
        pairs: the pair of columns that each of the listed steps is for.
        first: the first of them for this tile.
        last: one past the last of them.
        row: the first row of the tile.
        phases: of int32.
    """
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


def _typed(typing: Any, tile: Any, steps: Any, pairs: Any, first: Any, last: Any, row: Any, phases: Any) -> Any:
    """The same by the instruction, for processors that have it."""
    return types.void(tile, steps, pairs, first, last, row, phases), _build


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


BITS_OF_A_SHIFT = np.int32(31)


def _kept(function: Any) -> Any:
    """Compiled, and kept on disk for the next time if there is a folder for it.

    Numba looks at this file's time alone to see whether what it has kept is out of date, so the name that it is
    kept by tells of all that it is made from.
    """
    files = (__file__, *(str(module.__file__) for module in (exact, kernels)))
    sources = b"".join(Path(file).read_bytes() for file in files)
    function.__qualname__ += f"_{hashlib.sha256(sources).hexdigest()[:16]}"
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def _wave(phase: Any, amplitude: Any) -> Any:
    """Whole cosine and sine of a rounded phase, and 0; or, if it has an odd half turn, their complements, and -1.

    A number less the third is then the number itself with its sign turned.
    """
    int32 = np.int32
    kept = int32(phase & KEPT_MASK)
    double = int32(kept << ONE)
    odd = int32(int32(kept ^ double) >> SIGN_SHIFT)
    z = np.float32(double) * QUARTER
    y = z * z
    c0, c1, c2, c3, c4 = exact.COSINE_SERIES
    s0, s1, s2, s3, s4 = exact.SINE_SERIES
    cosine = c0 + y * (c1 + y * (c2 + y * (c3 + y * c4)))
    sine = z * (s0 + y * (s1 + y * (s2 + y * (s3 + y * s4))))
    return int32(int32(cosine * amplitude) ^ odd), int32(int32(sine * amplitude) ^ odd), odd


wave = njit(inline="always")(_wave)
by_loop = njit(_add_pairs)
by_instruction = intrinsic(_typed)
add_pairs = by_instruction if has_pair_instruction() else by_loop


def _add_rows(positions: Any, order: Any, bounds: Any, tasks: Any, amplitude: Any, tile: Any, total: Any) -> None:
    """Add features of rows to ``total``: block by block of a copy's rows, group by group of frequencies."""
    int32, int64 = np.int32, np.int64
    _, starts, pairs, steps, offsets, shifts = tasks
    block = tile.shape[1]
    phases = np.empty((TILE_FREQUENCIES, block), np.int32)
    for copy in range(len(bounds) - 1):
        for first in range(bounds[copy], bounds[copy + 1], block):
            num_rows = min(block, bounds[copy + 1] - first)
            for number in range(len(positions)):
                column, own = tile[number // 2], positions[number]
                for row in range(num_rows):
                    column[row, number % 2] = own[order[first + row]]
            for group in range(len(starts) - 1):
                for row in range(0, num_rows, TILE_ROWS):
                    add_pairs(tile, steps, pairs, starts[group], starts[group + 1], row, phases)
                for i in range(TILE_FREQUENCIES):
                    phase, offset = phases[i], offsets[group, i]
                    shift = shifts[group, i] & BITS_OF_A_SHIFT  # so that it stays in 32 bits
                    cosines, sines, odds = int32(0), int32(0), int32(0)
                    for row in range(num_rows):
                        cosine, sine, odd = wave(int32(int32(phase[row] + offset) << shift), amplitude)
                        cosines = int32(cosines + cosine)
                        sines = int32(sines + sine)
                        odds = int32(odds + odd)
                    place = TILE_FREQUENCIES * group + i
                    total[copy, place, 0] += int64(cosines) - int64(odds)
                    total[copy, place, 1] += int64(sines) - int64(odds)


def _longest(amplitude: Any) -> Any:
    """The largest sum of squares of the whole cosine and sine of any phase."""
    found = np.int64(0)
    for number in range(2 ** (PHASE_BITS - DROPPED_BITS)):
        cosine, sine, odd = wave(np.int32(number << DROPPED_BITS), amplitude)
        left, right = np.int64(cosine) - np.int64(odd), np.int64(sine) - np.int64(odd)
        found = max(found, left * left + right * right)
    return found


add_rows = _kept(_add_rows)
longest = _kept(_longest)
