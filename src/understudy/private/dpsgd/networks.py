"""DP-SGD for any torch function, with per-example gradients by ``torch.func``, and the image decoder trained by it.

Torch is loaded when a function is called, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from understudy.arrays import Floats, Integers, Singles, load_torch, one_thread
from understudy.errors import InputError, UsageError
from understudy.networks.autoencoder import DECODER
from understudy.plan.descent import DecoderPlan
from understudy.plan.plan import Plan
from understudy.private.dpsgd.steps import Arrays, Descent, clipped, read_rows
from understudy.private.lattice import to_lattice
from understudy.private.noise import NoiseSource
from understudy.private.spending import Receipt
from understudy.schema.encode import encode_batch

Tensors = dict[str, Any]
RowLoss = Callable[..., Any]
"""From parameters by name and the tensors of one row to its loss, a torch scalar."""

RADIUS = 2**20
"""Integer length of a gradient of the clipping norm."""

BLOCK = 64  # rows whose gradients are in memory at once


def noisy_descent(
    parameters: Tensors, row_loss: RowLoss, rows: Arrays, descent: Descent, *, block: int = BLOCK
) -> Tensors:
    """Train parameters on private rows by DP-SGD.

    Args:
        parameters: torch tensors by name, where the descent starts; public.
        row_loss: ``row_loss(parameters, *row)``, the loss of one row, by torch functions that work
            under ``vmap``. It must not keep anything, and not look at other rows.
        rows: arrays with a private row at each place of their first axis.
        descent: the plan's clipping norm is for the whole gradient of a row.
        block: rows whose gradients are computed together.

    Guarantee:
        The outcome is private as the plan's cost states, between tables with one row more or less, if torch gives
        a row the same gradient whatever other rows are in its block, which is checked on made-up rows first.
        Gradients are rounded to whole numbers, their norms checked and their sums formed exactly (proofs/descent.md).
    """
    clip = descent.plan.clip
    if clip <= 0 or (descent.plan.expected_rows or 1) <= 0:
        raise UsageError("clip and expected rows", "must be above 0")
    check_row_gradients(parameters, row_loss, rows, block=block)
    with one_thread() as torch:
        gradients = _gradients(torch, parameters, row_loss)

        def summed(place: Floats, drawn: Integers) -> Integers:
            return _clipped_sum(gradients, place, rows, drawn, clip=clip, block=block)

        found = descent.run(_flat(parameters), summed, num_rows=len(rows[0]), radius=RADIUS)
    return _unflat(torch, found, parameters)


def check_row_gradients(parameters: Tensors, row_loss: RowLoss, rows: Arrays, *, block: int = BLOCK) -> None:
    """See on made-up rows, before anything is paid, that a row's gradient does not depend on its block.

    Of ``rows`` types and shapes alone are looked at.
    """
    rng = np.random.default_rng(0)
    made_up, place = tuple(_made_up(rng, block, array) for array in rows), _flat(parameters)
    with one_thread() as torch, threadpool_limits(limits=1, user_api="blas"):
        gradients = _gradients(torch, parameters, row_loss)
        whole = gradients(place, made_up)
        for row in {0, block // 2, block - 1}:
            alone = gradients(place, tuple(_padded(array[row : row + 1], block) for array in made_up))
            if not np.array_equal(whole[row], alone[0], equal_nan=True):
                raise InputError(
                    "this machine",
                    "computes a row's gradient differently in different blocks",
                    "Use another build of torch",
                )


def _gradients(torch: Any, parameters: Tensors, row_loss: RowLoss) -> Callable[[Floats, Arrays], npt.NDArray[Any]]:
    """From flat parameters and a block of rows to the rows' flat gradients."""
    single = torch.func.grad(row_loss)

    def compute(place: Floats, rows: Arrays) -> npt.NDArray[Any]:
        tensors = [torch.from_numpy(np.ascontiguousarray(array)) for array in rows]
        current = _unflat(torch, place, parameters)
        found = torch.func.vmap(single, in_dims=(None, *(0 for _ in tensors)))(current, *tensors)
        flat = [found[name].reshape(len(rows[0]), -1) for name in parameters]
        return np.asarray(torch.cat(flat, dim=1).detach().numpy())

    return compute


def _clipped_sum(
    gradients: Callable[[Floats, Arrays], npt.NDArray[Any]],
    place: Floats,
    rows: Arrays,
    places: Integers,
    *,
    clip: float,
    block: int,
) -> Integers:
    """The exact sum of the drawn rows' integer gradients, each inside ``RADIUS``. PRIVATE."""
    total = np.zeros(len(place), dtype=np.int64)
    for start in range(0, len(places), block):
        part = places[start : start + block]
        # Blocks have one shape: others would be computed by other means, and to other last digits.
        padded = tuple(_padded(array[part], block) for array in rows)
        found = gradients(place, padded)[: len(part)].astype(np.float64)
        total += to_lattice(clipped(found, clip), RADIUS).sum(axis=0).astype(np.int64)
    return total


def _padded(array: npt.NDArray[Any], block: int) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros((block - len(array), *array.shape[1:]), array.dtype)])


def _made_up(rng: np.random.Generator, block: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    shape = (block, *like.shape[1:])
    if np.issubdtype(like.dtype, np.floating):
        return rng.random(shape).astype(like.dtype)
    if like.dtype == np.uint8:  # pixels; black images would show little
        return rng.integers(0, 256, shape, dtype=np.uint8)
    return rng.integers(0, 2, shape).astype(like.dtype)


def _flat(parameters: Tensors) -> Floats:
    flat = [np.asarray(tensor.detach().numpy(), np.float64).ravel() for tensor in parameters.values()]
    return np.concatenate(flat)


def _unflat(torch: Any, flat: Floats, like: Tensors) -> Tensors:
    found, start = {}, 0
    for name, tensor in like.items():
        part = flat[start : start + tensor.numel()]
        found[name] = torch.from_numpy(part.reshape(tuple(tensor.shape)).astype(np.float32))
        start += tensor.numel()
    return found


def tensors_of(parameters: Mapping[str, npt.NDArray[np.float32]]) -> Tensors:
    torch = load_torch()
    return {name: torch.from_numpy(value.copy()) for name, value in parameters.items()}


Weights = dict[str, Singles]
AVERAGED = 0.2
"""The outcome is the mean of the last fifth of the steps."""


def read_images(data: object, plan: Plan, *, query: str | None) -> Arrays:
    """All images and their one-hot labels, in memory. PRIVATE.

    # (num_images, num_pixels), (num_images, num_labels)
    """
    layout, pixels = plan.layout, len(plan.layout.numbers)

    def encode(batch: pa.RecordBatch) -> Arrays:
        cells = layout.expand(encode_batch(plan.schema, batch)).astype(np.float32)
        return cells[:, :pixels], cells[:, pixels:] if layout.choices else np.ones((len(cells), 1), np.float32)

    return read_rows(data, plan.schema.file_names, encode, query=query, empty=_no_images(plan))


def _no_images(plan: Plan) -> Arrays:
    pixels = len(plan.layout.numbers)
    return np.empty((0, pixels), np.float32), np.empty((0, max(1, plan.layout.width - pixels)), np.float32)


def check_decoder(plan: Plan, decoder: DecoderPlan) -> None:
    """Refuse a machine whose torch gives an image different gradients beside others, before rows are read."""
    network, like = decoder.network, _no_images(plan)
    check_row_gradients(tensors_of(network.first_parameters(decoder.seed)), network.loss, like)


def train_decoder(images: Arrays, decoder: DecoderPlan, *, noise: NoiseSource, receipt: Receipt) -> Weights:
    """Train encoder and decoder together, and hand out the decoder.

    The paper trains the encoder without noise. A decoder's gradients are taken through the encoder, so every
    image would have a say in all of them, and clipping them one by one would bound nothing.

    Guarantee:
        What is returned is private as the descent's cost states, between sets with one image more or less
        (proofs/descent.md).
    """
    network = decoder.network
    descent = Descent(decoder, receipt, noise, rule="adam", averaged=AVERAGED)
    found = noisy_descent(tensors_of(network.first_parameters(decoder.seed)), network.loss, images, descent)
    return {name: value.detach().numpy() for name, value in found.items() if name.startswith(DECODER)}
