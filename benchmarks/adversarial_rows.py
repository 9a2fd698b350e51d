"""How far rows can move the sums of a plan, looked for by an adversary, against what is charged for it.

Rows are codes: corners of the domain, nulls, values on both sides of every edge of a cell, random ones, and the
best of these improved code by code. Stages that are settled by earlier noisy vectors are settled by vectors that
an adversary would wish for: nothing, everything, alternating signs, heavy tails, and what real rows give.
Distances and costs are whole numbers and fractions: no rounding decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt

from understudy.accounting.mechanisms import Neighbours
from understudy.features import Embedding, Norm, Tables
from understudy.plan.plan import Plan
from understudy.private.sums import Work
from understudy.schema import NULL

Integers = npt.NDArray[np.int64]
Past = Callable[[Embedding, int], Integers]
"""From what a stage measures and its place to the noisy vector that it is taken to have."""

FEW_CORNERS = 5
"""Columns up to which every combination of the ends of their domains is tried."""


@dataclass(frozen=True)
class Reach:
    """The furthest that an adversary moved the sum of a stage."""

    stage: str
    neighbours: Neighbours
    ratio: Fraction  # realised cost over charged cost
    block_ratio: Fraction  # of the block that came nearest to its own radius, one row more or less

    @property
    def worst(self) -> Fraction:
        """What must not exceed 1."""
        return max(self.ratio, self.block_ratio)


def reaches(plan: Plan, *, seed: int = 0, pasts: tuple[str, ...] = (), rows: int = 24, climbs: int = 40) -> list[Reach]:
    """The worst that was found for every stage of a plan and both notions of neighbours."""
    rng = np.random.default_rng(seed)
    found: dict[tuple[int, Neighbours], Reach] = {}
    every = past_vectors(plan, rng)
    for past in (every[name] for name in every if not pasts or name in pasts):
        for index, embedding in enumerate(settled(plan, past)):
            stage = _Stage(plan, index, embedding)
            for reach in stage.attacked(rng, rows=rows, climbs=climbs):
                key = index, reach.neighbours
                before = found.get(key, reach)
                found[key] = replace(
                    reach, ratio=max(before.ratio, reach.ratio), block_ratio=max(before.block_ratio, reach.block_ratio)
                )
    return list(found.values())


def settled(plan: Plan, past: Past) -> tuple[Embedding, ...]:
    """The embeddings of all stages, if their noisy vectors are those of ``past``."""
    vectors: list[Integers] = []
    for index in range(len(plan.stages) - 1):
        vectors.append(past(plan.embeddings(vectors)[index], index))
    return plan.embeddings(vectors)


def past_vectors(plan: Plan, rng: np.random.Generator) -> dict[str, Past]:
    """Noisy vectors that settle later stages; one kind is enough where no rule looks at any."""
    largest = plan.lattice << 20

    def heavy(embedding: Embedding, index: int) -> Integers:
        counts = np.maximum(rng.normal(0, 1, embedding.dim), 0) ** 4 * 1000
        noise = rng.normal(0, plan.noise_stds[index], embedding.dim)
        return np.rint(counts * plan.lattice + noise).astype(np.int64)

    def alternating(embedding: Embedding, index: int) -> Integers:
        return np.where(np.arange(embedding.dim) % 2 == 0, largest, -largest)

    def real(embedding: Embedding, index: int) -> Integers:
        work = Work(plan.layout, embedding, plan.lattice)
        return work.partial_of_codes(random_codes(plan, rng, 500))[:-1]

    kinds: dict[str, Past] = {
        "rows": real,
        "nothing": lambda embedding, index: np.zeros(embedding.dim, dtype=np.int64),
        "all": lambda embedding, index: np.full(embedding.dim, largest),
        "less than nothing": lambda embedding, index: np.full(embedding.dim, -largest),
        "the first": lambda embedding, index: np.where(np.arange(embedding.dim) == 0, largest, 0),
        "the last": lambda embedding, index: np.where(np.arange(embedding.dim)[::-1] == 0, largest, 0),
        "alternating": alternating,
        "heavy tails": heavy,
    }
    has_rules = any(stage.rule is not None for stage in plan.stages)
    return kinds if has_rules else {"rows": real}


def largest_codes(plan: Plan) -> Integers:
    """The largest code of every used column."""
    used = plan.schema.used
    return np.asarray([len(c.categories) - 1 if c.is_choice else c.num_steps for c in used])


def random_codes(plan: Plan, rng: np.random.Generator, count: int) -> Integers:
    """Rows with any codes, null also where none is declared: encoders make null of what they cannot read."""
    largest = largest_codes(plan)
    found = rng.integers(0, largest + 1, (count, len(largest)))
    return np.where(rng.random(found.shape) < 0.1, NULL, found)


def corner_codes(plan: Plan) -> Integers:
    """Rows at the ends of all domains."""
    largest = largest_codes(plan)
    ends = [NULL, 0, 1]
    if len(largest) <= FEW_CORNERS:
        every = np.asarray(list(product(*([NULL, 0, last] for last in largest.tolist()))))
    else:
        alternate = np.arange(len(largest)) % 2
        every = np.asarray(
            [
                *(np.where(np.asarray(end) > 0, largest, end) for end in ends),
                alternate * largest,
                (1 - alternate) * largest,
                np.where(alternate > 0, NULL, largest),
                np.where(alternate > 0, NULL, 0),
            ]
        )
    return every.astype(np.int64)


def edge_codes(plan: Plan, embedding: Embedding) -> Integers:
    """Rows on both sides of the edges of cells."""
    rows = [np.zeros(len(plan.schema.used), dtype=np.int64)]
    for block in embedding.blocks:
        if isinstance(block.map, Tables):
            for cells in block.map.factors:
                firsts, lasts = cells.first_codes, cells.last_codes
                for code in {int(firsts[-1]), int(lasts[0]), int(lasts[-1]), int(firsts[0])}:
                    row = np.zeros(len(plan.schema.used), dtype=np.int64)
                    row[cells.column] = code
                    rows.append(row)
    return np.unique(np.stack(rows), axis=0)


def distance(vector: Integers, norm: Norm) -> int:
    """The square of the Euclidean norm, or the L1 norm, in Python's integers."""
    whole = vector[vector != 0].tolist()
    if norm is Norm.L1:
        return sum(abs(value) for value in whole)
    return sum(value * value for value in whole)


def _size(vectors: Integers, norm: Norm) -> npt.NDArray[np.float64]:
    """About the same for many vectors, to see which to look at exactly."""
    floats = vectors.astype(np.float64)
    return np.abs(floats).sum(axis=-1) if norm is Norm.L1 else (floats**2).sum(axis=-1)


class _Stage:
    """One stage as it was settled, under attack."""

    def __init__(self, plan: Plan, index: int, embedding: Embedding) -> None:
        self.plan, self.index, self.embedding = plan, index, embedding
        self.norm, self.work = embedding.norm, Work(plan.layout, embedding, plan.lattice)

    def vector(self, row: Integers) -> Integers:
        """What a row adds to the sum."""
        return self.work.partial_of_codes(row[None])[:-1]

    def attacked(self, rng: np.random.Generator, *, rows: int, climbs: int) -> Iterator[Reach]:
        """The furthest that rows of any kind go, and pairs of them."""
        plan, unit = self.plan, self.plan.schema.privacy
        codes = np.concatenate([corner_codes(plan), edge_codes(plan, self.embedding), random_codes(plan, rng, rows)])
        if len(codes) > 4 * rows:
            codes = rng.permutation(codes)[: 4 * rows]
        vectors = np.stack([self.vector(row) for row in codes])
        block_ratio = max(self._block_ratio(vector) for vector in self._longest(vectors))
        best = codes[int(np.argmax(_size(vectors, self.norm)))]
        best = self._climbed(best, lambda vector: _size(vector, self.norm), rng, climbs)
        alone = self.vector(best)
        block_ratio = max(block_ratio, self._block_ratio(alone))
        moved = max(distance(v, self.norm) for v in [alone, *self._longest(vectors)])
        factor = unit.max_rows if self.norm is Norm.L1 else unit.max_rows**2
        if plan.neighbours is Neighbours.ADD_REMOVE:
            yield self._reach(Neighbours.ADD_REMOVE, factor * moved, block_ratio)
        if plan.parties == 1 and plan.descent is None:
            # Of a person, all rows go and as many others come: opposite ends, every one of them.
            pair = self._furthest_pair(np.concatenate([vectors, alone[None]]))
            first = pair[0]
            second = self._climbed(best, lambda vector: _size(vector - first, self.norm), rng, climbs)
            apart = max(distance(v - first, self.norm) for v in (pair[1], self.vector(second)))
            yield self._reach(Neighbours.REPLACE_ONE, factor * apart, block_ratio)

    def _reach(self, neighbours: Neighbours, moved: int, block_ratio: Fraction) -> Reach:
        plan, scale = self.plan, self.plan.noise_scales[self.index]
        realised = Fraction(moved, scale if plan.budget.is_pure else scale**2)
        charged = sum(plan.stage_costs(neighbours)[self.index], Fraction(0))
        return Reach(plan.stages[self.index].name, neighbours, realised / charged, block_ratio)

    def _block_ratio(self, vector: Integers) -> Fraction:
        parts = {
            block: distance(self.embedding.rows_of(block.name, vector).ravel(), self.norm)
            for block in self.embedding.blocks
        }
        return max(Fraction(own, block.reach(self.plan.lattice)) for block, own in parts.items())

    def _longest(self, vectors: Integers) -> list[Integers]:
        sizes = _size(vectors, self.norm)
        return [vectors[i] for i in np.argsort(sizes)[-3:]]

    def _furthest_pair(self, vectors: Integers) -> tuple[Integers, Integers]:
        floats = vectors.astype(np.float64)
        best, pair = -1.0, (0, 0)
        for i, one in enumerate(floats):
            apart = _size(floats - one, self.norm)
            if apart.max() > best:
                best, pair = float(apart.max()), (i, int(np.argmax(apart)))
        return vectors[pair[0]], vectors[pair[1]]

    def _climbed(
        self, row: Integers, goal: Callable[[Integers], npt.NDArray[np.float64]], rng: np.random.Generator, climbs: int
    ) -> Integers:
        """A row that was improved code by code, as long as that moves the sum further."""
        largest, best = largest_codes(self.plan), float(goal(self.vector(row)))
        for _ in range(climbs):
            other, place = row.copy(), rng.integers(len(row))
            far = rng.integers(NULL, largest[place] + 1)
            near = np.clip(row[place] + rng.integers(-2, 3), NULL, largest[place])
            other[place] = near if rng.random() < 0.5 else far
            found = float(goal(self.vector(other)))
            if found >= best:
                row, best = other, found
        return row
