"""The squared MMD between generated rows and the released mean embedding, block by block, and its descent (torch)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from understudy.arrays import Floats, Integers, LossProgress, load_torch
from understudy.features import Block, FeatureMap, Hermite, Sign, Tensors
from understudy.released import Release

STEPS = 4096
"""Table entries over a column's range, from which Hermite features are interpolated instead of running their
recursion at every training step. A feature of length scale s is off by at most
1 / (8 (STEPS s)^2) of its size between entries: 1e-5 at s = 0.03."""


class Interpolated(FeatureMap):
    """A Hermite map in torch by linear interpolation in a table of its exact values."""

    sign = Sign.SIGNED
    dim = 0

    def __init__(self, torch: Any, map_: Hermite) -> None:
        self.numbers, self.dim = list(map_.numbers), map_.dim
        scales, which = np.unique(map_.length_scales, return_inverse=True)
        grid = np.linspace(0.0, 1.0, STEPS + 1)[:, None]
        single = [replace(map_, numbers=(0,), length_scales=(scale,))(grid) for scale in scales.tolist()]
        table = np.concatenate(single) / math.sqrt(len(map_.numbers))  # (scales * (STEPS + 1), order + 1), exact
        self._table = torch.from_numpy(table.astype(np.float32))
        self._offsets = torch.from_numpy(which * (STEPS + 1))

    def __call__(self, cells: Any) -> Any:
        """Features of each row.  # (num_rows, dim)"""
        places = cells[:, self.numbers] * STEPS
        below = places.detach().floor().clamp(0, STEPS - 1)
        rest = (places - below)[:, :, None]
        entries = below.long() + self._offsets
        low, high = self._table[entries], self._table[entries + 1]
        return (low + rest * (high - low)).reshape(len(cells), self.dim)


class InterpolatedPairs:
    """Products of many pairs of numbers that all have the same Hermite map, taken together.

    One look-up serves every number, and a batch of matrix products every pair.
    """

    def __init__(self, torch: Any, map_: Tensors) -> None:
        self.dim = map_.dim
        used = sorted({j for pair in map_.subsets for j in pair})
        place = {j: i for i, j in enumerate(used)}
        single = [cast(Hermite, map_.factors[j]) for j in used]
        self._sides = [torch.tensor([place[pair[side]] for pair in map_.subsets]) for side in (0, 1)]
        numbers = [factor.numbers[0] for factor in single]
        self._features = Interpolated(torch, _over(single[0], numbers))
        self._tensor, self._shape = torch.from_numpy, (len(used), single[0].dim)

    def means(self, cells: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
        """As for ``Tensors``.  # (num_rows, width) -> (groups, dim), (groups,)"""
        root = math.sqrt(self._shape[0])  # of the mean of kernels that the look-up is for
        single = self._features(cells).reshape(len(cells), *self._shape) * root
        by_number = single.permute(1, 2, 0).contiguous()
        left, right = (by_number.index_select(0, side) for side in self._sides)
        squares = ((left**2).sum(1) * (right**2).sum(1)).mean(0)  # of (pairs, orders, num_rows)
        products = left[:, :, None] * right[:, None]  # (pairs, orders, orders, num_rows)
        share = np.repeat(np.eye(len(sizes)), sizes, axis=0) / np.asarray(sizes)
        averaging = self._tensor(share.astype(np.float32))  # (num_rows, groups)
        means = (products.flatten(0, 2) @ averaging).T / math.sqrt(len(left))
        return means, squares @ averaging


def trainable(torch: Any, map_: FeatureMap) -> Any:
    """The map as training evaluates it."""
    if isinstance(map_, Tensors) and _are_pairs_alike(map_):
        return InterpolatedPairs(torch, map_)
    return map_.rebuilt(lambda part: Interpolated(torch, part) if isinstance(part, Hermite) else part)


def _are_pairs_alike(map_: Tensors) -> bool:
    """Whether products are of two single numbers each, with the same Hermite map for all."""
    used = [map_.factors[j] for pair in map_.subsets for j in pair]
    plain = {_over(f, [0]) if isinstance(f, Hermite) and len(f.numbers) == 1 else None for f in used}
    return None not in plain and len(plain) == 1 and all(len(pair) == 2 for pair in map_.subsets)


def _over(map_: Hermite, numbers: list[int]) -> Hermite:
    """The same Hermite map of other numbers, each with the first one's length scale."""
    scales = map_.length_scales[:1] * len(numbers)
    return replace(map_, numbers=tuple(numbers), length_scales=scales)


WARM_UP = 0.05
"""Share of the steps over which the learning rate rises."""

SETTLED = 0.25
"""Share of the steps that are always taken, for single columns to settle."""

FEWEST_PER_LABEL = 8
"""Rows of a label in a batch: of fewer, means say nothing."""

SUBSETS_PER_STEP = 16
"""Products of columns in a training step, which is a mini-batch of the loss's terms."""


@dataclass(frozen=True)
class Term:
    """A part of a loss, as a function of what is generated.

    ``noise_floor`` is the loss that the known noise alone leaves a perfect fit, on average: whoever
    comes closer fits noise. ``turn`` is the stretch of training in which it counts, of 0 to 1.
    """

    loss: Callable[[Any], Any]
    noise_floor: float = -math.inf
    turn: tuple[float, float] = (0.0, math.inf)


@dataclass(frozen=True, eq=False)
class SquaredMMD:
    """Squared MMD between rows, sorted by label, and a block of a release, weighted like the released kernel.

    ``pieces`` are maps of which a step takes one, with their targets; ``spare`` are a label's rows less one, if rows
    are a sample whose bias is to be taken off.
    """

    pieces: list[tuple[FeatureMap, Any]]
    sizes: list[int]
    weights: Any  # (copies,)
    spare: Any | None  # (copies,)
    rng: np.random.Generator

    def __call__(self, cells: Any) -> Any:
        """The distance, with the bias of a finite batch taken off.

        The squared norm of a mean over g rows is too large by the rows' own variance over g: the mean squared norm
        less that of the mean, over g - 1 (the unbiased MMD, Gretton et al. 2012, Lemma 6). Left in, it would pull
        rows together. Components' expected features have no such variance.
        """
        map_, targets = self.pieces[self.rng.integers(len(self.pieces))]
        means, norms = map_.means(cells, self.sizes)  # (copies, features), (copies,)
        distances = ((means - targets) ** 2).sum(1)
        if self.spare is not None:
            distances = distances - (norms - (means**2).sum(1)) / self.spare
        return (self.weights * distances).sum()


def loss_terms(
    release: Release,
    sizes: Integers,
    rng: np.random.Generator,
    *,
    features_per_step: int = 0,
    subsets_per_step: int = SUBSETS_PER_STEP,
    expected: Callable[[FeatureMap], FeatureMap] | None = None,
) -> list[Term]:
    """The blocks that can be trained through: histograms and counts have no slope.

    ``sizes`` are the rows of each label value in a batch that is sorted by label. They are a sample, unless a function
    is given that makes of a map that of ``expected`` features.
    """
    torch, is_exact = load_torch(), expected is not None
    convert = expected or partial(trainable, torch)
    counts = release.label_counts
    loss_weights = dict(release.plan.setting("loss_weights", {}))

    def term(block: Block) -> Term:
        totals = counts[:, None] if block.per_label else counts.sum()
        targets = (release.sums(block.name) / totals).astype(np.float32)
        shares = counts / counts.sum() if block.per_label else np.ones(1)
        groups = sizes if block.per_label else sizes.sum(keepdims=True)
        weight = loss_weights.get(block.name, block.trust)
        pieces = [
            (convert(piece), torch.from_numpy(np.ascontiguousarray(targets[:, columns] * scale)))
            for piece, columns, scale in block.map.pieces(features_per_step, subsets_per_step)
        ]
        # Choices are expected features already; a little pull towards even ones does them good.
        has_spread = not is_exact and not block.map.is_linear
        loss = SquaredMMD(
            pieces,
            sizes=groups.tolist(),
            weights=torch.from_numpy((weight * shares).astype(np.float32)),
            spare=torch.from_numpy((groups - 1).astype(np.float32)) if has_spread else None,
            rng=rng,
        )
        variances = (release.noise_std(block.name) / np.ravel(totals)) ** 2
        floor = float((weight * shares * variances).sum() * block.map.dim)
        # If a step sees a sample or a piece, its loss differs from that of all, and so does the floor.
        is_whole = is_exact and len(pieces) == 1
        turn = _turn(block.name, release.plan.setting("turns", ()))
        return Term(loss, floor if is_whole else -math.inf, turn)

    return [term(block) for block in release.blocks if block.map.is_differentiable]


def _turn(name: str, turns: Sequence[str]) -> tuple[float, float]:
    """The stretch of training in which a block counts: all of it, unless blocks take turns."""
    if name not in turns:
        return 0.0, math.inf
    place = list(turns).index(name)
    return place / len(turns), (place + 1) / len(turns)


class Descent(Protocol):
    """What the settings of a training say of its descent."""

    @property
    def steps(self) -> int: ...

    @property
    def learning_rate(self) -> float: ...


def descend(
    parameters: list[Any],
    terms: list[Term],
    make_cells: Callable[[], Any],
    *,
    training: Descent,
    progress: LossProgress | None,
) -> None:
    """Adam on a sum of losses: move the parameters until the mean features of their cells are the released ones.

    It stops by the discrepancy principle (Morozov 1966), once the loss is what the known noise alone would leave a
    perfect fit, on average: nearer would be fitting noise.
    """
    steps, learning_rate = training.steps, training.learning_rate
    optimiser = load_torch().optim.Adam(parameters, lr=learning_rate, betas=(0.9, 0.99))
    for step in range(steps if terms else 0):
        done = step / steps
        optimiser.param_groups[0]["lr"] = learning_rate * pace(done)
        active = [term for term in terms if term.turn[0] <= done < term.turn[1]]
        cells = make_cells()
        total = sum(term.loss(cells) for term in active)
        loss = float(total.detach())
        is_met = done >= SETTLED and loss <= sum(term.noise_floor for term in active)
        is_over = step == steps - 1 or (is_met and len(active) == len(terms))
        if progress is not None and (step % 20 == 19 or is_over):
            progress(steps if is_over else step + 1, steps, loss)
        if not is_met:
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
        elif is_over:  # else other blocks are still to have their turn
            break


def pace(done: float) -> float:
    """Learning rate over the course of training: a short warm-up, then a cosine to zero."""
    return min(1.0, (done + 1e-3) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * done))


def rows_per_label(shares: Floats, batch: int) -> Integers:
    """Rows of each label value in a batch, by the root of its share so that rare ones are seen."""
    roots = np.sqrt(shares)
    sizes = np.maximum(np.rint(batch * roots / roots.sum()), FEWEST_PER_LABEL)
    return np.asarray(sizes, dtype=np.int64)
