"""Activations of a public network's layers: in padded batches of one shape for rows, differentiable for training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.arrays import Singles, load_torch, one_thread
from understudy.errors import InputError, UsageError
from understudy.networks.public import PIXELS, Intake, PublicNetwork
from understudy.schema.images import ImageShape

BLOCK = 32
"""Images that go through a network together, always: a last block is padded with black ones.

A network's sums may be ordered by the shape of what it is given. With one shape for all, a row's
floats cannot tell how many rows stand around it; that they do not tell which ones is tested."""

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in brightness (ITU-R BT.601)."""

_ONE_AT_A_TIME = Lock()
"""Modules tell what they put out to all who listen, so passes of several threads would hear each other's rows; and
how many threads torch itself takes is one number for all."""

_CHECKED: set[tuple[str, ImageShape, tuple[str, ...]]] = set()


class _AllSeen(Exception):  # noqa: N818 - no error: it ends a pass whose rest nobody wants
    pass


def activations(network: PublicNetwork, cells: Any, shape: ImageShape, layers: tuple[str, ...]) -> list[Any]:
    """Outputs of layers for the images among cells, differentiable.

    Of a module that a network uses several times it is the first output.

    Args:
        network: what to evaluate.
        cells: a torch tensor whose first columns are pixels.  # (num_rows, at least num_pixels)
        shape: of an image.
        layers: names of modules, or ``pixels``.

    Returns:
        A tensor for each layer.  # (num_rows, size)
    """
    flat = cells[:, : shape.num_pixels].float()
    images = flat.reshape(-1, shape.height, shape.width, shape.channels).permute(0, 3, 1, 2)
    seen = {PIXELS: flat} if PIXELS in layers else {}
    wanted = [name for name in layers if name != PIXELS]
    modules = dict(network.module.named_modules())

    def hook(name: str) -> Any:
        def keep(module: Any, inputs: Any, output: Any) -> None:
            # An activation that works in place would overwrite what is kept.
            seen.setdefault(name, output.clone().flatten(1))
            if len(seen) == len(layers):
                raise _AllSeen

        return keep

    handles = [modules[name].register_forward_hook(hook(name)) for name in wanted]
    try:
        if wanted:
            network.module(taken_in(images, network.intake))
    except _AllSeen:
        pass
    finally:
        for handle in handles:
            handle.remove()
    return [seen[name] for name in layers]


def taken_in(images: Any, intake: Intake) -> Any:
    """Preprocess images in [0, 1]: channels, size, mean and deviation.  # (num_images, channels, height, width)"""
    if intake.channels == 3 and images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    elif intake.channels == 1 and images.shape[1] == 3:
        images = (images * images.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)
    if intake.size is not None and tuple(images.shape[2:]) != intake.size:
        images = load_torch().nn.functional.interpolate(images, size=intake.size, mode="bilinear", align_corners=False)
    means, deviations = (images.new_tensor(each)[:, None, None] for each in (intake.means, intake.deviations))
    return (images - means) / deviations


def activations_of_rows(
    network: PublicNetwork, cells: npt.NDArray[np.float64], shape: ImageShape, layers: tuple[str, ...]
) -> list[Singles]:
    """The same for NumPy cells, without gradients, in padded blocks.

    Guarantee:
        What comes out for a row is a function of that row alone, if this machine passes the test that
        is made first: made-up images have the same bits at every place of a block, whatever images
        are beside them (proofs/perceptual.md).
    """
    key = (network.sha256, shape, layers)
    with _ONE_AT_A_TIME, one_thread() as torch, torch.no_grad():
        run = partial(_block, network, shape, layers)
        if key not in _CHECKED:
            _check_rows_alone(run, shape.num_pixels)
            _CHECKED.add(key)
        pixels = cells[:, : shape.num_pixels].astype(np.float32)
        blocks = [run(pixels[start : start + BLOCK]) for start in range(0, len(pixels), BLOCK)]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def sizes_of(network: PublicNetwork, shape: ImageShape, layers: tuple[str, ...]) -> tuple[int, ...]:
    """How many numbers each layer has for images of a shape, or a refusal of what it has not."""
    with one_thread() as torch, torch.no_grad():
        known = {PIXELS, *(name for name, _ in network.module.named_modules() if name)}
        for name in layers:
            if name not in known:
                raise UsageError(
                    "layers",
                    f"the network '{network.name}' has none called '{name}'",
                    f"It has {', '.join(sorted(known))[:300]}",
                )
        black = np.zeros((1, shape.num_pixels), dtype=np.float32)
        try:
            found = _block(network, shape, layers, black)
        except (RuntimeError, KeyError, AttributeError):
            size = f"{shape.height} x {shape.width}"
            raise UsageError(
                "encoder",
                f"the network '{network.name}' cannot read images of {size} in all of these layers",
                "Choose lower layers, or another network",
            ) from None
    return tuple(each.shape[1] for each in found)


def _block(network: PublicNetwork, shape: ImageShape, layers: tuple[str, ...], pixels: Singles) -> list[Singles]:
    padded = np.zeros((BLOCK, shape.num_pixels), dtype=np.float32)
    padded[: len(pixels)] = pixels
    found = activations(network, load_torch().from_numpy(padded), shape, layers)
    return [each[: len(pixels)].numpy() for each in found]


def _check_rows_alone(run: Callable[[Singles], list[Singles]], num_pixels: int) -> None:
    """Refuse a machine on which an image's bits depend on its place in a block or on its companions."""
    rng = np.random.default_rng(0)
    made_up, others = (rng.random((BLOCK, num_pixels), dtype=np.float32) for _ in range(2))
    expected = run(made_up)
    mixed = np.where(np.arange(BLOCK)[:, None] % 2 == 0, made_up, others)
    trials = [
        # One step on, so that by and by every place is like every other.
        (run(np.roll(made_up, 1, axis=0)), [np.roll(each, 1, axis=0) for each in expected]),
        (run(np.repeat(made_up[:1], BLOCK, axis=0)), [each[:1] for each in expected]),
        (run(made_up[:1]), [each[:1] for each in expected]),
        ([each[::2] for each in run(mixed)], [each[::2] for each in expected]),
    ]
    for found, wanted in trials:
        if not all(bool((a == b).all()) for a, b in zip(found, wanted, strict=True)):
            raise InputError(
                "this machine",
                "evaluates a network differently for an image in different batches",
                "Use another build of torch, or another network",
            )
