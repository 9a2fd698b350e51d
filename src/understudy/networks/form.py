"""A small convolutional encoder: its form, its weights, and the network that they make."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from understudy.networks.public import Intake, PublicNetwork, Weights, fingerprint, put_on_shelf
from understudy.schema.images import ImageShape, shape_from_dict

COMPONENTS = "components"
"""The layer of linear components: coordinates of an image in a public basis of few dimensions."""


@dataclass(frozen=True, slots=True)
class EncoderForm:
    """Convolutions with rectified units after each, beside linear components of the whole image.

    Layers are called ``conv1``, ``conv2``, ... and ``components``.
    """

    image: ImageShape
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    depths: tuple[int, ...]
    strides: tuple[int, ...]
    kernels: tuple[int, ...]
    components: int

    def __post_init__(self) -> None:
        if not 0 < len(self.depths) == len(self.strides) == len(self.kernels):
            raise ValueError("every convolution has a depth, a stride and a width")
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise ValueError("widths of convolutions are odd")

    @property
    def convolutions(self) -> tuple[str, ...]:
        """Names of the convolutions."""
        return tuple(f"conv{i + 1}" for i in range(len(self.depths)))

    @property
    def intake(self) -> Intake:
        """What the network wants of an image."""
        size = (self.image.height, self.image.width)
        return Intake(self.image.channels, self.means, self.deviations, size)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"image": self.image.to_dict()}

    def build(self, torch: Any) -> Any:
        """A new module, with weights of chance."""
        nn, form = torch.nn, self

        class Module(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.components = nn.Linear(form.image.num_pixels, form.components)
                before = form.image.channels
                parts = zip(form.convolutions, form.depths, form.strides, form.kernels, strict=True)
                for name, depth, stride, kernel in parts:
                    convolution = nn.Conv2d(before, depth, kernel, stride, padding=kernel // 2)
                    self.add_module(name, convolution)
                    before = depth

            def forward(self, images: Any) -> Any:
                self.components(images.flatten(1))
                for name in form.convolutions:
                    images = torch.relu(getattr(self, name)(images))
                return images

        return Module()


@dataclass(frozen=True)
class Encoder:
    """A form with weights, and a word on what they were learnt from."""

    form: EncoderForm
    weights: Weights
    told: str = ""
    private_cost: dict[str, Any] | None = None
    """What learning it from private rows cost, if it was (``encoders.extractor``)."""

    @property
    def sha256(self) -> str:
        """What plans know it by."""
        cost = {"private_cost": self.private_cost} if self.private_cost else {}
        return fingerprint(self.form.to_dict() | cost, self.weights)

    def network(self, name: str) -> PublicNetwork:
        """The network, on the shelf.

        Raises:
            ValueError: the weights are those of another form.
        """

        def build(torch: Any) -> Any:
            with torch.random.fork_rng(devices=[]):
                module = self.form.build(torch)
            state = {key: torch.from_numpy(np.array(value)) for key, value in self.weights.items()}
            try:
                module.load_state_dict(state)
            except RuntimeError:
                raise ValueError("the weights do not fit the encoder") from None
            return module

        form = self.form
        return put_on_shelf(
            PublicNetwork(name, self.sha256, form.intake, form.convolutions, build, self.told, self.private_cost)
        )


def form_from_dict(document: dict[str, Any]) -> EncoderForm:
    """The form that ``to_dict`` described."""
    sizes = {key: tuple(int(value) for value in document[key]) for key in ("depths", "strides", "kernels")}
    return EncoderForm(
        image=shape_from_dict(document["image"]),
        means=tuple(float(value) for value in document["means"]),
        deviations=tuple(float(value) for value in document["deviations"]),
        components=int(document["components"]),
        **sizes,
    )
