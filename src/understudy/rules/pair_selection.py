"""Pair selection: which two-way marginals are measured, by their noisy distance from independence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.features.embedding import Embedding
from understudy.rules.adaptive_bins import CELLS, COARSE_PAIRS, merged, total_rows
from understudy.rules.denoise import centred
from understudy.rules.marginals import Marginals, find_marginals
from understudy.rules.measurement import Measurement

PAIRS = "pairs"
NOISE_PER_CELL = 0.35
"""What a cell of a measured pair adds to the error, in deviations of its noise, once shrunk."""

PAIR_NOISE = 4.0
"""A cell of a pair of numbers holds about so many deviations of rows."""

CLOSE = 1.0
"""Pairs this far from independent, where 2 is as far as can be, are measured in the finest cells:
columns that nearly determine one another should not contradict one another."""

FEWEST_CELLS = 3  # of a number in a pair; two cannot show a bend
MOST_CELLS = 32  # of a number in a pair; the fit has their square in memory
MOST_PAIRS = 400  # pairs that are measured
MOST_NUMBERS = 150_000  # cells of all pairs: the release stays near a megabyte

Pair = tuple[int, ...]


def select_pairs(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Select pairs for the third stage, and their cells (a rule of ``RULES``).

    The more pairs, the noisier each: taken are the ones whose dependence, if it were left out,
    would cost more than the noise that they bring to all.
    """
    first, second = earlier[0], earlier[1]
    strengths = dependence(find_marginals(earlier), second)
    order = sorted(strengths, key=lambda pair: -strengths[pair])
    total, block = total_rows(first), planned.embedding.block(PAIRS)
    template = planned.map(PAIRS)
    dilution = block.norm.dilution
    noise_of_one = planned.noise_of_count(PAIRS) / dilution(len(template.subsets))
    left_out = sum(strengths.values())
    best, least = 1, math.inf
    for count, pair in enumerate(order[:MOST_PAIRS], start=1):
        left_out -= strengths[pair]
        noise = noise_of_one * dilution(count)
        error = count * NOISE_PER_CELL * noise / total * cells_per_column(total, noise) ** 2
        if error + left_out < least:
            best, least = count, error + left_out
    wanted = cells_per_column(total, noise_of_one * dilution(best))
    finest = second.map(CELLS).factors
    cells = [merged(first, each, wanted) for each in finest]
    close = [pair for pair in order[:best] if strengths[pair] >= CLOSE]
    in_close = sorted({j for pair in close for j in pair})
    fine = {j: len(cells) + place for place, j in enumerate(in_close)}
    cells += [finest[j] for j in in_close]
    wishes: list[Pair] = [(fine[i], fine[j]) if (i, j) in close else (i, j) for i, j in order[:best]]
    chosen = _affordable(wishes, [each.dim for each in cells])
    tables = replace(template, factors=tuple(cells), subsets=tuple(sorted(chosen)))
    return planned.embedding.with_map(PAIRS, tables)


def cells_per_column(total: float, noise: float) -> float:
    """Cells of a number inside a pair."""
    wanted = math.sqrt(max(total, 1.0) / (PAIR_NOISE * noise))
    return min(MOST_CELLS, max(FEWEST_CELLS, wanted))


def dependence(margins: Marginals, second: Measurement) -> dict[Pair, float]:
    """How far each pair is from independent within labels, beyond its noise: an estimate of the L1 distance.

    The squared interactions have the noise's variance in each of their (r - 1)(c - 1) degrees of freedom on top, which
    is taken off; by Cauchy and Schwarz, the root of what is left times the number of cells bounds the L1 distance.
    """
    map_, noise = second.map(COARSE_PAIRS), second.noise_of_count(COARSE_PAIRS)
    found = {}
    for pair, table in zip(map_.subsets, second.tables(COARSE_PAIRS), strict=True):
        expected = margins.independent((pair[0], pair[1]), map_.factors).sum(axis=0)
        apart = centred(table.sum(axis=0) / margins.total - expected)
        rows, columns = apart.shape
        variance = len(table) * (noise / margins.total) ** 2
        energy = float((apart**2).sum()) - (rows - 1) * (columns - 1) * variance
        found[pair] = math.sqrt(max(0.0, energy) * apart.size)
    return found


def _affordable(pairs: list[Pair], dims: list[int]) -> list[Pair]:
    """As many of the first pairs as the size of a release allows; at least one."""
    sizes = np.cumsum([dims[i] * dims[j] for i, j in pairs])
    return pairs[: max(1, int((sizes <= MOST_NUMBERS).sum()))]
