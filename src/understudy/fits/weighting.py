"""Weights on public points from noisy Nyström coordinates (Balog et al. 2018, Algorithm 1, lines 8 and 9).

Kernel mean shrinkage of the noisy embedding, then weights: in closed form, or by projected gradients onto the L1 ball
or the simplex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, LossProgress
from understudy.features import KernelSums, Landmarks, Points
from understudy.generators.weighted import WeightedDatabase, weighted_database
from understudy.released import Release
from understudy.rules import denoise
from understudy.rules.measurement import Measurement
from understudy.rules.pivots import COORDINATES, LOOK, seen_density

# Kernel mean shrinkage (Muandet et al. 2016) with noise that is known: along the principal axes of
# the public points' features, each noisy coordinate keeps the share that signal has of it. How much
# signal there is overall, how it falls off along the axes, and whether the points' own mean is the
# better place to shrink to are chosen by Stein's unbiased estimate of the risk.

FALL_OFF = (0.5, 1.0)
"""Signal along an axis goes with the points' variance there, or with its root."""

STRENGTHS = np.logspace(-9, 9, 181)
"""Signal-to-noise ratios (of variances) that are tried: ten per decade, from no signal to no noise."""

LEAST_VARIANCE = 1e-13
"""Variance along an axis, of features of norm one, that is no more than rounding."""


@dataclass(frozen=True)
class Filtered:
    """Estimated mean features, how far they were moved from those of ``base`` weights, and weights on
    the points that have them.

    ``risk`` is the estimated squared error, ``noise`` the part of it that noise makes.
    """

    mean: Floats  # (dim,)
    move: Floats  # (dim,)
    base: Floats  # (points,)
    weights: Floats  # (points,)
    risk: float
    noise: float


def filtered_mean(noisy: Floats, noise: float, features: Floats, shares: Floats) -> Filtered:
    """Kernel mean shrinkage: estimate mean features from noisy ones by a linear filter along principal axes.

    Args:
        noisy: mean features with noise.  # (dim,)
        noise: standard deviation of the noise of each.
        features: of public points.  # (points, dim)
        shares: of the points, adding up to one.  # (points,)

    Returns:
        The estimate with the least estimated risk (expected squared distance) by Stein's unbiased estimate (SURE).
    """
    nothing = _towards(np.zeros(len(noisy)), noisy, noise, features, shares)
    public = _towards(shares @ features, noisy, noise, features, shares)
    # Where noise hides the difference, a database whose weights sum to one is the better guess.
    return nothing if nothing.risk < public.risk - noise**2 else public


def _towards(centre: Floats, noisy: Floats, noise: float, features: Floats, shares: Floats) -> Filtered:
    spread = features - centre
    variances, axes = np.linalg.eigh((spread * shares[:, None]).T @ spread)
    seen = axes.T @ (noisy - centre)
    base = shares if centre.any() else np.zeros(len(shares))
    if variances[-1] < LEAST_VARIANCE:  # nothing but the centre is on offer
        risk = float((seen**2 - noise**2).sum())
        return Filtered(centre, np.zeros(len(centre)), base, base, risk, 0.0)
    reached = variances > LEAST_VARIANCE * float(variances[-1])  # else no weights of sum one go there
    variances = np.where(reached, variances, 1.0)
    falls = [reached * (variances / variances[-1]) ** power for power in FALL_OFF]
    signal = np.concatenate([STRENGTHS[:, None] * fall for fall in falls])  # over that of noise
    kept = signal / (signal + 1)  # (ways, dim)
    # SURE of the filter ``kept`` at observations ``seen`` (Stein 1981), for each way.
    risks = ((1 - kept) ** 2 * seen**2 + (2 * kept - 1) * noise**2).sum(axis=1)
    best = int(risks.argmin())
    move = kept[best] * seen
    # Of all weights with these mean features, those that change the shares by the smoothest factor.
    factors = spread @ (axes @ (move / variances))
    factors -= shares @ factors if centre.any() else 0.0
    return Filtered(
        mean=centre + axes @ move,
        move=axes @ move,
        base=base,
        weights=base + shares * factors,
        risk=float(risks[best]),
        noise=float((kept[best] ** 2).sum() * noise**2),
    )


MANY_ROWS = 2048
"""Up to so many rows their Gram matrix is factorised, and steps are cheap."""

MANY_STEPS = 3000
"""Gradient steps while they are cheap."""

FEW_STEPS = 300
"""Gradient steps for more rows."""

SMALLEST = 1e-10
"""Eigenvalues of a Gram matrix below this share of the largest are rounding."""

POWERS = 30
"""Power iterations for the largest singular value."""

MARGIN = 1.1
"""Power iteration comes from below; with this margin it is taken for the Lipschitz constant of the gradient."""


def project_to_l1_ball(weights: Floats, bound: float) -> Floats:
    """Euclidean projection onto the L1 ball, by sorting (Duchi et al. 2008)."""
    sizes = np.abs(weights)
    if sizes.sum() <= bound:
        return weights
    return np.asarray(np.sign(weights) * denoise.project_to_simplex(sizes, bound))


def project_to_simplex(weights: Floats) -> Floats:
    """Euclidean projection onto nonnegative weights of sum at most one."""
    return project_to_l1_ball(np.maximum(weights, 0.0), 1.0)


def nearest_in_l1_ball(
    features: Floats, target: Floats, bound: float, *, steps: int, progress: LossProgress | None = None
) -> Floats:
    """Minimise |features^T w - target| over weights with sum |w_m| <= bound (Theorem 11)."""
    start = np.zeros(len(features))
    return _descend(features, target, lambda w: project_to_l1_ball(w, bound), start, steps=steps, progress=progress)


def fit_nonnegative(features: npt.NDArray[Any], target: Floats, *, start: Floats | None = None) -> Floats:
    """Minimise |features^T w - target| over nonnegative weights of sum at most one."""
    first = project_to_simplex(np.zeros(len(features)) if start is None else start)
    if len(features) > MANY_ROWS:
        return _descend(features, target.astype(features.dtype), project_to_simplex, first, steps=FEW_STEPS)
    # All that matters of the features is their Gram matrix: a root of it is as good and smaller.
    exact = features.astype(np.float64)
    values, axes = np.linalg.eigh(exact @ exact.T)
    kept = values > SMALLEST * values[-1]
    root = axes[:, kept] * np.sqrt(values[kept])
    seen = (axes[:, kept].T @ (exact @ target)) / np.sqrt(values[kept])
    return _descend(root, seen, project_to_simplex, first, steps=MANY_STEPS)


def _descend(
    features: npt.NDArray[Any],
    target: npt.NDArray[Any],
    project: Callable[[Floats], Floats],
    start: Floats,
    *,
    steps: int,
    progress: LossProgress | None = None,
) -> Floats:
    """Accelerated projected gradients with restarts (Beck & Teboulle 2009; O'Donoghue & Candès 2015)."""
    step = 1 / max(_largest_square(features), 1e-300)
    weights = ahead = start
    momentum = 1.0
    for count in range(steps):
        slope = features @ (features.T @ ahead.astype(features.dtype) - target)
        moved = project(ahead - step * slope)
        if slope @ (moved - weights) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - weights)
        weights, momentum = moved, following
        if progress is not None and (count % 20 == 19 or count == steps - 1):
            gap = features.T @ weights - target
            progress(count + 1, steps, float(gap @ gap))
    return weights


def _largest_square(features: npt.NDArray[Any]) -> float:
    """The largest squared singular value by power iteration, with a margin."""
    vector = np.ones(len(features), dtype=features.dtype)
    for _ in range(POWERS):
        vector = features @ (features.T @ vector)
        size = float(np.linalg.norm(vector))
        if size == 0:
            return 0.0
        vector = vector / features.dtype.type(size)
    return MARGIN * size


LITTLE = 0.25
"""Share of the noise (in variance) that weights may put outside the span."""


@dataclass(frozen=True, slots=True)
class Weighting:
    """Public settings: which weights, and for bounded ones the bound and the steps of the search."""

    weights: str = "shrunk"
    bound: float = 1.0
    steps: int = 2000
    seed: int = 0


def weigh_points(release: Release, settings: Weighting, *, progress: LossProgress | None = None) -> WeightedDatabase:
    """Weights on the public points of a release, so that their weighted embedding is near the released one."""
    map_ = release.measurement_of(COORDINATES).embedding.block(COORDINATES).map_of(Landmarks)
    count = release.plan.num_rows or max(1.0, float(release.sums("count")[0, 0]))
    noisy = release.sums(COORDINATES)[0] / count
    noise = release.noise_std(COORDINATES) / count
    look = next((each for each in release.measurements if each.has(LOOK)), None)
    if settings.weights == "plain":
        points, weights = map_.spanning, map_.weights_of(noisy)
    else:
        points, density = _candidates(look, map_)
        features = map_.precise(points.cells)
        found = filtered_mean(noisy, noise, features, density / density.sum())
        if settings.weights == "bounded":
            weights = nearest_in_l1_ball(features, found.mean, settings.bound, steps=settings.steps, progress=progress)
        elif look is None:
            weights = _shrunk(map_, features, found)
        else:  # points that were looked for are no sample: those that span the space get the weights
            points, weights = map_.spanning, map_.weights_of(found.mean)
    if progress is not None and settings.weights != "bounded":
        progress(1, 1, float(noise**2 * len(noisy)))
    codes = points.codes(release.plan.layout)
    return weighted_database(release.plan.schema, codes, weights, round(count))


def _candidates(look: Measurement | None, map_: Landmarks) -> tuple[Points, Floats]:
    """Points that may get weight, and how many rows are expected around each."""
    if look is None:
        return map_.points, np.ones(len(map_.points))
    source, seen = look.embedding.block(LOOK).map_of(KernelSums), seen_density(look)
    places = np.flatnonzero(seen)
    return source.points.take(places), seen[places]


def _shrunk(map_: Landmarks, features: Floats, found: Filtered) -> Floats:
    """The weights of the estimated mean on public points that are rows like the private ones.

    Each is weighted anew, by a smooth factor: as long as what that puts outside the span, where nothing was
    measured, is little beside the noise. Else the points that span the space make up for the difference.
    """
    lengths = (features**2).sum(axis=1) / map_.shortening**2
    outside = float(np.abs(found.weights - found.base) @ np.sqrt(np.maximum(1 - lengths, 0.0)))
    if outside**2 <= LITTLE * found.noise:
        return found.weights
    weights = found.base.copy()
    weights[list(map_.kept)] += map_.weights_of(found.move)
    return weights
