"""Generators in which every class begins as a Gaussian cloud of its own, which layers then bend."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from understudy.generators.image_architectures import ARCHITECTURES, LEAK, Architecture, connected_layers, halved
from understudy.schema.images import ImageShape

SPREAD = 8.0
"""How far noise moves the first images of clouds: with less they begin alike, and learn to differ slowly.
Residual blocks make smooth images that differ from the start, and begin with fainter clouds."""


def clouds(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Clouds that fully connected layers bend."""
    hidden = (_inputs(architecture, num_labels), *architecture.hidden)
    last = torch.nn.Linear(hidden[-1], shape.num_pixels)
    layers = [*connected_layers(torch, hidden), last]
    return _bent(torch, architecture, shape, num_labels, layers, spread=SPREAD)


def residual(torch: Any, architecture: Architecture, shape: ImageShape, num_labels: int) -> Any:
    """Clouds that residual blocks bend: each up-samples, and adds what convolutions make of it."""
    nn, depths = torch.nn, architecture.channels
    heights, widths = (halved(size, len(depths)) for size in (shape.height, shape.width))
    hidden = (_inputs(architecture, num_labels), *architecture.hidden)
    sizes = zip(heights[1:], widths[1:], strict=True)
    layers = [
        *connected_layers(torch, hidden),
        nn.Linear(hidden[-1], depths[0] * heights[0] * widths[0]),
        nn.Unflatten(1, (depths[0], heights[0], widths[0])),
        *(_block(nn, *step, size) for step, size in zip(pairwise((*depths, depths[-1])), sizes, strict=True)),
        nn.BatchNorm2d(depths[-1]),
        nn.LeakyReLU(LEAK),
        nn.Conv2d(depths[-1], shape.channels, 3, padding=1),
    ]
    return _bent(torch, architecture, shape, num_labels, layers)


def _inputs(architecture: Architecture, num_labels: int) -> int:
    """Noise once for every class, times its membership, and the memberships."""
    return (architecture.noise_dim + 1) * num_labels


def _bent(
    torch: Any,
    architecture: Architecture,
    shape: ImageShape,
    num_labels: int,
    layers: list[Any],
    *,
    spread: float = 1.0,
) -> Any:
    """Scores that are linear in a class's own noise, plus what layers make of it."""
    nn = torch.nn

    class Bent(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.bend = nn.Sequential(*layers)
            self.cloud = nn.Linear(_inputs(architecture, num_labels), shape.num_pixels)
            self.cloud.spread = spread

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


ARCHITECTURES["residual"] = residual
ARCHITECTURES["clouds"] = clouds
