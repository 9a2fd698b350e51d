"""A network that draws codes, before a decoder that a descent has trained and that stays as it is."""

from __future__ import annotations

from typing import Any

from understudy.features.autoencoder import DECODER
from understudy.generators.image_architectures import ARCHITECTURES, Architecture, connected_layers
from understudy.published import Release
from understudy.schema.images import ImageShape

DECODED = "decoded"


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
    """Put a release's decoder into the module, for good."""
    learnt = dict(release.weights)
    layers = [part for part in getattr(module, "decoder", ()) if hasattr(part, "weight")]
    with torch.no_grad():
        for place, layer in enumerate(layers):
            layer.weight.copy_(torch.from_numpy(learnt[f"{DECODER}{place}.weight"].T.copy()))
            layer.bias.copy_(torch.from_numpy(learnt[f"{DECODER}{place}.bias"].copy()))
            layer.requires_grad_(False)


ARCHITECTURES[DECODED] = decoded
