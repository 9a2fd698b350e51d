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

from understudy.arrays import Floats, Integers, LossProgress, Singles, Truths, load_torch, one_thread
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
    def is_null(self) -> Truths:
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


@one_thread()
def find_reduced_set(
    release: Release, settings: ReducedSet, *, progress: LossProgress | None = None
) -> WeightedDatabase:
    """Find rows and weights for a release; the same release and settings give the same rows."""
    count = release.plan.num_rows or max(1.0, float(release.sums("count")[0, 0]))
    particles, weights = _Search(release, settings, count, progress).run()
    return weighted_database(release.plan.schema, particles.codes(), weights, round(count))


class _Search:
    """The search for rows and weights whose mean features are the noisy ones of a release."""

    def __init__(self, release: Release, settings: ReducedSet, count: float, progress: LossProgress | None) -> None:
        self._torch, self._settings, self._progress = load_torch(), settings, progress
        self._layout = release.plan.layout
        self._map = release.measurement_of(EMBEDDING).embedding.block(EMBEDDING).map_of(Fourier)
        self._mean: Floats = release.sums(EMBEDDING)[0] / count
        self._noise = release.noise_std(EMBEDDING) / count
        self._scales = np.asarray(self._map.length_scales[: len(self._layout.numbers)])
        self._frequencies = self._single(2 * math.pi * self._map.frequencies)
        self._target = self._single(self._mean)
        self._rng, self._steps_done = np.random.default_rng(settings.seed), 0

    def run(self) -> tuple[Particles, Floats]:
        """Add rows and move all, in turn; then spread them over as many as were asked for, and move those."""
        settings, layout = self._settings, self._layout
        core = min(CORE, settings.num_points)
        rounds = min(settings.rounds, core)
        nowhere = np.empty((0, len(layout.choices)), dtype=np.int64)
        particles, weights = Particles(layout, np.empty((0, len(layout.numbers))), nowhere), np.zeros(0)
        for turn in range(rounds):
            residual = self._residual(particles, weights)
            wanted = core * (turn + 1) // rounds - len(particles)
            particles = particles.joined(self._pick(self._candidates(residual, turn), residual, wanted))
            weights = fit_nonnegative(self._features(particles), self._mean)
            particles, weights = self._move(particles, weights, settings.steps * (turn + 1) // (2 * rounds))
        if settings.num_points > core or settings.weights == "uniform":
            particles, weights = self._spread(particles, weights)
        particles, weights = self._move(particles, weights, settings.steps)
        if settings.weights == "free":
            weights = fit_nonnegative(self._features(particles), self._mean, start=weights)
        return particles, weights

    def _features(self, particles: Particles) -> Singles:
        """Features of rows.  # (rows, dim)"""
        step = max(1, VALUES_PER_STEP // self._map.dim)
        cells = particles.cells
        parts = [self._map(cells[i : i + step]) for i in range(0, len(cells), step)]
        return np.concatenate(parts).astype(np.float32)

    def _residual(self, particles: Particles, weights: Floats) -> Floats:
        """What rows with weights lack.  # (dim,)"""
        if not len(particles):
            return self._mean
        return self._mean - self._features(particles).T.astype(np.float64) @ weights

    def _candidates(self, residual: Floats, turn: int) -> Particles:
        """Rows where the residual is large: drawn over the domain, then ever closer around the best.

        The residual at a row, phi(z) . r, has the noise of one feature, as phi has norm one.
        """
        settings = self._settings
        points = drawn_points(
            self._layout.schema,
            settings.candidates,
            draw=settings.draw,
            means=settings.means,
            deviations=settings.deviations,
            seed=settings.seed + turn,
        )
        particles = particles_of(self._layout, points)
        heights = self._features(particles) @ residual
        for width in np.geomspace(WIDEST, NARROWEST, SEARCHES):
            clear = np.maximum(heights - CLEAR * self._noise, 0.0)
            parents = self._rng.choice(len(particles), size=len(particles), p=_shares(clear))
            children = particles.take(parents).jittered(width * self._scales, FLIPS, self._rng)
            family = particles.joined(children)
            heights = np.concatenate([heights, self._features(children) @ residual])
            best = np.argsort(-heights, kind="stable")[: settings.candidates]
            particles, heights = family.take(best), heights[best]
        return particles

    def _pick(self, found: Particles, residual: Floats, wanted: int) -> Particles:
        """Greedy choice (kernel herding, matching pursuit): where the residual is largest, which is then corrected."""
        features = self._features(found)
        heights = (features @ residual).astype(np.float64)
        picked = []
        for _ in range(wanted):
            best = int(heights.argmax())
            picked.append(best)
            heights = heights - max(heights[best], self._noise) * (features @ features[best])
        return found.take(picked)

    def _spread(self, particles: Particles, weights: Floats) -> tuple[Particles, Floats]:
        """As many rows as were asked for, drawn evenly in proportion to the weights, each moved a little."""
        count = self._settings.num_points
        marks = (np.arange(count) + self._rng.random()) / count
        chosen = np.minimum(np.searchsorted(np.cumsum(_shares(weights)), marks), len(particles) - 1)
        spread = particles.take(chosen).jittered(NARROWEST * self._scales, 0.0, self._rng)
        total = min(1.0, float(weights.sum())) if self._settings.weights == "free" else 1.0
        return spread, np.full(count, total / count)

    def _single(self, array: Floats) -> Any:
        return self._torch.from_numpy(array.astype(np.float32))

    def _move(self, particles: Particles, weights: Floats, until: int) -> tuple[Particles, Floats]:
        """Descend the squared distance until so many steps have been taken in all; where rows and weights are then."""
        torch, steps = self._torch, until - self._steps_done
        uniform = self._settings.weights == "uniform" and len(particles) == self._settings.num_points
        count, scales = len(self._scales), self._scales.astype(np.float32)
        places = self._single(particles.positions / scales).requires_grad_()
        logs = self._single(np.log(np.maximum(weights, 1e-3 / len(particles)))).requires_grad_(not uniform)
        stretched = self._frequencies[:count] * torch.from_numpy(scales)[:, None]
        members, fixed = self._single(particles.members), torch.from_numpy(particles.is_null)
        highest = torch.from_numpy(1 / scales)
        optimiser = torch.optim.Adam([places] if uniform else [places, logs], betas=(0.9, 0.99))
        for step in range(steps):
            rate = self._settings.learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps))
            optimiser.param_groups[0]["lr"] = rate
            some = self._some(len(particles))
            phases = places @ stretched[:, some] + members @ self._frequencies[count:, some]
            total = self._distance(phases, torch.exp(logs), some)
            optimiser.zero_grad()
            total.backward()
            if places.grad is not None:
                places.grad[fixed] = 0.0
            optimiser.step()
            with torch.no_grad():
                places.clamp_(torch.zeros_like(highest), highest)
            self._steps_done += 1
            if self._progress is not None and (self._steps_done % 20 == 0 or self._steps_done == until):
                self._progress(self._steps_done, self._settings.steps, float(total.detach()))
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
        cosines, sines = self._target[:every][some], self._target[every:][some]
        scale = 1 / math.sqrt(every)
        apart = ((weights @ torch.cos(phases)) * scale - cosines).square().sum()
        apart = apart + ((weights @ torch.sin(phases)) * scale - sines).square().sum()
        excess = torch.relu(weights.sum() - 1)
        return apart * (every / phases.shape[1]) + OVERSHOOT * excess**2


def _shares(amounts: Floats) -> Floats:
    """In proportion to amounts; the same for all where there are none."""
    return amounts / amounts.sum() if amounts.any() else np.full(len(amounts), 1 / len(amounts))
