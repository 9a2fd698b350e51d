"""Reduced-set construction: weighted synthetic rows nearest to a released mean embedding (torch, lazily).

Balog et al. 2018, Algorithm 2, line 6: minimise |sum_m w_m phi(z_m) - noisy mean| over rows z_m and
weights with sum |w_m| <= 1. Weights are kept nonnegative, as those of the private rows are: of all
that the bound allows that is the part where the truth lies, and it leaves less room for noise.

Rows are added where the residual is largest, a few at a time (kernel herding with corrections);
then all move together, and weights are fitted anew. Nothing here sees the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Integers, LossProgress, one_thread
from understudy.features import Fourier
from understudy.features.points import Draw, Points, drawn_points
from understudy.fits.weighting import fit_nonnegative
from understudy.generators.weighted import WeightedDatabase, weighted_database
from understudy.released import Release
from understudy.schema import Layout
from understudy.schema.columns import POSITION_BITS


@dataclass(frozen=True)
class Particles:
    """Rows under optimisation: positions in [0, 1], and slots of choices; a null number lies in the middle."""

    layout: Layout
    positions: Floats  # (rows, numbers)
    slots: Integers  # (rows, choices)

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def members(self) -> Floats:
        """Memberships of all choices.  # (rows, cells of the choices)"""
        first = len(self.layout.numbers)
        found = np.zeros((len(self), self.layout.width - first))
        for place, choice in enumerate(self.layout.choices):
            found[np.arange(len(self)), choice.start - first + self.slots[:, place]] = 1.0
        return found

    @property
    def cells(self) -> Floats:
        """What feature maps read, on the grid that positions have in files.  # (rows, width)"""
        steps = np.rint(self.positions * 2**POSITION_BITS) / 2**POSITION_BITS
        return np.concatenate([steps, self.members], axis=1)

    @property
    def is_null(self) -> npt.NDArray[np.bool_]:
        """Which numbers are null.  # (rows, numbers)"""
        found = np.zeros(self.positions.shape, dtype=bool)
        for place, choice in enumerate(self.layout.choices):
            if choice.flags_null:
                found[:, self.layout.numbers.index(choice.column)] = self.slots[:, place] == 1
        return found

    def at(self, positions: Floats) -> Particles:
        """The same rows elsewhere: inside the bounds, and nulls in the middle."""
        inside = np.where(self.is_null, 0.5, np.clip(positions, 0.0, 1.0))
        return Particles(self.layout, inside, self.slots)

    def take(self, places: npt.ArrayLike) -> Particles:
        """Some of the rows, in that order."""
        chosen = np.asarray(places, dtype=np.int64)
        return Particles(self.layout, self.positions[chosen], self.slots[chosen])

    def joined(self, other: Particles) -> Particles:
        """These rows and others."""
        return Particles(
            self.layout, np.concatenate([self.positions, other.positions]), np.concatenate([self.slots, other.slots])
        )

    def jittered(self, width: Floats, flips: float, rng: np.random.Generator) -> Particles:
        """Rows nearby: numbers moved by about ``width``, and some choices changed at random."""
        slots = self.slots.copy()
        for place, choice in enumerate(self.layout.choices):
            changed = rng.random(len(self)) < flips
            slots[changed, place] = rng.integers(choice.width, size=int(changed.sum()))
        moved = self.positions + width * rng.standard_normal(self.positions.shape)
        return Particles(self.layout, moved, slots).at(moved)

    def codes(self) -> Integers:
        """Codes of the rows.  # (rows, num_used)"""
        steps = np.rint(self.positions * 2**POSITION_BITS).astype(np.int64)
        rows = np.concatenate([steps, self.slots], axis=1).tolist()
        spans = tuple((choice.start, choice.stop) for choice in self.layout.choices)
        return Points(tuple(tuple(row) for row in rows), spans).codes(self.layout)


def particles_of(layout: Layout, points: Points) -> Particles:
    """Public points as particles; a choice with no listed value gets the first."""
    rows = np.asarray(points.rows, dtype=np.int64).reshape(len(points), -1)
    first = len(layout.numbers)
    return Particles(layout, rows[:, :first] / 2**POSITION_BITS, np.maximum(rows[:, first:], 0))


EMBEDDING = "embedding"
"""Name of the block of random features."""

SEARCHES = 5
"""Generations of candidates, each drawn around the best of the one before."""

WIDEST = 1.0
"""Length scales by which the first generation is moved."""

NARROWEST = 0.2
"""Length scales by which the last generation is moved."""

FLIPS = 0.15
"""Share of a candidate's choices that are changed at random."""

CLEAR = 2.0
"""Standard deviations of noise that a residual must exceed for its row to have offspring."""

CORE = 48
"""Rows that are searched for; further ones are drawn around these."""

VALUES_PER_STEP = 2**20
"""Features (rows times frequencies) that are evaluated at once: 8 MiB."""

FEWEST_FREQUENCIES = 256
"""Frequencies of a step at least, however many rows there are."""

OVERSHOOT = 10.0
"""Penalty on the squared excess of the weights' sum over one, beside squared distances below one."""


@dataclass(frozen=True)
class ReducedSet:
    """Public settings of the search; ``draw`` and its moments say where candidates come from."""

    num_points: int = 256
    weights: str = "free"
    rounds: int = 6
    steps: int = 800
    candidates: int = 1000
    learning_rate: float = 0.1
    draw: Draw = "uniform"
    means: Mapping[str, float] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class _Target:
    """What is to be met: the noisy mean features, their noise, and the map with its length scales."""

    map: Fourier
    mean: Floats
    noise: float

    def features(self, particles: Particles) -> npt.NDArray[np.float32]:
        """Features of rows.  # (rows, dim)"""
        step = max(1, VALUES_PER_STEP // self.map.dim)
        cells = particles.cells
        parts = [self.map(cells[i : i + step]) for i in range(0, len(cells), step)]
        return np.concatenate(parts).astype(np.float32)

    def residual(self, particles: Particles, weights: Floats) -> Floats:
        """What rows with weights lack.  # (dim,)"""
        if not len(particles):
            return self.mean
        return self.mean - self.features(particles).T.astype(np.float64) @ weights


def find_reduced_set(
    release: Release, settings: ReducedSet, *, progress: LossProgress | None = None
) -> WeightedDatabase:
    """Find rows and weights for a release; the same release and settings give the same rows."""
    with one_thread() as torch:
        return _find(torch, release, settings, progress)


def _find(torch: Any, release: Release, settings: ReducedSet, progress: LossProgress | None) -> WeightedDatabase:
    map_ = next(block for block in release.blocks if block.name == EMBEDDING).map_of(Fourier)
    count = release.plan.num_rows or max(1.0, float(release.sums("count")[0, 0]))
    target = _Target(map_, release.sums(EMBEDDING)[0] / count, release.noise_std(EMBEDDING) / count)
    rng = np.random.default_rng(settings.seed)
    mover = _Mover(torch, target, settings, rng, progress)
    core = min(CORE, settings.num_points)
    rounds = min(settings.rounds, core)
    particles, weights = Particles(release.plan.layout, *_nothing(release)), np.zeros(0)
    for turn in range(rounds):
        wanted = core * (turn + 1) // rounds - len(particles)
        found = _search(target, target.residual(particles, weights), release, settings, turn, rng)
        particles = particles.joined(_pick(target, found, particles, weights, wanted))
        weights = _refit(target, particles)
        particles, weights = mover.move(particles, weights, settings.steps * (turn + 1) // (2 * rounds))
    if settings.num_points > core or settings.weights == "uniform":
        particles, weights = _spread(particles, weights, settings, target, rng)
    particles, weights = mover.move(particles, weights, settings.steps)
    if settings.weights == "free":
        weights = _refit(target, particles, weights)
    return weighted_database(release.plan.schema, particles.codes(), weights, release.plan.num_rows or round(count))


def _nothing(release: Release) -> tuple[Floats, npt.NDArray[np.int64]]:
    layout = release.plan.layout
    return np.empty((0, len(layout.numbers))), np.empty((0, len(layout.choices)), dtype=np.int64)


def _search(
    target: _Target, residual: Floats, release: Release, settings: ReducedSet, turn: int, rng: np.random.Generator
) -> Particles:
    """Candidates where the residual is large: drawn over the domain, then ever closer around the best.

    The residual at a row, phi(z) . r, has the noise of one feature, as phi has norm one.
    """
    schema = release.plan.schema
    points = drawn_points(
        schema,
        settings.candidates,
        draw=settings.draw,
        means=settings.means,
        deviations=settings.deviations,
        seed=settings.seed + turn,
    )
    particles = particles_of(release.plan.layout, points)
    heights = target.features(particles) @ residual
    scales = np.asarray(target.map.length_scales[: particles.positions.shape[1]])
    for width in np.geomspace(WIDEST, NARROWEST, SEARCHES):
        clear = np.maximum(heights - CLEAR * target.noise, 0.0)
        shares = clear / clear.sum() if clear.any() else np.full(len(particles), 1 / len(particles))
        parents = rng.choice(len(particles), size=len(particles), p=shares)
        children = particles.take(parents).jittered(width * scales, FLIPS, rng)
        family = particles.joined(children)
        heights = np.concatenate([heights, target.features(children) @ residual])
        best = np.argsort(-heights, kind="stable")[: settings.candidates]
        particles, heights = family.take(best), heights[best]
    return particles


def _pick(target: _Target, found: Particles, particles: Particles, weights: Floats, wanted: int) -> Particles:
    """Greedy choice (kernel herding, matching pursuit): where the residual is largest, which is then corrected."""
    features = target.features(found)
    heights = (features @ target.residual(particles, weights)).astype(np.float64)
    picked = []
    for _ in range(wanted):
        best = int(heights.argmax())
        picked.append(best)
        heights = heights - max(heights[best], target.noise) * (features @ features[best])
    return found.take(picked)


def _refit(target: _Target, particles: Particles, weights: Floats | None = None) -> Floats:
    """The best nonnegative weights of these rows, of sum at most one."""
    return fit_nonnegative(target.features(particles), target.mean, start=weights)


def _spread(
    particles: Particles, weights: Floats, settings: ReducedSet, target: _Target, rng: np.random.Generator
) -> tuple[Particles, Floats]:
    """As many rows as were asked for, drawn evenly in proportion to the weights, each moved a little."""
    shares = weights / weights.sum() if weights.any() else np.full(len(particles), 1 / len(particles))
    marks = (np.arange(settings.num_points) + rng.random()) / settings.num_points
    chosen = np.minimum(np.searchsorted(np.cumsum(shares), marks), len(particles) - 1)
    scales = np.asarray(target.map.length_scales[: particles.positions.shape[1]])
    spread = particles.take(chosen).jittered(NARROWEST * scales, 0.0, rng)
    total = min(1.0, float(weights.sum())) if settings.weights == "free" else 1.0
    return spread, np.full(settings.num_points, total / settings.num_points)


class _Mover:
    """Moves the numbers of all rows, and their weights, down the squared distance."""

    def __init__(
        self, torch: Any, target: _Target, settings: ReducedSet, rng: np.random.Generator, progress: LossProgress | None
    ) -> None:
        self._torch, self._settings, self._rng, self._progress = torch, settings, rng, progress
        frequencies = torch.from_numpy((2 * math.pi * target.map.frequencies).astype(np.float32))
        self._frequencies, self._mean = (frequencies, torch.from_numpy(target.mean.astype(np.float32)))
        self._scales = np.asarray(target.map.length_scales)
        self._done = 0

    def move(self, particles: Particles, weights: Floats, until: int) -> tuple[Particles, Floats]:
        """Descend until so many steps have been taken in all; where rows and weights are then."""
        torch, steps = self._torch, until - self._done
        uniform = self._settings.weights == "uniform" and len(particles) == self._settings.num_points
        count = particles.positions.shape[1]
        scales = self._scales[:count].astype(np.float32)
        start = (particles.positions / scales).astype(np.float32)
        places = torch.from_numpy(start).requires_grad_()
        floor = 1e-3 / len(particles)
        logs = torch.from_numpy(np.log(np.maximum(weights, floor)).astype(np.float32))
        logs.requires_grad_(not uniform)
        stretched = self._frequencies[:count] * torch.from_numpy(scales)[:, None]
        members = torch.from_numpy(particles.members.astype(np.float32))
        fixed = torch.from_numpy(particles.is_null)
        highest = torch.from_numpy(1 / scales)
        optimiser = torch.optim.Adam([places] if uniform else [places, logs], betas=(0.9, 0.99))
        loss = 0.0
        for step in range(steps):
            rate = self._settings.learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            optimiser.param_groups[0]["lr"] = rate
            some = self._some(len(particles))
            phases = places @ stretched[:, some] + members @ self._frequencies[count:, some]
            total = self._distance(phases, torch.exp(logs), some)
            loss = float(total.detach())
            optimiser.zero_grad()
            total.backward()
            if places.grad is not None:
                places.grad[fixed] = 0.0
            optimiser.step()
            with torch.no_grad():
                places.clamp_(torch.zeros_like(highest), highest)
            self._done += 1
            if self._progress is not None and (self._done % 20 == 0 or self._done == until):
                self._progress(self._done, self._settings.steps, loss)
        moved = places.detach().double().numpy() * scales
        found = torch.exp(logs).detach().double().numpy()
        return particles.at(moved), weights if uniform else found / max(1.0, float(found.sum()))

    def _some(self, num_rows: int) -> Any:
        """The frequencies of one step: all of them, or as many as many rows leave time for."""
        every = self._frequencies.shape[1]
        few = max(FEWEST_FREQUENCIES, VALUES_PER_STEP // num_rows)
        if few >= every:
            return slice(None)
        return self._torch.from_numpy(self._rng.choice(every, size=few, replace=False))

    def _distance(self, phases: Any, weights: Any, some: Any) -> Any:
        torch, every = self._torch, self._frequencies.shape[1]
        cosines, sines = self._mean[:every][some], self._mean[every:][some]
        scale = 1 / math.sqrt(every)
        apart = ((weights @ torch.cos(phases)) * scale - cosines).square().sum()
        apart = apart + ((weights @ torch.sin(phases)) * scale - sines).square().sum()
        excess = torch.relu(weights.sum() - 1)
        return apart * (every / phases.shape[1]) + OVERSHOOT * excess**2
