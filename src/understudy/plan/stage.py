"""One measurement of a plan: its embedding and its share of the privacy budget, and shares for Laplace noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from understudy.features.base import Norm, Sign
from understudy.features.embedding import Embedding

LEAST_COUNT_PART = 0.02
"""A row count's least share of epsilon: means are sums over it, so its error is in all of them."""


@dataclass(frozen=True)
class Stage:
    """One noisy vector: its embedding and its share of the budget (of mu squared, or of epsilon).

    ``rule`` names a public rule that settles the maps of the blocks from earlier stages' noisy
    vectors; blocks and weights, and so the sensitivity, are fixed in advance.
    """

    name: str
    embedding: Embedding
    share: float = 1.0
    rule: str | None = None

    @property
    def parts(self) -> dict[str, float]:
        """The share of the budget that each block has."""
        reach = {b.name: b.weight**2 if b.norm is Norm.L2 else b.weight for b in self.embedding.blocks}
        total = sum(reach.values())
        return {name: self.share * own / total for name, own in reach.items()}


def epsilon_parts(shares: Sequence[float], bounds: Sequence[float]) -> list[float]:
    """What shares of mu squared become when the same blocks are to be paid for in epsilon.

    The deviation of a block's noise goes as 1 / root of its share of mu squared, and as a / part of
    epsilon if absolute values of a row's features add up to ``a`` at most (``bounds``). Whoever finds
    shares s best for Gaussian noise gives variances the importance s^2; parts in proportion to
    (s a)^(2/3) are then best for Laplace noise (proofs/laplace.md).
    """
    roots = [(s * a) ** (2 / 3) for s, a in zip(shares, bounds, strict=True)]
    return [sum(shares) * root / sum(roots) for root in roots]


def weighed_for_laplace(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Stages whose weights and shares were meant for Gaussian noise, weighed for Laplace noise.

    Row counts, which other sums are divided by, get a share that leaves them useful.
    """
    blocks = [block for stage in stages for block in stage.embedding.blocks]
    shares = [stage.parts[b.name] for stage in stages for b in stage.embedding.blocks]
    parts = epsilon_parts(shares, [block.map.l1_bound for block in blocks])
    if len(blocks) > 1:
        least = LEAST_COUNT_PART * sum(shares)
        parts = [
            max(part, least) if block.map.sign is Sign.CONSTANT else part
            for block, part in zip(blocks, parts, strict=True)
        ]
        parts = [part * sum(shares) / sum(parts) for part in parts]
    return with_epsilon_parts(stages, {b.name: p for b, p in zip(blocks, parts, strict=True)})


def with_epsilon_parts(stages: Sequence[Stage], parts: Mapping[str, float]) -> tuple[Stage, ...]:
    """The stages with each block's share of epsilon as given."""
    return tuple(_with_parts(stage, parts) for stage in stages)


def _with_parts(stage: Stage, parts: Mapping[str, float]) -> Stage:
    share = sum(parts[block.name] for block in stage.embedding.blocks)
    blocks = tuple(
        replace(block, weight=min(1.0, parts[block.name] / share), norm=Norm.L1) for block in stage.embedding.blocks
    )
    return replace(stage, embedding=replace(stage.embedding, blocks=blocks), share=share)
