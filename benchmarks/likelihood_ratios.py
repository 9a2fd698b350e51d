"""Likelihood ratios of whole releases of two neighbouring tables, and the mu that their trade-off curve shows.

An attacker who knows both tables can do no better than to look at the likelihood ratio of what was published
(Neyman & Pearson 1933). It is known in closed form here: noise around exact sums, stage by stage, where what a stage
measures follows from the noisy vectors before it. Many releases of either table give the distribution of that
ratio, and with it the whole trade-off curve of the best attack, not one point of it. Gaussian noise that keeps
its promise makes its logarithm normal, around -mu^2/2 and +mu^2/2, with deviation mu.

The ratio supposes the stated noise, but what is estimated rests on the spread that was seen: noise that is too
small shows as a larger mu.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from receipts import unrecorded
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import chi2, rankdata
from scipy.stats import t as student

from understudy import release_table
from understudy.accounting.dpsgd import DescentCost
from understudy.accounting.mechanisms import Budget
from understudy.classifier.maps import MapShape
from understudy.classifier.plan import RADIUS as INPUT_RADIUS
from understudy.classifier.plan import ClassifierPlan
from understudy.plan.descent import DescentPlan
from understudy.plan.plan import Plan
from understudy.private.dpsgd import classifier, networks
from understudy.private.dpsgd.classifier import IntegerRows
from understudy.private.dpsgd.steps import Descent
from understudy.private.noise import ExactNoise, LongNoise
from understudy.private.spending import Receipt
from understudy.private.sums import Work

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Parts:
    """What one run shows of each of its mechanisms.

    ``ratios`` are log-likelihood ratios. ``distances`` say how far apart the tables were, in deviations of the
    stated noise: the mu of each mechanism, if rows are not sampled. ``residues`` are what was published less the exact
    sums, in the same unit: independent and standard normal, if noise is what was stated.
    """

    ratios: tuple[float, ...]
    distances: tuple[float, ...]
    residues: tuple[Floats, ...]


@dataclass(frozen=True)
class Audit:
    """Runs on a table (``gone``) and on the same table with one row more (``there``)."""

    gone: Floats  # (trials, mechanisms): log-likelihood ratios
    there: Floats
    distances: Floats  # (2 * trials, mechanisms)
    residues: tuple[Floats, ...]  # of each mechanism, all runs together

    @property
    def totals(self) -> tuple[Floats, Floats]:
        """Log-likelihood ratios of whole runs."""
        return self.gone.sum(axis=1), self.there.sum(axis=1)


@dataclass(frozen=True)
class Estimate:
    """A mu with an interval for it."""

    mu: float
    low: float
    high: float


def effect_size(gone: Floats, there: Floats, *, risk: float = 0.05) -> Estimate:
    """Distance of the means in pooled deviations: the mu of two normal distributions (Hedges & Olkin 1985)."""
    one, other = len(gone), len(there)
    squares = (one - 1) * gone.var(ddof=1) + (other - 1) * there.var(ddof=1)
    mu = float((there.mean() - gone.mean()) / math.sqrt(squares / (one + other - 2)))
    error = math.sqrt(1 / one + 1 / other + mu**2 / (2 * (one + other - 2)))
    spread = -float(student.ppf(risk / 2, one + other - 2)) * error
    return Estimate(mu, mu - spread, mu + spread)


def mu_of_area(gone: Floats, there: Floats, *, risk: float = 0.05) -> Estimate:
    """The mu of the area under the curve, whatever the distributions: Phi(mu / sqrt 2), by DeLong et al. 1988."""
    one, other = len(gone), len(there)
    ranks = rankdata(np.concatenate([gone, there]))
    below = (ranks[one:] - rankdata(there)) / one  # share of the others that each is above
    above = 1 - (ranks[:one] - rankdata(gone)) / other
    area = float(below.mean())
    error = math.sqrt(below.var(ddof=1) / other + above.var(ddof=1) / one)
    spread = -ndtri(risk / 2) * error
    edges = [min(max(a, 1e-12), 1 - 1e-12) for a in (area, area - spread, area + spread)]
    return Estimate(*(math.sqrt(2) * float(ndtri(edge)) for edge in edges))


def delta_seen(
    gone: Floats, there: Floats, epsilon: float, *, threshold: float | None = None, risk: float = 0.05
) -> Estimate:
    """P(there, ratio > t) - e^epsilon P(gone, ratio > t): a delta that no true claim is below.

    The best threshold t is epsilon, if noise is what was stated. If none is given, half of the runs choose one, and
    the others are counted. The interval is normal, with a quarter of a run added to rates that are 0 or 1.
    """
    counted = there, gone
    if threshold is None:
        tried, counted = (there[::2], gone[::2]), (there[1::2], gone[1::2])
        edges = np.append(np.quantile(np.concatenate(tried), np.linspace(0, 1, 201)), epsilon)
        shares = [(ratios[:, None] > edges).mean(axis=0) for ratios in tried]
        threshold = float(edges[int(np.argmax(shares[0] - math.exp(epsilon) * shares[1]))])
    rates, variances = [], []
    for ratios in counted:
        rate, least = float((ratios > threshold).mean()), 0.25 / len(ratios)
        kept = min(max(rate, least), 1 - least)
        rates.append(rate)
        variances.append(kept * (1 - kept) / len(ratios))
    seen = rates[0] - math.exp(epsilon) * rates[1]
    error = math.sqrt(variances[0] + math.exp(2 * epsilon) * variances[1])
    spread = -float(ndtri(risk / 2)) * error
    return Estimate(seen, seen - spread, seen + spread)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of a Gaussian mechanism (Balle & Wang 2018)."""
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def normality(residues: Floats, *, risk: float) -> tuple[float, float]:
    """The largest distance from the standard normal distribution, and the one that chance exceeds with ``risk``.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: it holds for every number of runs.
    """
    ordered = ndtr(np.sort(residues))
    steps = np.arange(len(ordered) + 1) / len(ordered)
    apart = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    return apart, math.sqrt(math.log(2 / risk) / (2 * len(ordered)))


def audited(run: Callable[[bool], Parts], trials: int) -> Audit:
    """So many runs on either table; ``run`` is told whether the row is there."""
    gone, there = ([run(is_there) for _ in range(trials)] for is_there in (False, True))
    runs = [*gone, *there]
    residues = tuple(np.concatenate(own) for own in zip(*(parts.residues for parts in runs), strict=True))
    return Audit(
        np.asarray([parts.ratios for parts in gone]),
        np.asarray([parts.ratios for parts in there]),
        np.asarray([parts.distances for parts in runs]),
        residues,
    )


def mu_of_spread(distance: float, residues: Floats, *, risk: float = 0.05) -> Estimate:
    """A distance in deviations of the noise that was seen, not stated; exact for normal noise, by chi squared."""
    squares, count = float((residues**2).sum()), len(residues)
    deviations = [
        math.sqrt(squares / part) for part in (count, chi2.ppf(risk / 2, count), chi2.ppf(1 - risk / 2, count))
    ]
    return Estimate(*(distance / deviation for deviation in deviations))


def mechanism_seen(
    moved: Integers, beyond: Integers, deviation: float, *, is_there: bool
) -> tuple[float, float, Floats]:
    """Log-likelihood ratio of normal noise, the distance in deviations, and the noise.

    ``moved`` is what the row adds to a sum, ``beyond`` what was published less the sum without it.
    """
    shift, seen = moved / deviation, beyond / deviation
    squares = float(shift @ shift)
    return float(shift @ seen) - squares / 2, math.sqrt(squares), seen - shift * is_there


def laplace_seen(moved: Integers, beyond: Integers, scale: float, *, is_there: bool) -> tuple[float, float, Floats]:
    """The same of Laplace noise: distances are epsilons, and noise is told as normal noise of the same quantiles."""
    shift, seen = moved / scale, beyond / scale
    noise = seen - shift * is_there
    ratio = float((np.abs(seen) - np.abs(seen - shift)).sum())
    normal = -np.sign(noise) * ndtri(0.5 * np.exp(-np.abs(noise)))
    return ratio, float(np.abs(shift).sum()), normal


# Releases of stages


def release_parts(plan: Plan, table: pa.Table, row: pa.Table, *, is_there: bool, noise: Any = None) -> Parts:
    """One release, all stages of it, by the code that users call; what an attacker sees in each stage."""
    data = pa.concat_tables([table, row]) if is_there else table
    release = release_table(data, plan, noise=noise)
    return stage_parts(plan, release.vectors, table, row, is_there=is_there)


def stage_parts(plan: Plan, vectors: Sequence[Integers], table: pa.Table, row: pa.Table, *, is_there: bool) -> Parts:
    """Every stage given the noisy vectors before it: the sum of ratios is that of the whole release."""
    seen = laplace_seen if plan.budget.is_pure else mechanism_seen
    found = []
    for index, embedding in enumerate(plan.embeddings(vectors[:-1])):
        base, moved = (_summed(plan, part, embedding) for part in (table, row))
        beyond = vectors[index] - base
        found.append(seen(moved, beyond, plan.noise_scales[index], is_there=is_there))
    ratios, distances, residues = zip(*found, strict=True)
    return Parts(ratios, distances, residues)


def _summed(plan: Plan, table: pa.Table, embedding: Any) -> Integers:
    return Work(plan.layout, embedding, plan.lattice).sum(table.to_batches())[:-1]


# Descents


class Overheard:
    """The noise of releases, and what was published with it.

    A descent publishes its end alone; what it costs is counted as if all its noisy sums were published,
    and so they are what is attacked.
    """

    is_private = True

    def __init__(self, source: Any) -> None:
        self.source, self.name = source, source.name
        self.published: list[Integers] = []

    def add_noise(self, sums: Integers, noise_std: int, receipt: Receipt) -> Integers:
        """As the source does."""
        self.published.append(self.source.add_noise(sums, noise_std, receipt))
        return self.published[-1]


@dataclass
class Step:
    """What an attacker knows of a step: the sum of the other rows, and what the row would add if it is drawn."""

    others: Integers
    moved: Integers
    is_drawn: bool


@contextmanager
def watched_linear(canary: Integers, label: int, *, is_there: bool) -> Iterator[list[Step]]:
    """Steps of ``train_maps``; the row is the last one, if it is there, and ``canary`` its integer inputs."""
    steps: list[Step] = []
    real_sum, real_whitened = classifier.gradient_sum, classifier._whitened
    own = IntegerRows(canary[None], np.asarray([label]))

    def whitened(rows: IntegerRows, whitening: Any) -> IntegerRows:
        nonlocal own
        own = real_whitened(own, whitening)
        return real_whitened(rows, whitening)

    def summed(rows: IntegerRows, shape: Any, weights: Floats, places: Integers, *, clip: float) -> Integers:
        last = len(rows.labels) - 1 if is_there else -1
        others = real_sum(rows, shape, weights, places[places != last], clip=clip)
        moved = real_sum(own.unpacked(), shape, weights, np.arange(1), clip=clip)
        is_drawn = is_there and bool((places == last).any())
        steps.append(Step(others.ravel(), moved.ravel(), is_drawn))
        return real_sum(rows, shape, weights, places, clip=clip)

    with patch.object(classifier, "gradient_sum", summed), patch.object(classifier, "_whitened", whitened):
        yield steps


@contextmanager
def watched_network(canary: Sequence[npt.NDArray[Any]], *, is_there: bool) -> Iterator[list[Step]]:
    """The same of ``noisy_descent``; ``canary`` is the row's arrays, of one row each."""
    steps: list[Step] = []
    real_sum = networks._clipped_sum

    def summed(gradients: Any, place: Floats, rows: Any, places: Integers, *, clip: float, block: int) -> Integers:
        last = len(rows[0]) - 1 if is_there else -1
        wish = {"clip": clip, "block": block}
        others = real_sum(gradients, place, rows, places[places != last], **wish)
        moved = real_sum(gradients, place, tuple(canary), np.arange(1), **wish)
        is_drawn = is_there and bool((places == last).any())
        steps.append(Step(others, moved, is_drawn))
        return real_sum(gradients, place, rows, places, **wish)

    with patch.object(networks, "_clipped_sum", summed):
        yield steps


def descent_parts(steps: Sequence[Step], published: Sequence[Integers], *, deviation: float, rate: float) -> Parts:
    """One mechanism: all steps. A row that is drawn with a chance is in a mixture of two normal laws."""
    total, squares, residues = 0.0, 0.0, []
    own = steps[-len(published) :]  # before them, made-up rows were summed to try the machine
    for step, noisy in zip(own, published, strict=True):
        beyond = noisy - step.others
        ratio, apart, residue = mechanism_seen(step.moved, beyond, deviation, is_there=step.is_drawn)
        total += float(sampled_ratio(ratio, rate))
        squares += apart**2
        residues.append(residue)
    return Parts((total,), (math.sqrt(squares),), (np.concatenate(residues),))


def sampled_ratio(ratio: npt.ArrayLike, rate: float) -> Floats:
    """The log-likelihood ratio of a step in which the row is drawn with a chance."""
    if rate == 1:
        return np.asarray(ratio)
    return np.logaddexp(math.log1p(-rate), math.log(rate) + np.asarray(ratio))


def joined(*parts: Parts) -> Parts:
    """Several mechanisms of one run."""
    return Parts(
        tuple(ratio for part in parts for ratio in part.ratios),
        tuple(distance for part in parts for distance in part.distances),
        tuple(own for part in parts for own in part.residues),
    )


def classifier_parts(plan: ClassifierPlan, table: pa.Table, row: pa.Table, *, is_there: bool) -> Parts:
    """One classifier: the second moments of inputs, if they are looked at, and all steps of the descent."""
    data = pa.concat_tables([table, row]) if is_there else table
    base, own = (classifier.integer_rows(part, plan, query=None) for part in (table, row))
    noise = Overheard(LongNoise())
    with watched_linear(own.inputs[0], int(own.labels[0]), is_there=is_there) as steps:
        classifier.train_classifier(data, plan, noise=noise)
    published, looks = noise.published, []
    if plan.look_noise is not None:
        upper = np.triu_indices(plan.inputs.dim)
        moved, before = (classifier.second_moments(rows.inputs)[upper] for rows in (own, base))
        ratio, apart, residue = mechanism_seen(moved, published[0] - before, plan.look_noise, is_there=is_there)
        published, looks = published[1:], [Parts((ratio,), (apart,), (residue,))]
    descent = plan.descent.cost
    deviation = descent.noise_multiplier * INPUT_RADIUS**2
    return joined(*looks, descent_parts(steps, published, deviation=deviation, rate=descent.sampling_rate))


def decoder_parts(plan: Plan, table: pa.Table, row: pa.Table, *, is_there: bool) -> Parts:
    """One release with a descent before its stages: the descent first, then the stages."""
    from understudy.private.dpsgd.networks import read_images

    if plan.descent is None:
        raise ValueError("the plan has no descent")
    data = pa.concat_tables([table, row]) if is_there else table
    noise = Overheard(ExactNoise())
    with watched_network(read_images(row, plan, query=None), is_there=is_there) as steps:
        release = release_table(data, plan, noise=noise)
    cost = plan.descent.cost
    descended = descent_parts(
        steps, noise.published[: cost.steps], rate=cost.sampling_rate, deviation=cost.noise_multiplier * networks.RADIUS
    )
    return joined(descended, stage_parts(plan, release.vectors, table, row, is_there=is_there))


def encoder_parts(plan: Any, table: pa.Table, row: pa.Table, *, is_there: bool) -> Parts:
    """One private encoder."""
    from understudy.private.dpsgd import encoder

    data = pa.concat_tables([table, row]) if is_there else table
    noise = Overheard(LongNoise())
    with watched_network(encoder._rows(row, plan), is_there=is_there) as steps:
        encoder.train_private_encoder(data, plan, noise=noise)
    cost = plan.descent.cost
    return descent_parts(
        steps, noise.published, rate=cost.sampling_rate, deviation=cost.noise_multiplier * networks.RADIUS
    )


def canary_ratios(
    cost: DescentCost, *, descents: int, canaries: int = 500, stated: DescentCost | None = None
) -> tuple[Floats, Floats]:
    """Log-likelihood ratios of many rows of few descents: of rows that were not there, and of rows that were.

    A canary is a row with a coordinate of its own, where no other row has a weight, and a gradient as long as may be:
    one descent is as many independent trials as there are canaries. ``stated`` is the cost that the attacker
    believes, by default the true one.
    """
    runs = [_canaries(cost, canaries, stated or cost) for _ in range(descents)]
    gone, there = zip(*runs, strict=True)
    return np.concatenate(gone), np.concatenate(there)


def _canaries(cost: DescentCost, canaries: int, believed: DescentCost) -> tuple[Floats, Floats]:
    shape = MapShape(num_features=2 * canaries, num_classes=2)
    everyone = IntegerRows(classifier.integer_inputs(np.eye(2 * canaries)), np.ones(2 * canaries, np.int64))
    rows = IntegerRows(everyone.inputs[:canaries], everyone.labels[:canaries])
    real_sum, noise = classifier.gradient_sum, Overheard(LongNoise())
    moves: list[Floats] = []

    def summed(rows: IntegerRows, shape: Any, weights: Floats, places: Integers, *, clip: float) -> Integers:
        if len(rows.labels) == canaries:  # and not made-up rows that try the machine
            places_of_all = np.arange(2 * canaries)
            alone = real_sum(everyone.unpacked(), shape, weights, places_of_all, clip=clip)
            moves.append(alone.reshape(2, -1).astype(np.float64))
        return real_sum(rows, shape, weights, places, clip=clip)

    with patch.object(classifier, "gradient_sum", summed):
        descent = DescentPlan(Budget(1.0), cost, clip=0.1, learning_rate=0.01, expected_rows=1)
        classifier.train_maps(rows, shape, Descent(descent, unrecorded(), noise))
    deviation = believed.noise_multiplier * INPUT_RADIUS**2
    total = np.zeros(2 * canaries)
    for moved, published in zip(moves, noise.published, strict=True):
        shift, seen = moved / deviation, published.reshape(2, -1) / deviation
        ratio = (shift * seen).sum(axis=0) - (shift**2).sum(axis=0) / 2
        total += sampled_ratio(ratio, believed.sampling_rate)
    return total[canaries:], total[:canaries]
