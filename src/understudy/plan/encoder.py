"""The plan of a feature extractor trained by DP-SGD on the private images themselves.

DP-MEPF without auxiliary data (App. F): a part of the budget trains the network by noisy gradient descent, the rest
is for the moments of its layers. Everything here is decided before the images are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np

from understudy.accounting.dpsgd import calibrated_descent
from understudy.accounting.mechanisms import Budget
from understudy.codec import FLAT, decode, encode
from understudy.errors import UsageError
from understudy.features.image_bases import Cosines
from understudy.files import canonical_sha256
from understudy.networks.public import Encoder, EncoderForm, Weights
from understudy.networks.training import EncoderTraining, linear_layer
from understudy.plan.descent import DescentPlan
from understudy.plan.plan import ROW_CAP
from understudy.schema import Column, Schema
from understudy.schema.images import ImageShape

PIXEL_MEAN = 0.5
PIXEL_DEVIATION = 0.5
"""What pixels are taken to have, from 0 to 1: public, as nothing private may be looked at for them."""

FORMAT = 1
"""The version of the plan's document."""

ROWS_IF_UNSAID = 10_000
"""A public guess where neither the plan nor the schema says how many images there are; it sets the sampling rate."""


@dataclass(frozen=True)
class ExtractorPlan:
    """DP-SGD on the task of classifying images by their label; the convolutions that it learns are the encoder.

    ``training`` gives form, steps, learning rate and seed; ``batch`` of it is the expected number of images
    in a step, drawn independently. ``clip`` is the norm that each image's gradient is shortened to.
    """

    schema: Schema
    budget: Budget = field(metadata=FLAT)
    training: EncoderTraining = field(default_factory=lambda: EncoderTraining(steps=400, batch=500))
    clip: float = 1.0
    num_rows: int | None = None

    def __post_init__(self) -> None:
        label = self.schema.label
        if self.schema.image is None or label is None or not label.is_choice:
            raise UsageError(
                "schema",
                "has no images with a label of named classes, which the network learns to tell apart",
                "Use a public encoder, or --method dp-spectrum, which needs none",
            )
        if not self.schema.privacy.is_row:
            raise UsageError(
                "schema",
                f"protects every {self.schema.privacy.unit}, and noisy descent protects single rows",
                "Use a public encoder, or set privacy: {unit: row}",
            )
        if self.expected_rows > ROW_CAP:
            raise UsageError("rows", f"must be at most {ROW_CAP:,}, which integer sums hold", "Release a part")

    @property
    def image(self) -> ImageShape:
        return cast(ImageShape, self.schema.image)  # plans without images or a label are refused above

    @property
    def label(self) -> Column:
        return cast(Column, self.schema.label)

    @property
    def expected_rows(self) -> int:
        """The public number of images, or a public guess."""
        return self.num_rows or self.schema.rows or ROWS_IF_UNSAID

    @cached_property
    def descent(self) -> DescentPlan:
        """The noisy descent that meets the budget."""
        training, rows = self.training, self.expected_rows
        cost = calibrated_descent(self.budget, sampling_rate=min(1.0, training.batch / rows), steps=training.steps)
        return DescentPlan(self.budget, cost, self.clip, training.learning_rate, rows, training.seed)

    @property
    def form(self) -> EncoderForm:
        """The network, with as many cosine components as are asked for."""
        means, deviations = ((each,) * self.image.channels for each in (PIXEL_MEAN, PIXEL_DEVIATION))
        return self.training.form(self.image, means, deviations, most=self.image.num_pixels)

    def encoder(self, convolutions: Weights, facts: dict[str, Any]) -> Encoder:
        """The encoder with convolutions that were learnt, beside weighted cosines, and what it cost."""
        cosines, count = Cosines(self.image), self.form.components
        basis = cosines.matrix(count).T * np.sqrt(cosines.frequencies[:count])[:, None]
        trained_on = "the private images themselves, by noisy descent"
        return Encoder(self.form, convolutions | linear_layer(self.form, basis), trained_on, self.cost(facts))

    def cost(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What the encoder, and with it every plan that takes features from it, says of the descent."""
        descent = self.descent
        return {
            "epsilon": descent.epsilon(),
            "delta": self.budget.delta,
            "mu_squared": str(descent.charge.mu_squared),
            "slack": str(descent.charge.slack),
            "clip": self.clip,
            **encode(descent.cost),
            "is_private": bool(facts["is_private"]),
            "noise": facts["noise"],
        }

    def to_dict(self) -> dict[str, Any]:
        """The plan in its canonical form."""
        return {"extractor": FORMAT} | encode(self)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form."""
        return canonical_sha256(self.to_dict())

    @property
    def num_parameters(self) -> int:
        """Numbers that a step moves: convolutions, and the last layer that names classes."""
        depths = (self.image.channels, *self.form.depths)
        weights = sum(
            after * (before * kernel**2 + 1)
            for before, after, kernel in zip(depths, depths[1:], self.form.kernels, strict=False)
        )
        return weights + self.label.num_choices * (depths[-1] + 1)

    def start(self, torch: Any) -> dict[str, Any]:
        """Where the descent begins: random weights from a public seed, of the variance of He et al. 2015."""
        source = torch.Generator().manual_seed(self.training.seed)
        found, before = {}, self.image.channels
        for name, depth, kernel in zip(self.form.convolutions, self.form.depths, self.form.kernels, strict=True):
            shape = (depth, before, kernel, kernel)
            spread = math.sqrt(2 / (before * kernel**2))
            found[f"{name}.weight"] = spread * torch.randn(shape, generator=source)
            found[f"{name}.bias"] = torch.zeros(depth)
            before = depth
        classes = self.label.num_choices
        found["last.weight"] = torch.randn((classes, before), generator=source) / math.sqrt(before)
        found["last.bias"] = torch.zeros(classes)
        return found

    def row_loss(self, torch: Any) -> Any:
        """The cross-entropy of one image's class; zero, if it has no label."""
        form, functional = self.form, torch.nn.functional

        def loss(parameters: dict[str, Any], image: Any, label: Any, counts: Any) -> Any:
            hidden = (image.float() / 255 - PIXEL_MEAN) / PIXEL_DEVIATION  # (channels, height, width)
            for name, stride, kernel in zip(form.convolutions, form.strides, form.kernels, strict=True):
                weight, bias = parameters[f"{name}.weight"], parameters[f"{name}.bias"]
                hidden = functional.conv2d(hidden[None], weight, bias, stride=stride, padding=kernel // 2)[0].relu()
            scores = parameters["last.weight"] @ hidden.mean((1, 2)) + parameters["last.bias"]
            return functional.cross_entropy(scores[None], label[None]) * counts

        return loss


def extractor_plan_from_dict(document: dict[str, Any]) -> ExtractorPlan:
    """Read a plan back from its canonical form; ValueError and the like if it is none."""
    if document["extractor"] != FORMAT:
        raise ValueError("another version's plan")
    return decode(ExtractorPlan, {key: value for key, value in document.items() if key != "extractor"})
