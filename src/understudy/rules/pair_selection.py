"""Pair selection: which two-way marginals are measured, by their noisy distance from independence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.features.embedding import Embedding
from understudy.features.tables import Cells, Tables
from understudy.rules.adaptive_bins import CELLS, COARSE_PAIRS, looks_at_pairs, merged, most_cells, refined, total_rows
from understudy.rules.denoise import centred
from understudy.rules.marginals import Marginals, find_marginals
from understudy.rules.measurement import Measurement

FINER = "finer"
PAIRS = "pairs"
"""Blocks: columns cut anew by what earlier stages have shown, and pairs."""

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


def select_pairs(planned: Measurement, earlier: Sequence[Measurement]) -> Embedding:
    """Settle the last stage: columns cut anew, and the pairs that are measured (a rule of ``RULES``).

    If the row count carries no pairs, their share of the budget measures columns too.
    """
    first, second = earlier[-2:]
    marginals = find_marginals((first, second))
    columns = _cut_anew(planned, first, marginals, with_pairs=looks_at_pairs(second))
    embedding = planned.embedding.with_map(FINER, columns)
    if not planned.has(PAIRS):
        return embedding
    pairs = _selected(planned, first, second, marginals) if looks_at_pairs(second) else columns
    return embedding.with_map(PAIRS, pairs)


def _cut_anew(planned: Measurement, first: Measurement, marginals: Marginals, *, with_pairs: bool) -> Tables:
    """Every column by itself, in cells that follow from all that was measured so far."""
    template, noise = planned.map(FINER), planned.noise_of_count(FINER)
    if planned.has(PAIRS) and not with_pairs:
        dilution = planned.embedding.block(PAIRS).norm.dilution
        of_one = planned.noise_of_count(PAIRS) / dilution(len(planned.map(PAIRS).subsets))
        noise = min(noise, of_one * dilution(len(template.subsets)))
    most = most_cells(len(marginals.cells))
    cells = tuple(
        refined(first, own, marginals.total * (marginals.label_shares @ by_label), noise, most)
        for own, by_label in zip(marginals.cells, marginals.by_label, strict=True)
    )
    return replace(template, factors=cells)


def _selected(planned: Measurement, first: Measurement, second: Measurement, marginals: Marginals) -> Tables:
    """Selected pairs and their cells.

    The more pairs, the noisier each: taken are the ones whose dependence, if it were left out, would cost more than the
    noise that they bring to all. Each is as fine as its own dependence deserves.
    """
    strengths = dependence(marginals, second)
    order = sorted(strengths, key=lambda pair: -strengths[pair])
    total, template = total_rows(first), planned.map(PAIRS)
    dilution, finest = planned.embedding.block(PAIRS).norm.dilution, second.map(CELLS).factors
    noise_of_one = planned.noise_of_count(PAIRS) / dilution(len(template.subsets)) / total
    left_out = sum(strengths.values())
    best, least = 1, math.inf
    for count, pair in enumerate(order[:MOST_PAIRS], start=1):
        left_out -= strengths[pair]
        noise = noise_of_one * dilution(count)
        error = sum(resolution(strengths[each], [finest[j] for j in each], noise)[1] for each in order[:count])
        if error + left_out < least:
            best, least = count, error + left_out
    noise, cells, wishes = noise_of_one * dilution(best), dict[Cells, int](), list[Pair]()
    for pair in order[:best]:
        count, _ = resolution(strengths[pair], [finest[j] for j in pair], noise)
        factors = [_coarsened(first, finest[j], count, noise) for j in pair]
        wishes.append(tuple(cells.setdefault(each, len(cells)) for each in factors))
    chosen = _affordable(wishes, [each.dim + template.with_unlisted for each in cells])
    return replace(template, factors=tuple(cells), subsets=tuple(sorted(chosen)))


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


def _affordable(pairs: list[Pair], dims: list[int]) -> list[Pair]:
    """As many of the first pairs as the size of a release allows; at least one."""
    sizes = np.cumsum([dims[i] * dims[j] for i, j in pairs])
    return pairs[: max(1, int((sizes <= MOST_NUMBERS).sum()))]
