"""DP-SGD for any torch function, with per-example gradients by ``torch.func``, and the image decoder trained by it.

The one place on the private side that loads torch, and only when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from understudy.accounting.dpsgd import DescentCost
from understudy.arrays import Floats, Integers, Singles, StepProgress
from understudy.errors import InputError, MissingExtraError, UsageError
from understudy.features.exact import row_norms
from understudy.networks.autoencoder import DECODER
from understudy.plan.descent import DecoderPlan
from understudy.plan.plan import Plan
from understudy.private.dpsgd.steps import Draw, Optimizer, OptimizerSettings, drawn_rows, noisy_sum
from understudy.private.lattice import to_lattice
from understudy.private.noise import LongNoise, NoiseSource
from understudy.private.sealed import sealed
from understudy.private.spending import Receipt
from understudy.readers import open_source
from understudy.schema.encode import encode_batch

Arrays = tuple[npt.NDArray[Any], ...]
Tensors = dict[str, Any]
RowLoss = Callable[..., Any]
"""From parameters by name and the tensors of one row to its loss, a torch scalar."""

RADIUS = 2**20
"""Integer length of a gradient of the clipping norm."""

BLOCK = 64


def noisy_descent(
    parameters: Tensors,
    row_loss: RowLoss,
    rows: Sequence[npt.NDArray[Any]],
    *,
    cost: DescentCost,
    clip: float,
    expected_rows: float,
    steps: OptimizerSettings,
    receipt: Receipt,
    block: int = BLOCK,
    draw: Draw = drawn_rows,
    noise: NoiseSource | None = None,
    progress: StepProgress | None = None,
) -> Tensors:
    """Train parameters on private rows by DP-SGD.

    Args:
        parameters: torch tensors by name, where the descent starts; public.
        row_loss: ``row_loss(parameters, *row)``, the loss of one row, by torch functions that work
            under ``vmap``. It must not keep anything, and not look at other rows.
        rows: arrays with a private row at each place of their first axis.
        cost: sampling rate, noise multiplier and number of steps, from ``calibrated_descent``.
        clip: norm to which the gradient of every row is shortened.
        expected_rows: rows that there are, as far as it is public; it sets the length of steps and
            protects nothing.
        steps: learning rate and rule.
        receipt: pays for the noise of every step.
        block: rows whose gradients are computed together.
        draw: for tests only.
        noise: for tests only.
        progress: called after each step.

    Guarantee:
        The outcome is private as ``cost`` states, between tables with one row more or less, if torch gives
        a row the same gradient whatever other rows are in its block, which is checked on made-up rows first.
        Gradients are rounded to whole numbers, their norms checked and their sums formed exactly (proofs/descent.md).
    """
    torch = _torch()
    if clip <= 0 or expected_rows <= 0:
        raise UsageError("clip and expected rows", "must be above 0")
    source = noise or LongNoise()
    gradients = _gradients(torch, parameters, row_loss)
    optimizer = Optimizer(_flat(parameters), steps, cost.steps)
    arrays = tuple(np.asarray(array) for array in rows)
    with _one_thread(torch):
        _check_row_independence(gradients, optimizer.parameters, arrays, block)
        for done in range(cost.steps):
            places = draw(len(arrays[0]), cost.sampling_rate)
            drawn = partial(_clipped_sum, gradients, optimizer.parameters, arrays, places)
            sums = sealed(partial(drawn, clip=clip, block=block))
            noisy = noisy_sum(
                sums, radius=RADIUS, noise_multiplier=cost.noise_multiplier, noise=source, receipt=receipt
            )
            optimizer.step(noisy * (clip / (cost.sampling_rate * expected_rows)))
            if progress is not None:
                progress(done + 1, cost.steps)
    return _unflat(torch, optimizer.result, parameters)


def check_row_gradients(
    parameters: Tensors, row_loss: RowLoss, rows: Sequence[npt.NDArray[Any]], *, block: int = BLOCK
) -> None:
    """See on made-up rows, before anything is paid, that a row's gradient does not depend on its block.

    Of ``rows`` types and shapes alone are looked at.
    """
    torch = _torch()
    arrays = tuple(np.asarray(array) for array in rows)
    with _one_thread(torch):
        _check_row_independence(_gradients(torch, parameters, row_loss), _flat(parameters), arrays, block)


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


def row_gradients(parameters: Tensors, row_loss: RowLoss, rows: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The gradient of every row's loss, unclipped and without noise. PRIVATE.  # (num_rows, num_parameters)"""
    torch = _torch()
    compute = _gradients(torch, parameters, row_loss)
    return compute(_flat(parameters), tuple(np.asarray(array) for array in rows))


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
        total += to_lattice(_clipped(found, clip), RADIUS).sum(axis=0).astype(np.int64)
    return total


def _clipped(gradients: Floats, clip: float) -> Floats:
    """Per-example clipping, in units of the clipping norm: longer gradients are scaled to norm 1."""
    return np.asarray(gradients / np.maximum(row_norms(gradients), clip)[:, None])


def _padded(array: npt.NDArray[Any], block: int) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros((block - len(array), *array.shape[1:]), array.dtype)])


def _check_row_independence(
    gradients: Callable[[Floats, Arrays], npt.NDArray[Any]], place: Floats, rows: Arrays, block: int
) -> None:
    """Check on made-up rows that a row's gradient does not depend on its block."""
    rng = np.random.default_rng(0)
    made_up = tuple(_made_up(rng, block, array) for array in rows)
    whole = gradients(place, made_up)
    for row in {0, block // 2, block - 1}:
        alone = gradients(place, tuple(_padded(array[row : row + 1], block) for array in made_up))
        if not np.array_equal(whole[row], alone[0], equal_nan=True):
            raise InputError(
                "this machine",
                "computes a row's gradient differently in different blocks",
                "Use another build of torch",
            )


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


def _torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "network") from None
    return torch


def tensors_of(parameters: Mapping[str, npt.NDArray[np.float32]]) -> Tensors:
    torch = _torch()
    return {name: torch.from_numpy(value.copy()) for name, value in parameters.items()}


Images = tuple[Singles, Singles]
Weights = dict[str, Singles]
AVERAGED = 0.2
"""The outcome is the mean of the last fifth of the steps."""


def read_images(data: object, plan: Plan, *, query: str | None) -> Images:
    """All images and their one-hot labels, in memory. PRIVATE.

    # (num_images, num_pixels), (num_images, num_labels)
    """
    layout, columns = plan.layout, [column.name for column in plan.schema.used]
    with open_source(data, columns=columns, query=query) as batches:
        cells = [layout.expand(encode_batch(plan.schema, batch)).astype(np.float32) for batch in batches]
    found = np.concatenate([np.empty((0, layout.width), dtype=np.float32), *cells])
    pixels = len(layout.numbers)
    labels = found[:, pixels:] if layout.choices else np.ones((len(found), 1), dtype=np.float32)
    return np.ascontiguousarray(found[:, :pixels]), np.ascontiguousarray(labels)


def check_decoder(plan: Plan, decoder: DecoderPlan) -> None:
    """Refuse a machine whose torch gives an image different gradients beside others, before rows are read."""
    network, layout = decoder.network, plan.layout
    pixels = len(layout.numbers)
    like = (np.empty((0, pixels), np.float32), np.empty((0, max(1, layout.width - pixels)), np.float32))
    check_row_gradients(tensors_of(network.first_parameters(decoder.seed)), network.loss, like)


def train_decoder(images: Images, decoder: DecoderPlan, *, noise: NoiseSource, receipt: Receipt) -> Weights:
    """Train encoder and decoder together, and hand out the decoder.

    The paper trains the encoder without noise. A decoder's gradients are taken through the encoder, so every
    image would have a say in all of them, and clipping them one by one would bound nothing.

    Guarantee:
        What is returned is private as the descent's cost states, between sets with one image more or less
        (proofs/descent.md).
    """
    network = decoder.network
    found = noisy_descent(
        tensors_of(network.first_parameters(decoder.seed)),
        network.loss,
        images,
        cost=decoder.cost,
        clip=decoder.clip,
        expected_rows=float(decoder.expected_rows or 1),
        steps=OptimizerSettings(decoder.learning_rate, rule="adam", averaged=AVERAGED),
        noise=noise,
        receipt=receipt,
    )
    return {name: value.detach().numpy() for name, value in found.items() if name.startswith(DECODER)}
