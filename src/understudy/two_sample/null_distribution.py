"""What privacy noise and chance alone make of a comparison: the law that a p-value is taken from.

Under the hypothesis the compared numbers are, to first order, a Gaussian vector: known noise on every
number, and sums over rows drawn from one population, whose covariance public rows show. It is
drawn, not approximated: random weights on the public rows have their covariance whatever it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc, ndtr

from understudy.arrays import Floats
from understudy.two_sample.sizes import Pull
from understudy.two_sample.views import View

CHUNK = 2**22
"""Numbers that are drawn at a time."""

ENOUGH = 20
"""With fewer draws beyond the observed value, the tail is read off a fitted law."""

POWER = 0.8


@dataclass(frozen=True, eq=False)
class Noise:
    """Deviations of independent privacy noise, and whether its law is Laplace's or Gauss's."""

    deviations: Floats
    is_laplace: bool = False

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Noise on every number: the one place that knows its law.  # (count, numbers)

        Squares of Laplace noise vary 2.5 times as much as those of Gaussian noise, and few of them
        do not average out. A sum of several, in cells that were merged, is drawn as one: it varies
        less, so that the test errs on the safe side.
        """
        size = (count, len(self.deviations))
        unit = rng.laplace(0.0, math.sqrt(0.5), size) if self.is_laplace else rng.standard_normal(size)
        return unit * self.deviations


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


@dataclass(frozen=True, eq=False)
class Law:
    """What was observed (the first line) and what was drawn, before the row count is allowed for."""

    squares: Floats  # (1 + draws, views)
    along: Floats  # (1 + draws, views): products with the mean embedding
    inner: Floats  # (draws // 2, views)
    pulls: Floats  # (1 + draws, parts)
    scales: Floats  # (parts,)
    counts: Floats  # (parts,): the row count's own, which every question asks
    parts: npt.NDArray[np.int64]  # (views,): the part of each
    means: Floats  # (views,) squared length of the mean embedding
    selves: Floats  # (views,) mean squared length of a public row's features
    spread: Floats  # (views,) sum of squared variances

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


def draw_law(contrasts: Sequence[Contrast], *, sampling: float, num_draws: int, rng: np.random.Generator) -> Law:
    """Draw what comes out if nothing differs.

    ``sampling`` is the variance that chance adds, in rows; it is 0 if rows are compared, not
    populations.
    """
    num_draws += num_draws % 2
    weights = _row_weights(contrasts, num_draws, rng) * math.sqrt(sampling) if sampling else None
    drawn = [_view_draws(each, weights, num_draws, rng) for each in contrasts]
    squares, along, inner, means, spread = (np.concatenate([part[i] for part in drawn], axis=-1) for i in range(5))
    selves = [
        np.mean(_squares(each.rows @ view.sums)) if each.rows is not None else math.nan
        for each in contrasts
        for view in each.views
    ]
    return Law(
        squares,
        along,
        inner,
        np.stack([part[5] for part in drawn], axis=1),
        np.array([each.pull.scale for each in contrasts]),
        np.array([float(each.is_count) for each in contrasts]),
        np.repeat(np.arange(len(contrasts)), [len(each.views) for each in contrasts]),
        means,
        np.asarray(selves),
        spread,
    )


def _row_weights(contrasts: Sequence[Contrast], num_draws: int, rng: np.random.Generator) -> Floats:
    """Random weights on public rows, whose sums have the covariance of one row.  # (draws, rows)"""
    count = contrasts[0].rows.shape[0]
    weights = rng.standard_normal((num_draws, count))
    weights -= weights.mean(axis=1, keepdims=True)
    return weights / math.sqrt(count - 1)


def _view_draws(
    contrast: Contrast, weights: Floats | None, num_draws: int, rng: np.random.Generator
) -> tuple[Floats, ...]:
    """Of each view: squares and products with the mean (observed and drawn), inner products of
    neighbours, the mean's square, and the sum of squared variances; then the pulls of the part.
    """
    size, count = len(contrast.mean), len(contrast.views)
    squares, along = np.zeros((1 + num_draws, count)), np.zeros((1 + num_draws, count))
    inner, pulls = np.zeros((num_draws // 2, count)), np.zeros(1 + num_draws)
    means = [contrast.mean @ view.sums for view in contrast.views]
    energy = [np.zeros(view.sums.shape[1]) for view in contrast.views]
    pulls[0] = contrast.observed @ contrast.pull.gain - contrast.pull.offset
    for i, view in enumerate(contrast.views):
        seen = contrast.observed @ view.sums
        squares[0, i], along[0, i] = seen @ seen, seen @ means[i]
    step = max(2, CHUNK // size // 2 * 2)
    for start in range(0, num_draws, step):
        part = slice(start, min(num_draws, start + step))
        place, pairs = slice(1 + part.start, 1 + part.stop), slice(part.start // 2, part.stop // 2)
        errors = sum(noise.draw(rng, part.stop - start) for noise in contrast.noise)
        if weights is not None:
            errors += np.asarray((contrast.rows.T @ weights[part].T).T)
        pulls[place] = errors @ contrast.pull.gain
        for i, view in enumerate(contrast.views):
            seen = errors @ view.sums
            squares[place, i], along[place, i] = _squares(seen), seen @ means[i]
            inner[pairs, i] = (seen[0::2] * seen[1::2]).sum(axis=1)
            energy[i] += (seen**2).sum(axis=0)
    spread = [float(((each / num_draws) ** 2).sum()) for each in energy]
    return squares, along, inner, np.array([m @ m for m in means]), np.array(spread), pulls


def _squares(values: Any) -> Floats:
    """Squared length of each row of a matrix, sparse or not."""
    return np.asarray((values**2).sum(axis=1), dtype=np.float64)


def p_value(observed: float, draws: Floats) -> float:
    """How often noise and chance alone give as much.

    The share of draws beyond, counting the observed value as one; where few are, what a gamma law
    with the draws' mean, variance and skewness says (a weighted sum of chi-squares is close to it).
    """
    beyond = int((draws >= observed).sum())
    if beyond >= ENOUGH:
        return (beyond + 1) / (len(draws) + 1)
    deviation = float(draws.std())
    if deviation == 0:
        return 1.0 if observed <= draws[0] else 0.0
    z = (draws - draws.mean()) / deviation
    skewness, reach = float((z**3).mean()), (observed - float(draws.mean())) / deviation
    if skewness < 1e-3:
        tail = float(ndtr(-reach))
    else:
        shape = 4 / skewness**2
        tail = float(gammaincc(shape, max(0.0, shape + reach * math.sqrt(shape))))
    return min(tail, ENOUGH / (len(draws) + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values that stay valid however many there are (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    found, largest = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        found[place] = largest
    return found


def detectable(draws: Floats, inner: Floats, threshold: float) -> float:
    """The length of a difference that is found in four of five comparisons.

    Its direction is drawn from the law itself: where noise and chance are large, differences are
    sought too. |e + t u|^2 = |e|^2 + 2 t e.u + t^2 for draws e and directions u.
    """
    errors, cosines = draws[0::2], inner / np.sqrt(draws[1::2])
    low, high = 0.0, 2 * math.sqrt(threshold + float(draws.max()))
    for _ in range(60):
        t = (low + high) / 2
        found = float(np.mean(errors + 2 * t * cosines + t**2 > threshold))
        low, high = (t, high) if found < POWER else (low, t)
    return high
