"""The null distribution of a two-sample test: what privacy noise and chance alone make of a comparison.

Under the hypothesis the compared numbers are, to first order, a Gaussian vector: known noise on every
number, and sums over rows drawn from one population, whose covariance public rows show. It is
drawn, not approximated: random weights on the public rows have their covariance whatever it is.

A part's numbers are looked at in several views: by label or together, finely or coarsely, slow features or fast. Each
is a kernel of its own; the test sums them with weights. A broad shift of a column shows in a few wide cells, where
noise of many narrow ones averages out; a spike shows in narrow ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from understudy.accounting.mechanisms import GAUSSIAN, LAPLACE, Mechanism
from understudy.arrays import Floats, Integers
from understudy.two_sample.parts import Part

CHUNK_NUMBERS = 2**22
"""Numbers that are drawn at a time."""

DROPPED = -1
"""The group of a number that a view leaves aside."""


@dataclass(frozen=True, eq=False)
class Noise:
    """Deviations of independent privacy noise, and the mechanism that drew it."""

    deviations: Floats
    mechanism: Mechanism = GAUSSIAN

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Noise on every number: the one place that knows its null.  # (count, numbers)

        Squares of Laplace noise vary 2.5 times as much as those of Gaussian noise, and few of them
        do not average out. A sum of several, in cells that were merged, is drawn as one: it varies
        less, so that the test errs on the safe side.
        """
        size = (count, len(self.deviations))
        unit = rng.laplace(0.0, math.sqrt(0.5), size) if self.mechanism is LAPLACE else rng.standard_normal(size)
        return unit * self.deviations


@dataclass(frozen=True)
class Pull:
    """What a part says of the row count: gain . numbers less ``offset``, as a weight of ``scale``."""

    gain: Floats
    scale: float
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class View:
    """Sums over groups of a part's numbers, and the columns that they tell of."""

    columns: tuple[str, ...]
    sums: csr_array  # (copies * dim, groups), zeros and ones


@dataclass(frozen=True, eq=False)
class Contrast:
    """A part's numbers as they are compared: all zero but for noise and chance if nothing differs.

    Errors e of a row count that was estimated by ``pull`` come with the numbers as e - mean (gain . e)
    / scale, summed over the parts that are asked for it.
    """

    observed: Floats
    noise: Sequence[Noise]  # one, or that of two releases
    mean: Floats
    pull: Pull
    rows: Any  # (num_rows, numbers) features of public rows, or None
    views: Sequence[View]
    is_count: bool = False


@dataclass(frozen=True, eq=False)
class Lengths:
    """Squared lengths of some views together: observed, drawn, and inner products of pairs of draws."""

    observed: float
    draws: Floats  # (draws,)
    inner: Floats  # (draws // 2,): of draws 2 i and 2 i + 1


class NullDistribution(NamedTuple):
    """What was observed (the first line) and what was drawn, before the row count is allowed for."""

    squares: Floats  # (1 + draws, views)
    along: Floats  # (1 + draws, views): products with the mean embedding
    inner: Floats  # (draws // 2, views)
    means: Floats  # (views,) squared length of the mean embedding
    selves: Floats  # (views,) mean squared length of a public row's features
    spread: Floats  # (views,) sum of squared variances
    pulls: Floats  # (1 + draws, parts)
    scales: Floats  # (parts,)
    counts: Floats  # (parts,): the row count's own, which every question asks
    parts: npt.NDArray[np.int64]  # (views,): the part of each

    def lengths(self, views: npt.NDArray[np.int64], scale: Floats) -> Lengths:
        """Views with weights, with the row count that their own parts and the count know of.

        Other parts are not asked: what differs there would be taken for a difference here.
        """
        asked = (self.counts > 0) | np.isin(np.arange(len(self.scales)), self.parts[views])
        known = float(self.scales[asked].sum())
        c = self.pulls[:, asked].sum(axis=1) / known if known > 0 else np.zeros(len(self.pulls))
        weights = scale[views]
        along, means = self.along[:, views] @ weights, float(self.means[views] @ weights)
        # |e - c m|^2 = |e|^2 - 2 c e.m + c^2 |m|^2, and the same for the inner product of two draws
        squares = self.squares[:, views] @ weights - 2 * c * along + c**2 * means
        even, odd = slice(1, None, 2), slice(2, None, 2)
        inner = self.inner[:, views] @ weights + c[even] * c[odd] * means
        inner -= c[odd] * along[even] + c[even] * along[odd]
        squares = np.maximum(squares, 0.0)
        return Lengths(float(squares[0]), squares[1:], inner)


def draw_null(
    contrasts: Sequence[Contrast], *, sampling: float, num_draws: int, rng: np.random.Generator
) -> NullDistribution:
    """Draw what comes out if nothing differs.

    ``sampling`` is the variance that chance adds, in rows; it is 0 if rows are compared, not
    populations.
    """
    num_draws += num_draws % 2
    weights = _row_weights(contrasts, num_draws, rng) * math.sqrt(sampling) if sampling else None
    drawn = [_draw_part(i, each, weights, num_draws, rng) for i, each in enumerate(contrasts)]
    return NullDistribution(*(np.concatenate(values, axis=-1) for values in zip(*drawn, strict=True)))


def _row_weights(contrasts: Sequence[Contrast], num_draws: int, rng: np.random.Generator) -> Floats:
    """Random weights on public rows, whose sums have the covariance of one row.  # (draws, rows)"""
    count = contrasts[0].rows.shape[0]
    weights = rng.standard_normal((num_draws, count))
    weights -= weights.mean(axis=1, keepdims=True)
    return weights / math.sqrt(count - 1)


def _draw_part(
    part: int, contrast: Contrast, weights: Floats | None, num_draws: int, rng: np.random.Generator
) -> NullDistribution:
    """The null distribution of one part by itself."""
    size, count = len(contrast.mean), len(contrast.views)
    squares, along = np.zeros((1 + num_draws, count)), np.zeros((1 + num_draws, count))
    inner, pulls = np.zeros((num_draws // 2, count)), np.zeros((1 + num_draws, 1))
    means = [contrast.mean @ view.sums for view in contrast.views]
    energy = [np.zeros(view.sums.shape[1]) for view in contrast.views]
    pulls[0, 0] = contrast.observed @ contrast.pull.gain - contrast.pull.offset
    for i, view in enumerate(contrast.views):
        seen = contrast.observed @ view.sums
        squares[0, i], along[0, i] = seen @ seen, seen @ means[i]
    step = max(2, CHUNK_NUMBERS // size // 2 * 2)
    for start in range(0, num_draws, step):
        stop = min(num_draws, start + step)
        place, pairs = slice(1 + start, 1 + stop), slice(start // 2, stop // 2)
        errors = sum(noise.draw(rng, stop - start) for noise in contrast.noise)
        if weights is not None:
            errors += np.asarray((contrast.rows.T @ weights[start:stop].T).T)
        pulls[place, 0] = errors @ contrast.pull.gain
        for i, view in enumerate(contrast.views):
            seen = errors @ view.sums
            squares[place, i], along[place, i] = _squares(seen), seen @ means[i]
            inner[pairs, i] = (seen[0::2] * seen[1::2]).sum(axis=1)
            energy[i] += (seen**2).sum(axis=0)
    selves = [math.nan] * count
    if contrast.rows is not None:
        selves = [float(_squares(contrast.rows @ view.sums).mean()) for view in contrast.views]
    return NullDistribution(
        squares,
        along,
        inner,
        means=np.array([mean @ mean for mean in means]),
        selves=np.array(selves),
        spread=np.array([((each / num_draws) ** 2).sum() for each in energy]),
        pulls=pulls,
        scales=np.array([contrast.pull.scale]),
        counts=np.array([float(contrast.is_count)]),
        parts=np.full(count, part),
    )


def _squares(values: Any) -> Floats:
    """Squared length of each row of a matrix, sparse or not."""
    return np.asarray((values**2).sum(axis=1), dtype=np.float64)


def views_of(part: Part, mass: Floats) -> list[View]:
    """All views of a part; ``mass`` is about how large each number is."""
    if not part.columns and part.is_count:
        return []  # the row count tells how large a table is, not what is in it
    found = []
    by_label = (*part.columns, part.label_column) if part.columns else ()
    for groups in _groupings(part, mass.reshape(part.copies, -1).sum(axis=0)):
        size = int(groups.max()) + 1
        if part.copies > 1:
            apart = np.arange(part.copies)[:, None] * size + groups
            found.append(View(by_label, _matrix(np.where(groups < 0, DROPPED, apart).ravel())))
        found.append(View(part.columns, _matrix(np.tile(groups, part.copies))))
    return found


def _groupings(part: Part, mass: Floats) -> Iterator[Integers]:
    """Which group each number of a copy is in, or that it is left aside."""
    every = np.arange(part.dim)
    if part.bands is not None:
        for band in np.unique(part.bands):
            chosen = part.bands == band
            yield np.where(chosen, np.cumsum(chosen) - 1, DROPPED)
        return
    yield every
    count = 2
    while count < part.num_ordered:
        yield _runs(np.maximum(mass[: part.num_ordered], 0.0), count, part.dim)
        count *= 2


def _runs(mass: Floats, count: int, dim: int) -> Integers:
    """About ``count`` runs of neighbours with about equal shares of the mass; nulls stay apart."""
    mass = mass + 1e-9 * (mass.sum() + 1)
    middles = (np.cumsum(mass) - mass / 2) / mass.sum()
    _, runs = np.unique(np.floor(middles * count), return_inverse=True)
    others = np.arange(dim - len(mass)) + runs.max() + 1
    return np.append(runs, others).astype(np.int64)


def _matrix(groups: Integers) -> csr_array:
    kept = np.flatnonzero(groups >= 0)
    shape = (len(groups), int(groups.max()) + 1)
    return csr_array((np.ones(len(kept)), (kept, groups[kept])), shape=shape)
