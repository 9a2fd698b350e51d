"""Pair selection: which two-way marginals are measured, by their noisy distance from independence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from understudy.arrays import Floats
from understudy.features.embedding import Embedding
from understudy.features.tables import Cells
from understudy.rules.adaptive_bins import CELLS, COARSE_PAIRS, MARGINALS, looks_at_pairs, merged, most_cells, refined
from understudy.rules.denoise import centred
from understudy.rules.marginals import Marginals, find_marginals
from understudy.rules.measurement import Measurement

NOISE_PER_CELL = 0.35
"""What a cell of a measured pair adds to the error, in deviations of its noise, once shrunk."""

RESOLUTIONS = (3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
"""Cells of a number in a pair, of which the expected error picks one; two cannot show a bend."""

NOISE_PER_CATEGORY = 1.5
"""A category has a cell of its own in a pair if it holds so many deviations of noise in rows."""

STRONGEST = 2.0
"""No table is further from another one than this in the L1 distance."""

MOST_PAIRS = 400  # pairs that are measured
MOST_NUMBERS = 150_000  # cells of all pairs: the release stays near a megabyte

Pair = tuple[int, ...]


def select_marginals(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Settle the last stage: columns cut anew, and pairs of columns (a rule of ``RULES``).

    All are tables of one block with the same noise: the fewer pairs are worth it, the better columns are known.
    """
    first, second = earlier[-2:]
    marginals, template = find_marginals((first, second)), planned.map(MARGINALS)
    dilution = planned.embedding.block(MARGINALS).norm.dilution
    noise_of_one = planned.noise_of_count(MARGINALS) / dilution(len(template.subsets)) / marginals.total
    alone = len(marginals.cells)
    pairs = _selected(first, second, marginals, lambda count: noise_of_one * dilution(alone + count))
    columns = [(own,) for own in _cut_anew(first, marginals, noise_of_one * dilution(alone + len(pairs)))]
    cells: dict[Cells, int] = {}
    subsets = [tuple(cells.setdefault(own, len(cells)) for own in each) for each in (*columns, *pairs)]
    chosen = replace(template, factors=tuple(cells), subsets=tuple(sorted(subsets)))
    return planned.embedding.with_map(MARGINALS, chosen)


def _cut_anew(first: Measurement, marginals: Marginals, noise: float) -> list[Cells]:
    """Every column by itself, in cells that follow from all that was measured so far."""
    most = most_cells(len(marginals.cells))
    return [
        refined(first, own, marginals.total * marginals.of_all(place), noise * marginals.total, most)
        for place, own in enumerate(marginals.cells)
    ]


def _selected(
    first: Measurement, second: Measurement, marginals: Marginals, noise_of: Callable[[int], float]
) -> list[tuple[Cells, ...]]:
    """Selected pairs and their cells.

    The more pairs, the noisier each: taken are the ones whose dependence, if it were left out, would cost more than the
    noise that they bring to all. Each is as fine as its own dependence deserves.
    """
    if not looks_at_pairs(second):
        return []
    strengths = dependence(marginals, second)
    order = sorted(strengths, key=lambda pair: -strengths[pair])
    finest = second.map(CELLS).factors
    left_out = sum(strengths.values())
    best, least = 0, math.inf
    for count, pair in enumerate(order[:MOST_PAIRS], start=1):
        left_out -= strengths[pair]
        noise = noise_of(count)
        error = sum(resolution(strengths[each], [finest[j] for j in each], noise)[1] for each in order[:count])
        if error + left_out < least:
            best, least = count, error + left_out
    noise, wishes = noise_of(best), []
    for pair in order[:best]:
        count, _ = resolution(strengths[pair], [finest[j] for j in pair], noise)
        wishes.append(tuple(_coarsened(first, finest[j], count, noise) for j in pair))
    return _affordable(wishes)


def resolution(strength: float, finest: Sequence[Cells], noise: float) -> tuple[int, float]:
    """Cells of a number in a pair of this dependence that give the least expected error, and that error (L1).

    Coarse cells lose about their share of the dependence, fine ones bring noise. If a choice hangs on a number nearly
    as a function, few cells are in use, and shrinkage clears the others: even margins of which a share u of the cells
    is in use lie 2 (1 - u) from independence.
    """
    found = (RESOLUTIONS[0], math.inf)
    for count in RESOLUTIONS:
        dims = [min(count, cells.dim) if cells.is_ordered else cells.dim for cells in finest]
        merged_numbers = sum(cells.is_ordered and cells.dim > count for cells in finest)
        in_use = float(math.prod(dims))
        if not all(cells.is_ordered for cells in finest):
            in_use = max(in_use * (1 - strength / STRONGEST), max(dims))
        error = merged_numbers * strength / count + NOISE_PER_CELL * noise * in_use
        if error < found[1]:
            found = (count, error)
    return found


def _coarsened(first: Measurement, finest: Cells, count: int, noise: float) -> Cells:
    """A column as it is cut in a pair."""
    if not finest.is_ordered:
        return merged(first, finest, 1 / (4 * NOISE_PER_CATEGORY * noise))
    return finest if finest.dim <= count else merged(first, finest, count)


def dependence(margins: Marginals, second: Measurement) -> dict[Pair, float]:
    """How far each pair is from independent within labels, beyond its noise: an estimate of the L1 distance.

    The squared interactions have the noise's variance in each of their (r - 1)(c - 1) degrees of freedom on top, and
    that of a sample of so many rows, on average 1 / (r c n); both are taken off. By Cauchy and Schwarz, the root of
    what is left times the number of cells bounds the L1 distance.
    """
    map_, noise = second.map(COARSE_PAIRS), second.noise_of_count(COARSE_PAIRS)
    found = {}
    for pair, table in zip(map_.subsets, second.tables(COARSE_PAIRS), strict=True):
        expected = margins.independent((pair[0], pair[1]), map_.factors).sum(axis=0)
        apart = centred(table.sum(axis=0) / margins.total - expected)
        rows, columns = apart.shape
        variance = len(table) * (noise / margins.total) ** 2 + 1 / (apart.size * margins.total)
        energy = float((apart**2).sum()) - (rows - 1) * (columns - 1) * variance
        found[pair] = min(STRONGEST, math.sqrt(max(0.0, energy) * apart.size))
    return found


def _affordable(pairs: list[tuple[Cells, ...]]) -> list[tuple[Cells, ...]]:
    """As many of the first pairs as the size of a release allows; at least one."""
    sizes = np.cumsum([math.prod(cells.dim + 1 for cells in pair) for pair in pairs])
    return pairs[: max(1, int((sizes <= MOST_NUMBERS).sum()))]


@dataclass(frozen=True)
class SelectedPairs:
    """Noisy counts of the pairs of columns that the last stage has measured, by the places of their cells."""

    cells: tuple[Cells, ...]
    tables: dict[Pair, Floats]
    noise: float


def selected_pairs(third: Measurement) -> SelectedPairs:
    """The pairs of columns among the marginals of the last stage."""
    cells: dict[Cells, int] = {}
    tables, deviation = {}, 0.0
    for own, (table, noise) in third.by_cells(MARGINALS).items():
        if len(own) == 2:
            tables[tuple(cells.setdefault(each, len(cells)) for each in own)] = table[0]
            deviation = noise
    return SelectedPairs(tuple(cells), tables, deviation)
