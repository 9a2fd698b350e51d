"""Train an image generator by the MMD between its images' mean embedding and the released one (torch, lazily)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.arrays import LossProgress, one_thread
from understudy.fits.mmd_loss import loss_terms, pace, rows_per_label, trainable
from understudy.generators.base import image_shape
from understudy.generators.image_architectures import ARCHITECTURES, HIDDEN, Architecture, connected_layers, initialise
from understudy.generators.image_network import ImageNetwork, by_pixel, draw_inputs, state_of
from understudy.networks.autoencoder import DECODER
from understudy.released import Release
from understudy.schema.images import ImageShape

DECODED = "decoded"
"""The architecture of DP-MERF-AE: a generator of codes, before a decoder that DP-SGD has trained and that is frozen."""


def decoded(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Fully connected layers to a code, and two layers from it to an image.

    ``channels`` are the length of a code and the width of the decoder.
    """
    nn, (code_dim, width) = torch.nn, architecture.channels
    widths = (architecture.noise_dim + num_labels, *architecture.hidden)
    codes = nn.Sequential(*connected_layers(torch, widths), nn.Linear(widths[-1], code_dim))
    decoder = nn.Sequential(nn.Linear(code_dim, width), nn.ReLU(), nn.Linear(width, shape.num_pixels))

    class Decoded(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.codes, self.decoder = codes, decoder

        def forward(self, drawn: Any) -> Any:
            pixels = torch.sigmoid(self.decoder(self.codes(drawn)))
            images = pixels.reshape(-1, shape.height, shape.width, shape.channels)
            return images.movedim(3, 1)

    return Decoded()


def freeze_decoder(torch: Any, module: Any, release: Release) -> None:
    """Load a release's decoder into the module and freeze it."""
    learnt = dict(release.weights)
    layers = [part for part in getattr(module, "decoder", ()) if hasattr(part, "weight")]
    with torch.no_grad():
        for place, layer in enumerate(layers):
            layer.weight.copy_(torch.from_numpy(learnt[f"{DECODER}{place}.weight"].T.copy()))
            layer.bias.copy_(torch.from_numpy(learnt[f"{DECODER}{place}.bias"].copy()))
            layer.requires_grad_(False)


ARCHITECTURES[DECODED] = decoded


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


def train_image_network(
    release: Release, training: ImageTraining, *, progress: LossProgress | None = None
) -> ImageNetwork:
    """Fit a network to a release; the same release and settings give the same network."""
    with one_thread() as torch:
        return _train(torch, release, training, progress)


def _train(torch: Any, release: Release, training: ImageTraining, progress: LossProgress | None) -> ImageNetwork:
    rng = np.random.default_rng(training.seed)
    schema, counts = release.plan.schema, release.label_counts
    shares = counts / counts.sum()
    sizes = rows_per_label(shares, training.batch)
    one_hot = np.repeat(np.eye(len(shares)), sizes, axis=0)
    labels = torch.from_numpy(one_hot.astype(np.float32))
    module = training.network.build(torch, image_shape(schema), len(shares))
    initialise(torch, module, training.seed)
    if release.weights:
        freeze_decoder(torch, module, release)
    terms = loss_terms(
        torch,
        release,
        sizes,
        convert=lambda map_: trainable(torch, map_),
        features_per_step=training.features_per_step,
        subsets_per_step=training.subsets_per_step,
        rng=rng,
    )

    def loss(done: float) -> Any:
        inputs = draw_inputs(torch, one_hot, training.noise_dim, rng)
        cells = torch.cat([by_pixel(module(inputs)), labels], dim=1)
        return sum(term.loss(cells) for term in terms if term.has_turn(done))

    minimise(
        torch,
        [each for each in module.parameters() if each.requires_grad],
        loss,
        steps=training.steps,
        learning_rate=training.learning_rate,
        progress=progress,
    )
    return ImageNetwork(
        schema=schema,
        architecture=training.network,
        weights=state_of(module),
        default_num_rows=release.plan.num_rows or max(1, round(float(counts.sum()))),
        label_shares=tuple(shares.tolist()),
    )


def minimise(
    torch: Any,
    parameters: list[Any],
    loss: Callable[[float], Any],
    *,
    steps: int,
    learning_rate: float,
    progress: LossProgress | None,
) -> None:
    """Adam on whatever loss: a function of the share of steps that are done."""
    optimiser = torch.optim.Adam(parameters, lr=learning_rate, betas=(0.9, 0.99))
    for step in range(steps):
        done = step / steps
        optimiser.param_groups[0]["lr"] = learning_rate * pace(done)
        total = loss(done)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        if progress is not None and (step % 20 == 19 or step == steps - 1):
            progress(step + 1, steps, float(total.detach()))
