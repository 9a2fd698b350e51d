"""Rows of a generator against the noisy sums that it was made from. No real row is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.accounting import Mechanism
from understudy.arrays import Floats, Integers, StageProgress
from understudy.features import Block, Constant, Grid, OneHot, Tables, Tensors
from understudy.released import Release

STEP = 2**12
MOST_ROWS = 400_000
MOST_CELLS = 16_000_000
MOST_FEATURES = 300_000_000
"""Rows to draw at most: in all, by their cells, and by the features that have to be computed."""

FEWEST_ROWS = 4_000

INTERVAL = 1.96
"""Deviations of a normal law on either side that hold 95 % of it."""


@dataclass(frozen=True)
class Agreement:
    """One block of a release: what was measured, and what drawn rows would give.

    ``residuals`` are differences in deviations of the known noise (with what chance adds to the
    drawn rows, and the noise of the row count). A perfect generator's have deviation 1 and, where
    noise is most of it, the shape of the mechanism's noise.
    """

    name: str
    stage: str
    block: Block
    measured: Floats  # (copies, dim), sums over rows
    expected: Floats  # (copies, dim)
    residuals: Floats  # (copies, dim)
    noise: float
    mechanism: Mechanism

    @property
    def size(self) -> int:
        """Numbers that were measured."""
        return self.measured.size

    @property
    def rms(self) -> float:
        """Root mean square of the residuals; 1 is what noise alone gives."""
        return root_mean_square(self.residuals)

    @property
    def inside(self) -> float:
        """Share of the residuals that lie in their 95 % interval."""
        return share_inside(self.residuals, self.mechanism)


def root_mean_square(residuals: Floats) -> float:
    """Size of residuals; 1 is what noise alone gives."""
    return math.sqrt(float(np.mean(residuals**2)))


def share_inside(residuals: Floats, mechanism: Mechanism) -> float:
    """Share of residuals inside their 95 % interval."""
    return float(np.mean(np.abs(residuals) <= mechanism.deviations(INTERVAL)))


def rows_to_draw(release: Release) -> int:
    """So many rows that their own chance matters little, as far as time and memory allow."""
    features = max(
        (block.map.dim for block in release.blocks if not isinstance(block.map, Tables | Tensors)), default=1
    )
    wide = max((block.map.size_of_stack for block in release.blocks if isinstance(block.map, Tensors)), default=0)
    affordable = min(MOST_ROWS, MOST_CELLS // len(release.plan.schema.used), MOST_FEATURES // max(features, 20 * wide))
    return max(FEWEST_ROWS, affordable)


def compare(release: Release, halves: Sequence[Integers], *, progress: StageProgress | None = None) -> list[Agreement]:
    """Every block of a release against two independently drawn sets of rows, as codes.

    How much two draws differ tells what chance adds to the comparison.
    """
    rows = sum(map(len, halves))

    def told(done: int) -> None:
        if progress is not None:
            progress("comparing", done, rows)

    first, second = (_mean_features(release, codes, told, before=i * len(halves[0])) for i, codes in enumerate(halves))
    total = float(release.label_counts.sum())
    counts = release.sums("count")
    noise_of_total = release.noise_std("count") * math.sqrt(len(counts))
    found = []
    for stage, reading in zip(release.plan.stages, release.readings, strict=True):
        for block in reading.embedding.blocks:
            if isinstance(block.map, Constant) and reading.embedding.copies(block) == 1:
                continue  # the row count, which the other numbers are compared by
            measured, noise = reading.sums(block.name), reading.noise_of_sum(block.name)
            means = (first[block.name] + second[block.name]) / 2
            chance = _chance(block, first[block.name], second[block.name])
            variance = noise**2 + (means * noise_of_total) ** 2 + chance * total**2
            residuals = (measured - means * total) / np.sqrt(variance)
            found.append(
                Agreement(
                    block.name, stage.name, block, measured, means * total, residuals, noise, release.plan.mechanism
                )
            )
    return found


def _chance(block: Block, first: Floats, second: Floats) -> Floats:
    """Variance of the mean of two draws: its size from their difference, its shape as counts have it."""
    means = (first + second) / 2
    scale = counts_per_feature(block)
    shape = np.ones_like(means)
    if scale is not None:
        shape = np.clip(means * scale * (1 - means * scale), 1e-9, None) / scale**2
    return np.asarray(shape * np.sum((first - second) ** 2) / (4 * np.sum(shape)))


def counts_per_feature(block: Block) -> float | None:
    """What a sum of a block's features is multiplied by to be a count of rows, if it is one."""
    match block.map:
        case Constant():
            return 1.0
        case Tables(subsets=subsets):
            return math.sqrt(len(subsets))
        case OneHot(spans=spans):
            return math.sqrt(len(spans))
        case Grid(numbers=numbers):
            return math.sqrt(len(numbers))
    return None


def _mean_features(release: Release, codes: Integers, told: Callable[[int], None], *, before: int) -> dict[str, Floats]:
    """Mean over rows of every block's features.  # (copies, dim) of each"""
    sums: dict[str, Any] = {}
    for start in range(0, len(codes), STEP):
        told(before + start)
        part = codes[start : start + STEP]
        cells = release.plan.layout.expand(part)
        for embedding in release.embeddings:
            for block in embedding.blocks:
                members = np.ones((len(part), 1))
                if block.per_label and embedding.label is not None:
                    members = cells[:, slice(*embedding.label)]
                sums[block.name] = sums.get(block.name, 0.0) + _sums(block, part, cells, members)
    return {name: np.asarray(total / len(codes)) for name, total in sums.items()}


def _sums(block: Block, codes: Integers, cells: Floats, members: Floats) -> Floats:
    """Sums of a block's features over the rows of each copy.  # (copies, dim)"""
    copies = members.shape[1]
    slots = np.where(members.any(axis=1), members.argmax(axis=1), copies)
    if isinstance(block.map, Tables):
        counts = block.map.counts(codes, slots, copies + 1)[:copies]
        return np.asarray(counts / math.sqrt(len(block.map.subsets)))
    if not isinstance(block.map, Tensors):
        return np.asarray(members.T @ np.asarray(block.map(cells), dtype=np.float64))
    found = np.zeros((copies, block.map.dim))
    for copy in np.unique(slots[slots < copies]):
        rows = cells[slots == copy]
        means, _ = block.map.means(rows, [len(rows)])
        found[copy] = np.asarray(means)[0] * len(rows)
    return found
