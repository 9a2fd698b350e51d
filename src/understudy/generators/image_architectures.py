"""Networks that turn noise and a label into images: what they are made of (torch, handed in)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from understudy.schema.images import ImageShape


@dataclass(frozen=True, slots=True)
class Architecture:
    """A kind of network, and the sizes that are its own.

    Inputs are ``noise_dim`` standard normal numbers and the one-hot label. ``hidden`` are the widths of
    fully connected layers; ``channels`` the depths of the layers after them, for kinds that have some.
    """

    kind: str = "convolutional"
    noise_dim: int = 5
    hidden: tuple[int, ...] = (200,)
    channels: tuple[int, ...] = (16, 8)

    def __post_init__(self) -> None:
        if self.kind not in ARCHITECTURES:
            raise ValueError(f"there is no architecture '{self.kind}'")

    def build(self, torch: Any, shape: ImageShape, num_labels: int) -> Any:
        """A new module, inputs (num_rows, noise_dim + num_labels) to values in [0, 1] of every pixel.

        # -> (num_rows, channels, height, width)
        """
        with torch.random.fork_rng(devices=[]):  # first values are drawn by ``initialise``
            module = ARCHITECTURES[self.kind](torch, self, shape, num_labels)
        return module.to(memory_format=torch.channels_last)  # twice as fast on a processor


Builder = Callable[[Any, Architecture, ImageShape, int], Any]
KERNEL = 5
"""Width of the convolutions."""

LEAK = 0.1
"""Slope of rectified units below zero. With none, as published, a class whose units are all off stays so."""


def initialise(torch: Any, module: Any, seed: int) -> None:
    """Draw the first values of all weights, uniformly up to one over the root of their inputs.

    A part that has a ``spread`` gets values so many times as large.
    """
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in module.modules():
            weight = getattr(part, "weight", None)
            if weight is None or weight.dim() < 2:
                continue
            bound = getattr(part, "spread", 1.0) / math.sqrt(weight[0].numel())
            for values in (weight, part.bias):
                if values is not None:
                    values.uniform_(-bound, bound, generator=source)


def connected(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Fully connected layers alone."""
    nn = torch.nn
    layers = perceptron(nn, architecture.noise_dim + num_labels, architecture.hidden, shape.num_pixels)
    return nn.Sequential(*layers, nn.Unflatten(1, (shape.channels, shape.height, shape.width)), nn.Sigmoid())


def convolutional(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """A small image from fully connected layers, then bilinear up-sampling and a convolution in turn.

    Every up-sampling doubles height and width, the last to those of the images (DP-MERF's code).
    """
    nn, depths = torch.nn, architecture.channels
    smallest, *sizes = halved(shape, len(depths))
    first = (depths[0], *smallest)
    widths = (architecture.noise_dim + num_labels, *architecture.hidden, math.prod(first))
    layers = [*connected_layers(nn, widths), nn.Unflatten(1, first)]
    for (fewer, more), size in zip(pairwise((*depths, shape.channels)), sizes, strict=True):
        layers.append(nn.Upsample(size, mode="bilinear", align_corners=False))
        layers.append(nn.Conv2d(fewer, more, KERNEL, padding=KERNEL // 2))
        layers += [nn.BatchNorm2d(more), nn.LeakyReLU(LEAK)]
    return nn.Sequential(*layers[:-2], nn.Sigmoid())


def connected_layers(nn: Any, widths: tuple[int, ...]) -> list[Any]:
    """Fully connected layers, each with batch normalisation and leaky rectified units."""
    return [
        part
        for before, after in pairwise(widths)
        for part in (nn.Linear(before, after), nn.BatchNorm1d(after), nn.LeakyReLU(LEAK))
    ]


def perceptron(nn: Any, inputs: int, hidden: tuple[int, ...], outputs: int) -> list[Any]:
    """Such layers, and a last one without normalisation and units."""
    widths = (inputs, *hidden)
    return [*connected_layers(nn, widths), nn.Linear(widths[-1], outputs)]


def halved(shape: ImageShape, times: int) -> list[tuple[int, int]]:
    """Height and width halved so many times, rounded up, from the smallest to themselves."""
    found = [(shape.height, shape.width)]
    for _ in range(times):
        height, width = found[-1]
        found.append(((height + 1) // 2, (width + 1) // 2))
    return found[::-1]


HIDDEN: dict[str, tuple[int, ...]] = {"convolutional": (200,), "connected": (500, 500)}
"""The usual widths of fully connected layers."""


def decoded(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Fully connected layers to a code, and two layers from it to an image (DP-MERF-AE).

    ``channels`` are the length of a code and the width of the decoder, which DP-SGD has trained and which is frozen.
    """
    nn, (code_dim, width) = torch.nn, architecture.channels
    layers = perceptron(nn, architecture.noise_dim + num_labels, architecture.hidden, code_dim)

    class Decoded(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.codes = nn.Sequential(*layers)
            self.decoder = nn.Sequential(nn.Linear(code_dim, width), nn.ReLU(), nn.Linear(width, shape.num_pixels))

        def forward(self, drawn: Any) -> Any:
            pixels = torch.sigmoid(self.decoder(self.codes(drawn)))
            images = pixels.reshape(-1, shape.height, shape.width, shape.channels)
            return images.movedim(3, 1)

    return Decoded()


# Generators in which every class begins as a Gaussian cloud of its own, which layers then bend.

SPREAD = 8.0
"""How far noise moves the first images of clouds: with less they begin alike, and learn to differ slowly.
Residual blocks make smooth images that differ from the start, and begin with fainter clouds."""


def clouds(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Clouds that fully connected layers bend."""
    layers = perceptron(torch.nn, _inputs(architecture, num_labels), architecture.hidden, shape.num_pixels)
    module = _bent(torch, architecture, shape, num_labels, layers)
    module.cloud.spread = SPREAD
    return module


def residual(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Clouds that residual blocks bend: each up-samples, and adds what convolutions make of it."""
    nn, depths = torch.nn, architecture.channels
    smallest, *sizes = halved(shape, len(depths))
    first = (depths[0], *smallest)
    layers = [
        *perceptron(nn, _inputs(architecture, num_labels), architecture.hidden, math.prod(first)),
        nn.Unflatten(1, first),
        *(_block(nn, *step, size) for step, size in zip(pairwise((*depths, depths[-1])), sizes, strict=True)),
        nn.BatchNorm2d(depths[-1]),
        nn.LeakyReLU(LEAK),
        nn.Conv2d(depths[-1], shape.channels, 3, padding=1),
    ]
    return _bent(torch, architecture, shape, num_labels, layers)


def _inputs(architecture: Architecture, num_labels: int) -> int:
    """Noise once for every class, times its membership, and the memberships."""
    return (architecture.noise_dim + 1) * num_labels


def _bent(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int, layers: list[Any]) -> Any:
    """Scores that are linear in a class's own noise, plus what layers make of it."""
    nn = torch.nn

    class Bent(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.bend = nn.Sequential(*layers)
            self.cloud = nn.Linear(_inputs(architecture, num_labels), shape.num_pixels)

        def forward(self, drawn: Any) -> Any:
            noise, labels = drawn.split([architecture.noise_dim, num_labels], dim=1)
            apart = (labels[:, :, None] * noise[:, None, :]).flatten(1)
            entered = torch.cat([apart, labels], dim=1)
            scores = self.cloud(entered) + self.bend(entered).flatten(1)
            return torch.sigmoid(scores).reshape(-1, shape.channels, shape.height, shape.width)

    return Bent()


def _block(nn: Any, before: int, after: int, size: tuple[int, int]) -> Any:
    """Twice the size: the input itself, and what convolutions make of it."""

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.larger = nn.Upsample(size, mode="bilinear", align_corners=False)
            self.straight = nn.Conv2d(before, after, 1)
            self.bent = nn.Sequential(
                nn.BatchNorm2d(before),
                nn.LeakyReLU(LEAK),
                nn.Conv2d(before, after, 3, padding=1),
                nn.BatchNorm2d(after),
                nn.LeakyReLU(LEAK),
                nn.Conv2d(after, after, 3, padding=1),
            )

        def forward(self, images: Any) -> Any:
            images = self.larger(images)
            return self.straight(images) + self.bent(images)

    return Block()


DECODED = "decoded"
ARCHITECTURES: dict[str, Builder] = {
    "convolutional": convolutional,
    "connected": connected,
    "residual": residual,
    "clouds": clouds,
    DECODED: decoded,
}
"""Every kind of image network by its name."""
