"""Train a network of images: by the MMD between mean embeddings, or by moments of perceptual features (torch, lazily).

Perceptual features are DP-MEPF's. Their loss is a moving average of the MMD gradient (dos Santos et al. 2019): small
batches follow it as large ones would.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from understudy.arrays import Floats, Integers, LossProgress, load_torch, one_thread
from understudy.features import Block, Perceptual
from understudy.fits.mmd_loss import descend, loss_terms, pace, rows_per_label
from understudy.generators.image_architectures import HIDDEN, Architecture, initialise
from understudy.generators.images import ImageNetwork, by_pixel, draw_inputs, image_shape, state_of
from understudy.networks.activations import activations
from understudy.networks.autoencoder import DECODER
from understudy.networks.public import PublicNetwork, registered_network
from understudy.released import Release


@dataclass(frozen=True, slots=True)
class ImageTraining:
    """Public settings of an image network and its training.

    ``architecture``, ``noise_dim``, ``hidden`` (None: as usual for the architecture) and ``channels`` are those of
    ``Architecture``; ``batch`` are images of a step, shared by the classes.
    """

    architecture: str = "convolutional"
    noise_dim: int = 5
    hidden: Sequence[int] | None = None
    channels: Sequence[int] = (16, 8)
    steps: int = 3000
    batch: int = 100
    learning_rate: float = 0.01
    features_per_step: int = 2000
    subsets_per_step: int = 10_000
    seed: int = 0

    @property
    def network(self) -> Architecture:
        """What the network is made of."""
        hidden = HIDDEN.get(self.architecture, (200,)) if self.hidden is None else self.hidden
        return Architecture(self.architecture, self.noise_dim, tuple(hidden), tuple(self.channels))


@one_thread()
def train_image_network(
    release: Release, training: ImageTraining, *, progress: LossProgress | None = None
) -> ImageNetwork:
    """Fit a network to a release; the same release and settings give the same network."""
    torch, rng = load_torch(), np.random.default_rng(training.seed)
    sizes, one_hot = labels_of_batch(release, training.batch)
    labels = torch.from_numpy(one_hot.astype(np.float32))
    module = new_module(torch, release, training.network, training.seed)
    if release.weights:
        freeze_decoder(torch, module, release)
    terms = loss_terms(
        release, sizes, rng, features_per_step=training.features_per_step, subsets_per_step=training.subsets_per_step
    )

    def new_cells() -> Any:
        images = module(draw_inputs(torch, one_hot, training.noise_dim, rng))
        return torch.cat([by_pixel(images), labels], dim=1)

    trained = [each for each in module.parameters() if each.requires_grad]
    descend(trained, terms, new_cells, training=training, progress=progress)
    return fitted(release, training.network, module)


def labels_of_batch(release: Release, batch: int) -> tuple[Integers, Floats]:
    """Images of each class in a batch that is sorted by class, and their one-hot labels."""
    counts = release.label_counts
    sizes = rows_per_label(counts / counts.sum(), batch)
    return sizes, np.repeat(np.eye(len(sizes)), sizes, axis=0)


def new_module(torch: Any, release: Release, architecture: Architecture, seed: int) -> Any:
    """A network before training, for a release's images."""
    module = architecture.build(torch, image_shape(release.plan.schema), len(release.label_counts))
    initialise(torch, module, seed)
    return module


def freeze_decoder(torch: Any, module: Any, release: Release) -> None:
    """Load a release's decoder into the module and freeze it."""
    learnt = dict(release.weights)
    layers = [part for part in getattr(module, "decoder", ()) if hasattr(part, "weight")]
    with torch.no_grad():
        for place, layer in enumerate(layers):
            layer.weight.copy_(torch.from_numpy(learnt[f"{DECODER}{place}.weight"].T.copy()))
            layer.bias.copy_(torch.from_numpy(learnt[f"{DECODER}{place}.bias"].copy()))
            layer.requires_grad_(False)


def fitted(release: Release, architecture: Architecture, module: Any) -> ImageNetwork:
    """The generator that a trained module is."""
    counts = release.label_counts
    return ImageNetwork(
        schema=release.plan.schema,
        architecture=architecture,
        weights=state_of(module),
        default_num_rows=release.plan.num_rows or round(float(counts.sum())),
        label_shares=tuple((counts / counts.sum()).tolist()),
    )


BETAS = (0.5, 0.999)
"""Adam's, as is usual for image generators (Radford et al. 2016)."""

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


@one_thread()
def train_perceptual(
    release: Release, training: PerceptualTraining, *, progress: LossProgress | None = None
) -> ImageNetwork:
    """Fit a network to a release, and keep the checkpoint that the noisier stage likes best.

    The same release and settings give the same network.
    """
    torch, rng, steps = load_torch(), np.random.default_rng(training.seed), training.steps
    sizes, one_hot = labels_of_batch(release, training.batch)
    module = new_module(torch, release, training.network, training.seed)
    averages = [MovingAverage(torch, each) for each in moments_of(torch, release, (FIRST, SECOND, PRODUCTS), sizes)]
    judge = _Judge(torch, release, training) if any(block.name == STOPPING for block in release.blocks) else None
    see = activations_seen(release, [each.moments for each in averages])
    generator = torch.optim.Adam(module.parameters(), betas=BETAS)
    memory = torch.optim.Adam([each.remembered for each in averages], betas=BETAS)
    every = max(1, steps // max(1, training.checkpoints))
    best, kept = math.inf, None
    for done in range(1, steps + 1):
        generator.param_groups[0]["lr"] = training.learning_rate * pace((done - 1) / steps)
        memory.param_groups[0]["lr"] = training.average_rate * pace((done - 1) / steps)
        layers = see(by_pixel(module(draw_inputs(torch, one_hot, training.noise_dim, rng))))
        off = [each.off_by(layers) for each in averages]
        for each, far in zip(averages, off, strict=True):
            each.remember(far)
        memory.step()
        loss = sum(each.loss(far) for each, far in zip(averages, off, strict=True))
        generator.zero_grad()
        loss.backward()
        generator.step()
        if progress is not None and (done % 20 == 0 or done == steps):
            progress(done, steps, sum(float((far.detach() ** 2).mean()) for far in off))
        if judge is not None and (done % every == 0 or done == steps):
            score = judge.score(module)
            if score <= best:
                best, kept = score, copy.deepcopy(module.state_dict())
    if kept is not None:
        module.load_state_dict(kept)
    return fitted(release, training.network, module)


class Moments:
    """Mean features of a block: those that were released, and those of generated images.

    Args:
        torch: the library.
        release: holds the block.
        block: perceptual features, or products of them two by two.
        sizes: images of each class in a batch that is sorted by class.
    """

    def __init__(self, torch: Any, release: Release, block: Block, sizes: Integers) -> None:
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
        features = self.map.of_activations([layers[name] for name in self.map.source.layers])
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


def moments_of(torch: Any, release: Release, names: Sequence[str], sizes: Integers) -> list[Moments]:
    """The moments in those of several blocks that a release has."""
    blocks = {block.name: block for block in release.blocks}
    return [Moments(torch, release, blocks[name], sizes) for name in names if name in blocks]


class _Judge:
    """Early stopping: squared distance of a network's moments to those of the noisier stage."""

    def __init__(self, torch: Any, release: Release, training: PerceptualTraining) -> None:
        self.torch, self.training = torch, training
        sizes = np.full(len(release.label_counts), training.judged)
        (self.moments,) = moments_of(torch, release, (STOPPING,), sizes)
        self.see = activations_seen(release, [self.moments])
        self.one_hot = np.repeat(np.eye(len(sizes)), sizes, axis=0)

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
    network: PublicNetwork = registered_network(maps[0].source.sha256, maps[0].source.network)
    layers = tuple(dict.fromkeys(name for map_ in maps for name in map_.source.layers))

    def see(images: Any) -> Mapping[str, Any]:
        return dict(zip(layers, activations(network, images, shape, layers), strict=True))

    return see
