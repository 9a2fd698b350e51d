"""Train a small convolutional encoder on public images (torch, lazily).

By classifying them, or, where they have no labels, by predicting how far each was turned (self-supervision by
rotations, Gidaris et al. 2018); images are augmented by random affine maps and contrast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bytes, LossProgress, Singles, one_thread
from understudy.errors import InputError, UsageError
from understudy.networks.activations import taken_in
from understudy.networks.public import Encoder, EncoderForm
from understudy.schema.images import LIGHTEST, ImageShape

QUARTERS = 4
"""Classes of the rotation task: turns by 0, 90, 180 and 270 degrees."""

MOST_IMAGES_FOR_COMPONENTS = 5_000
"""Images whose principal directions are computed: more would hardly move them."""

MOST_WIDE = 2**12
"""Channels of a convolution, and linear components."""

# Data augmentation: how far images are changed at random, at most.
TURN_RADIANS = 0.3
STRETCH_SHARE = 0.25  # of the image's size, like shear and shift
SHEAR_SHARE = 0.2
SHIFT_SHARE = 0.15
CONTRAST_SHARE = 0.3  # of the brightness


@dataclass(frozen=True, slots=True)
class EncoderTraining:
    """Public settings. ``mirrored`` lets half of all images be seen in a mirror: not for letters."""

    depths: tuple[int, ...] = (16, 32, 64)
    strides: tuple[int, ...] = (2, 2, 2)
    kernels: tuple[int, ...] = (5, 3, 3)
    components: int = 100
    steps: int = 1200
    batch: int = 128
    learning_rate: float = 3e-3
    mirrored: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        limits = {"components": MOST_WIDE, "steps": 10**7, "batch": 2**20, "depths": MOST_WIDE}
        for name, most in limits.items():
            if not all(1 <= value <= most for value in np.ravel(getattr(self, name))):
                raise UsageError(name, f"must lie between 1 and {most:,}")

    def form(
        self, image: ImageShape, means: tuple[float, ...], deviations: tuple[float, ...], *, most: int
    ) -> EncoderForm:
        """The network for images of a shape, with ``most`` linear components at most."""
        convolutions = tuple(self.depths), tuple(self.strides), tuple(self.kernels)
        return EncoderForm(image, means, deviations, *convolutions, min(self.components, most))


def train_encoder(
    images: Bytes,
    labels: npt.NDArray[np.int64] | None,
    training: EncoderTraining,
    *,
    trained_on: str = "",
    progress: LossProgress | None = None,
) -> tuple[Encoder, float]:
    """Learn to name the classes of public images; without labels, by how many quarters each was turned.

    Args:
        images: of one shape.  # (num_images, height, width[, channels])
        labels: a class for each image, from 0.
        training: settings.
        trained_on: what the images are, in a few words that certificates repeat.
        progress: called with steps done, steps in all, and the loss.

    Returns:
        The encoder, and the share of the images of the last tenth of the steps that it named rightly.
    """
    if len(images) < 2 or (labels is None and images.shape[1] != images.shape[2]):
        raise InputError(
            "public images",
            "there are too few, or they have neither labels nor the shape of squares",
            "Give more images, or labels",
        )
    shape = ImageShape(*images.shape[1:])
    pixels = images.reshape(len(images), *shape.axes[:2], shape.channels)
    sample = np.linspace(0, len(images) - 1, min(len(images), MOST_IMAGES_FOR_COMPONENTS)).astype(int)
    some = pixels[sample].astype(np.float64) / LIGHTEST
    means, deviations = (each.ravel() for each in (some.mean((0, 1, 2)), some.std((0, 1, 2))))
    deviations = np.maximum(deviations, 1e-3)
    most = min(shape.num_pixels, len(sample))
    form = training.form(shape, tuple(means.tolist()), tuple(deviations.tolist()), most=most)
    planes = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    with one_thread() as torch:
        convolutions, share = _Learning(torch, form, planes, labels, training).run(progress)
    # Principal directions, weighted by roots of inverse singular values, which spread noise evenly.
    _, sizes, directions = np.linalg.svd(some.reshape(len(some), -1), full_matrices=False)
    tilts = np.sqrt(sizes[0] / np.maximum(sizes[: form.components], 1e-3 * sizes[0]))
    weights = convolutions | linear_layer(form, directions[: form.components] * tilts[:, None])
    return Encoder(form, weights, trained_on), share


class _Learning:
    """Training with batch normalisation, folded in at the end, and a linear classifier, then dropped."""

    def __init__(self, torch: Any, form: EncoderForm, planes: Bytes, labels: Any, training: EncoderTraining) -> None:
        self.torch, self.form, self.training = torch, form, training
        self.source = torch.Generator().manual_seed(training.seed)
        self.planes = torch.from_numpy(planes)
        self.labels = None if labels is None else torch.from_numpy(labels)
        classes = QUARTERS if labels is None else int(labels.max()) + 1
        with torch.random.fork_rng(devices=[]):  # first values are drawn below
            whole = form.build(torch)
            self.parts = [getattr(whole, name) for name in form.convolutions]
            self.norms = [torch.nn.BatchNorm2d(depth) for depth in form.depths]
            self.last = torch.nn.Linear(2 * form.depths[-1], classes)
        with torch.no_grad():
            for part in (*self.parts, self.last):
                spread = (2 / part.weight[0].numel()) ** 0.5
                part.weight.normal_(0.0, spread, generator=self.source)
                part.bias.zero_()

    def run(self, progress: LossProgress | None) -> tuple[dict[str, Singles], float]:
        """Weights of the convolutions, and the training accuracy over the last tenth of the steps."""
        torch, training = self.torch, self.training
        modules = torch.nn.ModuleList([*self.parts, *self.norms, self.last])
        optimiser = torch.optim.Adam(modules.parameters(), lr=training.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training.steps)
        right: list[float] = []
        for step in range(training.steps):
            images, labels = self._batch()
            scores = self._scores(images)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            right.append(float((scores.argmax(1) == labels).float().mean()))
            if progress is not None and (step % 20 == 19 or step == training.steps - 1):
                progress(step + 1, training.steps, float(loss.detach()))
        return self._folded(), float(np.mean(right[-max(1, training.steps // 10) :]))

    def _scores(self, images: Any) -> Any:
        hidden = taken_in(images, self.form.intake)
        for part, norm in zip(self.parts, self.norms, strict=True):
            hidden = self.torch.relu(norm(part(hidden)))
        pooled = self.torch.cat([hidden.mean((2, 3)), hidden.amax((2, 3))], dim=1)
        return self.last(pooled)

    def _batch(self) -> tuple[Any, Any]:
        """A random mini-batch with augmentation: affine maps and contrast."""
        torch = self.torch
        size = min(self.training.batch, len(self.planes))
        chosen = torch.randint(len(self.planes), (size,), generator=self.source)
        images = self.planes[chosen].float() / LIGHTEST
        if self.labels is None:
            labels = torch.randint(QUARTERS, (size,), generator=self.source)
            for quarters in range(1, QUARTERS):
                turned = labels == quarters
                images[turned] = torch.rot90(images[turned], quarters, (2, 3))
        else:
            labels = self.labels[chosen]
        return self._changed(images), labels

    def _changed(self, images: Any) -> Any:
        torch, size = self.torch, len(images)

        def drawn(reach: float, *shape: int) -> Any:
            return (2 * torch.rand(size, *shape, generator=self.source) - 1) * reach

        turn, wide, tall = drawn(TURN_RADIANS), 1 + drawn(STRETCH_SHARE), 1 + drawn(STRETCH_SHARE)
        affine = torch.zeros(size, 2, 3)
        affine[:, 0, 0], affine[:, 0, 1] = wide * turn.cos(), drawn(SHEAR_SHARE) - wide * turn.sin()
        affine[:, 1, 0], affine[:, 1, 1] = tall * turn.sin(), tall * turn.cos()
        affine[:, :, 2] = drawn(SHIFT_SHARE, 2)
        if self.training.mirrored:
            affine[: size // 2, :, 0] *= -1
        functional = torch.nn.functional
        grid = functional.affine_grid(affine, images.shape, align_corners=False)
        moved = functional.grid_sample(images, grid, align_corners=False)
        return moved * (1 + drawn(CONTRAST_SHARE, 1, 1, 1))

    def _folded(self) -> dict[str, Singles]:
        """Convolutions with batch normalisation folded in: w gain, b_norm + (b - mean) gain."""
        found: dict[str, Singles] = {}
        for name, part, norm in zip(self.form.convolutions, self.parts, self.norms, strict=True):
            gain = norm.weight / (norm.running_var + norm.eps).sqrt()
            weight = part.weight * gain[:, None, None, None]
            bias = norm.bias + (part.bias - norm.running_mean) * gain
            found[f"{name}.weight"] = np.ascontiguousarray(weight.detach().numpy())
            found[f"{name}.bias"] = np.ascontiguousarray(bias.detach().numpy())
        return found


def linear_layer(form: EncoderForm, basis: npt.NDArray[np.float64]) -> dict[str, Singles]:
    """The layer that gives products of pixels with a basis, though it is given pixels over deviations.

    Rows of the basis have channels of a place together; the network is given one channel after the other.
    """
    height, width, channels = form.image.height, form.image.width, form.image.channels
    planes = basis.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
    means, deviations = (np.array(each)[:, None, None] for each in (form.means, form.deviations))
    weight = (planes * deviations).reshape(len(basis), -1)
    bias = (planes * means).sum((1, 2, 3))
    return {
        "components.weight": np.ascontiguousarray(weight, dtype=np.float32),
        "components.bias": np.ascontiguousarray(bias, dtype=np.float32),
    }
