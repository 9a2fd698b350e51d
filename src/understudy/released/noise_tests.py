"""Whether a release's numbers look like sums with the stated noise, as far as numbers can show it.

Two tests of every stage, each with a chance below which a release is refused:

- **Residues.** Before noise every number is a whole multiple of a unit that the plan fixes: a row is one in a count,
  and features are rounded at 24 bits of a finer lattice. Noise spreads what is left over after division.
- **Agreement.** Tables of counts over the same rows repeat their totals and the margins of shared columns.
  Each has noise of its own, so they disagree.

They find noise that was forgotten or is far too small. They cannot find noise of a known seed, or a forger who
adds numbers that are as good as noise: whoever holds the rows can always do that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln

from understudy.arrays import Floats, Integers
from understudy.features import (
    Block,
    Buckets,
    Constant,
    Embedding,
    FeatureMap,
    Grid,
    Lengths,
    OneHot,
    Sides,
    Tables,
    Tensors,
)
from understudy.features.embedding import kept_radius
from understudy.released.release import Release

REFUSED_BELOW = 1e-9
"""A true release fails one of its tests about so often, at most."""

Effects = dict[Hashable, list[tuple[Floats, float]]]


@dataclass(frozen=True)
class NoiseTest:
    """One test of one stage: how many numbers it looked at, of how many, and the chance of what it saw.

    ``chance`` bounds how often numbers with the stated noise look as little like it; with ``is_able`` numbers
    without any noise would have been refused.
    """

    stage: str
    test: str
    looked_at: int
    of: int
    chance: float
    is_able: bool


def noise_tests(release: Release) -> tuple[NoiseTest, ...]:
    """Every test of every stage, and of the vectors that settled the maps if rows were added since."""
    found = []
    kept = [(release.vectors, release.plan, "")]
    if release.settled is not None:
        before = replace(release.plan, parties=release.settled.parties)
        kept.append((release.settled.vectors, before, ", before rows were added"))
    for vectors, plan, when in kept:
        is_gaussian = plan.mechanism.name == "gaussian"
        for i, (embedding, vector) in enumerate(zip(release.embeddings, vectors, strict=True)):
            of, noise, name = len(vector), plan.noise_stds[i], plan.stages[i].name + when
            units = np.concatenate([_units(b, embedding, plan.lattice) for b in embedding.blocks])
            looked_at, chance, least = residues(vector, units, noise)
            found.append(NoiseTest(name, "residues", looked_at, of, chance, least < REFUSED_BELOW))
            square, freedom, looked_at = disagreement(embedding, vector, units, noise)
            chance = chance_of_less(square, freedom, is_gaussian=is_gaussian)
            found.append(NoiseTest(name, "agreement", looked_at, of, chance, freedom > 0))
    return tuple(found)


def residues(vector: Integers, units: Integers, noise: float) -> tuple[int, float, float]:
    """How many numbers have a unit, the chance of so small residues, and the chance if all were zero.

    The laws of noise are unimodal, with a peak of at most 1 / (sqrt(2) deviation); wrapped around a unit u,
    no residue is likelier than that + 1 / u. So (2 |r| + 1) times it is a p-value for a residue of r at
    most, and by Fisher minus the logarithms of n p-values add up to a gamma variable of n at most.
    """
    has_unit = units > 1
    unit, count = units[has_unit], int(has_unit.sum())
    if count == 0:
        return 0, 1.0, 1.0
    rest = np.mod(vector[has_unit], unit)
    distance = np.minimum(rest, unit - rest)
    likeliest = 1 / (math.sqrt(2) * noise) + 1 / unit
    seen = -np.log(np.minimum(1.0, (2.0 * distance + 1) * likeliest)).sum()
    most = -np.log(np.minimum(1.0, likeliest)).sum()
    return count, float(gammaincc(count, seen)), float(gammaincc(count, most))


def disagreement(embedding: Embedding, vector: Integers, units: Integers, noise: float) -> tuple[float, int, int]:
    """How far tables of counts disagree, in squares of deviations, its degrees of freedom, and the cells looked at.

    A table's total and its deviations from it along each column are orthogonal, as in an analysis of variance.
    Where rows are missing from a table, it disagrees the more, never less (Anderson 1955).
    """
    effects: Effects = defaultdict(list)
    cells = 0
    for keys, counts, unit in _tables(embedding, vector, units):
        cells += counts.size
        variance = (noise / unit) ** 2 * counts.size
        effects[None].append((counts.sum(keepdims=True).ravel(), variance))
        for axis, key in enumerate(keys):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            margin = counts.sum(axis=others)
            effects[key].append((margin - margin.mean(), variance / len(margin)))
    square, freedom = 0.0, 0
    for key, estimates in effects.items():
        values = np.stack([value for value, _ in estimates])
        trust = 1 / np.asarray([variance for _, variance in estimates])[:, None]
        mean = (values * trust).sum(axis=0) / trust.sum()
        square += float(((values - mean) ** 2 * trust).sum())
        freedom += (len(estimates) - 1) * (values.shape[1] - (key is not None))
    return square, freedom, cells if freedom else 0


def chance_of_less(square: float, freedom: int, *, is_gaussian: bool) -> float:
    """How often independent noise disagrees by so little, at most.

    For noise that is not Gaussian, densities of k orthonormal combinations are at most 1 in units of deviations
    (Livshyts, Paouris & Pivovarov 2016), so that the chance is at most the volume of a ball.
    """
    if freedom == 0:
        return 1.0
    if is_gaussian:
        return float(gammainc(freedom / 2, square / 2))
    if square == 0:
        return 0.0
    volume = freedom / 2 * math.log(math.pi * square) - float(gammaln(freedom / 2 + 1))
    return min(1.0, math.exp(min(0.0, volume)))


def _units(block: Block, embedding: Embedding, lattice: int) -> Integers:
    """What each number of a block is a whole multiple of before noise.  # (copies * dim,)"""
    radius, unit = block.rounding(lattice)
    map_ = block.map
    if isinstance(map_, Tables):
        found = np.full(map_.dim, radius)
    elif isinstance(map_, Tensors):
        found = _units_of_products(block, map_, lattice)
    elif _counts(map_):
        kept = kept_radius(radius, map_.dim, block.norm, map_.most_nonzeros)
        found = np.full(map_.dim, round(kept / math.sqrt(map_.most_nonzeros)) * unit)
    else:
        found = np.full(map_.dim, unit)
    return np.tile(found, embedding.copies(block)).astype(np.int64)


def _units_of_products(block: Block, map_: Tensors, lattice: int) -> Integers:
    """Products of memberships are counts too; those of other features have no unit but 1."""
    kept = {
        half: kept_radius(radius, map_.size_of(half), block.norm, map_.nonzeros_of(half))
        for half, radius in block.half_radii(map_, lattice).items()
    }
    found = [
        kept[left] * kept[right]
        if all(_counts(map_.factors[j]) for j in subset) and map_.nonzeros_of(subset) == 1
        else 1
        for subset, (left, right) in zip(map_.subsets, map_.halves, strict=True)
    ]
    return np.repeat(found, map_.sizes)


def _counts(map_: FeatureMap) -> bool:
    """Whether every feature of a row is zero or one over the root of how many are not."""
    return isinstance(map_, Constant | OneHot | Grid | Lengths | Buckets | Sides)


def _tables(
    embedding: Embedding, vector: Integers, units: Integers
) -> Iterator[tuple[tuple[Hashable, ...], Floats, int]]:
    """Every table of counts of a stage: what each of its axes is about, the counts, and their unit."""
    for block in embedding.blocks:
        start, _ = embedding.spans[block.name]
        unit = int(units[start])
        rows = embedding.rows_of(block.name, vector) / unit
        label: tuple[Hashable, ...] = ()
        if block.per_label:  # a copy for unlisted labels makes it another axis
            label = (("label", embedding.label, embedding.copies(block)),)
        for keys, counts in _tables_by_copy(block.map, rows):
            yield (*label, *keys), counts if block.per_label else counts[0], unit


def _tables_by_copy(map_: FeatureMap, rows: Floats) -> Iterator[tuple[tuple[Hashable, ...], Floats]]:
    """The tables of a map, a copy per row.  # (copies, *shape) of each"""
    match map_:
        case Tables():
            for subset, counts in zip(map_.subsets, map_.split(rows), strict=True):
                yield tuple((map_.factors[j], map_.with_unlisted) for j in subset), counts
        case Constant():
            yield (), rows[:, 0]
        case OneHot(spans=spans):
            ends = np.cumsum([0, *(stop - start for start, stop in spans)]).tolist()
            for span, (start, stop) in zip(spans, pairwise(ends), strict=True):
                yield (("choice", span),), rows[:, start:stop]
        case Grid(numbers=numbers, num_bins=num_bins):
            for i, number in enumerate(numbers):
                yield (("bins", number, num_bins),), rows[:, i * num_bins : (i + 1) * num_bins]
        case Lengths() | Buckets() | Sides():
            yield (map_.to_dict()["kind"],), rows
