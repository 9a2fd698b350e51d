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
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln

from understudy.arrays import Floats, Integers
from understudy.features import Block, Embedding
from understudy.features.base import Axis
from understudy.released.release import Release
from understudy.released.tables import counts_of, walk_tables

REFUSED_BELOW = 1e-9
"""A true release fails one of its tests about so often, at most."""

Effects = dict[Axis | None, list[tuple[Floats, float]]]


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
    for block, keys, table in walk_tables(embedding):
        start, _ = embedding.spans[block.name]
        unit = int(units[start + table.start])
        counts = counts_of(keys, replace(table, scale=1.0), embedding.rows_of(block.name, vector) / unit)
        cells += counts.size
        variance = (noise / unit) ** 2 * counts.size
        effects[None].append((counts.sum(keepdims=True).ravel(), variance))
        for axis, own in enumerate(keys):
            others = tuple(other for other in range(counts.ndim) if other != axis)
            margin = counts.sum(axis=others)
            effects[own].append((margin - margin.mean(), variance / len(margin)))
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
    """What each number of a block is a whole multiple of before noise.  # (copies * dim,)

    A row in a cell of a table adds one over the table's scale, which is rounded on the lattice; a feature that is no
    count is rounded at the block's own unit, and a product of features not at all.
    """
    map_, (_, unit) = block.map, block.rounding(lattice)
    if map_.components[0] is not map_:
        unit = 1
    found, scales = np.full(map_.dim, unit), block.scales(lattice)
    for table in map_.count_tables:
        found[table.start : table.start + table.size] = round(scales[table.start] / unit / table.scale) * unit
    return np.tile(found, embedding.copies(block)).astype(np.int64)
