"""Train an image generator by matching moments of perceptual features (DP-MEPF; torch, lazily).

The loss is a moving average of the MMD gradient (dos Santos et al. 2019): small batches follow it as large ones would.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import LossProgress, one_thread
from understudy.features import Block, Perceptual
from understudy.fits.mmd_loss import pace, rows_per_label
from understudy.generators.base import image_shape
from understudy.generators.image_architectures import Architecture, initialise
from understudy.generators.image_network import ImageNetwork, by_pixel, draw_inputs, state_of
from understudy.networks.activations import activations
from understudy.networks.public import PublicNetwork, registered_network
from understudy.released import Release

BETAS = (0.5, 0.999)
"""Adam's, as is usual for image generators (Radford et al. 2016)."""


class Moments:
    """Mean features of a block: those that were released, and those of generated images.

    Args:
        torch: the library.
        release: holds the block.
        block: perceptual features, or products of them two by two.
        sizes: images of each class in a batch that is sorted by class.
    """

    def __init__(self, torch: Any, release: Release, block: Block, sizes: npt.NDArray[np.int64]) -> None:
        counts, sums = release.label_counts, release.sums(block.name)
        is_whole = len(sums) == 1
        totals = counts.sum() if is_whole else counts[:, None]
        self.map, self.has_products = block.map_of(Perceptual), block.map.components != (block.map,)
        if self.has_products:  # noise on both halves of a symmetric matrix, and less on their mean
            square = sums.reshape(len(sums), self.map.dim, self.map.dim)
            sums = ((square + square.transpose(0, 2, 1)) / 2).reshape(sums.shape)
        self.target = torch.from_numpy((sums / totals).astype(np.float32))
        groups = np.array([sizes.sum()]) if is_whole else sizes
        shares = counts / counts.sum()
        if is_whole:  # a batch has other shares than the table
            weights = np.repeat(shares / sizes, sizes)[None, :]
        else:
            weights = np.repeat(np.diag(1 / sizes), sizes, axis=1)
        self.averaging = torch.from_numpy(weights.astype(np.float32))  # (copies, num_rows)
        self.edges = list(pairwise([0, *accumulate(groups.tolist())]))
        self.shares = torch.from_numpy((np.ones(1) if is_whole else shares).astype(np.float32))
        self._torch = torch

    def means(self, layers: Mapping[str, Any]) -> Any:
        """Mean features of a batch of activations.  # (copies, dim)"""
        features = self.map.of_activations([layers[name] for name in self.map.layers])
        if not self.has_products:
            return self.averaging @ features
        found = [
            (features[start:stop] * weights[start:stop, None]).T @ features[start:stop]
            for (start, stop), weights in zip(self.edges, self.averaging, strict=True)
        ]
        return self._torch.stack(found).flatten(1)


class MovingAverage:
    """Adam moving average (AMA) of the difference of moments over steps (dos Santos et al. 2019).

    ``remembered`` is a parameter. A step moves it towards what the batch is off by, by one step of
    Adam on the squared difference; the generator's loss is its product with what the batch is off by,
    whose slope is that of the squared distance of a much larger batch. Numbers are in units of
    one over the root of their count, so that one rate fits blocks of any size.
    """

    def __init__(self, torch: Any, moments: Moments) -> None:
        self.moments = moments
        self.unit = math.sqrt(moments.target.shape[1])
        self.remembered = torch.zeros_like(moments.target, requires_grad=True)

    def off_by(self, layers: Mapping[str, Any]) -> Any:
        """Released less generated means, in units.  # (copies, dim)"""
        return self.unit * (self.moments.target - self.moments.means(layers))

    def remember(self, off: Any) -> None:
        """Set the slope of the mean squared difference to ``off``; the optimiser takes the step."""
        self.remembered.grad = 2 * (self.remembered.detach() - off.detach())

    def loss(self, off: Any) -> Any:
        """What the generator lowers."""
        per_class = (self.remembered.detach() * off).mean(1)
        return (self.moments.shares * per_class).sum()


def moments_of(torch: Any, release: Release, names: Sequence[str], sizes: npt.NDArray[np.int64]) -> list[Moments]:
    """The moments in several blocks of a release."""
    blocks = {block.name: block for block in release.blocks}
    return [Moments(torch, release, blocks[name], sizes) for name in names]


FIRST = "first"
SECOND = "second"
PRODUCTS = "products"
STOPPING = "stopping"
"""Blocks that training looks at, and the one of the noisier stage that chooses a checkpoint."""


@dataclass(frozen=True, slots=True)
class PerceptualTraining:
    """Public settings of an image network and its training on perceptual features.

    ``average_rate`` is that of the moving average; ``checkpoints`` is how often, evenly over the steps, the
    network is judged by the stage for early stopping, with ``judged`` images of each class.
    """

    architecture: str = "clouds"
    noise_dim: int = 32
    hidden: Sequence[int] = (384, 384)
    channels: Sequence[int] = (24, 12)
    steps: int = 4000
    batch: int = 100
    learning_rate: float = 3e-3
    average_rate: float = 0.03
    checkpoints: int = 10
    judged: int = 100
    seed: int = 0

    @property
    def network(self) -> Architecture:
        """What the network is made of."""
        return Architecture(self.architecture, self.noise_dim, tuple(self.hidden), tuple(self.channels))


def train_perceptual(
    release: Release, training: PerceptualTraining, *, progress: LossProgress | None = None
) -> ImageNetwork:
    """Fit a network to a release; the same release and settings give the same network."""
    with one_thread() as torch:
        return _Fit(torch, release, training).run(progress)


class _Fit:
    def __init__(self, torch: Any, release: Release, training: PerceptualTraining) -> None:
        self.torch, self.release, self.training = torch, release, training
        self.rng = np.random.default_rng(training.seed)
        self.counts = release.label_counts
        self.shares = self.counts / self.counts.sum()
        self.sizes = rows_per_label(self.shares, training.batch)
        self.module = training.network.build(torch, image_shape(release.plan.schema), len(self.shares))
        initialise(torch, self.module, training.seed)
        held = {block.name for block in release.blocks}
        names = [name for name in (FIRST, SECOND, PRODUCTS) if name in held]
        self.averages = [MovingAverage(torch, each) for each in moments_of(torch, release, names, self.sizes)]
        self.judge = _Judge(torch, release, training) if STOPPING in held else None
        self.see = activations_seen(release, [each.moments for each in self.averages])
        self.one_hot = np.repeat(np.eye(len(self.shares)), self.sizes, axis=0)
        self.generator = torch.optim.Adam(self.module.parameters(), betas=BETAS)
        remembered = [each.remembered for each in self.averages]
        self.memory = torch.optim.Adam(remembered, betas=BETAS)

    def run(self, progress: LossProgress | None) -> ImageNetwork:
        """Train, and keep the checkpoint that the noisier stage likes best."""
        steps, checkpoints = self.training.steps, max(1, self.training.checkpoints)
        every = max(1, steps // checkpoints)
        best, kept = float("inf"), None
        for done in range(1, steps + 1):
            distance = self._step((done - 1) / steps)
            if progress is not None and (done % 20 == 0 or done == steps):
                progress(done, steps, distance())
            if self.judge is not None and (done % every == 0 or done == steps):
                score = self.judge.score(self.module)
                if score <= best:
                    best, kept = score, copy.deepcopy(self.module.state_dict())
        if kept is not None:
            self.module.load_state_dict(kept)
        return ImageNetwork(
            schema=self.release.plan.schema,
            architecture=self.training.network,
            weights=state_of(self.module),
            default_num_rows=self.release.plan.num_rows or max(1, round(float(self.counts.sum()))),
            label_shares=tuple(self.shares.tolist()),
        )

    def _step(self, done: float) -> Callable[[], float]:
        """A step of the moving average, then one of the generator; how far the batch was off, if asked."""
        self.generator.param_groups[0]["lr"] = self.training.learning_rate * pace(done)
        self.memory.param_groups[0]["lr"] = self.training.average_rate * pace(done)
        drawn = draw_inputs(self.torch, self.one_hot, self.training.noise_dim, self.rng)
        layers = self.see(by_pixel(self.module(drawn)))
        off = [each.off_by(layers) for each in self.averages]
        for each, how_far in zip(self.averages, off, strict=True):
            each.remember(how_far)
        self.memory.step()
        loss = sum(each.loss(far) for each, far in zip(self.averages, off, strict=True))
        self.generator.zero_grad()
        loss.backward()
        self.generator.step()
        return lambda: sum(float((far.detach() ** 2).mean()) for far in off)


class _Judge:
    """Early stopping: squared distance of a network's moments to those of the noisier stage."""

    def __init__(self, torch: Any, release: Release, training: PerceptualTraining) -> None:
        self.torch, self.training = torch, training
        self.num_labels = len(release.label_counts)
        sizes = np.full(self.num_labels, training.judged)
        (self.moments,) = moments_of(torch, release, (STOPPING,), sizes)
        self.see = activations_seen(release, [self.moments])
        self.one_hot = np.repeat(np.eye(self.num_labels), sizes, axis=0)

    def score(self, module: Any) -> float:
        """The squared distance of means; the same inputs are drawn for every checkpoint."""
        rng = np.random.default_rng(self.training.seed)
        drawn = draw_inputs(self.torch, self.one_hot, self.training.noise_dim, rng)
        module.train(False)
        with self.torch.no_grad():
            means = self.moments.means(self.see(by_pixel(module(drawn))))
        module.train()
        distances = ((means - self.moments.target) ** 2).sum(1)
        return float((self.moments.shares * distances).sum())


def activations_seen(release: Release, moments: Sequence[Moments]) -> Callable[[Any], Mapping[str, Any]]:
    """A function from images to the outputs of every layer that some moments are of."""
    shape = image_shape(release.plan.schema)
    maps = [each.map for each in moments]
    network: PublicNetwork = registered_network(maps[0].sha256, maps[0].network)
    layers = tuple(dict.fromkeys(name for map_ in maps for name in map_.layers))

    def see(images: Any) -> Mapping[str, Any]:
        return dict(zip(layers, activations(network, images, shape, layers), strict=True))

    return see
