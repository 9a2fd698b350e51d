"""An estimate of mean features from noisy ones: shrunk towards what public points suggest.

Kernel mean shrinkage (Muandet et al. 2016) with noise that is known: along the principal axes of
the public points' features, each noisy coordinate keeps the share that signal has of it. How much
signal there is overall, how it falls off along the axes, and whether the points' own mean is the
better place to shrink to are chosen by Stein's unbiased estimate of the risk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.arrays import Floats

FALL_OFF = (0.5, 1.0)
"""Signal along an axis goes with the points' variance there, or with its root."""

STRENGTHS = np.logspace(-9, 9, 181)
LEAST_VARIANCE = 1e-13


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
    """Estimate mean features from noisy ones.

    Args:
        noisy: mean features with noise.  # (dim,)
        noise: standard deviation of the noise of each.
        features: of public points.  # (points, dim)
        shares: of the points, adding up to one.  # (points,)

    Returns:
        The estimate with the least estimated risk (expected squared distance).
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
